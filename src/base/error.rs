//! What can go wrong below every room.

use std::path::PathBuf;

use super::Digest;

/// An error of this room. Paths and digests are named; the cause is the source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file operation failed; fs-err's message names the path.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A value has no canonical JSON form.
    #[error("cannot write canonical JSON")]
    Canon(#[source] serde_json::Error),
    /// Stored JSON does not read.
    #[error("{} does not hold what it should", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Where it stops making sense.
        #[source]
        source: serde_json::Error,
    },
    /// Bytes do not have the digest they were promised to have.
    #[error("{name}: expected {expected}, got {actual}")]
    DigestMismatch {
        /// What was read.
        name: String,
        /// The promised digest.
        expected: Digest,
        /// The digest of what came.
        actual: Digest,
    },
    /// Bytes do not have the length they were promised to have.
    #[error("{name}: expected {expected} bytes, got {}{actual}", if *.more { "more than " } else { "" })]
    SizeMismatch {
        /// What was read.
        name: String,
        /// The promised length.
        expected: u64,
        /// The length that came.
        actual: u64,
        /// Whether reading stopped at `actual` with more to come.
        more: bool,
    },
    /// The user, or a failure elsewhere, asked for the end.
    #[error("interrupted")]
    Cancelled,
}

impl Error {
    /// Whether the disk (or its quota) is full.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Io(error)
            if matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded))
    }
}
