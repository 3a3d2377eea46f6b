//! Instances: what a split is made of.

use serde::{Deserialize, Serialize};

use crate::base::{Digest, Error, canon};

/// The instances to work on, in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// Name: the file's stem without `.rows`.
    pub name: String,
    /// The instances; ids are unique.
    pub instances: Vec<Instance>,
}

impl Split {
    /// Digest of the rows' meaning: the canonical rows, sorted by id.
    pub fn hash(&self) -> Result<Digest, Error> {
        let mut rows: Vec<_> = self.instances.iter().collect();
        rows.sort_by(|a, b| a.id.cmp(&b.id));
        canon::digest(&rows)
    }
}

/// The id of an instance: letters, digits, `_`, `-`, `.` and `+`, at most 200 bytes, not starting with
/// a dot or a dash, so that it is safe as a file name and in an image reference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InstanceId(String);

/// A text that cannot be an instance id.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{text:?} cannot be an instance id: use at most 200 letters, digits, `_`, `-`, `.` and `+`, starting with a letter or digit"
)]
pub struct InstanceIdError {
    text: String,
}

impl InstanceId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for InstanceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<InstanceId> for String {
    fn from(id: InstanceId) -> Self {
        id.0
    }
}

impl TryFrom<String> for InstanceId {
    type Error = InstanceIdError;

    fn try_from(text: String) -> Result<Self, InstanceIdError> {
        let safe = |c: char| c.is_ascii_alphanumeric() || "_-.+".contains(c);
        let ok = text.len() <= 200
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(safe);
        if ok {
            Ok(Self(text))
        } else {
            Err(InstanceIdError { text: text.chars().take(80).collect() })
        }
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Instance {
    /// `instance_id`.
    pub id: InstanceId,
    /// `owner/name`; `pypi/<package>` for a pair.
    pub repo: String,
    /// Names the spec together with `repo`.
    pub version: String,
    /// Where the code at the base comes from.
    pub source: Source,
    /// Test ids that fail before and pass after the gold patch. `None`: not computed yet (`hallmark collect` does).
    pub fail_to_pass: Option<Vec<String>>,
    /// Test ids that pass before and after.
    pub pass_to_pass: Option<Vec<String>>,
    /// Fields that hallmark does not know, kept as they came.
    pub extra: serde_json::Map<String, serde_json::Value>,
}

/// Where the code, the test patch and the gold patch of an instance come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Source {
    /// A git repository at a commit; the patches are in the row.
    Git {
        /// Path or URL, where the row names one; else configuration finds it by `repo`.
        url: Option<String>,
        /// The base commit, 40 hex digits.
        base_commit: String,
        /// The row's `patch`.
        gold_patch: String,
        /// The row's `test_patch`.
        test_patch: String,
    },
    /// Two releases on PyPI; the patches are the difference of their sdists.
    Pair(Pair),
}

/// A pair of releases: facts only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Pair {
    /// The project on PyPI, normalised (PEP 503).
    pub package: String,
    /// The release with the bug.
    pub base: Sdist,
    /// The release with the fix.
    pub fixed: Sdist,
}

/// A source distribution on PyPI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Sdist {
    /// The release.
    pub version: String,
    /// File name.
    pub file: String,
    /// Digest.
    pub sha256: Digest,
    /// Length in bytes.
    pub size: u64,
}
