//! Why a tree, an archive or an image was refused.

use std::path::PathBuf;

use crate::base::Digest;

/// An error of this room. Entries are named as people read them: control characters and bytes
/// that are no UTF-8 are escaped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Below this room.
    #[error(transparent)]
    Base(#[from] crate::base::Error),
    /// A file operation on an entry of a tree failed.
    #[error("cannot {verb} `{path}`")]
    Entry {
        /// What was tried.
        verb: &'static str,
        /// The entry, from the tree's root.
        path: String,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// A tree holds something that a layer cannot.
    #[error("`{path}` cannot be part of a layer: {problem}")]
    Tree {
        /// The entry, from the tree's root.
        path: String,
        /// What is wrong with it.
        problem: Problem,
    },
    /// An archive holds something that must not be unpacked.
    #[error("refused archive entry `{entry}`: {problem}")]
    Archive {
        /// The entry's name as the archive gives it.
        entry: String,
        /// What is wrong with it.
        problem: Problem,
    },
    /// The bytes are no tar archive.
    #[error("damaged archive at byte {offset}: {problem}")]
    Damaged {
        /// Where.
        offset: u64,
        /// What is wrong there.
        problem: &'static str,
    },
    /// A layer is neither unpacked nor held as a blob.
    #[error("layer {diff_id} is not in the store")]
    MissingLayer {
        /// Which.
        diff_id: Digest,
    },
    /// A layer's bytes are not what its diff ID promises.
    #[error("layer: expected {expected}, got {actual}")]
    LayerMismatch {
        /// The diff ID asked for.
        expected: Digest,
        /// The digest of what was there.
        actual: Digest,
    },
    /// A name cannot be an image name in an OCI layout.
    #[error("`{name}` cannot name an image: letters and digits, parted by single `-._:@+/`")]
    Name {
        /// The name.
        name: String,
    },
    /// A pattern of image names that cannot work.
    #[error("`{template}` is no pattern of image names: {problem}")]
    Template {
        /// The pattern.
        template: String,
        /// Why not.
        problem: String,
    },
    /// A name that no daemon or registry takes.
    #[error("`{name}` cannot name an image in a daemon or a registry: {problem}")]
    Reference {
        /// The name.
        name: String,
        /// Why not.
        problem: String,
    },
    /// A folder that should become an OCI layout holds something else.
    #[error("{} is not empty and not an OCI layout", path.display())]
    NotALayout {
        /// The folder.
        path: PathBuf,
    },
    /// A date that no calendar has.
    #[error("{seconds} seconds since 1970 is not a date that RFC 3339 can write")]
    Date {
        /// The seconds.
        seconds: i64,
    },
}

/// What is wrong with one entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A device node.
    #[error("it is a device node")]
    Device,
    /// A file type that this program does not know.
    #[error("its type is not supported")]
    Type,
    /// A real file whose name says that another one is deleted.
    #[error("names that begin with `.wh.` are reserved for whiteouts")]
    ReservedName,
    /// A path over 4,095 bytes, or a name over 255.
    #[error("its path is too long")]
    TooLong,
    /// A file that grew or shrank while it was read.
    #[error("it changed while it was packed: expected {expected} bytes, got {actual}")]
    Changed {
        /// Bytes it had.
        expected: u64,
        /// Bytes that were read.
        actual: u64,
    },
    /// An upper dir that holds a part of a file only.
    #[error("its content lies in a lower layer (overlay metacopy or redirect)")]
    Partial,
    /// An absolute path.
    #[error("its path is absolute")]
    Absolute,
    /// A path with `..`, or a whiteout of `.` or `..`.
    #[error("its path leads out of the tree")]
    Escapes,
    /// A name with a NUL byte, or without any byte.
    #[error("its name is empty or holds a NUL byte")]
    BadName,
    /// A path through something that is not a folder: a symlink or a file of the same archive.
    #[error("`{parent}` on its path is not a folder")]
    Parent {
        /// The thing in the way.
        parent: String,
    },
    /// A second entry for a path.
    #[error("the archive has an entry for this path already")]
    Duplicate,
    /// A hard link to what the archive did not hold before it.
    #[error("it links to `{target}`, which is no earlier file of the archive")]
    LinkTarget {
        /// The target.
        target: String,
    },
    /// More bytes than allowed.
    #[error("the archive unpacks to more than {limit} bytes")]
    TooBig {
        /// The limit.
        limit: u64,
    },
    /// More entries than allowed.
    #[error("the archive has more than {limit} entries")]
    TooMany {
        /// The limit.
        limit: u64,
    },
    /// A number that does not read, or a header that claims the impossible.
    #[error("its header is damaged ({field})")]
    Header {
        /// Which part.
        field: &'static str,
    },
}

impl Error {
    /// The way out, where there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Base(error) if error.is_disk_full() => {
                Some("free some space, or choose another store with --store")
            }
            Self::Entry { source, .. }
                if matches!(
                    source.kind(),
                    std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
                ) =>
            {
                Some("free some space, or choose another store with --store")
            }
            Self::Tree { problem: Problem::Device, .. } => {
                Some("make devices in containers when they start, not in images")
            }
            Self::Tree { problem: Problem::ReservedName, .. } => Some("rename the file"),
            Self::MissingLayer { .. } => Some("build the image again, or load it"),
            Self::Name { .. } => Some("write `--` where a name has `__`"),
            Self::Template { .. } => Some(
                "write a name in lower case with {id} or {id_1776} in it, and {arch} where wanted",
            ),
            Self::NotALayout { .. } => Some("name another folder, or empty this one"),
            Self::Reference { .. } => Some(
                "names have lower-case letters and digits, parted by `.`, `_`, `__` or dashes, and `/`",
            ),
            _ => None,
        }
    }

    /// Whether an archive's own bytes are to blame, and not this machine.
    pub fn is_damage(&self) -> bool {
        use std::io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
        match self {
            Self::Archive { .. } | Self::Damaged { .. } => true,
            // Words of the decompressors.
            Self::Base(crate::base::Error::Io(error)) => {
                matches!(error.kind(), InvalidData | InvalidInput | Other | UnexpectedEof)
            }
            _ => false,
        }
    }

    /// Whether the disk (or its quota) is full.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Base(error) => error.is_disk_full(),
            Self::Entry { source, .. } => matches!(
                source.kind(),
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
            ),
            _ => false,
        }
    }

    pub(super) fn entry(
        verb: &'static str,
        path: &[u8],
        source: impl Into<std::io::Error>,
    ) -> Self {
        Self::Entry { verb, path: readable(path), source: source.into() }
    }

    pub(super) fn tree(path: &[u8], problem: Problem) -> Self {
        Self::Tree { path: readable(path), problem }
    }

    pub(super) fn archive(entry: &[u8], problem: Problem) -> Self {
        Self::Archive { entry: readable(entry), problem }
    }
}

impl From<std::io::Error> for Error {
    /// Readers and writers of ours carry this room's (or the base's) error inside of I/O errors.
    fn from(error: std::io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(own) => own,
            Err(error) => match error.downcast::<crate::base::Error>() {
                Ok(base) => Self::Base(base),
                Err(error) => Self::Base(error.into()),
            },
        }
    }
}

/// A path for people: escaped where it would break a line or a terminal.
pub(super) fn readable(path: &[u8]) -> String {
    if path.is_empty() {
        return "/".to_owned();
    }
    match std::str::from_utf8(path) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => path.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_readable_on_a_terminal() {
        assert_eq!(readable(b""), "/");
        assert_eq!(readable("a/ü".as_bytes()), "a/ü");
        assert_eq!(readable(b"a\nb\xff"), "a\\nb\\xff");
    }

    #[test]
    fn own_errors_survive_a_passage_through_io() {
        let inner = Error::archive(b"x", Problem::Escapes);
        let outer = Error::from(std::io::Error::other(inner));
        assert!(matches!(outer, Error::Archive { problem: Problem::Escapes, .. }));
    }
}
