//! The folder a user works in: `specs/`, `lockfiles/`, `images/`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::Error;
use crate::dataset::{self, Split};
use crate::verify::Policy;

/// Where the hand-written and machine-written files are.
#[derive(Debug, Clone)]
pub struct Project {
    root: PathBuf,
}

impl Project {
    /// The nearest folder at or above `start` that has `specs/` and `images/`.
    pub fn discover(start: &Path) -> Result<Self, Error> {
        start
            .ancestors()
            .find(|folder| folder.join("specs").is_dir() && folder.join("images").is_dir())
            .map(|folder| Self { root: folder.to_owned() })
            .ok_or_else(|| Error::NoProject { start: start.to_owned() })
    }

    /// Its root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `specs/`.
    pub fn specs(&self) -> PathBuf {
        self.root.join("specs")
    }

    /// `lockfiles/`.
    pub fn lockfiles(&self) -> PathBuf {
        self.root.join("lockfiles")
    }

    /// `images/`.
    pub fn images(&self) -> PathBuf {
        self.root.join("images")
    }

    /// The committed digests of a split.
    pub fn digests_path(&self, split: &str) -> PathBuf {
        self.images().join(format!("{split}.digests.json"))
    }

    /// The file of a split: `name` is a path, or the stem of `images/<name>.rows.jsonl`.
    pub fn split_path(&self, name: &str) -> PathBuf {
        let path = Path::new(name);
        if path.is_file() || name.contains('/') || path.extension().is_some() {
            path.to_owned()
        } else {
            self.images().join(format!("{name}.rows.jsonl"))
        }
    }

    /// Reads a split.
    pub fn split(&self, name: &str) -> Result<Split, Error> {
        let path = self.split_path(name);
        if !path.is_file() {
            return Err(Error::NoSplit { name: name.to_owned(), known: self.known_splits() });
        }
        Ok(dataset::load(&path)?)
    }

    /// What an admission of a split asks for: a preset, a file, or without a `choice` what lies beside the rows, else the default.
    pub fn policy(&self, choice: Option<&str>, split: &str) -> Result<Policy, Error> {
        if let Some(policy) = choice.and_then(Policy::named) {
            return Ok(policy);
        }
        let path = if let Some(file) = choice {
            PathBuf::from(file)
        } else {
            let rows = self.split_path(split);
            let name = rows.file_name().and_then(OsStr::to_str).unwrap_or_default();
            let stem = name.split('.').next().unwrap_or_default();
            let path = rows.with_file_name(format!("{stem}.policy.toml"));
            if !path.is_file() {
                return Ok(Policy::default());
            }
            path
        };
        if !path.is_file() {
            return Err(Error::NoPolicy { name: path.display().to_string() });
        }
        let text = fs_err::read_to_string(&path)?;
        Ok(Policy::parse(&path.display().to_string(), &text)?)
    }

    /// The names of the splits in `images/`, sorted.
    pub fn known_splits(&self) -> Vec<String> {
        let Ok(entries) = fs_err::read_dir(self.images()) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .filter_map(|entry| {
                Some(entry.ok()?.file_name().to_str()?.strip_suffix(".rows.jsonl")?.to_owned())
            })
            .collect();
        names.sort();
        names
    }
}
