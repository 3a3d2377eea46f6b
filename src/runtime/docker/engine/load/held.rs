//! Which layers a daemon has. It knows them by chain ID: a layer together with everything below it (OCI image specification,
//! config.md).

use std::collections::BTreeSet;
use std::time::Duration;

use bollard::query_parameters::ListImagesOptionsBuilder;
use futures_util::{StreamExt as _, TryStreamExt as _};

use super::super::{DaemonError, Engine};
use crate::base::{Cancel, Digest};
use crate::image::Image;

/// For a list of all images: a daemon with thousands of them takes its time.
const LIST: Duration = Duration::from_mins(5);

/// Questions on the way at once; a daemon answers each in about a millisecond.
const AT_ONCE: usize = 8;

/// Chain IDs.
pub(super) type Chains = BTreeSet<Digest>;

/// The chain IDs of layers, bottom first.
pub(super) fn chain_ids(diff_ids: impl IntoIterator<Item = Digest>) -> Vec<Digest> {
    let mut chains: Vec<Digest> = Vec::new();
    for diff_id in diff_ids {
        chains.push(match chains.last() {
            None => diff_id,
            Some(below) => Digest::of(format!("{below} {diff_id}")),
        });
    }
    chains
}

/// Those of an image.
pub(super) fn chains_of(image: &Image) -> Vec<Digest> {
    chain_ids(image.layers.iter().map(|layer| layer.diff_id))
}

/// The layers of all of the daemon's images, tagged or not.
pub(super) fn held(engine: &Engine, cancel: &Cancel) -> Result<Chains, DaemonError> {
    let options = ListImagesOptionsBuilder::new().all(true).build();
    engine.call("list its images", LIST, cancel, async {
        let images = engine.docker().list_images(Some(options)).await?;
        let inspections = images.into_iter().map(|image| async move {
            match engine.docker().inspect_image(&image.id).await {
                Ok(image) => Ok(image.root_fs.and_then(|layers| layers.layers).unwrap_or_default()),
                // Removed since.
                Err(error) if is_absent(&error) => Ok(Vec::new()),
                Err(error) => Err(error),
            }
        });
        let layers: Vec<Vec<String>> =
            futures_util::stream::iter(inspections).buffer_unordered(AT_ONCE).try_collect().await?;
        Ok(layers
            .into_iter()
            .flat_map(|layers| chain_ids(layers.iter().map_while(|layer| layer.parse().ok())))
            .collect())
    })
}

/// The id of the image with this name; nothing where there is none.
pub(super) fn id_of(
    engine: &Engine,
    name: &str,
    cancel: &Cancel,
) -> Result<Option<String>, DaemonError> {
    engine.call(&format!("show the image {name}"), LIST, cancel, async {
        match engine.docker().inspect_image(name).await {
            Ok(image) => Ok(image.id),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    })
}

fn is_absent(error: &bollard::errors::Error) -> bool {
    use bollard::errors::Error::DockerResponseServerError as Refused;
    matches!(error, Refused { status_code: 404, .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_id_is_of_the_layer_and_all_below() {
        let [a, b, c] = ["a", "b", "c"].map(Digest::of);
        let ab = Digest::of(format!("{a} {b}"));
        assert_eq!(chain_ids([a, b, c]), [a, ab, Digest::of(format!("{ab} {c}"))]);
        assert_eq!(chain_ids([]), []);
    }
}
