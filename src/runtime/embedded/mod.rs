//! The embedded runtime: namespaces, overlayfs, cgroups and seccomp, driven by a re-exec of this
//! binary. No daemon, nothing to install.
//!
//! ```text
//! hallmark (threads)              Embedded::run: makes scratch and cgroups, spawns, copies output,
//!   |                             watches limits, cleans up
//!   +- launcher (host's ns)       one thread; clones pid 1, writes its id maps, kills it when told
//!        |                        so or when hallmark is gone, and then cleans up in its place
//!        +- pid 1 (all new ns)    joins cgroups, mounts, pivots; reaps; counts network attempts
//!             +- the command      no privileges, seccomp, execve
//! ```
//!
//! The launcher is this same binary with a hidden first argument: nothing ever forks out of a process
//! with threads. Its standard input is a socket to hallmark over which the request comes in and the
//! report goes out; when it closes, the other end is gone.
//!
//! # Without root
//!
//! [`intercept`] moves the whole process into a user namespace before anything else happens, with
//! the ids that `newuidmap` gives or else with one. From there on every room may act as if it were
//! root over the ids that are mapped: chown, mknod of whiteouts and unlink of foreign files just
//! work. The process id stays the same, so signals and exit codes need no forwarding.

mod cgroup;
mod copy;
mod engine;
mod files;
mod host;
mod idmap;
mod init;
mod intercept;
mod launcher;
mod namespace;
mod network;
mod overlay;
mod payload;
mod privilege;
mod probe;
mod protocol;
mod root;
mod sys;
mod veth;
mod watch;

pub use engine::{Embedded, Options};
pub use intercept::intercept;
pub use probe::{Row, Status, probe, trial};
#[doc(hidden)]
pub use protocol::Hole;
