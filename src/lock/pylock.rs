//! `pylock.toml` (PEP 751): text to and from the packages of an environment.
//!
//! A file is named by `path`, a bare name beside the lock: valid for every PEP 751 installer once
//! `bundle export` has put the files there, and free of hosts. `name` is left out, since PEP 751 wants it only
//! where it differs from the path's last part. Times are TOML's own, in UTC.

use std::fmt::Write as _;

use serde::Deserialize;

use super::Error;
use super::model::{PythonFile, PythonPackage};
use super::text::{self, Text, quote};
use crate::base::Digest;

/// PEP 751's version, which is text.
const LOCK_VERSION: &str = "1.0";
/// Without a version: no tool version may reach a lock.
const CREATED_BY: &str = "hallmark";

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Raw {
    #[serde(rename = "lock-version")]
    _lock_version: String,
    created_by: String,
    #[serde(default)]
    packages: Vec<RawPackage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawPackage {
    name: String,
    version: String,
    sdist: Option<RawFile>,
    #[serde(default)]
    wheels: Vec<RawFile>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawFile {
    path: String,
    size: u64,
    upload_time: Option<toml::value::Datetime>,
    hashes: RawHashes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHashes {
    sha256: String,
}

/// Reads the packages of a pylock.toml that hallmark wrote; `file` names the text in errors.
pub fn parse_pylock(file: &str, text: &str) -> Result<Vec<PythonPackage>, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    struct Head {
        lock_version: Option<String>,
    }
    let head: Head = toml::from_str(text).map_err(|source| text::syntax(file, source))?;
    match head.lock_version.as_deref() {
        Some(LOCK_VERSION) => {}
        Some(found) => {
            return Err(Error::Newer {
                file: file.to_owned(),
                found: found.to_owned(),
                known: LOCK_VERSION.to_owned(),
            });
        }
        None => return Err(text::invalid(file, "`lock-version` is missing".to_owned())),
    }
    let raw: Raw = toml::from_str(text).map_err(|source| text::syntax(file, source))?;
    if raw.created_by != CREATED_BY {
        let problem = format!("created by {:?}, not by hallmark", raw.created_by);
        return Err(text::invalid(file, problem));
    }
    let mut packages = raw
        .packages
        .into_iter()
        .map(|package| read_package(file, package))
        .collect::<Result<Vec<_>, _>>()?;
    normalise(file, &mut packages)?;
    Ok(packages)
}

fn read_package(file: &str, mut raw: RawPackage) -> Result<PythonPackage, Error> {
    let found = match (raw.sdist, raw.wheels.pop(), raw.wheels.is_empty()) {
        (Some(sdist), None, true) => sdist,
        (None, Some(wheel), true) => wheel,
        _ => {
            let problem = format!("package `{}` must have exactly one file", raw.name);
            return Err(text::invalid(file, problem));
        }
    };
    Ok(PythonPackage {
        name: raw.name,
        version: raw.version,
        file: PythonFile {
            name: found.path,
            sha256: Digest::from_hex(&found.hashes.sha256)
                .map_err(|error| text::invalid(file, error.to_string()))?,
            size: found.size,
            upload_time: found
                .upload_time
                .map(|time| text::from_datetime(file, &time))
                .transpose()?,
        },
    })
}

/// The one text of these packages, whatever their order.
pub fn write_pylock(packages: &[PythonPackage]) -> Result<String, Error> {
    let mut packages = packages.to_vec();
    normalise("pylock.toml", &mut packages)?;
    let mut text = Text::default();
    text.string("lock-version", LOCK_VERSION);
    text.string("created-by", CREATED_BY);
    for package in &packages {
        text.header("[[packages]]");
        text.string("name", &package.name);
        text.string("version", &package.version);
        let file = inline_file(&package.file);
        if package.file.is_wheel() {
            text.line(&format!("wheels = [{file}]"));
        } else {
            text.line(&format!("sdist = {file}"));
        }
    }
    Ok(text.finish())
}

fn inline_file(file: &PythonFile) -> String {
    let mut out = format!("{{ path = {}, size = {}", quote(&file.name), file.size);
    if let Some(time) = file.upload_time {
        write!(out, ", upload-time = {time}").expect("a string takes everything");
    }
    write!(out, ", hashes = {{ sha256 = \"{}\" }} }}", file.sha256.hex())
        .expect("a string takes everything");
    out
}

/// Sorts packages by name and checks names.
pub(super) fn normalise(file: &str, packages: &mut [PythonPackage]) -> Result<(), Error> {
    text::sort_unique(file, "package", packages, |package| &package.name)?;
    for package in packages {
        if !is_normalised(&package.name) {
            let problem = format!("{:?} is not a normalised project name", package.name);
            return Err(text::invalid(file, problem));
        }
        text::check_file_name(file, &package.file.name)?;
    }
    Ok(())
}

/// PEP 503: lower case, runs of `-_.` are one `-`.
fn is_normalised(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
        && name.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'))
}
