//! How much a run has written.
//!
//! Quotas by project are rarely switched on, so the folders are walked; how often depends on how fast
//! the filesystem fills, which one system call tells. A single file is limited by the kernel.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::base::clock::Stopwatch;

/// At the latest after this time the folders are walked again, whatever the filesystem says: others
/// may free what the run takes.
const LONGEST: Duration = Duration::from_secs(10);

/// Limits up to this are always looked into at the end: the walk is short.
const ALWAYS: u64 = 1 << 30;

/// A walk may take this part of the time at most.
const SHARE: u32 = 20;

/// Watches some folders.
pub(crate) struct DiskWatch {
    folders: Vec<PathBuf>,
    limit: u64,
    /// What was there before.
    before: u64,
    used: u64,
    free: Option<u64>,
    since: Stopwatch,
    walk: Duration,
}

impl DiskWatch {
    /// Starts with what `folders` hold now counted as nothing; `fresh` folders are empty.
    pub(crate) fn new(fresh: Vec<PathBuf>, folders: Vec<PathBuf>, limit: u64) -> Self {
        let before = folders.iter().map(usage).sum();
        let all: Vec<_> = fresh.into_iter().chain(folders).collect();
        let free = free(&all);
        Self {
            folders: all,
            limit,
            before,
            used: 0,
            free,
            since: Stopwatch::start(),
            walk: Duration::ZERO,
        }
    }

    /// Whether more than the limit was written, looking only if it may be so. `output` is counted
    /// by the caller.
    pub(crate) fn is_over(&mut self, output: u64) -> bool {
        if output > self.limit {
            return true;
        }
        let since = self.since.elapsed();
        if since < self.walk * SHARE {
            return false;
        }
        let room = self.limit.saturating_sub(self.used.saturating_add(output));
        let taken = match (self.free, free(&self.folders)) {
            (Some(before), Some(now)) => before.saturating_sub(now),
            _ => u64::MAX,
        };
        if taken < room / 2 && since < LONGEST {
            return false;
        }
        self.measure();
        self.used.saturating_add(output) > self.limit
    }

    /// The last look at a run that failed: one that had reached its limit was stopped by it (a write
    /// past the longest file fails or kills). A large limit is not looked into without a sign.
    pub(crate) fn ended_over(&mut self, output: u64) -> bool {
        let taken = match (self.free, free(&self.folders)) {
            (Some(before), Some(now)) => before.saturating_sub(now),
            _ => u64::MAX,
        };
        if self.limit > ALWAYS && taken < self.limit.saturating_sub(self.used) / 2 {
            return false;
        }
        self.measure();
        self.used.saturating_add(output) >= self.limit
    }

    fn measure(&mut self) {
        self.free = free(&self.folders);
        self.since = Stopwatch::start();
        self.used = self.folders.iter().map(usage).sum::<u64>().saturating_sub(self.before);
        self.walk = self.since.elapsed();
    }
}

/// Bytes on disk below a folder; what vanishes meanwhile counts nothing.
fn usage(folder: &PathBuf) -> u64 {
    let mut linked = BTreeSet::new();
    walkdir::WalkDir::new(folder)
        .into_iter()
        .filter_map(Result::ok)
        .filter_map(|entry| entry.metadata().ok())
        .filter(|metadata| {
            metadata.nlink() == 1 || metadata.is_dir() || linked.insert(metadata.ino())
        })
        .map(|metadata| metadata.blocks() * 512)
        .sum()
}

fn free(folders: &[PathBuf]) -> Option<u64> {
    let stat = rustix::fs::statvfs(folders.first()?).ok()?;
    Some(stat.f_bfree * stat.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_counts_and_links_count_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        fs_err::write(path.join("old"), vec![1; 1 << 20]).unwrap();
        let mut watch = DiskWatch::new(Vec::new(), vec![path.clone()], 2 << 20);
        assert!(!watch.is_over(0));
        assert!(watch.is_over((2 << 20) + 1));
        fs_err::write(path.join("new"), vec![1; 1 << 20]).unwrap();
        fs_err::hard_link(path.join("new"), path.join("again")).unwrap();
        watch.measure();
        assert!((1 << 20..3 << 19).contains(&watch.used), "{}", watch.used);
        fs_err::write(path.join("more"), vec![1; 3 << 20]).unwrap();
        assert!(watch.ended_over(0));
    }
}
