//! How a process ended, by its raw wait status.

use std::os::unix::process::ExitStatusExt as _;

use super::super::ExitStatus;

/// The kernel's number as a [`ExitStatus`].
pub(crate) fn exit_status(raw: i32) -> ExitStatus {
    let status = std::process::ExitStatus::from_raw(raw);
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitStatus::Exited(code),
        (None, Some(signal)) => ExitStatus::Signaled(signal),
        (None, None) => ExitStatus::Exited(raw),
    }
}
