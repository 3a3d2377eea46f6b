//! Where daemons are: what the user names, else Docker's current context, else the usual sockets.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::DaemonError;
use super::context;

/// Docker's own socket.
const DOCKER: &str = "/var/run/docker.sock";

/// Podman's, where its service runs as root.
const PODMAN: &str = "/run/podman/podman.sock";

/// The address of a daemon that may be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A Unix socket.
    Unix(PathBuf),
    /// Host and port, without encryption.
    Tcp(String),
}

impl Endpoint {
    /// Reads an address as `DOCKER_HOST` holds it; `from` says where it stands.
    pub fn parse(address: &str, from: &str) -> Result<Self, DaemonError> {
        let fail = |reason: &str| DaemonError::Address {
            from: from.to_owned(),
            address: address.to_owned(),
            reason: reason.to_owned(),
        };
        match address.split_once("://") {
            Some(("unix", path)) if Path::new(path).is_absolute() => Ok(Self::Unix(path.into())),
            Some(("unix", _)) => Err(fail("the path of a socket is absolute")),
            Some(("tcp" | "http", place)) => {
                let place = place.trim_end_matches('/');
                let valid = url::Url::parse(&format!("http://{place}/")).is_ok_and(|url| {
                    url.has_host() && url.port_or_known_default().is_some() && url.path() == "/"
                });
                if valid { Ok(Self::Tcp(place.to_owned())) } else { Err(fail("no host and port")) }
            }
            Some((scheme, _)) => Err(fail(&format!("{scheme}:// is not supported"))),
            None => Err(fail("no scheme")),
        }
    }

    /// The daemons to try, in this order: `named` (by option or `DOCKER_HOST`) alone; Docker's context that is
    /// chosen alone; else the sockets of Docker and Podman.
    ///
    /// # Errors
    ///
    /// [`DaemonError::Address`], [`DaemonError::NoContext`] and [`DaemonError::Encrypted`] where what is named cannot be used: then
    /// no other daemon is taken instead.
    pub fn candidates(
        named: Option<&str>,
        environment: &BTreeMap<String, String>,
    ) -> Result<Vec<Self>, DaemonError> {
        if let Some(address) = named.filter(|address| !address.is_empty()) {
            let endpoint = Self::parse(address, "--docker-host or DOCKER_HOST")?;
            let verify =
                environment.get("DOCKER_TLS_VERIFY").is_some_and(|value| !value.is_empty());
            if verify && matches!(endpoint, Self::Tcp(_)) {
                return Err(DaemonError::Encrypted { endpoint: endpoint.to_string() });
            }
            return Ok(vec![endpoint]);
        }
        if let Some((address, from)) = context::chosen(environment)? {
            return Ok(vec![Self::parse(&address, &from)?]);
        }
        let mut sockets = vec![PathBuf::from(DOCKER)];
        if let Some(folder) = environment.get("XDG_RUNTIME_DIR").map(Path::new) {
            sockets.extend(["docker.sock", "podman/podman.sock"].map(|name| folder.join(name)));
        }
        sockets.push(PathBuf::from(PODMAN));
        Ok(sockets.into_iter().map(Self::Unix).collect())
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(place) => write!(f, "tcp://{place}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_or_say_what_is_wrong() {
        let parse = |text| Endpoint::parse(text, "DOCKER_HOST");
        assert_eq!(parse("unix:///run/d.sock").unwrap(), Endpoint::Unix("/run/d.sock".into()));
        assert_eq!(parse("tcp://10.0.0.1:2375").unwrap(), Endpoint::Tcp("10.0.0.1:2375".into()));
        assert_eq!(parse("tcp://[::1]:2375/").unwrap().to_string(), "tcp://[::1]:2375");
        for (text, reason) in [
            ("ssh://user@host", "ssh:// is not supported"),
            ("npipe:////./pipe/docker", "npipe:// is not supported"),
            ("unix://docker.sock", "absolute"),
            ("tcp://", "no host and port"),
            ("tcp://host:port", "no host and port"),
            ("tcp://host:1/path", "no host and port"),
            ("/var/run/docker.sock", "no scheme"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
            assert!(error.hint().unwrap().contains("ssh -NL"), "{error}");
        }
    }

    #[test]
    fn what_is_named_is_the_only_candidate() {
        let environment = [("XDG_RUNTIME_DIR".to_owned(), "/run/user/7".to_owned())].into();
        let all = |named| -> Vec<String> {
            let candidates = Endpoint::candidates(named, &environment).unwrap();
            candidates.iter().map(ToString::to_string).collect()
        };
        assert_eq!(all(Some("tcp://h:1")), ["tcp://h:1"]);
        let usual = [
            "unix:///var/run/docker.sock",
            "unix:///run/user/7/docker.sock",
            "unix:///run/user/7/podman/podman.sock",
            "unix:///run/podman/podman.sock",
        ];
        assert_eq!(all(None), usual);

        for (address, value, refused) in [
            ("tcp://h:2376", "1", true),
            ("tcp://h:2375", "", false),
            ("unix:///d.sock", "1", false),
        ] {
            let environment = [("DOCKER_TLS_VERIFY".to_owned(), value.to_owned())].into();
            let candidates = Endpoint::candidates(Some(address), &environment);
            assert_eq!(candidates.is_err(), refused, "{address} {value}");
            if let Err(error) = candidates {
                assert!(error.hint().unwrap().contains("ssh -NL"), "{error}");
            }
        }
        assert_eq!(all(Some("")), usual);
    }
}
