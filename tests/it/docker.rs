//! Tests over a Docker daemon: the connection, and images sent into it.
//!
//! They start daemons of their own (Debian's package docker.io) as root; elsewhere they say that they are skipped.

mod engine;
