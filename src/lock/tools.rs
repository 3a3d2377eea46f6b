//! `lockfiles/_bases/<base>/tools.<arch>.toml`: text to and from [`ToolsLock`].

use jiff::Timestamp;
use serde::Deserialize;

use super::Error;
use super::base::{normalise_debs, write_debs};
use super::model::{Deb, ToolsLock};
use super::text::{self, Text};
use crate::base::{Arch, Digest};

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Raw {
    #[serde(rename = "version")]
    _version: i64,
    arch: Arch,
    suite: String,
    as_of: Timestamp,
    packages_index: Digest,
    #[serde(default)]
    debs: Vec<Deb>,
}

/// Reads a lock of tools; `file` names the text in errors.
pub fn parse_tools(file: &str, text: &str) -> Result<ToolsLock, Error> {
    let Raw { arch, suite, as_of, packages_index, mut debs, .. } = text::parse(file, text)?;
    normalise_debs(file, &mut debs)?;
    Ok(ToolsLock { arch, suite, as_of, packages_index, debs })
}

/// The one text of a lock of tools, whatever the order of its packages.
pub fn write_tools(lock: &ToolsLock) -> Result<String, Error> {
    let mut debs = lock.debs.clone();
    normalise_debs("lock of tools", &mut debs)?;
    let mut text = Text::versioned();
    text.comment("Written by `hallmark lock`; not to be edited.");
    text.string("arch", lock.arch.oci());
    text.string("suite", &lock.suite);
    text.display("as-of", lock.as_of);
    text.display("packages-index", lock.packages_index);
    write_debs(&mut text, &debs);
    Ok(text.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_and_foreign_fields_do_not() {
        let lock = ToolsLock {
            arch: Arch::Amd64,
            suite: "bookworm".to_owned(),
            as_of: "2026-07-11T10:16:37Z".parse().unwrap(),
            packages_index: Digest::of("index"),
            debs: vec![Deb {
                name: "libfaketime".to_owned(),
                version: "0.9.10-2.1".to_owned(),
                path: "pool/main/f/faketime/libfaketime_0.9.10-2.1_amd64.deb".to_owned(),
                sha256: Digest::of("deb"),
                size: 47_288,
            }],
        };
        let text = write_tools(&lock).unwrap();
        assert_eq!(parse_tools("x", &text).unwrap(), lock);
        assert!(text.starts_with("version = 1\n") && text.ends_with('\n'));
        assert!(parse_tools("x", &format!("python = \"3.11\"\n{text}")).is_err());
        assert!(parse_tools("x", &text.replace("pool/main", "../main")).is_err());
    }
}
