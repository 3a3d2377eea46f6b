//! Where the archives are, as this host says it, and how to reach them.
//!
//! First come `HALLMARK_PYPI_INDEX`, `HALLMARK_DEBIAN_MIRROR`, `HALLMARK_DEBIAN_SNAPSHOT` and
//! `HALLMARK_OFFLINE`. The index is then uv's (`UV_DEFAULT_INDEX`, `UV_INDEX_URL`, `uv.toml`), pip's
//! (`PIP_INDEX_URL`, the `pip.conf` files); the mirror is that of apt's sources. Proxies and certificates
//! are the usual variables'; registries are told in [`Registries`]. What would change a lock (find-links, extra indexes, constraints) is never read.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::registry::Registries;
use super::{Address, Certificates, Error, Patience, apt_sources, pip_conf, uv_toml};

const PYPI_INDEX: &str = "https://pypi.org/simple/";
const DEBIAN_MIRROR: &str = "http://deb.debian.org/debian/";
const DEBIAN_SNAPSHOT: &str = "https://snapshot.debian.org/archive/debian/";

/// What a host says about itself. The environment is read by `cli` and passed as a value.
#[derive(Debug, Clone, Copy)]
pub struct Host<'a> {
    /// The environment.
    pub env: &'a BTreeMap<String, String>,
    /// The user's home folder.
    pub home: Option<&'a Path>,
    /// Where `/etc` is looked for: `/`.
    pub root: &'a Path,
}

/// An address and who gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The address.
    pub address: Address,
    /// The variable or file that gave it, or `default`.
    pub from: String,
}

/// Proxies by the scheme of the address wanted.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Proxy {
    /// For `http`.
    pub http: Option<String>,
    /// For `https`.
    pub https: Option<String>,
    /// Hosts that need none, as `no_proxy` writes them.
    pub except: Option<String>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Proxy addresses hold passwords.
        f.debug_struct("Proxy")
            .field("http", &self.http.is_some())
            .field("https", &self.https.is_some())
            .field("except", &self.except)
            .finish()
    }
}

/// Where everything is and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// PyPI's simple index.
    pub pypi_index: Place,
    /// Debian's archive.
    pub debian_mirror: Place,
    /// Debian's archive at a point in time: a folder of time stamps.
    pub debian_snapshot: Place,
    /// Container registries.
    pub registries: Registries,
    /// Whether the network must not be used.
    pub offline: bool,
    /// Proxies.
    pub proxy: Proxy,
    /// Whom to trust.
    pub certificates: Certificates,
    /// How long to wait.
    pub patience: Patience,
}

/// What uv must be told inside the sandbox to reach the index as this host does.
#[derive(Clone)]
pub struct UvEnvironment {
    /// Environment variables; they may hold credentials, so never print them.
    pub variables: BTreeMap<String, String>,
    /// PEM certificates to be mounted read-only at [`UvEnvironment::CERTIFICATES`].
    pub certificates: Option<String>,
}

impl UvEnvironment {
    /// Where the certificates are inside the sandbox.
    pub const CERTIFICATES: &'static str = "/run/hallmark/ca.pem";
}

impl Config {
    /// Reads what this host says.
    pub fn from_host(env: &BTreeMap<String, String>, home: Option<&Path>) -> Result<Self, Error> {
        Self::read(&Host { env, home, root: Path::new("/") })
    }

    /// Reads what `host` says.
    pub fn read(host: &Host<'_>) -> Result<Self, Error> {
        let pip = host.pip_settings();
        Ok(Self {
            pypi_index: host.index(&pip)?,
            debian_mirror: host.mirror()?,
            debian_snapshot: match host.variable(&["HALLMARK_DEBIAN_SNAPSHOT"]) {
                Some((name, value)) => place(&value, name)?,
                None => default(DEBIAN_SNAPSHOT),
            },
            registries: Registries::read(host)?,
            offline: host.variable(&["HALLMARK_OFFLINE"]).is_some_and(|(_, value)| {
                !matches!(value.to_lowercase().as_str(), "0" | "false" | "no" | "off")
            }),
            proxy: host.proxy(&pip),
            certificates: host.certificates(&pip),
            patience: Patience::default(),
        })
    }

    /// How uv reaches the same index through the same proxies, trusting the same authorities.
    pub fn uv_environment(&self) -> Result<UvEnvironment, Error> {
        let mut variables = BTreeMap::new();
        let mut set = |name: &str, value: &str| variables.insert(name.to_owned(), value.to_owned());
        set("UV_DEFAULT_INDEX", self.pypi_index.address.expose());
        for (name, value) in [
            ("HTTP_PROXY", &self.proxy.http),
            ("HTTPS_PROXY", &self.proxy.https),
            ("NO_PROXY", &self.proxy.except),
        ] {
            if let Some(value) = value {
                // Programs disagree on the case; give both.
                set(name, value);
                set(&name.to_lowercase(), value);
            }
        }
        let pem = self.certificates.to_pem()?;
        let certificates = (!pem.is_empty()).then_some(pem);
        if certificates.is_some() {
            set("SSL_CERT_FILE", UvEnvironment::CERTIFICATES);
        }
        Ok(UvEnvironment { variables, certificates })
    }
}

fn place(value: &str, from: impl Into<String>) -> Result<Place, Error> {
    let from = from.into();
    match Address::parse(value) {
        Ok(address) => Ok(Place { address: address.as_folder(), from }),
        Err(reason) => Err(Error::Setting { from, reason: reason.to_owned() }),
    }
}

fn default(address: &str) -> Place {
    place(address, "default").expect("the default addresses are well-formed")
}

/// A pip setting and the file or variable that gave it.
type PipSettings = BTreeMap<String, (String, String)>;

impl Host<'_> {
    /// The first of these variables that is set and not empty.
    pub(super) fn variable<'n>(&self, names: &[&'n str]) -> Option<(&'n str, String)> {
        names.iter().find_map(|name| {
            let value = self.env.get(*name)?.trim();
            (!value.is_empty()).then(|| (*name, value.to_owned()))
        })
    }

    /// A path of the environment; a relative one is meaningless without a working folder.
    pub(super) fn folder(&self, name: &str) -> Option<PathBuf> {
        self.env.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    pub(super) fn config_home(&self) -> Option<PathBuf> {
        self.folder("XDG_CONFIG_HOME").or_else(|| self.home.map(|home| home.join(".config")))
    }

    /// The system-wide configuration folders of the XDG specification, strongest first.
    fn config_folders(&self) -> Vec<PathBuf> {
        match self.env.get("XDG_CONFIG_DIRS").filter(|value| !value.is_empty()) {
            Some(value) => value.split(':').map(PathBuf::from).collect(),
            None => vec![self.root.join("etc/xdg")],
        }
    }

    fn index(&self, pip: &PipSettings) -> Result<Place, Error> {
        if let Some((name, value)) = self.variable(&["HALLMARK_PYPI_INDEX"]) {
            return place(&value, name);
        }
        if let Some((name, value)) = self.variable(&["UV_DEFAULT_INDEX", "UV_INDEX_URL"]) {
            // uv takes `name=https://...` as well.
            return match value.split_once('=') {
                Some((label, url)) if !label.contains([':', '/']) => {
                    Ok(self.with_uv_credentials(place(url, name)?, label))
                }
                _ => place(&value, name),
            };
        }
        let files = match self.variable(&["UV_CONFIG_FILE"]) {
            Some((_, path)) => vec![PathBuf::from(path)],
            None if self.env.get("UV_NO_CONFIG").is_some_and(|value| !value.is_empty()) => vec![],
            None => {
                let user = self.config_home().into_iter();
                let system = self.config_folders().into_iter();
                user.chain(system)
                    .map(|folder| folder.join("uv/uv.toml"))
                    .chain([self.root.join("etc/uv/uv.toml")])
                    .collect()
            }
        };
        for path in files {
            let Some(text) = read_if_there(&path)? else { continue };
            let from = path.display().to_string();
            let found = uv_toml::parse(&text)
                .map_err(|reason| Error::Setting { from: from.clone(), reason })?;
            if let Some(index) = found {
                let place = place(&index.url, from)?;
                return Ok(match index.name {
                    Some(name) => self.with_uv_credentials(place, &name),
                    None => place,
                });
            }
        }
        match pip.get("index-url") {
            Some((value, from)) => place(value, from),
            None => Ok(default(PYPI_INDEX)),
        }
    }

    /// uv finds the credentials of a named index in variables.
    fn with_uv_credentials(&self, mut place: Place, name: &str) -> Place {
        let name: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
            .collect();
        let user = self.env.get(&format!("UV_INDEX_{name}_USERNAME"));
        let password = self.env.get(&format!("UV_INDEX_{name}_PASSWORD"));
        if user.is_some() || password.is_some() {
            let text = |value: Option<&String>| value.cloned().unwrap_or_default();
            place.address = place.address.with_credentials(&text(user), &text(password));
        }
        place
    }

    /// pip's files, weakest first, then its variables.
    fn pip_settings(&self) -> PipSettings {
        let mut files = Vec::new();
        let own = self.env.get("PIP_CONFIG_FILE").filter(|path| !path.is_empty());
        // pip reads no file at all when told to read the null device.
        if own.is_none_or(|path| path != "/dev/null") {
            files.extend(self.config_folders().into_iter().rev().map(|f| f.join("pip/pip.conf")));
            files.push(self.root.join("etc/pip.conf"));
            files.extend(self.home.map(|home| home.join(".pip/pip.conf")));
            files.extend(self.config_home().map(|folder| folder.join("pip/pip.conf")));
            files.extend(self.folder("VIRTUAL_ENV").map(|folder| folder.join("pip.conf")));
            files.extend(own.map(PathBuf::from));
        }
        let mut settings = PipSettings::new();
        for path in files {
            match read_if_there(&path) {
                Ok(Some(text)) => settings.extend(
                    pip_conf::parse(&text)
                        .into_iter()
                        .map(|(key, value)| (key, (value, path.display().to_string()))),
                ),
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, "unreadable pip configuration"),
            }
        }
        for (key, name) in
            [("index-url", "PIP_INDEX_URL"), ("cert", "PIP_CERT"), ("proxy", "PIP_PROXY")]
        {
            if let Some((name, value)) = self.variable(&[name]) {
                settings.insert(key.to_owned(), (value, name.to_owned()));
            }
        }
        settings
    }

    fn mirror(&self) -> Result<Place, Error> {
        if let Some((name, value)) = self.variable(&["HALLMARK_DEBIAN_MIRROR"]) {
            return place(&value, name);
        }
        let mut files = vec![self.root.join("etc/apt/sources.list")];
        let mut more: Vec<PathBuf> = fs_err::read_dir(self.root.join("etc/apt/sources.list.d"))
            .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
            .unwrap_or_default();
        more.sort();
        files.extend(more);
        for path in files {
            let parse = match path.extension().and_then(|extension| extension.to_str()) {
                Some("list") => apt_sources::parse_list,
                Some("sources") => apt_sources::parse_deb822,
                _ => continue,
            };
            match read_if_there(&path) {
                Ok(Some(text)) => {
                    if let Some(uri) = parse(&text) {
                        return place(&uri, path.display().to_string());
                    }
                }
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, "unreadable apt source list"),
            }
        }
        Ok(default(DEBIAN_MIRROR))
    }

    fn proxy(&self, pip: &PipSettings) -> Proxy {
        let all = self
            .variable(&["all_proxy", "ALL_PROXY"])
            .map(|(_, value)| value)
            .or_else(|| pip.get("proxy").map(|(value, _)| value.clone()));
        let or_all = |names: &[&str]| {
            let value = self.variable(names).map(|(_, value)| value).or_else(|| all.clone())?;
            Some(if value.contains("://") { value } else { format!("http://{value}") })
        };
        Proxy {
            http: or_all(&["http_proxy", "HTTP_PROXY"]),
            https: or_all(&["https_proxy", "HTTPS_PROXY"]),
            except: self.variable(&["no_proxy", "NO_PROXY"]).map(|(_, value)| value),
        }
    }

    fn certificates(&self, pip: &PipSettings) -> Certificates {
        let own = self.variable(&["SSL_CERT_FILE"]).map(|(_, value)| PathBuf::from(value));
        let mut files: Vec<PathBuf> =
            own.or_else(|| Certificates::system_bundle(self.root)).into_iter().collect();
        files.extend(pip.get("cert").map(|(value, _)| PathBuf::from(value)));
        for name in ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"] {
            files.extend(self.variable(&[name]).map(|(_, value)| PathBuf::from(value)));
        }
        let folders: Vec<PathBuf> = self.folder("SSL_CERT_DIR").into_iter().collect();
        // requests takes a folder as well.
        let (mut more, mut files): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|path| path.is_dir());
        more.extend(folders.into_iter().filter(|path| path.is_dir()));
        files.sort();
        files.dedup();
        more.sort();
        more.dedup();
        Certificates { files, folders: more }
    }
}

fn read_if_there(path: &Path) -> Result<Option<String>, Error> {
    match fs_err::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(Error::Setting {
            from: path.display().to_string(),
            reason: format!("it does not read: {error}"),
        }),
    }
}
