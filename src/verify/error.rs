//! Why a run could not be had. What a run found is never an error: it is in its record.

use std::path::PathBuf;

use crate::base::Digest;

/// An error of this room: ours (infra), never the instance's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Below this room.
    #[error(transparent)]
    Base(#[from] crate::base::Error),
    /// A container could not be had.
    #[error(transparent)]
    Runtime(#[from] crate::runtime::Error),
    /// A layer could not be made.
    #[error(transparent)]
    Image(#[from] crate::image::Error),
    /// The test command cannot be read.
    #[error(transparent)]
    Results(#[from] crate::results::Error),
    /// The image has no git to apply patches with.
    #[error("{instance}: the image has no git to apply patches with")]
    NoGit {
        /// The instance.
        instance: String,
    },
    /// The test patch touches no test file that pytest could be given.
    #[error("{instance}: the test patch touches no Python test file that exists after it")]
    NoTestFiles {
        /// The instance.
        instance: String,
    },
    /// A record was written by a newer hallmark.
    #[error("{} has version {actual}, but this hallmark reads up to {expected}", path.display())]
    NewerRecord {
        /// The record.
        path: PathBuf,
        /// What is read.
        expected: u64,
        /// What is there.
        actual: u64,
    },
    /// A record does not lie under its own key.
    #[error("{}: expected the record of {expected}, got that of {actual}", path.display())]
    WrongRecord {
        /// The record.
        path: PathBuf,
        /// The key that names the folder.
        expected: Digest,
        /// The key in the record.
        actual: Digest,
    },
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Base(error.into())
    }
}

impl Error {
    /// The way out, where there is one.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Runtime(error) => error.hint(),
            Self::Image(error) => error.hint(),
            Self::Results(error) => error.hint(),
            Self::NoGit { .. } => Some("add `git` to the packages of the base image"),
            Self::NoTestFiles { .. } => {
                Some("name the test files in the spec, or run all: see the spec's test section")
            }
            Self::NewerRecord { .. } => Some("update hallmark, or use another store"),
            Self::WrongRecord { .. } => Some("remove the folder: the run is then made again"),
            _ => None,
        }
    }
}
