//! The same command several times at once, each in a container of its own: load of the kind that a machine has which
//! grades many at a time.

use std::path::Path;

use super::Error;
use crate::base::Cancel;
use crate::runtime::{self, Gap, Root, RunLog, RunSpec, Workbench};

/// Runs `spec` with `copies - 1` others of it beside it, and again as they end, until it ends. Theirs are the same layers,
/// limits and mounts, but for what can be written to, which each has to itself; what they say is thrown away.
pub fn with_load(
    bench: Workbench<'_>,
    root: Root<'_>,
    spec: &RunSpec,
    copies: u32,
) -> Result<RunLog, Error> {
    if copies < 2 {
        return Ok(bench.runtime.run(root, spec, bench.cancel)?);
    }
    let scratch = bench.store.scratch_dir("load")?;
    let stop = Cancel::new();
    // Before the run uses up what it was given.
    let folders = (1..copies)
        .map(|number| {
            let folder = scratch.path().join(number.to_string());
            given(spec, &folder.join("given"))?;
            Ok(folder)
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let (log, failed) = std::thread::scope(|scope| {
        let others: Vec<_> = folders
            .iter()
            .map(|folder| scope.spawn(|| beside(bench, root, spec, folder, &stop)))
            .collect();
        let log = bench.runtime.run(root, spec, bench.cancel);
        stop.cancel();
        let failed = others
            .into_iter()
            .map(|other| other.join().expect("a run does not panic"))
            .filter_map(Result::err)
            .last();
        (log, failed)
    });
    let mut log = log?;
    if let Some(error) = failed {
        tracing::warn!(%error, "a copy beside the run could not be had");
        log.gaps.push(Gap::Load);
        log.gaps.sort();
    }
    Ok(log)
}

/// One of the others, over and over.
fn beside(
    bench: Workbench<'_>,
    root: Root<'_>,
    spec: &RunSpec,
    folder: &Path,
    stop: &Cancel,
) -> Result<(), Error> {
    let mut round = 0;
    while !stop.is_cancelled() {
        round += 1;
        let here = folder.join(round.to_string());
        let mut spec = spec.clone();
        spec.keep_upper = false;
        spec.output = here.join("output");
        fs_err::create_dir_all(&spec.output)?;
        let writable = spec.mounts.iter_mut().filter(|mount| mount.writable);
        for (number, mount) in writable.enumerate() {
            let source = here.join(number.to_string());
            duplicate(&folder.join("given").join(number.to_string()), &source)?;
            mount.source = source;
        }
        match bench.runtime.run(root, &spec, stop) {
            Ok(_) | Err(runtime::Error::Base(crate::base::Error::Cancelled)) => {}
            Err(error) => return Err(error.into()),
        }
        crate::image::remove_tree(&here)?;
    }
    Ok(())
}

/// Keeps what can be written to as it is before the run.
fn given(spec: &RunSpec, folder: &Path) -> Result<(), Error> {
    fs_err::create_dir_all(folder)?;
    let writable = spec.mounts.iter().filter(|mount| mount.writable);
    for (number, mount) in writable.enumerate() {
        duplicate(&mount.source, &folder.join(number.to_string()))?;
    }
    Ok(())
}

/// Copies files and folders with their owners and modes.
fn duplicate(from: &Path, to: &Path) -> Result<(), Error> {
    use std::os::unix::fs::{MetadataExt as _, lchown};
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry.map_err(std::io::Error::from)?;
        let inside = entry.path().strip_prefix(from).expect("a walk stays below its start");
        let target = if inside.as_os_str().is_empty() { to.to_owned() } else { to.join(inside) };
        let metadata = entry.metadata().map_err(std::io::Error::from)?;
        if metadata.is_dir() {
            fs_err::create_dir(&target)?;
        } else {
            fs_err::copy(entry.path(), &target)?;
        }
        fs_err::set_permissions(&target, metadata.permissions())?;
        lchown(&target, Some(metadata.uid()), Some(metadata.gid()))?;
    }
    Ok(())
}
