//! Spec to lock, with the network on: Debian's and uv's solvers, run in a built base image.
