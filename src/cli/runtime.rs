//! Which runtime makes the containers.

use std::path::PathBuf;

use crate::base::{Cancel, Store};
use crate::pipeline::Error;
use crate::runtime::docker::{Docker, Engine};
use crate::runtime::embedded::Embedded;
use crate::runtime::{self, Runtime};

/// The runtimes by name: `embedded` is hallmark's own, `docker` a daemon at `DOCKER_HOST` or the usual sockets, and `auto`
/// the first where this host can, else the second.
// The variants have no docs of their own: clap would make every verb's help long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Choice {
    Auto,
    Embedded,
    Docker,
}

/// The program that containers are launched with: this one.
pub(crate) fn launcher() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

impl Choice {
    /// Opens it over a store; `connect` finds a daemon.
    pub(crate) fn open(
        self,
        store: &Store,
        connect: impl FnOnce() -> Result<Engine, Error>,
        cancel: &Cancel,
    ) -> Result<Box<dyn Runtime>, Error> {
        let docker = || -> Result<Docker, Error> { Ok(Docker::new(store, connect()?, cancel)?) };
        match self {
            Self::Embedded => Ok(Box::new(Embedded::new(store, launcher())?)),
            Self::Docker => docker().map(|docker| Box::new(docker) as Box<dyn Runtime>),
            Self::Auto => match Embedded::new(store, launcher()) {
                Ok(embedded) => Ok(Box::new(embedded)),
                Err(error @ runtime::Error::Host { .. }) => match docker() {
                    Ok(docker) => {
                        let daemon = docker.name();
                        tracing::warn!(%error, daemon, "a daemon makes the containers");
                        Ok(Box::new(docker))
                    }
                    Err(other) => {
                        tracing::debug!(error = %other, "no daemon either");
                        Err(error.into())
                    }
                },
                Err(error) => Err(error.into()),
            },
        }
    }
}
