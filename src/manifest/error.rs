//! Why a manifest could not be made or read.

use crate::base::Digest;

/// An error of this room.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Below this room.
    #[error(transparent)]
    Base(#[from] crate::base::Error),
    /// A layer or an image document could not be made.
    #[error(transparent)]
    Image(#[from] crate::image::Error),
    /// A record could not be read.
    #[error(transparent)]
    Verify(#[from] crate::verify::Error),
    /// A run that the manifest would name has no stored record.
    #[error("{instance}: the record of run {key} is not in the store")]
    NoRecord {
        /// The instance.
        instance: String,
        /// The run.
        key: Digest,
    },
    /// The text is not a manifest.
    #[error("{name} is not a manifest")]
    Malformed {
        /// The file.
        name: String,
        /// Where it stops making sense.
        #[source]
        source: serde_json::Error,
    },
    /// The manifest was written by a newer hallmark.
    #[error("{name} has version {actual}, but this hallmark reads up to {expected}")]
    Newer {
        /// The file.
        name: String,
        /// What is read.
        expected: u64,
        /// What came.
        actual: u64,
    },
    /// The manifest was written before verdicts had causes; its records cannot be judged by the rules of now.
    #[error("{name} has version {actual}, but this hallmark reads {expected}")]
    Older {
        /// The file.
        name: String,
        /// What is read.
        expected: u64,
        /// What came.
        actual: u64,
    },
}

impl Error {
    /// The way out, where there is one.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Image(error) => error.hint(),
            Self::Verify(error) => error.hint(),
            Self::NoRecord { .. } => Some("run `hallmark verify` again: it makes what is missing"),
            Self::Malformed { .. } | Self::Older { .. } => {
                Some("export it again with `hallmark export`")
            }
            Self::Newer { .. } => Some("update hallmark"),
            Self::Base(_) => None,
        }
    }
}
