//! What this host says of registries: mirrors, plain HTTP, and where credentials lie.
//!
//! `HALLMARK_REGISTRY_MIRRORS` is a list of `registry=mirror[/prefix]`, tried in its order before the registry itself, and
//! for pulls only. `HALLMARK_REGISTRY_PLAIN_HTTP` is a list of hosts that are asked by plain HTTP; hosts of the loopback
//! are so anyway, all others never.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

use super::super::config::Host;
use super::super::{Address, Error};
use super::reference::Reference;

const MIRRORS: &str = "HALLMARK_REGISTRY_MIRRORS";
const PLAIN_HTTP: &str = "HALLMARK_REGISTRY_PLAIN_HTTP";

/// Larger blobs go in pieces, so that what a cut connection loses is bounded: some registries keep whole pieces only.
const LARGEST_PIECE: u64 = 64 << 20;

/// Where registries are and how to reach them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registries {
    /// `host[:port][/prefix]` by the registry that each mirrors.
    pub mirrors: BTreeMap<String, Vec<String>>,
    /// Hosts, with their port, that are asked by plain HTTP.
    pub plain_http: BTreeSet<String>,
    /// Files of credentials in Docker's form, strongest first; they need not be there.
    pub credentials: Vec<PathBuf>,
    /// Where credential helpers are looked for; without it where this process looks.
    pub helpers: Option<String>,
    /// Bytes of a blob that are sent in one piece.
    pub largest_piece: u64,
}

impl Default for Registries {
    /// A host without any configuration.
    fn default() -> Self {
        Self {
            mirrors: BTreeMap::new(),
            plain_http: BTreeSet::new(),
            credentials: Vec::new(),
            helpers: None,
            largest_piece: LARGEST_PIECE,
        }
    }
}

impl Registries {
    pub(in crate::net) fn read(host: &Host<'_>) -> Result<Self, Error> {
        let helpers = host.variable(&["PATH"]).map(|(_, value)| value);
        let mut registries =
            Self { credentials: credential_files(host), helpers, ..Self::default() };
        if let Some((name, value)) = host.variable(&[MIRRORS]) {
            for entry in list(&value) {
                let fail = |reason: String| Error::Setting { from: name.to_owned(), reason };
                let (registry, mirror) = entry.split_once('=').ok_or_else(|| {
                    fail("write `registry=mirror`, several of them parted by commas".to_owned())
                })?;
                check_host(mirror.split('/').next().unwrap_or_default())
                    .and_then(|()| check_host(registry))
                    .map_err(|reason| fail(reason.to_owned()))?;
                let mirrors = registries.mirrors.entry(registry.to_owned()).or_default();
                mirrors.push(mirror.trim_end_matches('/').to_owned());
            }
        }
        if let Some((name, value)) = host.variable(&[PLAIN_HTTP]) {
            for entry in list(&value) {
                check_host(entry).map_err(|reason| Error::Setting {
                    from: name.to_owned(),
                    reason: reason.to_owned(),
                })?;
                registries.plain_http.insert(entry.to_owned());
            }
        }
        Ok(registries)
    }

    /// The address below which a registry's interface lies.
    pub(super) fn root(&self, registry: &str) -> Result<Address, Error> {
        let server = Reference::server(registry);
        let plain = plain(&server).is_some_and(|address| on_loopback(&address))
            || self.plain_http.contains(registry);
        let scheme = if plain { "http" } else { "https" };
        Address::parse(&format!("{scheme}://{server}/v2"))
            .map_err(|reason| Error::Reference { text: server, reason: reason.to_owned() })
    }

    /// Whether a registry may send us on from one address to another: by plain HTTP only to this machine and to hosts that are
    /// named.
    pub(in crate::net) fn admit(&self, address: &Address, target: &Address) -> Result<(), Error> {
        let named = || {
            let server = |registry: &String| Reference::server(registry);
            let mut roots = self.plain_http.iter().map(server).filter_map(|server| plain(&server));
            roots.any(|root| root.same_origin(target))
        };
        if target.is_secure() || on_loopback(target) || named() {
            return Ok(());
        }
        Err(Error::PlainHttp { address: address.clone(), target: target.clone() })
    }

    /// Registry and repository of every place to pull `name` from, the registry itself last.
    pub(super) fn places(&self, registry: &str, name: &str) -> Vec<(String, String)> {
        let mirrors = self.mirrors.get(registry).into_iter().flatten().map(|mirror| {
            match mirror.split_once('/') {
                Some((host, prefix)) => (host.to_owned(), format!("{prefix}/{name}")),
                None => (mirror.clone(), name.to_owned()),
            }
        });
        mirrors.chain([(registry.to_owned(), name.to_owned())]).collect()
    }
}

fn list(value: &str) -> impl Iterator<Item = &str> {
    value.split([',', ' ']).map(str::trim).filter(|entry| !entry.is_empty())
}

fn check_host(host: &str) -> Result<(), &'static str> {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !host.ends_with(']') => (name, port),
        _ => (host, "443"),
    };
    let fits = !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b':' | b'[' | b']'))
        && port.parse::<u16>().is_ok();
    if fits {
        Ok(())
    } else {
        Err("a registry is a host with, if need be, a port: no scheme, no path")
    }
}

/// A server, asked by plain HTTP.
fn plain(server: &str) -> Option<Address> {
    Address::parse(&format!("http://{server}/")).ok()
}

/// Whether nobody but this machine answers there.
fn on_loopback(address: &Address) -> bool {
    let host = address.url().host_str().unwrap_or_default();
    host == "localhost"
        || host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// Docker's file first, then those of Podman and its kin.
fn credential_files(host: &Host<'_>) -> Vec<PathBuf> {
    let home = host.home.map(PathBuf::from);
    let docker =
        host.folder("DOCKER_CONFIG").or_else(|| home.as_ref().map(|home| home.join(".docker")));
    docker
        .map(|folder| folder.join("config.json"))
        .into_iter()
        .chain(host.folder("REGISTRY_AUTH_FILE"))
        .chain(host.folder("XDG_RUNTIME_DIR").map(|folder| folder.join("containers/auth.json")))
        .chain(host.config_home().map(|folder| folder.join("containers/auth.json")))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Registries, Error> {
        let env =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Registries::read(&Host {
            env: &env,
            home: Some(Path::new("/home/me")),
            root: Path::new("/nonexistent"),
        })
    }

    #[test]
    fn plain_http_is_for_the_loopback_or_asked_for() {
        let registries = read(&[(PLAIN_HTTP, "far.example:5000, other.example")]).unwrap();
        for (registry, root) in [
            ("localhost:5000", "http://localhost:5000/v2"),
            ("127.0.0.9", "http://127.0.0.9/v2"),
            ("[::1]:5000", "http://[::1]:5000/v2"),
            ("far.example:5000", "http://far.example:5000/v2"),
            ("far.example", "https://far.example/v2"),
            ("localhost.example", "https://localhost.example/v2"),
            ("10.0.0.1:5000", "https://10.0.0.1:5000/v2"),
        ] {
            assert_eq!(registries.root(registry).unwrap().expose(), root);
        }
    }

    #[test]
    fn nobody_is_sent_on_by_plain_http_but_to_the_loopback_and_those_named() {
        let registries = read(&[(PLAIN_HTTP, "far.example:5000 near.example:80")]).unwrap();
        let from = Address::parse("http://far.example:5000/v2").unwrap();
        for (target, good) in [
            ("https://other.example/x", true),
            ("http://127.0.0.1:8080/x", true),
            ("http://localhost/x", true),
            ("http://[::1]/x", true),
            ("http://far.example:5000/x", true),
            ("http://near.example/x", true),
            ("http://far.example/x", false),
            ("http://far.example:5001/x", false),
            ("http://localhost.example/x", false),
            ("http://192.0.2.2:5000/x", false),
        ] {
            let target = Address::parse(target).unwrap();
            let result = registries.admit(&from, &target);
            assert_eq!(result.is_ok(), good, "{target}");
            let Err(error) = result else { continue };
            assert!(error.to_string().contains(&target.to_string()), "{error}");
            assert!(error.hint().unwrap().contains(PLAIN_HTTP));
        }
    }

    #[test]
    fn mirrors_come_first_and_may_have_a_prefix() {
        let registries = read(&[(
            MIRRORS,
            "a.example=m1.example/hub/,a.example=m2.example:80 b.example=m3.example",
        )])
        .unwrap();
        let places = registries.places("a.example", "x/y");
        let pair = |host: &str, name: &str| (host.to_owned(), name.to_owned());
        assert_eq!(
            places,
            [pair("m1.example", "hub/x/y"), pair("m2.example:80", "x/y"), pair("a.example", "x/y")]
        );
        assert_eq!(registries.places("c.example", "x"), [pair("c.example", "x")]);
        for bad in ["m.example", "a.example=https://m.example", "=m", "a="] {
            let error = read(&[(MIRRORS, bad)]).unwrap_err();
            assert!(error.to_string().starts_with(MIRRORS), "{error}");
        }
    }

    #[test]
    fn credentials_lie_where_docker_and_podman_keep_them() {
        let files =
            read(&[("DOCKER_CONFIG", "/d"), ("XDG_RUNTIME_DIR", "/run/me")]).unwrap().credentials;
        let shown: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
        assert_eq!(
            shown,
            [
                "/d/config.json",
                "/run/me/containers/auth.json",
                "/home/me/.config/containers/auth.json"
            ]
        );
        assert_eq!(read(&[]).unwrap().credentials[0], Path::new("/home/me/.docker/config.json"));
    }
}
