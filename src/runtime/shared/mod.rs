//! What the runtimes that make containers on this machine have in common.

mod check;
mod disk;
mod exit;
mod hidden;
mod host_files;
mod processors;
mod seccomp;
mod session;
mod syscalls;

pub(crate) use check::{check, source};
pub(crate) use disk::DiskWatch;
pub(crate) use exit::exit_status;
pub(crate) use hidden::{MASKED, READ_ONLY};
pub(crate) use host_files::{hosts, resolv_conf};
pub(crate) use processors::Processors;
pub(crate) use seccomp::{programs, unsynced};
pub(crate) use session::{RunFolder, Session, make_targets, sweep};
