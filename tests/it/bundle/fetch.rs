//! From a list of files to blobs in the store, over a network that misbehaves.
