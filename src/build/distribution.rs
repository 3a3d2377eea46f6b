//! Distributions as trees: each wheel is unpacked and compiled once per interpreter and kept in the store; env
//! layers are unions of these trees.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

use super::pyc;
use super::{Error, wheel};
use crate::base::{Digest, canon};
use crate::image::Image;
use crate::resolve::python::{Interpreter, Scheme};
use crate::runtime::Workbench;

/// 1980-01-01T00:00:00Z, the earliest time that a zip archive can hold: the time of every file of a distribution
/// (docs/decisions/0002-epochs.md).
pub(crate) const EPOCH: i64 = 315_532_800;

/// A wheel to install.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Distribution {
    /// Normalised name.
    pub(crate) name: String,
    /// The wheel's file name.
    pub(crate) wheel: String,
    /// Its digest.
    pub(crate) sha256: Digest,
}

/// What a distribution's tree is made from.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct TreeKey<'a> {
    step: &'static str,
    version: u32,
    wheel: &'a str,
    sha256: Digest,
    scheme: &'a Scheme,
    compiler: pyc::Compiler<'a>,
}

fn key(distribution: &Distribution, interpreter: &Interpreter) -> Result<Digest, Error> {
    Ok(canon::digest(&TreeKey {
        step: "distribution",
        version: 1,
        wheel: &distribution.wheel,
        sha256: distribution.sha256,
        scheme: &interpreter.scheme,
        compiler: pyc::Compiler::of(interpreter),
    })?)
}

/// The trees of all `distributions`, by name: from the store, or unpacked and compiled now. `image` has the interpreter
/// and what it needs.
pub(crate) fn trees(
    bench: Workbench<'_>,
    image: &Image,
    interpreter: &Interpreter,
    distributions: &[Distribution],
) -> Result<BTreeMap<String, PathBuf>, Error> {
    let mut found = BTreeMap::new();
    let mut missing = Vec::new();
    for distribution in distributions {
        let path = bench.store.tree_path(&key(distribution, interpreter)?);
        if !path.exists() {
            missing.push(distribution);
        }
        found.insert(distribution.name.clone(), path);
    }
    if missing.is_empty() {
        return Ok(found);
    }
    let scratch = bench.store.scratch_dir("trees")?;
    let trees: Vec<PathBuf> =
        (0..missing.len()).map(|number| scratch.path().join(number.to_string())).collect();
    unpack_all(bench, interpreter, &missing, &trees)?;
    pyc::compile(bench, image, interpreter, scratch.path(), trees.len())?;
    for (distribution, tree) in missing.iter().zip(&trees) {
        settle(tree)?;
        let target = &found[&distribution.name];
        // Another process may have been faster; its tree is the same.
        if let Err(error) = fs_err::rename(tree, target)
            && !target.exists()
        {
            return Err(error.into());
        }
    }
    Ok(found)
}

/// Unpacks each distribution into its tree, on all processors.
fn unpack_all(
    bench: Workbench<'_>,
    interpreter: &Interpreter,
    distributions: &[&Distribution],
    trees: &[PathBuf],
) -> Result<(), Error> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<(), Error> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let (Some(distribution), Some(tree)) = (distributions.get(number), trees.get(number))
            else {
                return Ok(());
            };
            bench.cancel.check()?;
            fs_err::create_dir(tree)?;
            let blob = bench.store.blob_path(&distribution.sha256);
            wheel::unpack(&blob, &distribution.wheel, &interpreter.scheme, tree)?;
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..workers.min(distributions.len())).map(|_| scope.spawn(work)).collect();
        let results: Vec<_> = workers
            .into_iter()
            .map(|worker| worker.join().expect("unpacking does not panic"))
            .collect();
        results.into_iter().collect()
    })
}

/// Modes and times by rule, so that nothing shows who made the tree and when.
pub(crate) fn settle(tree: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt as _;
    let time = rustix::fs::Timespec { tv_sec: EPOCH, tv_nsec: 0 };
    let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
    for entry in walkdir::WalkDir::new(tree).contents_first(true).sort_by_file_name() {
        let entry = entry.map_err(std::io::Error::from)?;
        let metadata = entry.metadata().map_err(std::io::Error::from)?;
        let mode = if metadata.is_dir() || metadata.permissions().mode() & 0o111 != 0 {
            0o755
        } else {
            0o644
        };
        // A link has no mode of its own: this would be its target's.
        if !metadata.is_symlink() && metadata.permissions().mode() & 0o7777 != mode {
            fs_err::set_permissions(entry.path(), std::fs::Permissions::from_mode(mode))?;
        }
        rustix::fs::utimensat(
            rustix::fs::CWD,
            entry.path(),
            &times,
            rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
        )
        .map_err(std::io::Error::from)?;
    }
    Ok(())
}
