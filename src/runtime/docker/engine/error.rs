//! What can go wrong between this host and a Docker daemon.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use bollard::errors::Error as ClientError;

use super::daemon::ApiVersion;
use crate::base::{Digest, harmless};

/// An error of a daemon or of the way to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// The address that the host names cannot be used.
    #[error("{from}: `{address}`: {reason}")]
    Address {
        /// The option, variable or file that holds it.
        from: String,
        /// The address.
        address: String,
        /// What is wrong.
        reason: String,
    },
    /// Docker has no context of the name that is chosen.
    #[error("{from}: Docker has no context `{name}`")]
    NoContext {
        /// The name.
        name: String,
        /// The variable or file that chooses it.
        from: String,
    },
    /// The host wants a daemon's connection to be encrypted.
    #[error("{endpoint}: DOCKER_TLS_VERIFY is set, but hallmark speaks no TLS to daemons")]
    Encrypted {
        /// Which daemon.
        endpoint: String,
    },
    /// Nothing answers in any place where a daemon may be.
    #[error("no Docker daemon answers: {}", looked.join("; "))]
    NoDaemon {
        /// Each place, and why it is none.
        looked: Vec<String>,
    },
    /// The socket is there, but not for this user.
    #[error("{endpoint}: this user may not use the daemon's socket")]
    Permission {
        /// Which daemon.
        endpoint: String,
    },
    /// Something answers, but not as a Docker daemon does.
    #[error("{endpoint}: what answers is no Docker daemon: {reason}")]
    NotADaemon {
        /// Which address.
        endpoint: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// The daemon is older than what hallmark can work with.
    #[error(
        "{endpoint}: {product} {version} speaks API {actual}, but hallmark needs {expected} or later"
    )]
    TooOld {
        /// Which daemon.
        endpoint: String,
        /// Docker or Podman.
        product: &'static str,
        /// Its version.
        version: String,
        /// The newest API that it speaks.
        actual: ApiVersion,
        /// The oldest that is enough.
        expected: ApiVersion,
    },
    /// The daemon no longer speaks any API that hallmark knows.
    #[error(
        "{endpoint}: {product} {version} wants API {actual} or later, but hallmark speaks up to {expected}"
    )]
    TooNew {
        /// Which daemon.
        endpoint: String,
        /// Docker or Podman.
        product: &'static str,
        /// Its version.
        version: String,
        /// The oldest API that it speaks.
        actual: ApiVersion,
        /// The newest that hallmark speaks.
        expected: ApiVersion,
    },
    /// No answer in time.
    #[error("{endpoint}: no answer within {} s to: {doing}", limit.as_secs())]
    TimedOut {
        /// Which daemon.
        endpoint: String,
        /// What was asked, a fragment such as "start a container".
        doing: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// The connection broke: the daemon died or was stopped.
    #[error("{endpoint}: the daemon is gone; it was asked to {doing}")]
    Lost {
        /// Which daemon.
        endpoint: String,
        /// What was asked.
        doing: String,
        /// How it was seen.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The disk of the daemon is full.
    #[error("{endpoint}: the daemon's disk is full; it was asked to {doing}: {message}")]
    DiskFull {
        /// Which daemon.
        endpoint: String,
        /// What was asked.
        doing: String,
        /// The daemon's words.
        message: String,
    },
    /// The daemon says no.
    #[error("{endpoint}: the daemon cannot {doing}: {message}")]
    Refused {
        /// Which daemon.
        endpoint: String,
        /// What was asked.
        doing: String,
        /// The HTTP status; nothing for a refusal in the middle of an answer.
        status: Option<u16>,
        /// The daemon's words.
        message: String,
    },
    /// The daemon has another image under a name than what it was sent.
    #[error("{name}: expected {expected}, got {}", actual.as_deref().unwrap_or("no image"))]
    OtherImage {
        /// The image's name.
        name: String,
        /// The digest of its config, which the id should be.
        expected: Digest,
        /// The id that the daemon gives; nothing where it has no image of that name.
        actual: Option<String>,
    },
    /// A run ended, but not everything that it wrote came.
    #[error("{endpoint}: the daemon did not pass on all of a run's output")]
    CutOutput {
        /// Which daemon.
        endpoint: String,
    },
    /// Below this room, or the end was asked for.
    #[error(transparent)]
    Base(#[from] crate::base::Error),
    /// The tokio runtime cannot be made.
    #[error("cannot set up the connection")]
    Setup(#[source] io::Error),
}

impl DaemonError {
    /// What a failed call means, once the daemon was seen to work.
    pub(crate) fn of_call(endpoint: &str, doing: &str, error: ClientError) -> Self {
        let (endpoint, doing) = (endpoint.to_owned(), doing.to_owned());
        match error {
            ClientError::DockerResponseServerError { status_code, message } => {
                Self::refusal(endpoint, doing, Some(status_code), &message)
            }
            ClientError::DockerStreamError { error } => {
                Self::refusal(endpoint, doing, None, &error)
            }
            ClientError::JsonDataError { .. } | ClientError::JsonSerdeError { .. } => {
                Self::NotADaemon { endpoint, reason: error.to_string() }
            }
            error => Self::Lost { endpoint, doing, source: Box::new(error) },
        }
    }

    /// The same for the first call, before which nothing is known.
    pub(crate) fn of_first_call(endpoint: &str, error: &ClientError) -> Self {
        let looked =
            |reason: &str| Self::NoDaemon { looked: vec![format!("{endpoint}: {reason}")] };
        if let ClientError::DockerResponseServerError { status_code, message } = error {
            let reason = format!("it says {status_code} {}", harmless(message));
            return Self::NotADaemon { endpoint: endpoint.to_owned(), reason };
        }
        match io_kind(error) {
            Some(io::ErrorKind::PermissionDenied) => {
                Self::Permission { endpoint: endpoint.to_owned() }
            }
            Some(io::ErrorKind::NotFound) => looked("there is no such socket"),
            Some(io::ErrorKind::ConnectionRefused) => looked("nobody listens"),
            Some(kind) => looked(&kind.to_string()),
            None => Self::NotADaemon { endpoint: endpoint.to_owned(), reason: deepest(error) },
        }
    }

    fn refusal(endpoint: String, doing: String, status: Option<u16>, message: &str) -> Self {
        let full = ["no space left on device", "disk quota exceeded"];
        let full = full.iter().any(|words| message.contains(words));
        let message = harmless(message);
        if full {
            return Self::DiskFull { endpoint, doing, message };
        }
        Self::Refused { endpoint, doing, status, message }
    }

    /// The way out, where there is one.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Address { .. } => {
                "an address is unix:///path/of/socket or tcp://host:port; a daemon on another machine \
                 can be had through a tunnel: ssh -NL /tmp/docker.sock:/var/run/docker.sock HOST"
            }
            Self::NoContext { .. } => "`docker context ls` shows those that there are",
            Self::Encrypted { .. } => {
                "go through a tunnel: ssh -NL /tmp/docker.sock:/var/run/docker.sock HOST, and \
                 --docker-host unix:///tmp/docker.sock"
            }
            Self::NoDaemon { .. } => {
                "start one (systemctl start docker, or podman system service), or name its socket \
                 with --docker-host or DOCKER_HOST"
            }
            Self::Permission { .. } => {
                "run as root, add the user to the socket's group (usermod -aG docker USER, then log in \
                 again), or use a rootless daemon"
            }
            Self::NotADaemon { .. } => "name the daemon's socket with --docker-host or DOCKER_HOST",
            Self::TooOld { .. } => "Docker Engine 20.10 and Podman 4 are the oldest that do",
            Self::TooNew { .. } => "update hallmark",
            Self::TimedOut { .. } => {
                "is the daemon stuck or the disk very busy? `docker info` shows"
            }
            Self::CutOutput { .. } => {
                "give the same command again; if it stays so, see what lies between hallmark and the daemon"
            }
            Self::Lost { .. } => {
                "see the daemon's log (journalctl -u docker), start it, and give the same command \
                 again: it does what is left"
            }
            Self::DiskFull { .. } => {
                "free some space (docker system prune), or give the daemon another data root; the same \
                 command then does what is left"
            }
            Self::OtherImage { .. } => {
                "is something else tagging images in this daemon? Otherwise report it: the image must not \
                 be used"
            }
            Self::Refused { .. } | Self::Base(_) | Self::Setup(_) => return None,
        })
    }
}

/// The kind of the innermost input/output error.
fn io_kind(error: &ClientError) -> Option<io::ErrorKind> {
    if let ClientError::IOError { err } = error {
        return Some(err.kind());
    }
    let mut found = None;
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            found = Some(io.kind());
        }
        next = error.source();
    }
    found
}

fn deepest(error: &ClientError) -> String {
    let mut last: &dyn StdError = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemons_words_steer_no_terminal() {
        let message = format!("<html>\u{1b}[31m no space left on device{}", "x".repeat(100_000));
        let error = ClientError::DockerResponseServerError { status_code: 500, message };
        let error = DaemonError::of_call("unix:///d.sock", "start a container", error);
        assert!(matches!(error, DaemonError::DiskFull { .. }), "{error:?}");
        let text = error.to_string();
        assert!(!text.contains('\u{1b}') && text.len() < 500, "{text}");
    }
}
