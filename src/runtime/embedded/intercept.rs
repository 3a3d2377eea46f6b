//! What the process does before anything else: it may not be hallmark at all but the launcher; and
//! without root it moves into a user namespace.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use super::{launcher, namespace};

/// The hidden first argument that makes this binary the launcher.
pub(super) const LAUNCHER: &str = "@sandbox";

/// The hidden first argument that runs another program where hallmark would be: in the user
/// namespace, over the ids that the store's files belong to.
const ENTER: &str = "@enter";

/// Arguments that need no namespace, since they only print.
const PRINTS: [&str; 5] = ["-h", "--help", "help", "-V", "--version"];

/// To be called first of all in `main`, before any thread exists. `Some` is the exit code of a process
/// that was not meant to be the command line.
pub fn intercept() -> Option<ExitCode> {
    let first = std::env::args_os().nth(1)?.into_string().ok()?;
    match first.as_str() {
        LAUNCHER => return Some(launcher::main()),
        namespace::MAPPER => return Some(namespace::map_ids()),
        _ => {}
    }
    if !rustix::process::geteuid().is_root() && !PRINTS.contains(&first.as_str()) {
        namespace::try_enter();
    }
    if first == ENTER {
        let mut arguments = std::env::args_os().skip(2);
        let program = arguments.next()?;
        // Returns only when it fails.
        let _ = Command::new(program).args(arguments).exec();
        return Some(ExitCode::FAILURE);
    }
    None
}
