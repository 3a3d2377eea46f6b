//! `lockfiles/_bases/<base>/lock.<arch>.toml`: text to and from [`BaseLock`].

use jiff::Timestamp;
use serde::Deserialize;

use super::Error;
use super::model::{BaseLock, Deb, LockedBlob, LockedImage};
use super::text::{self, Text};
use crate::base::{Arch, Digest};

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Raw {
    #[serde(rename = "version")]
    _version: i64,
    base_hash: Digest,
    arch: Arch,
    suite: String,
    as_of: Timestamp,
    inrelease: Digest,
    packages_index: Digest,
    python: String,
    image: Option<LockedImage>,
    #[serde(default)]
    debs: Vec<Deb>,
}

/// Reads a base lock; `file` names the text in errors.
pub fn parse_base(file: &str, text: &str) -> Result<BaseLock, Error> {
    let raw: Raw = text::parse(file, text)?;
    let mut lock = BaseLock {
        base_hash: raw.base_hash,
        arch: raw.arch,
        suite: raw.suite,
        as_of: raw.as_of,
        inrelease: raw.inrelease,
        packages_index: raw.packages_index,
        python: raw.python,
        debs: raw.debs,
        image: raw.image,
    };
    normalise_debs(file, &mut lock.debs)?;
    if lock.image.is_some() && !lock.debs.is_empty() {
        return Err(text::invalid(file, "it has an image and packages".to_owned()));
    }
    Ok(lock)
}

/// The one text of a base lock, whatever the order of its packages.
pub fn write_base(lock: &BaseLock) -> Result<String, Error> {
    let mut debs = lock.debs.clone();
    normalise_debs("base lock", &mut debs)?;
    let mut text = Text::versioned();
    text.comment("Written by `hallmark lock`; not to be edited.");
    text.display("base-hash", lock.base_hash);
    text.string("arch", lock.arch.oci());
    text.string("suite", &lock.suite);
    text.display("as-of", lock.as_of);
    text.display("inrelease", lock.inrelease);
    text.display("packages-index", lock.packages_index);
    text.string("python", &lock.python);
    if let Some(image) = &lock.image {
        text.header("[image]");
        text.string("repository", &image.repository);
        text.display("digest", image.digest);
        text.display("manifest", image.manifest);
        text.header("[image.config]");
        write_blob(&mut text, &image.config);
        for layer in &image.layers {
            text.header("[[image.layers]]");
            write_blob(&mut text, layer);
        }
    }
    write_debs(&mut text, &debs);
    Ok(text.finish())
}

fn write_blob(text: &mut Text, blob: &LockedBlob) {
    text.display("sha256", blob.sha256);
    text.integer("size", blob.size);
}

/// Sorts packages and refuses what no archive has: two of a name, paths that leave the archive.
pub(super) fn normalise_debs(file: &str, debs: &mut [Deb]) -> Result<(), Error> {
    text::sort_unique(file, "package", debs, |deb| &deb.name)?;
    for deb in debs {
        if deb.name.is_empty()
            || !deb.name.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '+' | '-' | '.'))
        {
            return Err(text::invalid(file, format!("{:?} is not a package name", deb.name)));
        }
        for part in deb.path.split('/') {
            text::check_file_name(file, part)?;
        }
    }
    Ok(())
}

pub(super) fn write_debs(text: &mut Text, debs: &[Deb]) {
    for deb in debs {
        text.header("[[debs]]");
        text.string("name", &deb.name);
        text.string("version", &deb.version);
        text.string("path", &deb.path);
        text.display("sha256", deb.sha256);
        text.integer("size", deb.size);
    }
}
