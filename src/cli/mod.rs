//! The command line: one file per verb, progress, diagnostics, exit codes.

/// Runs the command line and returns its exit code.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
