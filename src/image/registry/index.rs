//! An index that names one image for each platform, kept up by machines of different platforms.

use oci_spec::image::{ImageIndexBuilder, MediaType, Os, PlatformBuilder};

use super::Error;
use super::document::{fits, read_index};
use crate::base::{Arch, canon};
use crate::image::oci::{ImageDigests, architecture, descriptor};
use crate::net::registry::Document;

/// The index with this image in it and, of `before`, the images for other platforms. A single image that had the name before is
/// not kept: it does not say what it is for.
pub(super) fn with_image(
    name: &str,
    before: Option<&Document>,
    arch: Arch,
    digests: &ImageDigests,
) -> Result<Document, Error> {
    let mut manifests = Vec::new();
    if let Some(before) = before
        && let Some(index) = read_index(name, &before.bytes, &before.media_type)?
    {
        let others =
            index.manifests().iter().filter(|entry| !fits(entry.platform().as_ref(), arch));
        manifests.extend(others.cloned());
    }
    let platform = PlatformBuilder::default()
        .architecture(architecture(arch))
        .os(Os::Linux)
        .build()
        .expect("every required field is set");
    let mut own = descriptor(MediaType::ImageManifest, digests.manifest_size, &digests.manifest);
    own.set_platform(Some(platform));
    manifests.push(own);
    manifests.sort_by_key(|entry| {
        let platform = entry.platform().as_ref();
        platform.map(|platform| (platform.os().to_string(), platform.architecture().to_string()))
    });
    let index = ImageIndexBuilder::default()
        .schema_version(2_u32)
        .media_type(MediaType::ImageIndex)
        .manifests(manifests)
        .build()
        .expect("every required field is set");
    let bytes = canon::to_vec(&index)?;
    let digest = crate::base::Digest::of(&bytes);
    Ok(Document { bytes, digest, media_type: MediaType::ImageIndex.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Digest;

    fn digests(name: &str) -> ImageDigests {
        ImageDigests {
            config: Digest::of("config"),
            manifest: Digest::of(name),
            manifest_size: 10,
            layers: Vec::new(),
        }
    }

    #[test]
    fn other_platforms_stay_and_the_order_is_fixed() {
        let first = with_image("x", None, Arch::Arm64, &digests("arm")).unwrap();
        let both = with_image("x", Some(&first), Arch::Amd64, &digests("amd")).unwrap();
        let other = with_image("x", None, Arch::Amd64, &digests("amd")).unwrap();
        assert_eq!(both, with_image("x", Some(&other), Arch::Arm64, &digests("arm")).unwrap());
        assert_eq!(both, with_image("x", Some(&both), Arch::Amd64, &digests("amd")).unwrap());
        let renewed = with_image("x", Some(&both), Arch::Amd64, &digests("new")).unwrap();
        let text = String::from_utf8(renewed.bytes).unwrap();
        for (name, held) in [("new", true), ("arm", true), ("amd", false)] {
            assert_eq!(text.contains(&Digest::of(name).hex()), held, "{name}");
        }
    }
}
