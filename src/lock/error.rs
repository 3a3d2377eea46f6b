//! Why a lock's text is refused.

use crate::base::Digest;

/// An error of this room. `file` names the text for people: the caller's path, or the file's role.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Below this room.
    #[error(transparent)]
    Base(#[from] crate::base::Error),
    /// The text is not TOML, or not of the lock's shape; the source shows the place.
    #[error("{file} does not read: {source}")]
    Syntax {
        /// Which text.
        file: String,
        /// Where and why.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// The text has a newer format than this program knows.
    #[error("{file} has format version {found}, newer than {known}")]
    Newer {
        /// Which text.
        file: String,
        /// Its version.
        found: String,
        /// The newest known one.
        known: String,
    },
    /// A value breaks a rule of the format.
    #[error("{file}: {problem}")]
    Invalid {
        /// Which text.
        file: String,
        /// Which rule, with the value.
        problem: String,
    },
    /// The two files of an environment do not belong together.
    #[error("{file}: expected packages {expected}, got {actual}")]
    Torn {
        /// Which text.
        file: String,
        /// What `lock.<arch>.toml` says that pylock.toml holds.
        expected: Digest,
        /// What pylock.toml holds.
        actual: Digest,
    },
}

impl Error {
    /// The way out, where there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Base(_) => None,
            Self::Newer { .. } => {
                Some("update hallmark, or write the lock again with `hallmark lock`")
            }
            Self::Syntax { .. } | Self::Invalid { .. } | Self::Torn { .. } => Some(
                "locks are written by machine: restore the file, or write it again with `hallmark lock`",
            ),
        }
    }
}
