//! Why a split could not be worked on.

use std::path::PathBuf;

use crate::{base, build, bundle, runtime};

/// An error of this room.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No project folder.
    #[error("no folder with `specs/` and `images/` at or above {}", start.display())]
    NoProject {
        /// Where the search began.
        start: PathBuf,
    },
    /// No such split.
    #[error("there is no split `{name}`")]
    NoSplit {
        /// What was asked for.
        name: String,
        /// Splits that exist.
        known: Vec<String>,
    },
    /// No such instance.
    #[error("split `{split}` has no instance `{id}`")]
    NoInstance {
        /// What was asked for.
        id: String,
        /// Where.
        split: String,
    },
    /// No mirror of a repository.
    #[error("no mirror of {repo} is known")]
    NoMirror {
        /// `owner/name`.
        repo: String,
    },
    /// A row has no lists of expected tests.
    #[error("{id} has no FAIL_TO_PASS and PASS_TO_PASS")]
    NotCollected {
        /// Which.
        id: String,
    },
    /// A file was written by a newer hallmark.
    #[error("{} has version {actual}, but this hallmark reads up to {expected}", path.display())]
    NewerFile {
        /// The file.
        path: PathBuf,
        /// What is read.
        expected: u32,
        /// What is there.
        actual: u32,
    },
    /// A lock is missing or stale and may not be written.
    #[error("{why}")]
    NotLocked {
        /// Which, and what changed.
        why: String,
    },
    /// An image holds what gives the solution away.
    #[error("{instance}: the image holds {what}")]
    Leak {
        /// Which instance.
        instance: String,
        /// What was found where.
        what: String,
    },
    /// A file operation failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// From the room `base`.
    #[error(transparent)]
    Base(#[from] crate::base::Error),
    /// From the room `net`.
    #[error(transparent)]
    Net(#[from] crate::net::Error),
    /// From the room `spec`.
    #[error(transparent)]
    Spec(#[from] crate::spec::Error),
    /// From the room `dataset`.
    #[error(transparent)]
    Dataset(#[from] crate::dataset::Error),
    /// From the room `lock`.
    #[error(transparent)]
    Lock(#[from] crate::lock::Error),
    /// From the room `bundle`.
    #[error(transparent)]
    Bundle(#[from] crate::bundle::Error),
    /// From the room `image`.
    #[error(transparent)]
    Image(#[from] crate::image::Error),
    /// From the room `runtime`.
    #[error(transparent)]
    Runtime(#[from] crate::runtime::Error),
    /// From the room `resolve`.
    #[error(transparent)]
    Resolve(#[from] crate::resolve::Error),
    /// From the room `resolve`, its Python part.
    #[error(transparent)]
    Python(#[from] crate::resolve::python::Error),
    /// From the room `build`.
    #[error(transparent)]
    Build(#[from] crate::build::Error),
    /// From the room `verify`.
    #[error(transparent)]
    Verify(#[from] crate::verify::Error),
    /// From the room `manifest`.
    #[error(transparent)]
    Manifest(#[from] crate::manifest::Error),
}

impl Error {
    /// What kind of failure this is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::NoProject { .. }
            | Self::NoSplit { .. }
            | Self::NoInstance { .. }
            | Self::NoMirror { .. }
            | Self::NotCollected { .. }
            | Self::NewerFile { .. }
            | Self::NotLocked { .. }
            | Self::Spec(_)
            | Self::Dataset(_)
            | Self::Lock(_)
            | Self::Manifest(_) => Kind::Input,
            Self::Leak { .. } => Kind::Check,
            Self::Net(_) => Kind::Fetch,
            Self::Bundle(error) => match error {
                bundle::Error::Fetch { .. } | bundle::Error::Net(_) => Kind::Fetch,
                bundle::Error::DiskFull { .. } => Kind::Host,
                bundle::Error::Base(error) => base_kind(error),
                _ => Kind::Input,
            },
            Self::Io(error) => io_kind(error),
            Self::Base(error) => base_kind(error),
            Self::Image(error) if error.is_disk_full() => Kind::Host,
            Self::Runtime(error) | Self::Build(build::Error::Runtime(error)) => runtime_kind(error),
            Self::Build(build::Error::Base(error)) => match base_kind(error) {
                Kind::Internal => Kind::Build,
                kind => kind,
            },
            Self::Build(build::Error::Image(error)) if error.is_disk_full() => Kind::Host,
            Self::Build(build::Error::Host { .. }) => Kind::Host,
            Self::Resolve(_) | Self::Python(_) | Self::Build(_) => Kind::Build,
            Self::Image(_) | Self::Verify(_) => Kind::Internal,
        }
    }

    /// The way out, where there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoProject { .. } => {
                Some("work in a hallmark project, or name one with --project".into())
            }
            Self::NoSplit { known, .. } if !known.is_empty() => {
                Some(format!("splits of this project: {}", known.join(", ")))
            }
            Self::NotLocked { .. } => Some(
                "run the command without --locked, or `hallmark lock`, and review the difference"
                    .into(),
            ),
            Self::NoMirror { repo } => Some(format!(
                "clone it to {}.git in a folder and name that folder with --mirrors",
                repo.replace('/', "__")
            )),
            Self::NotCollected { .. } => Some("compute them with `hallmark collect`".into()),
            Self::NewerFile { .. } => Some("update hallmark".into()),
            Self::Lock(error) => error.hint().map(str::to_owned),
            Self::Runtime(error) => error.hint().map(str::to_owned),
            Self::Build(error) => error.hint(),
            _ => None,
        }
    }
}

/// What kind of failure an error is: the caller's exit code hangs on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An input file is wrong.
    Input,
    /// A build step failed.
    Build,
    /// Something could not be fetched.
    Fetch,
    /// The host cannot give what is needed.
    Host,
    /// A check said no.
    Check,
    /// The end was asked for.
    Interrupted,
    /// Ours.
    Internal,
}

fn io_kind(error: &std::io::Error) -> Kind {
    use std::io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull => Kind::Host,
        _ => Kind::Internal,
    }
}

fn base_kind(error: &base::Error) -> Kind {
    match error {
        base::Error::Cancelled => Kind::Interrupted,
        base::Error::Io(error) => io_kind(error),
        _ => Kind::Internal,
    }
}

fn runtime_kind(error: &runtime::Error) -> Kind {
    match error {
        runtime::Error::Host { .. } => Kind::Host,
        runtime::Error::Base(error) => base_kind(error),
        _ => Kind::Internal,
    }
}

/// Something that went wrong with one base, environment or instance; the others went on.
#[derive(Debug)]
pub struct Failure {
    /// What was worked on, for people: `build of pypi__a-1.0`.
    pub subject: String,
    /// Why it failed.
    pub error: Error,
}
