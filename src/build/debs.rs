//! System packages of an environment: one layer over a base, installed by dpkg from locked files, offline.

use serde_json::json;

use super::base::{MOUNTS, check_host, install_spec, script};
use super::step::cached_layer;
use super::{Error, command};
use crate::image::{self, Image, Layer, PackRules};
use crate::lock::{BaseLock, Deb};
use crate::runtime::{Mount, Root, Workbench};

/// Raise it whenever the scripts or the cleaning change what comes out.
const VERSION: u32 = 1;

/// The base with `debs` installed on top; without any, the base itself.
pub fn system_packages(
    bench: Workbench<'_>,
    base: &Image,
    lock: &BaseLock,
    debs: &[Deb],
) -> Result<Image, Error> {
    if debs.is_empty() {
        return Ok(base.clone());
    }
    let mut sorted = debs.to_vec();
    sorted.sort();
    let inputs = json!({
        "step": "system-packages", "version": VERSION, "base": base.key, "as-of": lock.as_of, "debs": sorted,
    });
    let name = format!("{} + {} packages", lock.suite, debs.len());
    let layer = cached_layer(bench, "packages", &name, &inputs, |_| make(bench, base, lock, debs))?;
    Ok(base.with_layer(layer, &inputs)?)
}

fn make(bench: Workbench<'_>, base: &Image, lock: &BaseLock, debs: &[Deb]) -> Result<Layer, Error> {
    let epoch = lock.as_of.as_second();
    check_host(bench, &lock.suite, epoch)?;
    let scratch = bench.store.scratch_dir("packages")?;
    let mut spec = install_spec(bench.store, scratch.path(), epoch)?;
    spec.argv = script("install.sh", debs);
    spec.keep_upper = true;
    // Compiling is compile.py's; the base's own tools for it are hidden, not moved, so that no copy
    // of them comes into the layer.
    let nothing = scratch.path().join("scripts/nothing");
    for target in
        ["/usr/bin/py3compile".to_owned(), format!("/usr/lib/python{}/py_compile.py", lock.python)]
    {
        spec.mounts.push(Mount { source: nothing.clone(), target, writable: false });
    }
    let step = format!("installing packages on {}", lock.suite);
    let log = command::run(bench, &step, Root::Layers(&base.layers), &spec)?;
    let upper = log.upper.ok_or_else(|| Error::Invalid {
        what: step,
        problem: "the runtime kept no changes".to_owned(),
        hint: None,
    })?;
    let mounts = upper.join(MOUNTS);
    if mounts.exists() {
        image::remove_tree(&mounts)?;
    }
    Ok(image::commit_tree(bench.store, upper, &PackRules::base(epoch), bench.cancel)?)
}
