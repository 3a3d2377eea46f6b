//! The two patches of an instance: from its row, or derived from the sdists of a release pair.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Error;
use super::inside::file_inside;
use super::metadata::{is_generated, is_test_path};
use super::{command, offline};
use crate::base::progress::Task;
use crate::base::{Digest, Store, canon};
use crate::bundle;
use crate::dataset::{Instance, Pair, Sdist, Source};
use crate::image::Image;
use crate::runtime::{Mount, Root, Workbench};

const STEP: &str = "pair-patches/1";
const DIFFERENCE: &str = include_str!("scripts/difference.sh");
const GOLD: &str = include_str!("scripts/gold.sh");

/// The patches of an instance, as blobs of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Patches {
    /// Digest of the gold patch.
    pub gold: Digest,
    /// Digest of the test patch.
    pub test: Digest,
    /// The files that a pair's gold patch makes, with contents that the base has nowhere: no image may hold them.
    pub gold_files: Vec<GoldFile>,
}

/// A file as the gold patch leaves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GoldFile {
    /// Its path in the repository.
    pub path: String,
    /// Its git blob id.
    pub blob: String,
    /// sha256 of its bytes.
    pub sha256: Digest,
    /// Its length in bytes.
    pub size: u64,
}

/// The patches of `instance`. For a pair they are derived in the sandbox with the base image's git, once.
pub fn patches(bench: Workbench<'_>, base: &Image, instance: &Instance) -> Result<Patches, Error> {
    match &instance.source {
        Source::Git { gold_patch, test_patch, .. } => Ok(Patches {
            gold: bench.store.put_blob(gold_patch.as_bytes())?,
            test: bench.store.put_blob(test_patch.as_bytes())?,
            gold_files: Vec::new(),
        }),
        Source::Pair(pair) => pair_patches(bench, base, instance.id.as_str(), pair),
    }
}

fn pair_patches(
    bench: Workbench<'_>,
    base: &Image,
    id: &str,
    pair: &Pair,
) -> Result<Patches, Error> {
    let key = canon::digest(&(STEP, base.key, DIFFERENCE, pair.base.sha256, pair.fixed.sha256))?;
    let task = Task::start(bench.reporter, "patches", id, None);
    let held = |store: &Store| {
        store
            .step::<Patches>(&key)
            .filter(|patches| store.has_blob(&patches.gold) && store.has_blob(&patches.test))
    };
    if let Some(patches) = held(bench.store) {
        task.cached();
        return Ok(patches);
    }
    let _lock = bench.store.lock_step(&key, bench.cancel)?;
    let scratch = bench.store.scratch_dir("patches")?;
    let trees = scratch.path();
    let base_tree = source_tree(bench.store, &pair.base, &trees.join("base"))?;
    let fixed_tree = source_tree(bench.store, &pair.fixed, &trees.join("fixed"))?;
    let out = trees.join("out");
    let logs = trees.join("logs");
    fs_err::create_dir(&out)?;
    fs_err::create_dir(&logs)?;
    let mut spec = offline::shell(DIFFERENCE, base.created, &logs);
    offline::with(
        &mut spec,
        [
            ("BASE", "/run/hallmark/base"),
            ("FIXED", "/run/hallmark/fixed"),
            ("OUT", "/run/hallmark/out"),
        ],
    );
    spec.mounts = vec![
        offline::input(&base_tree, "base"),
        offline::input(&fixed_tree, "fixed"),
        Mount { source: out.clone(), target: "/run/hallmark/out".into(), writable: true },
    ];
    spec.keep_upper = false;
    command::run(
        bench,
        &format!("difference of the sdists of {id}"),
        Root::Layers(&base.layers),
        &spec,
    )?;

    let files = split_by_file(&fs_err::read(file_inside(&out, "patch")?)?);
    let (mut gold, mut test, mut gold_paths) = (Vec::new(), Vec::new(), Vec::new());
    for (path, text) in files {
        if is_test_path(&path) {
            test.extend(text);
        } else {
            gold.extend(text);
            gold_paths.push(path);
        }
    }
    let blobs = blob_ids(&fs_err::read(file_inside(&out, "fixed")?)?);
    let known: BTreeSet<String> =
        blob_ids(&fs_err::read(file_inside(&out, "base")?)?).into_values().collect();
    let mut gold_files = Vec::new();
    for path in gold_paths {
        // Deleted files have no blob on the fixed side.
        let Some(blob) = blobs.get(&path) else { continue };
        // Contents that the base has elsewhere (a moved file) give nothing away.
        if known.contains(blob) {
            continue;
        }
        let name = String::from_utf8_lossy(&path).into_owned();
        let file = fixed_tree.join(os_path(&path));
        if fs_err::symlink_metadata(&file)?.is_file() {
            let bytes = fs_err::read(&file)?;
            let size = bytes.len() as u64;
            gold_files.push(GoldFile {
                path: name,
                blob: blob.clone(),
                sha256: Digest::of(&bytes),
                size,
            });
        }
    }
    let patches = Patches {
        gold: bench.store.put_blob(&gold)?,
        test: bench.store.put_blob(&test)?,
        gold_files,
    };
    bench.store.put_step(&key, &patches)?;
    task.done();
    Ok(patches)
}

/// The files that the gold patch makes of the work tree in `image`, with contents that the base commit's history has nowhere.
/// A patch that does not apply makes none; the run says so.
pub(crate) fn gold_of_git(
    bench: Workbench<'_>,
    image: &Image,
    instance: &Instance,
    gold_patch: &str,
) -> Result<Vec<GoldFile>, Error> {
    if gold_patch.trim().is_empty() {
        return Ok(Vec::new());
    }
    let scratch = bench.store.scratch_dir("gold")?;
    let (out, patch) = (scratch.path().join("out"), scratch.path().join("patch"));
    fs_err::create_dir(&out)?;
    fs_err::write(&patch, format!("{}\n", gold_patch.trim_end_matches('\n')))?;
    let mut spec = offline::shell(GOLD, image.created, scratch.path());
    spec.keep_upper = false;
    spec.mounts = vec![
        offline::input(&patch, "patch"),
        Mount { source: out.clone(), target: "/run/hallmark/out".into(), writable: true },
    ];
    let step = format!("files of the gold patch of {}", instance.id);
    command::run(bench, &step, Root::Layers(&image.layers), &spec)?;
    let mut files = Vec::new();
    for (path, blob) in blob_ids(&fs_err::read(file_inside(&out, "changed")?)?) {
        // Contents that the history has are no file here.
        let Ok(file) = file_inside(&out, &blob) else { continue };
        let bytes = fs_err::read(file)?;
        files.push(GoldFile {
            path: String::from_utf8_lossy(&path).into_owned(),
            blob,
            sha256: Digest::of(&bytes),
            size: bytes.len() as u64,
        });
    }
    Ok(files)
}

fn os_path(path: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt as _;
    Path::new(std::ffi::OsStr::from_bytes(path))
}

/// Unpacks an sdist without its generated metadata.
fn source_tree(store: &Store, sdist: &Sdist, into: &Path) -> Result<std::path::PathBuf, Error> {
    use std::os::unix::ffi::OsStrExt as _;
    let tree = bundle::sdist::extract(store, &sdist.sha256, &sdist.file, into)?;
    for entry in walkdir::WalkDir::new(&tree).contents_first(true) {
        let entry = entry.map_err(std::io::Error::from)?;
        let relative =
            entry.path().strip_prefix(&tree).expect("walked below it").as_os_str().as_bytes();
        if !entry.file_type().is_dir() && is_generated(relative) {
            fs_err::remove_file(entry.path())?;
        }
    }
    Ok(tree)
}

/// Cuts a git diff into its files: `(path, text)` in the diff's order. The path is the new side's, or the old
/// side's of a deleted file.
///
/// A line of a hunk starts with a space, `+`, `-` or a backslash, and base85 lines hold no space, so `diff --git ` at a line's
/// start is always a header.
fn split_by_file(patch: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut files: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        if let Some(names) = line.strip_prefix(b"diff --git ") {
            files.push((header_path(names.trim_ascii_end()), Vec::new()));
        }
        if let Some((_, text)) = files.last_mut() {
            text.extend_from_slice(line);
        }
    }
    files
}

/// The path in `a/PATH b/PATH` or `"a/PATH" "b/PATH"` (C-quoted, as git does with unusual bytes). Without
/// renames both sides are the same, so half of the text is one side.
fn header_path(names: &[u8]) -> Vec<u8> {
    let half = &names[..names.len() / 2];
    if let Some(quoted) = half.strip_prefix(b"\"a/") {
        return unquote(quoted.strip_suffix(b"\"").unwrap_or(quoted));
    }
    half.strip_prefix(b"a/").unwrap_or(half).to_vec()
}

/// Undoes git's C-style quoting (git-config(1), `core.quotePath`).
fn unquote(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'r') => out.push(b'\r'),
            Some(b'a') => out.push(7),
            Some(b'b') => out.push(8),
            Some(b'f') => out.push(12),
            Some(b'v') => out.push(11),
            Some(first @ b'0'..=b'3') => {
                let digits =
                    [bytes.next(), bytes.next()].map(|digit| digit.map_or(0, |digit| digit & 7));
                out.push(((first & 7) << 6) | (digits[0] << 3) | digits[1]);
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

/// Reads `git ls-tree -r -z`: path to blob id.
fn blob_ids(listing: &[u8]) -> BTreeMap<Vec<u8>, String> {
    listing
        .split(|byte| *byte == 0)
        .filter_map(|entry| {
            let tab = entry.iter().position(|byte| *byte == b'\t')?;
            let id = entry[..tab].rsplit(|byte| *byte == b' ').next()?;
            Some((entry[tab + 1..].to_vec(), String::from_utf8_lossy(id).into_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_is_cut_at_its_headers_only() {
        let patch = b"diff --git a/src/a b.py b/src/a b.py\nindex 1..2\n--- a/src/a b.py\n+++ b/src/a b.py\n@@ -1 +1 @@\n-x\n+diff --git a/no b/no\n\
            diff --git \"a/t/\\303\\244\\t.py\" \"b/t/\\303\\244\\t.py\"\ndeleted file mode 100644\n";
        let files = split_by_file(patch);
        let names: Vec<_> = files.iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(names, [b"src/a b.py".to_vec(), "t/ä\t.py".as_bytes().to_vec()]);
        assert_eq!(files.iter().flat_map(|(_, text)| text.clone()).collect::<Vec<_>>(), patch);
    }
}
