//! Locked files on disk: fetched in parallel, verified while reading, stored once; packed to one file and unpacked for machines without a network.
