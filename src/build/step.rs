//! Steps: work that is named by the digest of all its inputs and done once.

use serde::Serialize;

use super::Error;
use crate::base::progress::Task;
use crate::base::{Digest, canon};
use crate::image::Layer;
use crate::runtime::Workbench;

/// The layer that a step makes: from the store when the step ran before and its layer is still whole, else
/// by `make`. `inputs` must hold everything that `make` depends on, the step's own name and version included.
pub(crate) fn cached_layer<I: Serialize>(
    bench: Workbench<'_>,
    stage: &'static str,
    name: &str,
    inputs: &I,
    make: impl FnOnce(&Task) -> Result<Layer, Error>,
) -> Result<Layer, Error> {
    let key: Digest = canon::digest(inputs)?;
    let task = Task::start(bench.reporter, stage, name, None);
    let held = || {
        bench
            .store
            .step::<Layer>(&key)
            .filter(|layer| bench.store.layer_path(&layer.diff_id).exists())
    };
    if let Some(layer) = held() {
        task.cached();
        return Ok(layer);
    }
    let _lock = bench.store.lock_step(&key, bench.cancel)?;
    if let Some(layer) = held() {
        task.cached();
        return Ok(layer);
    }
    bench.cancel.check()?;
    let layer = make(&task)?;
    bench.store.put_step(&key, &layer)?;
    task.done();
    Ok(layer)
}
