//! What an audit says. "The check said no" and "could not check" are different types: the first accuses the store or the
//! manifest, the second only says that something is not here.

use serde::Serialize;

use crate::base::Digest;

/// A check that said no.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    /// Where in the manifest.
    pub place: String,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Problem {
    /// Bytes in the store have another digest.
    Bytes {
        /// What the manifest says.
        expected: Digest,
        /// What is there.
        actual: Digest,
    },
    /// A file in the store has another length.
    Size {
        /// What the manifest says.
        expected: u64,
        /// What is there.
        actual: u64,
    },
    /// A compressed layer holds another layer than its image names.
    Layer {
        /// The diff ID in the manifest.
        expected: Digest,
        /// The diff ID of the blob.
        actual: Digest,
    },
    /// A compressed layer or a document does not read.
    Unreadable {
        /// Why.
        reason: String,
    },
    /// A value that was computed again is not the one in the manifest.
    Computed {
        /// Which value.
        what: String,
        /// The manifest's.
        expected: Digest,
        /// The computed one.
        actual: Digest,
    },
    /// The manifest contradicts a record or itself.
    Contradiction {
        /// How.
        what: String,
    },
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes { expected, actual } => {
                write!(f, "expected {expected}, the store holds {actual}")
            }
            Self::Size { expected, actual } => {
                write!(f, "expected {expected} bytes, the store holds {actual}")
            }
            Self::Layer { expected, actual } => {
                write!(f, "expected diff ID {expected}, its blob unpacks to {actual}")
            }
            Self::Unreadable { reason } => write!(f, "does not read: {reason}"),
            Self::Computed { what, expected, actual } => {
                write!(f, "{what}: the manifest says {expected}, computed again it is {actual}")
            }
            Self::Contradiction { what } => f.write_str(what),
        }
    }
}

/// Something that could not be checked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Unchecked {
    /// Where in the manifest.
    pub place: String,
    /// Why not.
    pub reason: String,
}

/// All that an audit found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AuditReport {
    /// Checks that were made.
    pub checks: u64,
    /// Bytes that were hashed again.
    pub bytes: u64,
    /// Checks that said no, by place.
    pub findings: Vec<Finding>,
    /// What could not be checked, by place.
    pub unchecked: Vec<Unchecked>,
}

impl AuditReport {
    /// Whether everything was checked and nothing was found.
    pub fn passed(&self) -> bool {
        self.findings.is_empty() && self.unchecked.is_empty()
    }
}
