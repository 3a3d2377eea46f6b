//! Why a test command cannot be given a structured report.

/// An error of this room.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The command does not start pytest in a way that the runner can take over.
    #[error("the test command {command:?} does not start pytest")]
    UnknownRunner {
        /// The command.
        command: Vec<String>,
    },
    /// The report was written by a runner that this hallmark does not know.
    #[error("the report has version {actual}, but this hallmark reads {expected}")]
    Version {
        /// What is read.
        expected: u64,
        /// What came.
        actual: u64,
    },
}

impl Error {
    /// The way out, where there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::UnknownRunner { .. } => Some(
                "write the command as `pytest ...` or `python -m pytest ...`, with `env NAME=VALUE` before it where needed",
            ),
            Self::Version { .. } => None,
        }
    }
}
