//! Tests over a Docker daemon: the connection, images sent into it, and archives that it and others read.
//!
//! They start daemons of their own (Debian's package docker.io) as root; elsewhere they say that they are skipped.

mod archive;
mod attach;
mod engine;
mod equality;
mod interrupted;
mod load;
mod podman;
mod proxy;
mod runs;
mod set;
