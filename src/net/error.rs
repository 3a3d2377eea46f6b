//! What can go wrong between this host and the archives.

use std::path::PathBuf;
use std::time::Duration;

use super::Address;

/// An error of this room. Addresses are shown without credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting of the host does not make sense.
    #[error("{from}: {reason}")]
    Setting {
        /// The variable or file that holds it.
        from: String,
        /// What is wrong; the value itself may hold secrets.
        reason: String,
    },
    /// Certificates that the host names cannot be read.
    #[error("cannot read the certificates of {}: {reason}", path.display())]
    Certificates {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file of logins for registries cannot be read.
    #[error("{}: {reason}", path.display())]
    Logins {
        /// The file.
        path: PathBuf,
        /// What is wrong, without any secret.
        reason: String,
    },
    /// The HTTP client cannot be made.
    #[error("cannot set up the HTTP client")]
    Setup(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The offline switch is on.
    #[error("{name} is needed from {address}, and hallmark is offline")]
    Offline {
        /// What was wanted.
        name: String,
        /// From where.
        address: Address,
        /// Of what kind that is.
        server: Server,
    },
    /// No answer, a broken connection or a cut body, as often as it was tried.
    #[error("{address}: {reason}{}", said(*.tries))]
    Unreachable {
        /// From where.
        address: Address,
        /// The last failure.
        reason: String,
        /// How often.
        tries: u32,
        /// Of what kind the server is.
        server: Server,
        /// The last failure, as the client tells it.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The answer to a beginning of TLS is none of TLS.
    #[error("{address}: the server seems to speak plain HTTP, without encryption")]
    Unencrypted {
        /// From where.
        address: Address,
    },
    /// An answer that trying again does not change, or did not.
    #[error("{address}: the server says {status}{}", said(*.tries))]
    Status {
        /// From where.
        address: Address,
        /// Code and reason.
        status: reqwest::StatusCode,
        /// How often it was tried.
        tries: u32,
        /// Of what kind the server is.
        server: Server,
    },
    /// The server asks for a longer wait than is sensible.
    #[error("{address}: the server says {status} and asks to wait {} s", wait.as_secs())]
    AskedToWait {
        /// From where.
        address: Address,
        /// Code and reason.
        status: reqwest::StatusCode,
        /// How long.
        wait: Duration,
        /// Of what kind the server is.
        server: Server,
    },
    /// Redirects go round, or on and on.
    #[error("{address}: redirected {count} times, last to {last}")]
    RedirectLoop {
        /// The first address.
        address: Address,
        /// Where the last redirect points to.
        last: Address,
        /// How many were followed.
        count: usize,
    },
    /// A redirect that is not followed.
    #[error("{address}: redirected to {target}, which is refused: {reason}")]
    Redirect {
        /// The address that redirects.
        address: Address,
        /// Where to.
        target: String,
        /// Why not.
        reason: &'static str,
    },
    /// The answer is longer than anything expected here.
    #[error("{address}: the answer is larger than {limit} bytes")]
    TooLarge {
        /// From where.
        address: Address,
        /// The limit, of decoded bytes.
        limit: u64,
    },
    /// The answer does not hold what it should.
    #[error("{address}: {reason}")]
    Page {
        /// From where.
        address: Address,
        /// What is wrong.
        reason: String,
    },
    /// The index knows the project, but not the file.
    #[error("{index} has no {name} of {project}")]
    NotListed {
        /// The index.
        index: Address,
        /// The project.
        project: String,
        /// The file.
        name: String,
    },
    /// A name that no image can have.
    #[error("{text:?} names no image: {reason}")]
    Reference {
        /// What was given.
        text: String,
        /// What is wrong.
        reason: String,
    },
    /// A registry does not let us in.
    #[error("{address}: the registry refuses: {reason}")]
    Denied {
        /// What was asked for.
        address: Address,
        /// Its reason, or ours.
        reason: String,
    },
    /// A registry says no, in words of its own.
    #[error("{address}: the registry says {status}{}{said}", if said.is_empty() { "" } else { ": " })]
    Registry {
        /// What was asked for.
        address: Address,
        /// Code and reason.
        status: reqwest::StatusCode,
        /// Its explanation, where it has one.
        said: String,
    },
    /// A registry sends on to a host that nobody wants to be asked by plain HTTP.
    #[error("{address}: it sends on to {target}, which would be asked by plain HTTP")]
    PlainHttp {
        /// What was asked for.
        address: Address,
        /// Where to.
        target: Address,
    },
    /// An answer that no registry gives.
    #[error("{address}: {reason}")]
    NoRegistry {
        /// What was asked for.
        address: Address,
        /// What is wrong.
        reason: String,
    },
    /// A credential helper gives no credentials.
    #[error("docker-credential-{name}, asked about {server}: {reason}")]
    Helper {
        /// Its name after `docker-credential-`.
        name: String,
        /// The registry.
        server: String,
        /// What is wrong.
        reason: String,
    },
    /// The name or path asked for cannot be part of an address.
    #[error("{name:?}: {reason}")]
    Name {
        /// What was asked for.
        name: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// None of several addresses gave the file.
    #[error("no address gave {name}: {}", list(failures))]
    Everywhere {
        /// The file.
        name: String,
        /// What went wrong, by address.
        failures: Vec<Error>,
    },
    /// Mismatches, full disks and the end that was asked for.
    #[error(transparent)]
    Base(#[from] crate::base::Error),
}

/// What helps with a registry that does not let us in.
const LOGIN: &str = "log in with `docker login` (or `podman login`): hallmark reads the same files \
    (DOCKER_CONFIG, REGISTRY_AUTH_FILE); a repository that is not there is refused by some registries \
    as well";

/// What kind of server an error speaks of: the way out differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// A package index, a mirror, or a snapshot of one.
    Archive,
    /// A container registry.
    Registry,
}

fn said(tries: u32) -> String {
    if tries > 1 { format!(" (tried {tries} times)") } else { String::new() }
}

fn list(failures: &[Error]) -> String {
    failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Error {
    /// The way out, where there is one.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Certificates { .. } => {
                "name a file of PEM certificates in SSL_CERT_FILE, or install ca-certificates"
            }
            Self::Logins { .. } => {
                "repair the file, or remove it and log in again with `docker login` (or `podman login`)"
            }
            Self::Offline { server: Server::Registry, .. } => {
                "leave out --offline (or unset HALLMARK_OFFLINE)"
            }
            Self::Offline { .. } => {
                "leave out --offline (or unset HALLMARK_OFFLINE), or bring the files along: `hallmark \
                 bundle pack` on a host with a network, `hallmark bundle unpack` here"
            }
            Self::Unreachable { reason, .. } if reason.contains("certificate") => {
                "if a proxy of yours signs the connection, name its certificate in SSL_CERT_FILE"
            }
            Self::Unencrypted { .. } => {
                "if that is meant: for a registry, `push --plain-http`, or its host and port in \
                 HALLMARK_REGISTRY_PLAIN_HTTP; for an index or a mirror, http:// in its address"
            }
            Self::Unreachable { server: Server::Registry, .. } => {
                "check the registry's name and port, the network and the proxy (https_proxy, no_proxy); \
                 mirrors to pull from are set by HALLMARK_REGISTRY_MIRRORS"
            }
            Self::Unreachable { .. } => {
                "check the network and the proxy (https_proxy, no_proxy); another mirror or index is \
                 set by HALLMARK_PYPI_INDEX and HALLMARK_DEBIAN_MIRROR"
            }
            Self::Status { status, server: Server::Registry, .. } => match status.as_u16() {
                401 | 403 => LOGIN,
                404 | 410 => "what was asked for is not in this registry (any more)",
                _ => {
                    "the registry is in trouble: try again later; what went over does not go again"
                }
            },
            Self::Status { status, .. } => match status.as_u16() {
                401 | 403 | 407 => {
                    "the server wants other credentials: put them in the address, as pip and uv do \
                     (https://user:password@host/)"
                }
                404 | 410 => {
                    "the file is not there (any more): another mirror or index is set by \
                     HALLMARK_PYPI_INDEX, HALLMARK_DEBIAN_MIRROR and HALLMARK_DEBIAN_SNAPSHOT"
                }
                _ => "the server is in trouble: try again later; what was fetched is kept",
            },
            Self::AskedToWait { server: Server::Registry, .. } => {
                "try again after that; what went over does not go again"
            }
            Self::AskedToWait { .. } => "try again after that; what was fetched is kept",
            Self::Page { .. } => {
                "is this a package index? PyPI's is set by HALLMARK_PYPI_INDEX, and ends in /simple"
            }
            Self::Reference { .. } => {
                "write `registry.example/repository:tag` or `registry.example/repository@sha256:...`; \
                 repositories are lower-case"
            }
            Self::Denied { .. } => LOGIN,
            Self::Registry { status, .. } if matches!(status.as_u16(), 404 | 410) => {
                "the repository or what was asked for in it is not there (any more)"
            }
            Self::Registry { .. } => "the registry's own words say why",
            Self::PlainHttp { target, .. } => {
                return Some(format!(
                    "if it shall be, name it in HALLMARK_REGISTRY_PLAIN_HTTP ({}); that a registry \
                     itself is asked so says nothing of others",
                    target.bare().authority()
                ));
            }
            Self::NoRegistry { .. } => {
                "is this a container registry? A proxy's sign-in page may stand in its place"
            }
            Self::Helper { .. } => {
                "try it by hand: `echo REGISTRY | docker-credential-NAME get`; it is named by credHelpers or \
                 credsStore in Docker's config.json"
            }
            Self::NotListed { .. } => {
                "it was withdrawn, or this index is not the one that was locked against: another one \
                 is set by HALLMARK_PYPI_INDEX; locking again chooses what is there now"
            }
            Self::Everywhere { failures, .. } => return failures.iter().find_map(Self::hint),
            Self::Base(crate::base::Error::DigestMismatch { .. }) => {
                "the bytes were dropped: a mirror or proxy may hold a damaged copy; try another one"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    /// The same error, of a registry.
    pub(super) fn of_registry(mut self) -> Self {
        if let Self::Offline { server, .. }
        | Self::Unreachable { server, .. }
        | Self::Status { server, .. }
        | Self::AskedToWait { server, .. } = &mut self
        {
            *server = Server::Registry;
        }
        self
    }

    /// Whether the server said that it has no such thing.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::Status { status, .. } | Self::Registry { status, .. } => {
                matches!(status.as_u16(), 404 | 410)
            }
            Self::NotListed { .. } => true,
            Self::Everywhere { failures, .. } => failures.iter().all(Self::is_not_found),
            _ => false,
        }
    }

    /// Whether the offline switch stopped it.
    pub fn is_offline(&self) -> bool {
        matches!(self, Self::Offline { .. })
    }

    /// Whether every further try here would fail as well: a full disk, or the end asked for.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Base(crate::base::Error::Cancelled) => true,
            Self::Base(error) => error.is_disk_full(),
            _ => false,
        }
    }
}
