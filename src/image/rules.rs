//! How a tree becomes a layer: whose its files are and what time they have.
//!
//! Everything else is fixed for all layers: entries are sorted bytewise by their path in the archive (folders
//! end in `/`), so parents come first; owners are numeric; times are whole seconds, from 1970 on; there
//! are no access or change times; extended attributes are `security.capability` and `user.*` without
//! overlayfs' own. The root folder is always 0755 and 0:0, since scratch folders are private.

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use serde::Serialize;

/// Whose the files of a layer are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// As on disk: base layers need real ids.
    Keep,
    /// All 0:0: env and instance layers, by rule.
    Root,
}

/// What time the files of a layer have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Times {
    /// Everything gets the epoch.
    Set,
    /// A regular file keeps an earlier time than the epoch; everything else gets the epoch.
    ClampFiles,
    /// As on disk: for a tree that was made by these rules before.
    Keep,
}

/// How a tree becomes a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PackRules {
    /// Whose the files are.
    pub owner: Owner,
    /// Seconds since 1970.
    pub epoch: i64,
    /// What time the files have.
    pub times: Times,
    /// Times, in seconds since 1970, of paths (from the root of the tree, with or without a leading `/`)
    /// and of all below them; the longest path that matches wins.
    pub overrides: Vec<(PathBuf, i64)>,
}

impl PackRules {
    /// Everything is root's and has the same time: env and instance layers.
    pub fn root(epoch: i64) -> Self {
        Self { owner: Owner::Root, epoch, times: Times::Set, overrides: Vec::new() }
    }

    /// Owners as on disk, files keep what their archives gave them: base layers.
    pub fn base(epoch: i64) -> Self {
        Self { owner: Owner::Keep, epoch, times: Times::ClampFiles, overrides: Vec::new() }
    }

    /// Nothing changes but what no layer can hold: trees that these rules have made before.
    pub(crate) fn unchanged() -> Self {
        Self { owner: Owner::Keep, epoch: 0, times: Times::Keep, overrides: Vec::new() }
    }

    /// The same, but `path` and all below it has this time.
    #[must_use]
    pub fn with_time(mut self, path: impl Into<PathBuf>, seconds: i64) -> Self {
        self.overrides.push((path.into(), seconds));
        self
    }

    /// The time of an entry whose file has `on_disk`.
    pub(super) fn time(&self, path: &[u8], is_file: bool, on_disk: i64) -> i64 {
        let overriding = self
            .overrides
            .iter()
            .map(|(prefix, time)| (trimmed(prefix.as_os_str().as_bytes()), *time))
            .filter(|(prefix, _)| is_at_or_below(path, prefix))
            .max_by_key(|(prefix, _)| prefix.len());
        let time = match (overriding, self.times) {
            (Some((_, time)), _) => time,
            (None, Times::Keep) => on_disk,
            (None, Times::ClampFiles) if is_file => on_disk.min(self.epoch),
            (None, Times::Set | Times::ClampFiles) => self.epoch,
        };
        // Tar knows no time before 1970 that every reader understands.
        time.max(0)
    }
}

fn trimmed(path: &[u8]) -> &[u8] {
    let start = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(start, |last| last + 1);
    &path[start..end]
}

fn is_at_or_below(path: &[u8], prefix: &[u8]) -> bool {
    prefix.is_empty()
        || path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_follow_the_rules() {
        let base = PackRules::base(100);
        assert_eq!(base.time(b"etc/passwd", true, 50), 50);
        assert_eq!(base.time(b"etc/passwd", true, 150), 100);
        assert_eq!(base.time(b"etc/passwd", true, -5), 0);
        assert_eq!(base.time(b"etc", false, 50), 100);
        let instance =
            PackRules::root(100).with_time("/testbed", 7).with_time("testbed/.git/index", 8);
        for (path, time) in [
            (&b"testbed"[..], 7),
            (b"testbed/a", 7),
            (b"testbed/.git/index", 8),
            (b"testbed/.git/index.lock", 7),
            (b"testbed2", 100),
            (b"", 100),
        ] {
            assert_eq!(instance.time(path, true, 50), time, "{}", path.escape_ascii());
        }
        assert_eq!(PackRules::unchanged().time(b"a", false, 50), 50);
        assert_eq!(PackRules::root(1).with_time("/", 2).time(b"a", false, 50), 2);
    }
}
