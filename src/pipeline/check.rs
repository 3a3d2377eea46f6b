//! Are builds reproducible here? The split is built again in an empty store, offline, and what differs is named with
//! its likely cause.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::board::Board;
use super::stages::Pipeline;
use super::{Done, Error, Goal};
use crate::base::files::digest_file;
use crate::base::{Digest, Store};
use crate::bundle::history;
use crate::image::{self, EntryKind, Layer, MergedEntry};
use crate::runtime::{Runtime, Workbench};

/// Causes by what a path looks like, first match wins: known reasons for unequal layers.
const CAUSES: [(&str, &str); 10] = [
    (".pyc", "compiled Python: hash seed, order of compilation or source times"),
    ("/RECORD", "a distribution's RECORD: one of its files differs, or an installer added its own"),
    ("/direct_url.json", "where a distribution was installed from"),
    ("/uv_cache.json", "uv's cache record: times of the wheel"),
    ("ld.so.cache", "ldconfig's cache"),
    ("aux-cache", "ldconfig's auxiliary cache: inode numbers and times"),
    ("var/log/", "a log: times and order"),
    ("var/lib/dpkg/", "dpkg's state: the order in which packages were unpacked"),
    (".git/", "git: times, inodes or the packing of objects"),
    (".so", "compiled code: paths, times or the order of its inputs"),
];

const CONTENTS: &str = "other contents";

/// Larger files are not read for a cause.
const LARGEST_READ: u64 = 16 << 20;

impl Pipeline<'_> {
    /// Builds the board's split again in an empty store at `folder`, with a runtime made by `runtime` for that store, and
    /// returns what differs: nothing is good. The bundle is linked from this pipeline's store.
    pub fn rebuild_and_compare<E: Into<Error>>(
        &self,
        board: &Board,
        selected: &[String],
        folder: &Path,
        runtime: impl FnOnce(&Store) -> Result<Box<dyn Runtime>, E>,
    ) -> Result<(Vec<String>, Done), Error> {
        let store = Store::open(&folder.join("store"), &folder.join("scratch"))?;
        let files = board.files(self.bench.store)?;
        let wanted: BTreeSet<Digest> = files.iter().map(|file| file.sha256).collect();
        for digest in wanted {
            let (from, to) = (self.bench.store.blob_path(&digest), store.blob_path(&digest));
            // Scratch may be another filesystem than the store.
            fs_err::hard_link(&from, &to).or_else(|_| fs_err::copy(&from, &to).map(|_| ()))?;
        }
        for file in &files {
            history::remember(&store, file)?;
        }
        let runtime = runtime(&store).map_err(Into::into)?;
        let bench = Workbench { store: &store, runtime: &*runtime, ..self.bench };
        let again = Pipeline { bench, ..*self };
        let second = Board::read(self.project, board.split.clone(), selected)?;
        let done = again.execute(&second, Goal::Build);
        let mut findings = Vec::new();
        let rebuilt: BTreeMap<_, _> = second.images().into_iter().collect();
        for (name, image) in board.images() {
            let Some(other) = rebuilt.get(&name) else { continue };
            if image.key != other.key {
                findings.push(format!("{name}: expected key {}, got {}", image.key, other.key));
            }
            for (index, (first, second)) in image.layers.iter().zip(&other.layers).enumerate() {
                if first.diff_id == second.diff_id {
                    continue;
                }
                findings.push(format!(
                    "{name}: layer {index}: expected {}, got {}",
                    first.diff_id, second.diff_id
                ));
                findings.extend(self.differing(first, &store, second)?);
            }
        }
        findings.dedup();
        Ok((findings, done))
    }

    fn differing(
        &self,
        first: &Layer,
        store: &Store,
        second: &Layer,
    ) -> Result<Vec<String>, Error> {
        let a = self.entries(self.bench.store, first)?;
        let mut b = self.entries(store, second)?;
        let mut found = Vec::new();
        for (path, entry) in a {
            let Some(other) = b.remove(&path) else {
                found.push(finding(&path, "only in the first build", None));
                continue;
            };
            if let Some(what) = difference(&entry, &other)? {
                let seen = if what == CONTENTS { contents_cause(&entry, &other)? } else { None };
                found.push(finding(&path, what, seen));
            }
        }
        found.extend(b.keys().map(|path| finding(path, "only in the second build", None)));
        Ok(found)
    }

    fn entries(
        &self,
        store: &Store,
        layer: &Layer,
    ) -> Result<BTreeMap<PathBuf, MergedEntry>, Error> {
        let merged = image::merged(store, &[*layer], self.bench.cancel)?;
        let mut entries = BTreeMap::new();
        for entry in merged.walk(Path::new(""))? {
            let entry = entry?;
            entries.insert(entry.path.clone(), entry);
        }
        Ok(entries)
    }
}

/// What is not the same, if anything.
fn difference(a: &MergedEntry, b: &MergedEntry) -> Result<Option<&'static str>, Error> {
    Ok(if a.kind != b.kind {
        Some("another kind of file")
    } else if (a.mode, a.uid, a.gid) != (b.mode, b.uid, b.gid) {
        Some("another mode or owner")
    } else if a.kind == EntryKind::File
        && (a.size != b.size || digest_file(&a.location)? != digest_file(&b.location)?)
    {
        Some(CONTENTS)
    } else if a.kind == EntryKind::Symlink
        && fs_err::read_link(&a.location)? != fs_err::read_link(&b.location)?
    {
        Some("another target")
    } else if a.mtime != b.mtime {
        Some("another time")
    } else {
        None
    })
}

/// What two files say of the cause, for paths that say nothing.
fn contents_cause(a: &MergedEntry, b: &MergedEntry) -> Result<Option<&'static str>, Error> {
    if a.size.max(b.size) > LARGEST_READ {
        return Ok(None);
    }
    Ok(cause_between(&fs_err::read(&a.location)?, &fs_err::read(&b.location)?))
}

fn cause_between(a: &[u8], b: &[u8]) -> Option<&'static str> {
    let sorted = |bytes: &[u8]| {
        let mut lines: Vec<Vec<u8>> =
            bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        lines.sort();
        lines
    };
    if sorted(a) == sorted(b) {
        return Some("the same lines in another order");
    }
    let shape = |bytes: &[u8]| {
        let mut shape: Vec<u8> =
            bytes.iter().map(|byte| if byte.is_ascii_digit() { b'0' } else { *byte }).collect();
        shape.dedup_by(|next, last| *next == b'0' && *last == b'0');
        shape
    };
    (shape(a) == shape(b)).then_some("only numbers differ: a time, a process id or a random number")
}

fn finding(path: &Path, what: &str, seen: Option<&str>) -> String {
    let text = path.to_string_lossy();
    let known = CAUSES.iter().find(|(part, _)| text.contains(part)).map(|(_, cause)| *cause);
    let cause = known.or(seen).unwrap_or("unknown cause");
    format!("  /{text}: {what} ({cause})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_come_from_the_path_or_else_the_contents() {
        let order = cause_between(b"a\nb\n", b"b\na\n");
        assert_eq!(order, Some("the same lines in another order"));
        let numbers = cause_between(b"made at 9 h\n", b"made at 10 h\n");
        assert!(numbers.unwrap().starts_with("only numbers differ"));
        assert_eq!(cause_between(b"a", b"b"), None);
        for (path, seen, expected) in [
            (
                "a/b.pyc",
                numbers,
                "  /a/b.pyc: x (compiled Python: hash seed, order of compilation or source times)",
            ),
            ("a/b", order, "  /a/b: x (the same lines in another order)"),
            ("a/b", None, "  /a/b: x (unknown cause)"),
        ] {
            assert_eq!(finding(Path::new(path), "x", seen), expected);
        }
    }
}
