//! What the process does before anything else: it may not be hallmark at all but the launcher.

use std::process::ExitCode;

use super::launcher;

/// The hidden first argument that makes this binary the launcher.
pub(super) const LAUNCHER: &str = "@sandbox";

/// To be called first of all in `main`, before any thread exists. `Some` is the exit code of a process
/// that was not meant to be the command line.
pub fn intercept() -> Option<ExitCode> {
    let first = std::env::args_os().nth(1);
    if first.is_some_and(|argument| argument == LAUNCHER) {
        return Some(launcher::main());
    }
    None
}
