//! Debian bases: locking from a (possibly hostile) archive, and images built twice.

mod archive;
mod image;
mod registry;
