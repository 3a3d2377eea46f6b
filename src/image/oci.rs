//! Images as OCI documents: config and manifest, in canonical JSON.
//!
//! Nothing in them depends on when, where or by which version they were made: the date is the image's own, there is
//! no history and there are no annotations. The config depends on the image alone; the manifest also on how its
//! layers are compressed, which every [`Blob`] records.

use oci_spec::image::{
    Arch as OciArch, Config, Descriptor, ImageConfiguration, ImageManifestBuilder, MediaType, Os,
    RootFs, Sha256Digest,
};
use serde::{Deserialize, Serialize};

use super::blob::{Blob, compress};
use super::compressor::Compressor;
use super::{Error, Image};
use crate::base::{Arch, Cancel, Digest, Store, canon};

/// The digests of an image's documents and layers, all of which are blobs of the store.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub struct ImageDigests {
    /// Of the config: the same for every compressor. Docker calls it the image id.
    pub config: Digest,
    /// Of the manifest.
    pub manifest: Digest,
    /// Length of the manifest in bytes.
    pub manifest_size: u64,
    /// The layers' blobs, bottom first.
    pub layers: Vec<Blob>,
}

/// The image's config, canonical.
pub fn config_json(image: &Image) -> Result<Vec<u8>, Error> {
    let seconds = image.created;
    let created = jiff::Timestamp::from_second(seconds).map_err(|_| Error::Date { seconds })?;
    let mut config = Config::default();
    if !image.config.user.is_empty() {
        config.set_user(Some(image.config.user.clone()));
    }
    if !image.config.command.is_empty() {
        config.set_cmd(Some(image.config.command.clone()));
    }
    let variables = image.config.env.iter().map(|(name, value)| format!("{name}={value}"));
    config.set_env(Some(variables.collect()));
    if !image.config.working_dir.is_empty() {
        config.set_working_dir(Some(image.config.working_dir.clone()));
    }
    if !image.config.labels.is_empty() {
        config.set_labels(Some(image.config.labels.clone().into_iter().collect()));
    }
    let mut layers = RootFs::default();
    layers.set_diff_ids(image.layers.iter().map(|layer| layer.diff_id.to_string()).collect());
    let mut document = ImageConfiguration::default();
    document
        .set_created(Some(created.to_string()))
        .set_architecture(architecture(image.arch))
        .set_os(Os::Linux)
        .set_config(Some(config))
        .set_rootfs(layers);
    Ok(canon::to_vec(&document)?)
}

/// The digest of the image's config.
pub fn config_digest(image: &Image) -> Result<Digest, Error> {
    config_json(image).map(Digest::of)
}

/// Puts the image's config, manifest and compressed layers in the store.
pub fn manifest(
    store: &Store,
    image: &Image,
    compressor: Compressor,
    cancel: &Cancel,
) -> Result<ImageDigests, Error> {
    let layers = image
        .layers
        .iter()
        .map(|layer| compress(store, layer, compressor, cancel))
        .collect::<Result<Vec<_>, _>>()?;
    let config = config_json(image)?;
    let manifest = manifest_json(&config, &layers)?;
    Ok(ImageDigests {
        config: store.put_blob(&config)?,
        manifest: store.put_blob(&manifest)?,
        manifest_size: manifest.len() as u64,
        layers,
    })
}

/// The manifest over a config and layers, canonical.
pub fn manifest_json(config: &[u8], layers: &[Blob]) -> Result<Vec<u8>, Error> {
    let size = config.len() as u64;
    let layers = layers
        .iter()
        .map(|blob| descriptor(MediaType::from(blob.media_type.as_str()), blob.size, &blob.digest))
        .collect::<Vec<_>>();
    let document = ImageManifestBuilder::default()
        .schema_version(2_u32)
        .media_type(MediaType::ImageManifest)
        .config(descriptor(MediaType::ImageConfig, size, &Digest::of(config)))
        .layers(layers)
        .build()
        .expect("every required field is set");
    Ok(canon::to_vec(&document)?)
}

pub(super) fn architecture(arch: Arch) -> OciArch {
    match arch {
        Arch::Amd64 => OciArch::Amd64,
        Arch::Arm64 => OciArch::ARM64,
    }
}

pub(super) fn descriptor(media_type: MediaType, size: u64, digest: &Digest) -> Descriptor {
    let digest: Sha256Digest = digest.hex().parse().expect("64 lower-case hex digits");
    Descriptor::new(media_type, size, digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{ImageConfig, Layer};

    fn image() -> Image {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        Image {
            key: Digest::of("key"),
            arch: Arch::Amd64,
            layers: vec![Layer { diff_id: Digest::of("layer"), size: 1024 }],
            config: ImageConfig {
                env: [pair("PATH", "/bin"), pair("A", "b")].into(),
                working_dir: "/testbed".to_owned(),
                user: "0:0".to_owned(),
                command: vec!["/bin/bash".to_owned()],
                labels: [pair("z", "1"), pair("a", "2")].into(),
            },
            created: 315_532_800,
        }
    }

    #[test]
    fn documents_are_canonical_and_complete() {
        let config = config_json(&image()).unwrap();
        let layer = Digest::of("layer");
        let expected = format!(
            r#"{{"architecture":"amd64","config":{{"Cmd":["/bin/bash"],"Env":["A=b","PATH=/bin"],"Labels":{{"a":"2","z":"1"}},"User":"0:0","WorkingDir":"/testbed"}},"created":"1980-01-01T00:00:00Z","os":"linux","rootfs":{{"diff_ids":["{layer}"],"type":"layers"}}}}"#
        );
        assert_eq!(String::from_utf8(config.clone()).unwrap(), expected);
        let blob = Blob {
            digest: layer,
            size: 5,
            media_type: Compressor::default().media_type().to_owned(),
            compressor: Some(Compressor::default().record()),
        };
        let digest = Digest::of(&config);
        let size = config.len();
        let expected = format!(
            r#"{{"config":{{"digest":"{digest}","mediaType":"application/vnd.oci.image.config.v1+json","size":{size}}},"layers":[{{"digest":"{layer}","mediaType":"application/vnd.oci.image.layer.v1.tar+zstd","size":5}}],"mediaType":"application/vnd.oci.image.manifest.v1+json","schemaVersion":2}}"#
        );
        assert_eq!(String::from_utf8(manifest_json(&config, &[blob]).unwrap()).unwrap(), expected);
    }

    #[test]
    fn the_key_is_no_part_of_the_config() {
        let other = Image { key: Digest::of("other"), ..image() };
        assert_eq!(config_digest(&other).unwrap(), config_digest(&image()).unwrap());
        let undated = Image { created: i64::MAX, ..image() };
        assert!(matches!(config_digest(&undated), Err(Error::Date { .. })));
    }
}
