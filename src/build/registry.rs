//! Base images that come from a registry: their layers are imported as they are, and what the lock says of them is checked.

use oci_spec::image::ImageConfiguration;
use serde_json::json;

use super::step::cached_layer;
use super::{Error, command};
use crate::base::{Digest, canon, harmless};
use crate::image::{self, Image, ImageConfig, Layer};
use crate::lock::{BaseLock, LockedImage};
use crate::resolve::python::PYTHON;
use crate::runtime::{Network, Root, RunSpec, Workbench};

/// Raise it whenever another image comes out of the same lock.
const VERSION: u32 = 1;

/// Where an image does not say it.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The image of a lock, whose files are in the store. Offline.
pub(super) fn base(
    bench: Workbench<'_>,
    lock: &BaseLock,
    locked: &LockedImage,
) -> Result<Image, Error> {
    let name = format!("{}@{}", locked.repository, locked.digest);
    super::base::check_host(bench, &lock.suite, lock.as_of.as_second())?;
    let bytes = bench.store.read_blob(&locked.config.sha256)?;
    let invalid = |problem: String| Error::Invalid {
        what: format!("the image {name}"),
        problem: harmless(&problem),
        hint: Some(
            "lock the base again with `hallmark lock --refresh`, or choose another image"
                .to_owned(),
        ),
    };
    let config: ImageConfiguration =
        serde_json::from_slice(&bytes).map_err(|error| invalid(format!("its config: {error}")))?;
    let (actual, expected) = (config.architecture().to_string(), lock.arch.oci());
    if actual != expected {
        return Err(invalid(format!("expected an image for {expected}, got one for {actual}")));
    }
    let diff_ids = config.rootfs().diff_ids();
    if diff_ids.len() != locked.layers.len() {
        return Err(invalid(
            "its config and its manifest disagree on how many layers it has".to_owned(),
        ));
    }
    if diff_ids.is_empty() {
        return Err(invalid("it has no layers".to_owned()));
    }
    let mut layers = Vec::new();
    for (number, (blob, diff_id)) in (1..).zip(locked.layers.iter().zip(diff_ids)) {
        let expected = diff_id.strip_prefix("sha256:").and_then(|hex| Digest::from_hex(hex).ok());
        let inputs = json!({ "step": "registry-layer", "version": VERSION, "blob": blob.sha256 });
        let layer: Layer = cached_layer(bench, "layer", &blob.sha256.hex()[..12], &inputs, |_| {
            image::import_layer(bench.store, &blob.sha256, bench.cancel).map_err(|error| {
                let of = locked.layers.len();
                let problem = || format!("layer {number} of {of} ({}): {error}", blob.sha256);
                if error.is_damage() { invalid(problem()) } else { error.into() }
            })
        })?;
        if expected != Some(layer.diff_id) {
            return Err(invalid(format!(
                "layer {number}: expected {diff_id}, got {}",
                layer.diff_id
            )));
        }
        layers.push(layer);
    }
    let mut env = image::registry::variables(&config).map_err(invalid)?;
    env.entry("PATH".to_owned()).or_insert_with(|| PATH.to_owned());
    let inputs = json!({ "step": "registry-base", "version": VERSION, "lock": lock.digest()? });
    let image = Image {
        key: canon::digest(&inputs)?,
        arch: lock.arch,
        layers,
        config: ImageConfig { env, ..super::base::config(lock)? },
        created: lock.as_of.as_second(),
    };
    check_python(bench, lock, &name, &image)?;
    Ok(image)
}

/// Whether the image has the suite's own Python, once per image.
fn check_python(
    bench: Workbench<'_>,
    lock: &BaseLock,
    name: &str,
    image: &Image,
) -> Result<(), Error> {
    let key = canon::digest(&("registry-base-python", VERSION, image.key, PYTHON))?;
    let actual = if let Some(held) = bench.store.step::<String>(&key) {
        held
    } else {
        let folder = bench.store.scratch_dir("python")?;
        let script = "import sys; print('%d.%d' % sys.version_info[:2])";
        let mut run = RunSpec::new([PYTHON, "-I", "-c", script], folder.path());
        run.network = Network::Unreachable;
        let what = format!("asking the Python of {name}");
        let log = command::run(bench, &what, Root::Layers(&image.layers), &run)?;
        let said = fs_err::read_to_string(&log.stdout)?.trim().to_owned();
        bench.store.put_step(&key, &said)?;
        said
    };
    if actual == lock.python {
        return Ok(());
    }
    Err(Error::Invalid {
        what: format!("the image {name}"),
        problem: format!("expected Python {} at {PYTHON}, got {actual}", lock.python),
        hint: Some(format!("is it an image of Debian {} with its own python3?", lock.suite)),
    })
}
