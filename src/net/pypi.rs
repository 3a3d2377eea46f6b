//! PyPI's simple index: JSON (PEP 691, PEP 700), or HTML (PEP 503) where an index has no JSON.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use serde::Deserialize;

use super::{Address, Client, Error, pypi_html};
use crate::base::Digest;

const JSON: &str = "application/vnd.pypi.simple.v1+json";
const ACCEPT: &str = "application/vnd.pypi.simple.v1+json, \
                      application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";

/// The largest project page of PyPI is some tens of megabytes.
const LARGEST_PAGE: u64 = 256 * 1024 * 1024;

/// One file of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexFile {
    /// File name.
    pub name: String,
    /// Where it is.
    pub address: Address,
    /// Digest, where the index says.
    pub sha256: Option<Digest>,
    /// Length in bytes, where the index says.
    pub size: Option<u64>,
    /// When it was uploaded, where the index says.
    pub upload_time: Option<Timestamp>,
    /// The Python versions it is for.
    pub requires_python: Option<String>,
    /// Why it should not be used any more; empty when no reason is given.
    pub yanked: Option<String>,
}

/// The pages read so far, so that each project is asked for once.
#[derive(Default)]
pub(super) struct Pages(Mutex<BTreeMap<String, Slot>>);

/// Held while its page is fetched; others wait for it.
type Slot = Arc<Mutex<Option<Arc<[IndexFile]>>>>;

/// The wheels and sdists of a project, in the index's order. Asked for once per client.
pub fn files(client: &Client, project: &str) -> Result<Arc<[IndexFile]>, Error> {
    let project = normalise(project)?;
    let slot = {
        let mut pages = client.pages().0.lock().expect("no holder panics");
        Arc::clone(pages.entry(project.clone()).or_default())
    };
    let mut slot = slot.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(files) = &*slot {
        return Ok(Arc::clone(files));
    }
    let name_error = |reason| Error::Name { name: project.clone(), reason };
    let address = client.config().pypi_index.address.below(&project).map_err(name_error)?;
    let response = client.get(&address.as_folder(), ACCEPT, LARGEST_PAGE)?;
    let files: Arc<[IndexFile]> =
        parse(&response.bytes, &response.content_type, &response.address)?.into();
    *slot = Some(Arc::clone(&files));
    Ok(files)
}

/// Where one locked file is. The index may have replaced a file (a private one can): its own digest is
/// compared before anything is downloaded.
pub fn locate(
    client: &Client,
    project: &str,
    name: &str,
    sha256: Digest,
) -> Result<Address, Error> {
    let files = files(client, project)?;
    let Some(file) = files.iter().find(|file| file.name == name) else {
        return Err(Error::NotListed {
            index: client.config().pypi_index.address.clone(),
            project: project.to_owned(),
            name: name.to_owned(),
        });
    };
    match file.sha256 {
        Some(actual) if actual != sha256 => Err(Error::Base(crate::base::Error::DigestMismatch {
            name: name.to_owned(),
            expected: sha256,
            actual,
        })),
        _ => Ok(file.address.clone()),
    }
}

/// PEP 503's normal form of a project name.
fn normalise(project: &str) -> Result<String, Error> {
    let valid = !project.is_empty()
        && project.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && project.starts_with(|c: char| c.is_ascii_alphanumeric())
        && project.ends_with(|c: char| c.is_ascii_alphanumeric());
    if !valid {
        let name = project.chars().take(100).collect();
        return Err(Error::Name { name, reason: "not a project name" });
    }
    let parts: Vec<_> = project.split(['-', '_', '.']).filter(|part| !part.is_empty()).collect();
    Ok(parts.join("-").to_ascii_lowercase())
}

/// What is known of a file before its row is checked.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) sha256: Option<String>,
    pub(super) size: Option<u64>,
    pub(super) upload_time: Option<String>,
    pub(super) requires_python: Option<String>,
    pub(super) yanked: Option<String>,
}

fn parse(bytes: &[u8], content_type: &str, page: &Address) -> Result<Vec<IndexFile>, Error> {
    let fail = |reason: String| Error::Page { address: page.clone(), reason };
    let rows = match content_type {
        JSON | "application/json" => parse_json(bytes).map_err(fail)?,
        "text/html" | "application/vnd.pypi.simple.v1+html" => {
            let rows = pypi_html::parse(&String::from_utf8_lossy(bytes));
            if rows.is_empty() {
                // Sign-in pages of a hotel or a company proxy look like this.
                return Err(fail(
                    "an HTML page without any file, where an index was expected".into(),
                ));
            }
            rows
        }
        other => return Err(fail(format!("the answer is {other:?}, which is no index page"))),
    };
    let mut files = Vec::new();
    for row in rows {
        if !is_distribution(&row.name) {
            continue;
        }
        match check(row, page) {
            Ok(file) => files.push(file),
            Err(reason) => return Err(fail(reason)),
        }
    }
    Ok(files)
}

/// Wheels and sdists. Eggs, installers and the like are of no use to anybody here.
fn is_distribution(name: &str) -> bool {
    let known = [".whl", ".tar.gz", ".zip", ".tar.bz2", ".tgz", ".tar.xz", ".tar.Z", ".tar"];
    known.iter().any(|extension| name.ends_with(extension))
}

fn check(row: Row, page: &Address) -> Result<IndexFile, String> {
    let name = row.name;
    if name.contains(['/', '\\', '\0']) || name.starts_with('.') {
        return Err(format!("{name:?} is not a file name"));
    }
    let address =
        page.resolve(&row.url).map_err(|reason| format!("the address of {name}: {reason}"))?;
    let sha256 = row
        .sha256
        .map(|text| Digest::from_hex(&text.to_ascii_lowercase()))
        .transpose()
        .map_err(|error| format!("the digest of {name}: {error}"))?;
    let upload_time = row
        .upload_time
        .map(|text| text.parse::<Timestamp>())
        .transpose()
        .map_err(|error| format!("the upload time of {name}: {error}"))?;
    Ok(IndexFile {
        name,
        address,
        sha256,
        size: row.size,
        upload_time,
        requires_python: row.requires_python.filter(|text| !text.is_empty()),
        yanked: row.yanked,
    })
}

#[derive(Deserialize)]
struct Page {
    meta: Meta,
    files: Vec<File>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Meta {
    api_version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    filename: String,
    url: String,
    #[serde(default)]
    hashes: BTreeMap<String, String>,
    size: Option<u64>,
    upload_time: Option<String>,
    requires_python: Option<String>,
    yanked: Option<serde_json::Value>,
}

fn parse_json(bytes: &[u8]) -> Result<Vec<Row>, String> {
    let page: Page =
        serde_json::from_slice(bytes).map_err(|error| format!("not an index page: {error}"))?;
    if page.meta.api_version.split('.').next() != Some("1") {
        return Err(format!("index API version {} is not known", page.meta.api_version));
    }
    Ok(page
        .files
        .into_iter()
        .map(|mut file| Row {
            name: file.filename,
            url: file.url,
            sha256: file.hashes.remove("sha256"),
            size: file.size,
            upload_time: file.upload_time,
            requires_python: file.requires_python,
            yanked: match file.yanked {
                Some(serde_json::Value::Bool(true)) => Some(String::new()),
                Some(serde_json::Value::String(reason)) => Some(reason),
                _ => None,
            },
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Address {
        Address::parse("https://h.test/simple/demo/").unwrap()
    }

    #[test]
    fn json_pages_give_wheels_and_sdists() {
        let hex = "ab".repeat(32);
        let text = format!(
            r#"{{"meta":{{"api-version":"1.1"}},"name":"demo","files":[
              {{"filename":"demo-1.0.tar.gz","hashes":{{"sha256":"{hex}"}},"size":7,"url":"../../f/demo-1.0.tar.gz",
                "upload-time":"2019-11-23T09:24:17.224079Z","requires-python":">=3.6","yanked":"broken"}},
              {{"filename":"demo-1.0-py2.7.egg","hashes":{{}},"url":"https://f.test/x.egg","yanked":false}},
              {{"filename":"demo-1.0-py3-none-any.whl","hashes":{{"md5":"00"}},"url":"https://f.test/x.whl","yanked":true}}]}}"#
        );
        let files = parse(text.as_bytes(), JSON, &page()).unwrap();
        assert_eq!(files.len(), 2);
        assert_eq!(
            files[0],
            IndexFile {
                name: "demo-1.0.tar.gz".into(),
                address: Address::parse("https://h.test/f/demo-1.0.tar.gz").unwrap(),
                sha256: Some(Digest::from_bytes([0xab; 32])),
                size: Some(7),
                upload_time: Some("2019-11-23T09:24:17.224079Z".parse().unwrap()),
                requires_python: Some(">=3.6".into()),
                yanked: Some("broken".into()),
            }
        );
        assert_eq!((files[1].sha256, files[1].yanked.as_deref()), (None, Some("")));
    }

    #[test]
    fn other_pages_are_refused_with_the_reason() {
        for (text, content_type, reason) in [
            ("<html>sign in</html>", "text/html", "an HTML page without any file"),
            ("<html>", JSON, "not an index page"),
            ("{}", "text/plain", "the answer is \"text/plain\""),
            (r#"{"meta":{"api-version":"2.0"},"files":[]}"#, JSON, "index API version 2.0"),
            (
                r#"{"meta":{"api-version":"1.0"},"files":[{"filename":"../x.whl","url":"x"}]}"#,
                JSON,
                "\"../x.whl\" is not a file name",
            ),
            (
                r#"{"meta":{"api-version":"1.0"},"files":[{"filename":"x.whl","url":"file:///x"}]}"#,
                JSON,
                "the address of x.whl: only http and https",
            ),
        ] {
            let error = parse(text.as_bytes(), content_type, &page()).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("https://h.test/simple/demo/: {reason}")),
                "{error}"
            );
        }
    }

    #[test]
    fn names_are_normalised_or_refused() {
        assert_eq!(normalise("Ruamel.YAML__x").unwrap(), "ruamel-yaml-x");
        for bad in ["", "..", "a/b", "-a", "a b", "é"] {
            assert!(normalise(bad).is_err(), "{bad}");
        }
    }
}
