//! Why an image could not be built.

use std::path::PathBuf;

use crate::base::Digest;

/// An error of this room.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Below this room.
    #[error(transparent)]
    Base(#[from] crate::base::Error),
    /// A layer could not be made.
    #[error(transparent)]
    Image(#[from] crate::image::Error),
    /// A locked file could not be read or unpacked.
    #[error(transparent)]
    Bundle(#[from] crate::bundle::Error),
    /// A container could not be had.
    #[error(transparent)]
    Runtime(#[from] crate::runtime::Error),
    /// The interpreter of an image could not be asked.
    #[error(transparent)]
    Python(#[from] crate::resolve::python::Error),
    /// A command of a step failed.
    #[error("{step} failed: {how}\n{}", tail.trim_end())]
    Command {
        /// Which step, with the spec's name.
        step: String,
        /// Exit code, signal, timeout ...
        how: String,
        /// The last lines it printed.
        tail: String,
        /// Where all of it is.
        log: Option<PathBuf>,
    },
    /// Something built differs from what the lock promises.
    #[error("{what}: expected {expected}, got {actual}")]
    Mismatch {
        /// What was built.
        what: String,
        /// What the lock says.
        expected: Digest,
        /// What came out.
        actual: Digest,
    },
    /// This machine cannot make what any other machine would.
    #[error("{what} cannot be built here: {problem}")]
    Host {
        /// What was to be built.
        what: String,
        /// What this machine lacks.
        problem: String,
        /// The way out.
        hint: String,
    },
    /// An input or a result breaks a rule.
    #[error("{what}: {problem}")]
    Invalid {
        /// Which input.
        what: String,
        /// What is wrong with it.
        problem: String,
        /// The way out.
        hint: Option<String>,
    },
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Base(error.into())
    }
}

impl Error {
    /// The way out, where there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Runtime(error) => error.hint().map(str::to_owned),
            Self::Python(error) => error.hint(),
            Self::Host { hint, .. } => Some(hint.clone()),
            Self::Invalid { hint, .. } => hint.clone(),
            _ => None,
        }
    }
}
