//! Who this host is for a registry: Docker's `config.json`, and `auth.json` of Podman and its kin, which has the same form.
//!
//! ```text
//! {"auths": {"registry.example": {"auth": "<base64 of user:password>", "identitytoken": "..."}},
//!  "credHelpers": {"registry.example": "name"},
//!  "credsStore": "name"}
//! ```
//!
//! A registry's own helper comes first, then its entry, then the store for all, as with Docker. Keys may have a scheme and a
//! path (`https://registry.example/v1/`), and those of `auth.json` may name a part of a registry: the longest one that
//! fits counts.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use serde::Deserialize;

use super::super::Error;
use super::helper::Helpers;
use crate::base::Cancel;

/// Files of more than this are not configuration.
const LARGEST_FILE: u64 = 4 * 1024 * 1024;

/// What to tell a registry or its token server.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Login {
    Basic {
        user: String,
        password: String,
    },
    /// A token to get tokens with.
    Identity(String),
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Basic { .. } => "Basic(***)",
            Self::Identity(_) => "Identity(***)",
        })
    }
}

/// As with Docker, `null` is nothing, at every place.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Settings {
    auths: Option<BTreeMap<String, Option<Auth>>>,
    cred_helpers: Option<BTreeMap<String, String>>,
    creds_store: Option<String>,
}

#[derive(Deserialize, Default)]
struct Auth {
    #[serde(rename = "auth")]
    pair: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
}

/// For what credentials are looked, and how.
pub(super) struct Lookup<'a> {
    /// The registry's name.
    pub(super) registry: &'a str,
    /// The host that stands for it.
    pub(super) server: &'a str,
    /// The repository.
    pub(super) repository: &'a str,
    /// What helpers answered before.
    pub(super) helpers: &'a Helpers,
    /// Where helpers are; see [`super::Registries::helpers`].
    pub(super) path: Option<&'a str>,
    /// How long a helper may take.
    pub(super) deadline: Duration,
    pub(super) cancel: &'a Cancel,
}

/// Looks through the files; the first that knows anything decides.
pub(super) fn find(files: &[PathBuf], lookup: &Lookup<'_>) -> Result<Option<Login>, Error> {
    for path in files {
        let fail = |reason: String| Error::Logins { path: path.clone(), reason };
        let text = match fs_err::metadata(path) {
            Err(_) => continue,
            // The null device is how some say that there is nothing.
            Ok(metadata) if metadata.file_type().is_char_device() => continue,
            // A pipe could keep us waiting for ever.
            Ok(metadata) if !metadata.is_file() => {
                return Err(fail("it is not a file".to_owned()));
            }
            Ok(metadata) if metadata.len() > LARGEST_FILE => {
                return Err(fail(format!("it has {} bytes", metadata.len())));
            }
            Ok(_) => fs_err::read(path).map_err(|error| fail(error.to_string()))?,
        };
        if text.trim_ascii().is_empty() {
            continue;
        }
        let settings: Option<Settings> = serde_json::from_slice(&text).map_err(|error| {
            fail(format!("it does not read (line {}, column {})", error.line(), error.column()))
        })?;
        let settings = settings.unwrap_or_default();
        let (auths, cred_helpers) =
            (settings.auths.unwrap_or_default(), settings.cred_helpers.unwrap_or_default());
        let names: Vec<String> = names(lookup.registry, lookup.server, lookup.repository);
        if let Some((key, name)) = best(&cred_helpers, &names) {
            if let Some(login) = lookup.helpers.ask(name, key, lookup)? {
                return Ok(Some(login));
            }
            continue;
        }
        if let Some((key, Some(auth))) = best(&auths, &names)
            && let Some(login) = login(auth).map_err(|reason| fail(format!("{key}: {reason}")))?
        {
            return Ok(Some(login));
        }
        if let Some(store) = settings.creds_store.filter(|store| !store.is_empty()) {
            // Docker keeps each login under the key that its configuration has for it.
            let key = best(&auths, &names).map_or(lookup.registry, |(key, _)| key.as_str());
            if let Some(login) = lookup.helpers.ask(&store, key, lookup)? {
                return Ok(Some(login));
            }
        }
    }
    Ok(None)
}

/// What an entry for this repository may be called, the closest first.
fn names(registry: &str, server: &str, repository: &str) -> Vec<String> {
    let mut names = Vec::new();
    for host in [registry, server] {
        let mut name = format!("{host}/{repository}");
        loop {
            names.push(name.clone());
            match name.rsplit_once('/') {
                Some((shorter, _)) => name = shorter.to_owned(),
                None => break,
            }
        }
    }
    names
}

fn best<'a, T>(entries: &'a BTreeMap<String, T>, names: &[String]) -> Option<(&'a String, &'a T)> {
    let plain = |key: &str| {
        let rest = key.split_once("://").map_or(key, |(_, rest)| rest);
        // `https://host/v1/` is how Docker's oldest entry is written.
        let rest = rest.trim_end_matches('/');
        rest.strip_suffix("/v1").or_else(|| rest.strip_suffix("/v2")).unwrap_or(rest).to_owned()
    };
    names.iter().find_map(|name| entries.iter().find(|(key, _)| plain(key) == *name))
}

fn login(auth: &Auth) -> Result<Option<Login>, &'static str> {
    if let Some(token) = auth.identitytoken.as_ref().filter(|token| !token.is_empty()) {
        return Ok(Some(Login::Identity(token.clone())));
    }
    if let (Some(user), Some(password)) = (&auth.username, &auth.password) {
        return Ok(Some(Login::Basic { user: user.clone(), password: password.clone() }));
    }
    let Some(text) = auth.pair.as_ref().filter(|text| !text.is_empty()) else { return Ok(None) };
    let wrong = "its `auth` is not the base64 of user:password";
    let bytes = base64::engine::general_purpose::STANDARD.decode(text.trim()).map_err(|_| wrong)?;
    let pair = String::from_utf8(bytes).map_err(|_| wrong)?;
    let (user, password) = pair.split_once(':').ok_or(wrong)?;
    // Old clients filled the end with zeros.
    let password = password.trim_end_matches('\0');
    Ok(Some(Login::Basic { user: user.to_owned(), password: password.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, registry: &str, repository: &str) -> Result<Option<Login>, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        fs_err::write(&path, text).unwrap();
        let lookup = Lookup {
            registry,
            server: registry,
            repository,
            helpers: &Helpers::default(),
            path: None,
            deadline: Duration::from_secs(1),
            cancel: &Cancel::new(),
        };
        find(&[path], &lookup)
    }

    #[test]
    fn entries_are_found_by_their_longest_name() {
        // u:p, v:q:r and w:s.
        let text = r#"{"auths": {"https://a.example/v1/": {"auth": "dTpw"}, "b.example/team": {"auth": "djpxOnI="},
            "b.example": {"auth": "dzpz"}, "c.example": {"identitytoken": "t"}, "d.example": {}}}"#;
        let basic = |user: &str, password: &str| {
            Some(Login::Basic { user: user.to_owned(), password: password.to_owned() })
        };
        for (registry, repository, expected) in [
            ("a.example", "x/y", basic("u", "p")),
            ("b.example", "team/x", basic("v", "q:r")),
            ("b.example", "teams", basic("w", "s")),
            ("c.example", "x", Some(Login::Identity("t".to_owned()))),
            ("d.example", "x", None),
            ("a.example:5000", "x", None),
        ] {
            assert_eq!(
                found(text, registry, repository).unwrap(),
                expected,
                "{registry}/{repository}"
            );
        }
    }

    #[test]
    fn what_is_nothing_for_docker_is_nothing() {
        for text in [
            "",
            " \n",
            "{}",
            "null",
            r#"{"auths": null, "credHelpers": null, "credsStore": null}"#,
            r#"{"auths": {"a.example": null}}"#,
        ] {
            assert_eq!(found(text, "a.example", "x").unwrap(), None, "{text}");
        }
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let lookup = Lookup {
            registry: "a.example",
            server: "a.example",
            repository: "x",
            helpers: &Helpers::default(),
            path: None,
            deadline: Duration::from_secs(1),
            cancel: &Cancel::new(),
        };
        let error = find(&[path], &lookup).unwrap_err();
        assert!(error.to_string().contains("config.json: it is not a file"), "{error}");
    }

    #[test]
    fn errors_name_the_file_and_show_no_secret() {
        for text in [
            r#"{"auths": {"a.example": {"auth": "c2VjcmV0"}}}"#,
            r#"{"auths": ["c2VjcmV0"]}"#,
            "c2VjcmV0",
        ] {
            let error = found(text, "a.example", "x").unwrap_err().to_string();
            assert!(error.contains("config.json") && !error.contains("c2VjcmV0"), "{error}");
        }
        let debug = format!("{:?}", Login::Identity("secret".to_owned()));
        assert_eq!(debug, "Identity(***)");
    }

    #[test]
    fn a_helper_that_is_not_there_is_named() {
        let text = r#"{"credHelpers": {"a.example": "hallmark-test-nowhere"}}"#;
        let error = found(text, "a.example", "x").unwrap_err();
        assert!(error.to_string().contains("docker-credential-hallmark-test-nowhere"), "{error}");
        assert!(error.hint().is_some());
        assert_eq!(found(text, "b.example", "x").unwrap(), None);
    }
}
