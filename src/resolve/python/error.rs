//! Why the Python part of a lock could not be made.

use std::path::PathBuf;

use crate::runtime::{ExitStatus, RunLog};

/// An error of the Python resolver.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Below this room.
    #[error(transparent)]
    Base(#[from] crate::base::Error),
    /// A container could not be had.
    #[error(transparent)]
    Runtime(#[from] crate::runtime::Error),
    /// An index could not be read.
    #[error(transparent)]
    Net(#[from] crate::net::Error),
    /// A file could not be fetched or unpacked.
    #[error(transparent)]
    Bundle(#[from] crate::bundle::Error),
    /// A command in the sandbox failed.
    #[error("{doing} failed: {how}\n{}", tail.trim_end())]
    Command {
        /// What was being done.
        doing: String,
        /// Exit code, signal, timeout ...
        how: String,
        /// The last lines it printed.
        tail: String,
    },
    /// An answer or a file that makes no sense.
    #[error("{what}: {problem}")]
    Unreadable {
        /// What was read.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file of the project, or of a package, that the spec needs is not there or breaks a rule.
    #[error("{}:{line}: {problem}", path.display())]
    Requirements {
        /// The requirement file, relative to the source.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
        /// The way out.
        hint: String,
    },
    /// The spec asks for an extra or a group that the project does not have.
    #[error("{project} has no {kind} `{name}`")]
    NoSuch {
        /// The project.
        project: String,
        /// `extra` or `dependency group`.
        kind: &'static str,
        /// What was asked for.
        name: String,
        /// What there is, sorted.
        existing: Vec<String>,
    },
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Base(error.into())
    }
}

impl Error {
    /// The failure of a command, with the end of what it printed.
    pub(crate) fn command(doing: impl Into<String>, log: &RunLog) -> Self {
        Self::Command { doing: doing.into(), how: how_it_ended(log), tail: tail_of(log) }
    }

    /// The way out, where there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Runtime(error) => error.hint().map(str::to_owned),
            Self::Requirements { hint, .. } => Some(hint.clone()),
            Self::NoSuch { existing, kind, .. } if existing.is_empty() => {
                Some(format!("the project has no {kind}s at all; remove it from the spec"))
            }
            Self::NoSuch { existing, .. } => Some(format!("there are: {}", existing.join(", "))),
            _ => None,
        }
    }
}

/// How a command ended, in words.
pub(crate) fn how_it_ended(log: &RunLog) -> String {
    if log.timed_out {
        return format!("it was stopped after {} s", log.wall.as_secs());
    }
    if log.oom_killed {
        return "it used more memory than it may".to_owned();
    }
    if log.disk_full {
        return "it wrote more to disk than it may".to_owned();
    }
    if log.output_full {
        return "it printed more than it may".to_owned();
    }
    match log.status {
        ExitStatus::Exited(code) => format!("exit code {code}"),
        ExitStatus::Signaled(signal) => format!("killed by signal {signal}"),
    }
}

/// The last lines of standard output, then of standard error.
pub(crate) fn tail_of(log: &RunLog) -> String {
    const LINES: usize = 30;
    let mut text = String::new();
    for path in [&log.stdout, &log.stderr] {
        let Ok(bytes) = fs_err::read(path) else { continue };
        let whole =
            String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(64 << 10)..]).into_owned();
        let lines: Vec<&str> = whole.trim_end().lines().collect();
        for line in &lines[lines.len().saturating_sub(LINES)..] {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}
