//! Layers as blobs: compressed archives in the store, each with the record of how it was made.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::chunks::{Chunk, chunks};
use super::compressor::{Compressor, CompressorRecord};
use super::pack::{Disk, pack};
use super::rules::PackRules;
use super::tree::open_root;
use super::{Error, Layer};
use crate::base::{Cancel, Digest, Store, canon};

/// A layer's archive in the store.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub struct Blob {
    /// sha256 of the compressed bytes.
    pub digest: Digest,
    /// Their number.
    pub size: u64,
    /// The OCI media type.
    pub media_type: String,
    /// How it was compressed; nothing for a blob that came from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compressor: Option<CompressorRecord>,
}

/// Under which a blob is remembered. Version 1.
fn key(diff_id: &Digest, compressor: Option<Compressor>) -> Result<Digest, Error> {
    Ok(canon::digest(&("image.blob", 1, diff_id, compressor.map(Compressor::record)))?)
}

/// The blob of a layer, if it was made by this compressor before (or came from outside, for `None`) and is here.
pub(super) fn held(
    store: &Store,
    diff_id: &Digest,
    compressor: Option<Compressor>,
) -> Result<Option<Blob>, Error> {
    Ok(store.step::<Blob>(&key(diff_id, compressor)?).filter(|blob| store.has_blob(&blob.digest)))
}

/// Any blob of a layer.
pub(super) fn any(store: &Store, diff_id: &Digest) -> Result<Option<Blob>, Error> {
    for compressor in [Some(Compressor::default()), Some(Compressor::Gzip { level: 6 }), None] {
        if let Some(blob) = held(store, diff_id, compressor)? {
            return Ok(Some(blob));
        }
    }
    Ok(None)
}

pub(super) fn remember(
    store: &Store,
    diff_id: &Digest,
    compressor: Option<Compressor>,
    blob: &Blob,
) -> Result<(), Error> {
    Ok(store.put_step(&key(diff_id, compressor)?, blob)?)
}

/// The layer's blob by this compressor: from the store, else made from another blob of it or from its unpacked tree.
pub fn compress(
    store: &Store,
    layer: &Layer,
    compressor: Compressor,
    cancel: &Cancel,
) -> Result<Blob, Error> {
    if let Some(blob) = held(store, &layer.diff_id, Some(compressor))? {
        return Ok(blob);
    }
    let key = key(&layer.diff_id, Some(compressor))?;
    let _lock = store.lock_step(&key, cancel)?;
    if let Some(blob) = held(store, &layer.diff_id, Some(compressor))? {
        return Ok(blob);
    }
    let source = any(store, &layer.diff_id)?;
    let tree = store.layer_path(&layer.diff_id);
    let (made, blob) = if let Some(source) = source {
        let mut reader = open(store, &source)?;
        produce(store, compressor, |out| copy(&mut reader, out, cancel))?
    } else if tree.exists() {
        let root = open_root(&tree)?;
        let rules = PackRules::unchanged();
        produce(store, compressor, |out| pack(&root, &rules, Disk::Keep, out, cancel))?
    } else {
        return Err(Error::MissingLayer { diff_id: layer.diff_id });
    };
    if made.diff_id != layer.diff_id {
        return Err(Error::LayerMismatch { expected: layer.diff_id, actual: made.diff_id });
    }
    remember(store, &layer.diff_id, Some(compressor), &blob)?;
    Ok(blob)
}

/// Packs a tree to a blob in one pass: the walk, the archive, both digests and the compression.
pub(super) fn pack_tree(
    store: &Store,
    root: &OwnedFd,
    rules: &PackRules,
    disk: Disk,
    compressor: Compressor,
    cancel: &Cancel,
) -> Result<(Layer, Blob), Error> {
    let (layer, blob) = produce(store, compressor, |out| pack(root, rules, disk, out, cancel))?;
    remember(store, &layer.diff_id, Some(compressor), &blob)?;
    Ok((layer, blob))
}

/// The uncompressed archive of a blob. The blob's own digest is checked at its end.
pub(super) fn open(store: &Store, blob: &Blob) -> Result<Box<dyn Read + Send>, Error> {
    decompressed(store.open_blob(&blob.digest)?)
}

/// Reads through any compression, known by its first bytes.
pub(super) fn decompressed(
    mut reader: impl Read + Send + 'static,
) -> Result<Box<dyn Read + Send>, Error> {
    let mut magic = [0; 4];
    let mut length = 0;
    while length < magic.len() {
        match reader.read(&mut magic[length..])? {
            0 => break,
            count => length += count,
        }
    }
    let whole = io::BufReader::with_capacity(
        128 << 10,
        io::Cursor::new(magic).take(length as u64).chain(reader),
    );
    Ok(if magic == [0x28, 0xb5, 0x2f, 0xfd] {
        Box::new(zstd::Decoder::with_buffer(whole)?)
    } else if magic[..2] == [0x1f, 0x8b] {
        Box::new(flate2::bufread::MultiGzDecoder::new(whole))
    } else {
        Box::new(whole)
    })
}

/// The media type of a layer's archive, known by its first bytes.
pub(super) fn media_type_of(path: &Path) -> Result<&'static str, Error> {
    let mut magic = [0; 4];
    let length = fs_err::File::open(path)?.read(&mut magic)?;
    Ok(match &magic[..length] {
        [0x28, 0xb5, 0x2f, 0xfd] => "application/vnd.oci.image.layer.v1.tar+zstd",
        [0x1f, 0x8b, ..] => "application/vnd.oci.image.layer.v1.tar+gzip",
        _ => "application/vnd.oci.image.layer.v1.tar",
    })
}

fn copy(
    reader: &mut dyn Read,
    out: &mut super::chunks::ChunkWriter,
    cancel: &Cancel,
) -> Result<(), Error> {
    loop {
        cancel.check()?;
        let count = reader.read(out.room()?)?;
        if count == 0 {
            return Ok(());
        }
        out.advance(count);
    }
}

/// Runs `write` beside a hashing thread and the compressor.
fn produce(
    store: &Store,
    compressor: Compressor,
    write: impl FnOnce(&mut super::chunks::ChunkWriter) -> Result<(), Error> + Send,
) -> Result<(Layer, Blob), Error> {
    let mut out = compressor.writer(store.blob_writer()?)?;
    let (mut writer, [to_hash, to_compress]) = chunks::<2>();
    let (written, diff_id, compressed) = std::thread::scope(|scope| {
        let writing = scope.spawn(move || {
            write(&mut writer)?;
            writer.finish().map_err(Error::from)
        });
        let hashing = scope.spawn(move || hash(&to_hash));
        let compressed = (|| {
            for chunk in to_compress {
                out.write_all(chunk.bytes())?;
            }
            Ok::<_, io::Error>(out)
        })();
        let written = writing.join().expect("the writing thread does not panic");
        (written, hashing.join().expect("hashing does not panic"), compressed)
    });
    // When compressing fails, the writer sees a broken pipe: the first cause is the one to tell.
    let out = compressed?;
    let size = written?;
    let (digest, length) = out.finish()?.commit()?;
    let blob = Blob {
        digest,
        size: length,
        media_type: compressor.media_type().to_owned(),
        compressor: Some(compressor.record()),
    };
    Ok((Layer { diff_id, size }, blob))
}

fn hash(chunks: &Receiver<Arc<Chunk>>) -> Digest {
    let mut hasher = Sha256::new();
    for chunk in chunks {
        hasher.update(chunk.bytes());
    }
    Digest::from_bytes(hasher.finalize().into())
}
