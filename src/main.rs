//! The `hallmark` command: a shim around [`hallmark::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before any thread: this process may be the launcher of a container, not the command line.
    #[cfg(target_os = "linux")]
    if let Some(code) = hallmark::runtime::embedded::intercept() {
        return code;
    }
    hallmark::cli::main()
}
