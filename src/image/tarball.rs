//! A set of images as one tar file that is never made whole: it is planned first, so that every size is known, then written
//! from the store to wherever it goes.
//!
//! ```text
//! blobs/sha256/<hex>   configs and layers; manifests where there is an index
//! index.json           the OCI index; image names are annotations     \ not in what is sent to a daemon
//! manifest.json        what `docker load` reads: [{Config, RepoTags, Layers}]
//! oci-layout           {"imageLayoutVersion":"1.0.0"}                  /
//! ```
//!
//! Entries are sorted, belong to 0:0 and have no date: the bytes depend on the images, their names and the compressor
//! alone. Written here and not by an archive crate, since the headers are those of our layers ([`super::entry`]).

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};

use oci_spec::distribution::Reference;
use oci_spec::image::ANNOTATION_REF_NAME;
use serde::Serialize;

use super::blob::{Blob, any, compress, open};
use super::compressor::Compressor;
use super::entry::{BLOCK, Entry, Kind, padding};
use super::layout::{index, layout_name, marker};
use super::oci::{ImageDigests, config_json, manifest};
use super::{Error, Image, Layer};
use crate::base::progress::Task;
use crate::base::{Cancel, Digest, SharedReporter, Store, canon};

/// containerd's annotation of a full image name; its importers (`ctr`, newer Docker, Podman) prefer it.
const FULL_NAME: &str = "io.containerd.image.name";

/// An image and the name it gets.
#[derive(Debug, Clone, Copy)]
pub struct NamedImage<'a> {
    /// A repository and a tag, as `docker tag` takes them.
    pub name: &'a str,
    /// The image.
    pub image: &'a Image,
}

/// A planned tar file.
#[derive(Debug)]
pub struct Tarball {
    /// By path.
    files: BTreeMap<String, Content>,
}

/// What a file of it holds.
#[derive(Debug)]
enum Content {
    Bytes(Vec<u8>),
    /// A blob of the store, as it is.
    Blob {
        digest: Digest,
        size: u64,
        layer: bool,
    },
    /// A layer, uncompressed.
    Layer(Layer),
}

/// An image in `manifest.json`.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct DockerImage {
    config: String,
    repo_tags: Vec<String>,
    layers: Vec<String>,
}

impl Tarball {
    /// An archive for every reader: an OCI layout that `docker load` takes as well, and the digests that each image
    /// has in it. Puts the compressed layers in the store.
    pub fn hybrid(
        store: &Store,
        images: &[NamedImage<'_>],
        compressor: Compressor,
        cancel: &Cancel,
    ) -> Result<(Self, Vec<ImageDigests>), Error> {
        let mut files = BTreeMap::new();
        let (mut listed, mut entries, mut written) = (Vec::new(), Vec::new(), Vec::new());
        for NamedImage { name, image } in images {
            let reference =
                Reference::try_from(*name).map_err(|_| Error::Name { name: (*name).to_owned() })?;
            let digests = manifest(store, image, compressor, cancel)?;
            let layers: Vec<String> =
                digests.layers.iter().map(|layer| blob_path(&layer.digest)).collect();
            for layer in &digests.layers {
                let Blob { digest, size, .. } = *layer;
                files.insert(blob_path(&digest), Content::Blob { digest, size, layer: true });
            }
            let config = config_json(image)?;
            files.insert(blob_path(&digests.config), Content::Bytes(config));
            let (digest, size) = (digests.manifest, digests.manifest_size);
            files.insert(blob_path(&digest), Content::Blob { digest, size, layer: false });
            let annotations = [
                (ANNOTATION_REF_NAME.to_owned(), layout_name(name)?),
                (FULL_NAME.to_owned(), reference.whole()),
            ];
            entries.push(super::layout::entry(image, &digests, annotations.into()));
            listed.push(DockerImage {
                config: blob_path(&digests.config),
                repo_tags: vec![(*name).to_owned()],
                layers,
            });
            written.push(digests);
        }
        files.insert("index.json".to_owned(), Content::Bytes(index(entries)?));
        files.insert("oci-layout".to_owned(), Content::Bytes(marker()?));
        files.insert("manifest.json".to_owned(), Content::Bytes(canon::to_vec(&listed)?));
        Ok((Self { files }, written))
    }

    /// What a Docker daemon is sent to have these images: of their layers those whose diff IDs are in `send`, since it has
    /// the others. They are not compressed: it would only have to undo that.
    pub fn for_daemon(
        store: &Store,
        images: &[NamedImage<'_>],
        send: &BTreeSet<Digest>,
        cancel: &Cancel,
    ) -> Result<Self, Error> {
        let mut files = BTreeMap::new();
        let mut listed = Vec::new();
        for NamedImage { name, image } in images {
            for layer in image.layers.iter().filter(|layer| send.contains(&layer.diff_id)) {
                if any(store, &layer.diff_id)?.is_none() {
                    compress(store, layer, Compressor::default(), cancel)?;
                }
                files.insert(blob_path(&layer.diff_id), Content::Layer(*layer));
            }
            let config = config_json(image)?;
            let config_path = blob_path(&Digest::of(&config));
            files.insert(config_path.clone(), Content::Bytes(config));
            listed.push(DockerImage {
                config: config_path,
                repo_tags: vec![(*name).to_owned()],
                layers: image.layers.iter().map(|layer| blob_path(&layer.diff_id)).collect(),
            });
        }
        files.insert("manifest.json".to_owned(), Content::Bytes(canon::to_vec(&listed)?));
        Ok(Self { files })
    }

    /// Number of layers and their bytes as they are in the file.
    pub fn layers(&self) -> (usize, u64) {
        let layers = self.files.values().filter(|content| content.is_layer());
        layers.fold((0, 0), |(count, bytes), layer| (count + 1, bytes + layer.size()))
    }

    /// Writes it all and returns the number of bytes. Every blob's digest is checked on the way: what was written is whole
    /// only when this returns well.
    pub fn write(
        &self,
        store: &Store,
        out: &mut impl Write,
        reporter: &SharedReporter,
        cancel: &Cancel,
    ) -> Result<u64, Error> {
        let mut written = 0;
        let mut folders = BTreeSet::new();
        for (path, content) in &self.files {
            for (at, _) in path.match_indices('/') {
                if folders.insert(&path[..at]) {
                    written += put(out, &header(&path[..at], Kind::Directory, 0o755)?)?;
                }
            }
            let size = content.size();
            written += put(out, &header(path, Kind::File { size }, 0o644)?)?;
            let task = content.is_layer().then(|| {
                let hex = path.rsplit('/').next().unwrap_or_default();
                Task::start(reporter, "layer", hex.get(..12).unwrap_or(hex), Some(size))
            });
            let mut source = content.open(store)?;
            let mut buffer = vec![0; 128 << 10];
            let mut left = size;
            loop {
                cancel.check()?;
                // One byte more than promised is asked for, so that the end of the source (and its check) is seen.
                let count = source.read(&mut buffer)?;
                if count == 0 {
                    break;
                }
                left =
                    left.checked_sub(count as u64).ok_or_else(|| wrong_size(path, size, None))?;
                out.write_all(&buffer[..count])?;
                if let Some(task) = &task {
                    task.advance(count as u64);
                }
            }
            if left > 0 {
                return Err(wrong_size(path, size, Some(size - left)));
            }
            written += size + put(out, &vec![0; padding(size)])?;
            if let Some(task) = task {
                task.done();
            }
        }
        written += put(out, &[0; 2 * BLOCK])?;
        out.flush()?;
        Ok(written)
    }
}

impl Content {
    fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Blob { size, .. } => *size,
            Self::Layer(layer) => layer.size,
        }
    }

    fn is_layer(&self) -> bool {
        match self {
            Self::Bytes(_) => false,
            Self::Blob { layer, .. } => *layer,
            Self::Layer(_) => true,
        }
    }

    fn open<'a>(&'a self, store: &Store) -> Result<Box<dyn Read + 'a>, Error> {
        Ok(match self {
            Self::Bytes(bytes) => Box::new(&bytes[..]),
            Self::Blob { digest, .. } => Box::new(store.open_blob(digest)?),
            Self::Layer(layer) => {
                let blob = any(store, &layer.diff_id)?
                    .ok_or(Error::MissingLayer { diff_id: layer.diff_id })?;
                open(store, &blob)?
            }
        })
    }
}

fn blob_path(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

fn header(path: &str, kind: Kind, mode: u32) -> Result<Vec<u8>, Error> {
    let entry = Entry {
        path: path.as_bytes().to_owned(),
        kind,
        mode,
        uid: 0,
        gid: 0,
        mtime: 0,
        attributes: BTreeMap::new(),
    };
    let mut bytes = Vec::new();
    entry.encode(&mut bytes)?;
    Ok(bytes)
}

fn put(out: &mut impl Write, bytes: &[u8]) -> io::Result<u64> {
    out.write_all(bytes)?;
    Ok(bytes.len() as u64)
}

/// A file of the store that is longer than promised, or has `actual` bytes.
fn wrong_size(path: &str, expected: u64, actual: Option<u64>) -> Error {
    Error::Base(crate::base::Error::SizeMismatch {
        name: path.to_owned(),
        expected,
        actual: actual.unwrap_or(expected),
        more: actual.is_none(),
    })
}
