//! Docker's contexts: named daemons in the client's configuration folder. Docker Desktop, Colima and rootless set-ups
//! name their socket so.
//!
//! ```text
//! <config>/                                DOCKER_CONFIG, else ~/.docker
//!   config.json                            {"currentContext": NAME}; DOCKER_CONTEXT wins
//!   contexts/meta/<sha256 of NAME>/meta.json   {"Endpoints": {"docker": {"Host": ADDRESS}}}
//! ```

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::DaemonError;
use crate::base::Digest;

/// What of `config.json` matters here.
#[derive(Deserialize)]
struct Config {
    #[serde(default, rename = "currentContext")]
    current_context: String,
}

/// What of `meta.json` matters here.
#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "Endpoints")]
    endpoints: BTreeMap<String, Place>,
}

#[derive(Deserialize)]
struct Place {
    #[serde(default, rename = "Host")]
    host: String,
}

/// The address that the chosen context names, and where that stands; nothing where none is chosen.
pub(super) fn chosen(
    environment: &BTreeMap<String, String>,
) -> Result<Option<(String, String)>, DaemonError> {
    let set = |name| environment.get(name).filter(|value: &&String| !value.is_empty());
    let folder = match (set("DOCKER_CONFIG"), set("HOME")) {
        (Some(folder), _) => PathBuf::from(folder),
        (None, Some(home)) => Path::new(home).join(".docker"),
        (None, None) => return Ok(None),
    };
    let config = folder.join("config.json");
    let (name, place) = match set("DOCKER_CONTEXT") {
        Some(name) => (name.clone(), "DOCKER_CONTEXT".to_owned()),
        None => (current(&config), config.display().to_string()),
    };
    if name.is_empty() || name == "default" {
        return Ok(None);
    }
    let from = format!("Docker's context `{name}`");
    let file =
        folder.join("contexts/meta").join(Digest::of(name.as_bytes()).hex()).join("meta.json");
    let fail = |reason: String| DaemonError::Address {
        from: from.clone(),
        address: file.display().to_string(),
        reason,
    };
    let bytes = fs_err::read(&file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => DaemonError::NoContext { name: name.clone(), from: place },
        kind => fail(kind.to_string()),
    })?;
    let meta: Meta = serde_json::from_slice(&bytes).map_err(|error| fail(error.to_string()))?;
    let place = meta.endpoints.get("docker").filter(|place| !place.host.is_empty());
    let place = place.ok_or_else(|| fail("it names no daemon".to_owned()))?;
    Ok(Some((place.host.clone(), from)))
}

/// The current context of a `config.json`; a file that does not read chooses none, as for Docker's own client.
fn current(file: &Path) -> String {
    let Ok(bytes) = fs_err::read(file) else { return String::new() };
    match serde_json::from_slice::<Config>(&bytes) {
        Ok(config) => config.current_context,
        Err(error) => {
            tracing::debug!(file = %file.display(), %error, "unreadable Docker configuration");
            String::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_names_a_daemon() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().display().to_string();
        let mut environment: BTreeMap<String, String> = [("HOME".to_owned(), home)].into();
        assert_eq!(chosen(&environment).unwrap(), None);

        let write = |path: &str, text: &str| {
            let path = folder.path().join(".docker").join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        };
        write("config.json", r#"{"auths":{},"currentContext":"colima"}"#);
        let error = chosen(&environment).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("no context `colima`") && text.contains("config.json"), "{text}");
        assert!(error.hint().unwrap().contains("docker context ls"), "{error}");
        environment.insert("DOCKER_CONTEXT".to_owned(), "other".to_owned());
        let text = chosen(&environment).unwrap_err().to_string();
        assert!(text.contains("no context `other`") && text.contains("DOCKER_CONTEXT"), "{text}");
        environment.remove("DOCKER_CONTEXT");

        let meta = format!("contexts/meta/{}/meta.json", Digest::of("colima").hex());
        write(&meta, r#"{"Name":"colima","Endpoints":{"docker":{"Host":"unix:///c.sock"}}}"#);
        let (address, from) = chosen(&environment).unwrap().unwrap();
        assert_eq!(
            (address.as_str(), from.as_str()),
            ("unix:///c.sock", "Docker's context `colima`")
        );

        environment.insert("DOCKER_CONTEXT".to_owned(), "default".to_owned());
        assert_eq!(chosen(&environment).unwrap(), None);
    }
}
