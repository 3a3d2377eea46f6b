//! What the runtimes that make containers on this machine have in common.

mod disk;
mod ending;
mod etc_files;
mod exit;
mod hidden;
mod host_files;
mod place;
mod powers;
mod processors;
mod reason;
mod seccomp;
mod session;
mod syscalls;
mod traffic;
mod veth_message;

pub(crate) use disk::DiskWatch;
pub(crate) use ending::{GRACE, is_wanted as end_is_wanted};
pub(crate) use etc_files::{EtcFiles, ONLINE};
pub(crate) use exit::exit_status;
pub(crate) use hidden::{MASKED, READ_ONLY};
pub(crate) use host_files::{hosts, resolv_conf};
pub(crate) use place::place;
pub(crate) use powers::{KEPT, runs_this_program};
pub(crate) use processors::Processors;
pub(crate) use reason::Reason;
pub(crate) use seccomp::{programs, unsynced};
pub(crate) use session::{RunFolder, Session, make_targets, sweep};
pub(crate) use traffic::{is_attempt, refused};
pub(crate) use veth_message::{message as veth_message, outcome as veth_outcome};
