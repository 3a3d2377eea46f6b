//! Why a run could not be had. What happened inside a run is never an error: it is in the log.

use std::io;
use std::path::PathBuf;

use super::docker::DaemonError;

/// An error of this room: ours (infra), never the command's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Below this room.
    #[error(transparent)]
    Base(#[from] crate::base::Error),
    /// A system call of the set-up failed.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was being done, a fragment after "cannot".
        doing: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The image has something else than runs need where they mount.
    #[error("the image cannot be run: cannot {doing}: {source}")]
    Root {
        /// What was being done, a fragment after "cannot".
        doing: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The host cannot give what runs need.
    #[error("this host cannot run containers: {reason}")]
    Host {
        /// What is missing.
        reason: String,
        /// The way out.
        hint: String,
    },
    /// A layer of the image is not unpacked in the store.
    #[error("layer {} is not in the store", path.display())]
    MissingLayer {
        /// Where it should be.
        path: PathBuf,
    },
    /// From the room `image`.
    #[error(transparent)]
    Image(#[from] crate::image::Error),
    /// A Docker daemon, or the way to it.
    #[error(transparent)]
    Daemon(DaemonError),
    /// The launcher process died before it could say what the command did.
    #[error("the sandbox launcher failed: {message}")]
    Launcher {
        /// Its last words.
        message: String,
    },
}

impl Error {
    /// The way out, where there is one.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Host { hint, .. } => Some(hint),
            Self::Root { .. } => Some(
                "look at what stands there in the image: /proc, /sys, /dev and /etc must be folders, /etc/hosts and its like files, or links to such",
            ),
            Self::Daemon(error) => error.hint(),
            Self::Image(error) => error.hint(),
            _ => None,
        }
    }
}

impl From<DaemonError> for Error {
    /// What is from below this room stays that.
    fn from(error: DaemonError) -> Self {
        match error {
            DaemonError::Base(error) => Self::Base(error),
            error => Self::Daemon(error),
        }
    }
}

/// What a failed step of the set-up means: those that look for places in the image's own tree fail for what is there.
#[cfg(target_os = "linux")]
pub(super) fn of_setup(doing: String, source: io::Error) -> Error {
    let is_place = doing.ends_with("to mount on") || doing.starts_with("mount /");
    // EINVAL: a folder is mounted on a file, or a file on a folder.
    let unfit =
        [libc::ENOENT, libc::ENOTDIR, libc::EISDIR, libc::EEXIST, libc::ELOOP, libc::EINVAL];
    if is_place && source.raw_os_error().is_some_and(|number| unfit.contains(&number)) {
        return Error::Root { doing, source };
    }
    Error::System { doing, source }
}

/// An error of a system call, with what was being done.
#[cfg(target_os = "linux")]
pub(super) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::System { doing: doing.into(), source }
}
