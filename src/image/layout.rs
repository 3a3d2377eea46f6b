//! Images as an OCI image layout on disk.
//!
//! ```text
//! <folder>/
//!   oci-layout               {"imageLayoutVersion":"1.0.0"}
//!   index.json               one manifest per image, named by org.opencontainers.image.ref.name
//!   blobs/sha256/<hex>       layers, configs, manifests: linked from the store, or copied
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use oci_spec::image::{
    ANNOTATION_REF_NAME, Descriptor, ImageIndexBuilder, MediaType, OciLayoutBuilder, Os,
    PlatformBuilder,
};

use super::compressor::Compressor;
use super::oci::{ImageDigests, architecture, descriptor, manifest};
use super::{Error, Image};
use crate::base::files::{AtomicFile, write_atomic};
use crate::base::{Cancel, Digest, Store, canon};

/// The file that says that a folder is a layout.
const MARKER: &str = "oci-layout";

/// Writes images to a layout in `folder`, which must be empty, absent or a layout; there, blobs are added
/// and the index is replaced. The index comes last, so a layout is whole whenever it has one.
pub fn write(
    store: &Store,
    images: &[(&str, &Image)],
    folder: &Path,
    compressor: Compressor,
    cancel: &Cancel,
) -> Result<Vec<ImageDigests>, Error> {
    if let Some((name, _)) = images.iter().find(|(name, _)| !is_name(name)) {
        return Err(Error::Name { name: (*name).to_owned() });
    }
    check_folder(folder)?;
    fs_err::create_dir_all(folder)?;
    write_atomic(&folder.join(MARKER), &marker()?)?;
    let mut written = Vec::new();
    let mut descriptors = Vec::new();
    for (name, image) in images {
        let digests = manifest(store, image, compressor, cancel)?;
        let layers = digests.layers.iter().map(|blob| blob.digest);
        for digest in layers.chain([digests.config, digests.manifest]) {
            cancel.check()?;
            put_blob(store, &digest, folder)?;
        }
        let names = [(ANNOTATION_REF_NAME.to_owned(), (*name).to_owned())].into();
        descriptors.push(entry(image, &digests, names));
        written.push(digests);
    }
    write_atomic(&folder.join("index.json"), &index(descriptors)?)?;
    Ok(written)
}

/// Whether [`write()`] would take this folder.
pub fn check_folder(folder: &Path) -> Result<(), Error> {
    let taken = folder.exists() && !folder.join(MARKER).exists();
    if taken && (!folder.is_dir() || fs_err::read_dir(folder)?.next().is_some()) {
        return Err(Error::NotALayout { path: folder.to_owned() });
    }
    Ok(())
}

/// The file `oci-layout`.
pub(super) fn marker() -> Result<Vec<u8>, Error> {
    let version = OciLayoutBuilder::default()
        .image_layout_version("1.0.0")
        .build()
        .expect("every required field is set");
    Ok(canon::to_vec(&version)?)
}

/// An image in `index.json`.
pub(super) fn entry(
    image: &Image,
    digests: &ImageDigests,
    annotations: BTreeMap<String, String>,
) -> Descriptor {
    let platform = PlatformBuilder::default()
        .architecture(architecture(image.arch))
        .os(Os::Linux)
        .build()
        .expect("every required field is set");
    let size = digests.manifest_size;
    let mut entry = descriptor(MediaType::ImageManifest, size, &digests.manifest);
    entry.set_platform(Some(platform));
    entry.set_annotations(Some(annotations.into_iter().collect()));
    entry
}

/// The file `index.json`.
pub(super) fn index(entries: Vec<Descriptor>) -> Result<Vec<u8>, Error> {
    let index = ImageIndexBuilder::default()
        .schema_version(2_u32)
        .media_type(MediaType::ImageIndex)
        .manifests(entries)
        .build()
        .expect("every required field is set");
    Ok(canon::to_vec(&index)?)
}

/// A name as a layout can hold it: the grammar of reference names has no `__` (OCI image specification, annotations.md).
pub(super) fn layout_name(name: &str) -> Result<String, Error> {
    let name = name.replace("__", "--");
    if is_name(&name) { Ok(name) } else { Err(Error::Name { name }) }
}

/// Links a blob into the layout; copies and checks it where links do not reach.
fn put_blob(store: &Store, digest: &Digest, folder: &Path) -> Result<(), Error> {
    let blobs = folder.join("blobs/sha256");
    fs_err::create_dir_all(&blobs)?;
    let target = blobs.join(digest.hex());
    if target.exists() || fs_err::hard_link(store.blob_path(digest), &target).is_ok() {
        return Ok(());
    }
    let mut file = AtomicFile::new_in(&blobs)?;
    std::io::copy(&mut store.open_blob(digest)?, &mut file)?;
    file.commit(&target)?;
    Ok(())
}

/// The grammar of reference names: components of letters and digits, parted by `-._:@+` or `--`, and joined by `/`
/// (OCI image specification, annotations.md).
fn is_name(name: &str) -> bool {
    let is_component = |component: &str| {
        component
            .replace("--", "-")
            .split(['-', '.', '_', ':', '@', '+'])
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    };
    name.split('/').all(is_component)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_grammar() {
        for name in ["a", "a/b.c:1", "pypi__x".replace("__", "_").as_str(), "a--b", "1.0+x"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "/", "a/", "a..b", "a---b", "-a", "a b", "a\n", "ü", "pypi__x"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
