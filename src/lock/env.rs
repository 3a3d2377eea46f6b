//! `lockfiles/<owner>__<name>/<version>/`: the two texts of an environment to and from [`EnvLock`].
//!
//! `lock.<arch>.toml` holds the digest of the packages in pylock.toml, so that two files that do not
//! belong together (a merge, a write cut in the middle) are found.

use serde::Deserialize;

use super::model::{BuildEnvironment, BuiltWheel, Deb, EnvLock, PythonFile, PythonPackage};
use super::text::{self, Text};
use super::{Error, base, pylock};
use crate::base::{Arch, Digest, canon};

/// The two texts of a locked environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvTexts {
    /// `lock.<arch>.toml`.
    pub lock: String,
    /// `pylock.toml`.
    pub pylock: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Raw {
    #[serde(rename = "version")]
    _version: i64,
    env_hash: Digest,
    arch: Arch,
    base: String,
    base_lock: Digest,
    packages_digest: Digest,
    #[serde(default)]
    debs: Vec<Deb>,
    #[serde(default)]
    build_environments: Vec<RawEnvironment>,
    #[serde(default)]
    built: Vec<BuiltWheel>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawEnvironment {
    sdist: String,
    #[serde(default)]
    packages: Vec<RawPackage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawPackage {
    name: String,
    version: String,
    file: String,
    sha256: Digest,
    size: u64,
    upload_time: Option<toml::value::Datetime>,
}

/// Reads an environment's lock; `file` names `lock.<arch>.toml` in errors.
pub fn parse_env(file: &str, lock: &str, pylock: &str) -> Result<EnvLock, Error> {
    let raw: Raw = text::parse(file, lock)?;
    let packages = pylock::parse_pylock(&pylock_name(file), pylock)?;
    let actual = canon::digest(&packages)?;
    if actual != raw.packages_digest {
        return Err(Error::Torn { file: file.to_owned(), expected: raw.packages_digest, actual });
    }
    let build_environments = raw
        .build_environments
        .into_iter()
        .map(|environment| {
            let packages = environment
                .packages
                .into_iter()
                .map(|package| read_package(file, package))
                .collect::<Result<_, _>>()?;
            Ok(BuildEnvironment { sdist: environment.sdist, packages })
        })
        .collect::<Result<_, Error>>()?;
    let mut lock = EnvLock {
        env_hash: raw.env_hash,
        arch: raw.arch,
        base: raw.base,
        base_lock: raw.base_lock,
        debs: raw.debs,
        packages,
        build_environments,
        built: raw.built,
    };
    normalise(file, &mut lock)?;
    Ok(lock)
}

/// The sibling's name for errors.
fn pylock_name(file: &str) -> String {
    match file.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/pylock.toml"),
        None => "pylock.toml".to_owned(),
    }
}

fn read_package(file: &str, raw: RawPackage) -> Result<PythonPackage, Error> {
    Ok(PythonPackage {
        name: raw.name,
        version: raw.version,
        file: PythonFile {
            name: raw.file,
            sha256: raw.sha256,
            size: raw.size,
            upload_time: raw
                .upload_time
                .map(|time| text::from_datetime(file, &time))
                .transpose()?,
        },
    })
}

/// The texts of an environment's lock, whatever the order of its parts.
pub fn write_env(lock: &EnvLock) -> Result<EnvTexts, Error> {
    let mut lock = lock.clone();
    normalise("environment lock", &mut lock)?;
    let mut text = Text::versioned();
    text.comment("Written by `hallmark lock`; not to be edited.");
    text.display("env-hash", lock.env_hash);
    text.string("arch", lock.arch.oci());
    text.string("base", &lock.base);
    text.display("base-lock", lock.base_lock);
    text.display("packages-digest", canon::digest(&lock.packages)?);
    base::write_debs(&mut text, &lock.debs);
    for environment in &lock.build_environments {
        text.header("[[build-environments]]");
        text.string("sdist", &environment.sdist);
        for package in &environment.packages {
            text.header("[[build-environments.packages]]");
            text.string("name", &package.name);
            text.string("version", &package.version);
            text.string("file", &package.file.name);
            text.display("sha256", package.file.sha256);
            text.integer("size", package.file.size);
            if let Some(time) = package.file.upload_time {
                text.line(&format!("upload-time = {time}"));
            }
        }
    }
    for wheel in &lock.built {
        text.header("[[built]]");
        text.string("sdist", &wheel.sdist);
        text.string("wheel", &wheel.wheel);
        text.display("sha256", wheel.sha256);
        text.integer("size", wheel.size);
    }
    Ok(EnvTexts { lock: text.finish(), pylock: pylock::write_pylock(&lock.packages)? })
}

/// Sorts every part and checks that they fit each other.
fn normalise(file: &str, lock: &mut EnvLock) -> Result<(), Error> {
    base::normalise_debs(file, &mut lock.debs)?;
    pylock::normalise("pylock.toml", &mut lock.packages)?;
    text::sort_unique(file, "build environment", &mut lock.build_environments, |item| &item.sdist)?;
    for environment in &mut lock.build_environments {
        pylock::normalise(file, &mut environment.packages)?;
        if let Some(package) = environment.packages.iter().find(|item| !item.file.is_wheel()) {
            let problem = format!(
                "the build environment of {} has an sdist: {}",
                environment.sdist, package.file.name
            );
            return Err(text::invalid(file, problem));
        }
    }
    text::sort_unique(file, "built wheel", &mut lock.built, |item| &item.sdist)?;
    let sdists: Vec<&str> = lock
        .packages
        .iter()
        .filter(|package| !package.file.is_wheel())
        .map(|package| package.file.name.as_str())
        .collect();
    let named = lock
        .build_environments
        .iter()
        .map(|item| &item.sdist)
        .chain(lock.built.iter().map(|item| &item.sdist));
    for sdist in named {
        if !sdists.contains(&sdist.as_str()) {
            return Err(text::invalid(file, format!("`{sdist}` is no sdist of pylock.toml")));
        }
    }
    for wheel in &lock.built {
        text::check_file_name(file, &wheel.wheel)?;
    }
    Ok(())
}
