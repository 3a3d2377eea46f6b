//! What can go wrong between a lock and its files.

use std::fmt;
use std::path::PathBuf;

use crate::base::{Digest, Store};
use crate::lock::Origin;
use crate::net;

/// An error of this room.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Some files did not come. Those that did are kept.
    #[error("{} of {total} files could not be fetched:{}", failures.len(), list(failures))]
    Fetch {
        /// How many were asked for.
        total: usize,
        /// Those that did not come, by name.
        failures: Vec<FetchFailure>,
    },
    /// The store's disk is full.
    #[error("the disk of the store {} is full", store.display())]
    DiskFull {
        /// The store.
        store: PathBuf,
        /// Bytes still to come when it happened.
        wanted: u64,
    },
    /// Two entries of a list promise different things of one file.
    #[error("{name}: promised with {first} bytes and with {second} bytes")]
    Contradiction {
        /// The file.
        name: String,
        /// Its length, says one.
        first: u64,
        /// Its length, says another.
        second: u64,
    },
    /// A file that should be in the store is not.
    #[error("{name} ({digest}) is not in the store")]
    Missing {
        /// Its name.
        name: String,
        /// Its digest.
        digest: Digest,
    },
    /// An archive of `bundle pack` is not as it should be.
    #[error("{}: {reason}", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// An archive of another version.
    #[error("{}: bundle format {actual}, this hallmark reads {expected}", path.display())]
    Version {
        /// The archive.
        path: PathBuf,
        /// What is read here.
        expected: u64,
        /// What it says.
        actual: u64,
    },
    /// A name that cannot be a file's.
    #[error("{name:?} is not a file name")]
    Name {
        /// The name.
        name: String,
    },
    /// An sdist that is not unpacked.
    #[error(transparent)]
    Sdist(#[from] super::sdist::SdistError),
    /// Git could not read a repository of the user's.
    #[error("cannot read the repository {location}: {message}")]
    Git {
        /// Path or URL.
        location: String,
        /// Git's own words.
        message: String,
    },
    /// A repository lacks a commit.
    #[error("the repository {location} has no commit {commit}")]
    NoCommit {
        /// Path or URL.
        location: String,
        /// The commit.
        commit: String,
    },
    /// The network could not be used.
    #[error(transparent)]
    Net(#[from] net::Error),
    /// Mismatches, file operations and the end that was asked for.
    #[error(transparent)]
    Base(#[from] crate::base::Error),
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Base(error.into())
    }
}

/// A file that did not come.
#[derive(Debug)]
pub struct FetchFailure {
    /// The file.
    pub name: String,
    /// Where it was looked for.
    pub origin: Origin,
    /// Why it did not come.
    pub why: net::Error,
}

impl fmt::Display for FetchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Pypi { project } => write!(f, "{} (PyPI, {project}): {}", self.name, self.why),
            Origin::Debian { as_of, .. } => {
                write!(f, "{} (Debian, {as_of}): {}", self.name, self.why)
            }
            Origin::Registry { repository } => {
                write!(f, "{} (registry, {repository}): {}", self.name, self.why)
            }
            Origin::Git { repo, .. } => write!(f, "{} (git, {repo}): {}", self.name, self.why),
        }
    }
}

fn list(failures: &[FetchFailure]) -> String {
    let lines: Vec<_> = failures.iter().map(ToString::to_string).collect();
    format!("\n  {}", lines.join("\n  "))
}

impl Error {
    /// What a verified reader says, told as such.
    pub(super) fn from_reader(error: std::io::Error) -> Self {
        match error.downcast::<crate::base::Error>() {
            Ok(error) => Self::Base(error),
            Err(error) => error.into(),
        }
    }

    /// A full disk told as such, with what is still to come.
    pub(super) fn or_disk_full(self, store: &Store, wanted: u64) -> Self {
        match self {
            Self::Base(error) if error.is_disk_full() => {
                Self::DiskFull { store: store.root().to_owned(), wanted }
            }
            other => other,
        }
    }

    /// The way out, where there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Fetch { failures, .. } => {
                let mut hints: Vec<_> =
                    failures.iter().filter_map(|failure| failure.why.hint()).collect();
                hints.sort();
                hints.dedup();
                (!hints.is_empty()).then(|| hints.join("\n"))
            }
            Self::DiskFull { wanted, .. } => Some(format!(
                "{wanted} more bytes are wanted: free some space (`hallmark gc`), or name another \
                 disk with --store or HALLMARK_STORE; what was fetched is kept"
            )),
            Self::Contradiction { .. } => Some("a lock was edited by hand: lock again".into()),
            Self::Missing { .. } => Some(
                "fetch it with `hallmark bundle`, or bring it along with `hallmark bundle unpack`"
                    .into(),
            ),
            Self::Archive { .. } => Some(
                "copy it again, or make it again with `hallmark bundle pack`; nothing that was not \
                 verified came in"
                    .into(),
            ),
            Self::Version { .. } => Some("use the hallmark that packed it, or a newer one".into()),
            Self::Net(error) => error.hint(),
            _ => None,
        }
    }
}
