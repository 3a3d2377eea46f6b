//! A tree in scratch becomes a layer of the store.

use std::path::{Path, PathBuf};

use super::blob::{self, pack_tree};
use super::compressor::Compressor;
use super::pack::Disk;
use super::rules::PackRules;
use super::tree::{open_root, remove_tree};
use super::unpack::{Limits, unpack_layer};
use super::{Error, Layer};
use crate::base::{Cancel, Digest, Store, canon};

/// Makes a layer of a tree (a plain folder or an upper dir of overlayfs) and takes the tree: it is brought to the
/// normal form and moved to its place among the unpacked layers, or removed when that layer is there already, or
/// when this fails. In the same pass the layer's blob is made by the default compressor.
#[expect(clippy::needless_pass_by_value, reason = "the tree is gone afterwards")]
pub fn commit_tree(
    store: &Store,
    tree: PathBuf,
    rules: &PackRules,
    cancel: &Cancel,
) -> Result<Layer, Error> {
    let result = commit(store, &tree, rules, cancel);
    if result.is_err()
        && let Err(error) = remove_tree(&tree)
    {
        tracing::debug!(tree = %tree.display(), %error, "cannot remove a tree that made no layer");
    }
    result
}

fn commit(store: &Store, tree: &Path, rules: &PackRules, cancel: &Cancel) -> Result<Layer, Error> {
    let root = open_root(tree)?;
    let (layer, _) =
        pack_tree(store, &root, rules, Disk::Normalise, Compressor::default(), cancel)?;
    drop(root);
    if !place(tree, &store.layer_path(&layer.diff_id))? {
        // Scratch and store are on different filesystems: unpack what was just packed.
        unpack_to_store(store, &layer, cancel)?;
        remove_tree(tree)?;
    }
    Ok(layer)
}

/// The folder of the unpacked layer, which is made from the layer's blob when it is gone.
pub fn ensure_unpacked(store: &Store, layer: &Layer, cancel: &Cancel) -> Result<PathBuf, Error> {
    let path = store.layer_path(&layer.diff_id);
    if !path.exists() {
        let _lock = store.lock_step(&canon::digest(&("image.unpack", layer.diff_id))?, cancel)?;
        if !path.exists() {
            unpack_to_store(store, layer, cancel)?;
        }
    }
    Ok(path)
}

/// Makes a layer of an archive from outside that is in the store as a blob, compressed or not.
pub fn import_layer(store: &Store, blob: &Digest, cancel: &Cancel) -> Result<Layer, Error> {
    let folder = new_folder(store)?;
    let mut reader = blob::decompressed(store.open_blob(blob)?)?;
    let layer = unpack_layer(&mut reader, folder.path(), &Limits::default(), cancel)?;
    let size = fs_err::metadata(store.blob_path(blob)).map_err(crate::base::Error::from)?.len();
    let path = store.blob_path(blob);
    let media_type = blob::media_type_of(&path)?.to_owned();
    let record = blob::Blob { digest: *blob, size, media_type, compressor: None };
    blob::remember(store, &layer.diff_id, None, &record)?;
    place(folder.path(), &store.layer_path(&layer.diff_id))?;
    Ok(layer)
}

fn unpack_to_store(store: &Store, layer: &Layer, cancel: &Cancel) -> Result<(), Error> {
    let missing = || Error::MissingLayer { diff_id: layer.diff_id };
    let blob = blob::any(store, &layer.diff_id)?.ok_or_else(missing)?;
    let folder = new_folder(store)?;
    let mut reader = blob::open(store, &blob)?;
    let limits = Limits { bytes: layer.size, ..Limits::default() };
    let made = unpack_layer(&mut reader, folder.path(), &limits, cancel)?;
    if made.diff_id != layer.diff_id {
        return Err(Error::LayerMismatch { expected: layer.diff_id, actual: made.diff_id });
    }
    place(folder.path(), &store.layer_path(&layer.diff_id))?;
    Ok(())
}

/// A folder beside the unpacked layers, so that it can be renamed to one.
fn new_folder(store: &Store) -> Result<tempfile::TempDir, Error> {
    let layers = store.root().join("layers");
    Ok(tempfile::Builder::new().prefix(".tmp-").tempdir_in(layers)?)
}

/// Renames a whole tree to its place; removes it when the place is taken. `false` when it lies on another
/// filesystem.
fn place(tree: &Path, path: &Path) -> Result<bool, Error> {
    use std::io::ErrorKind::{AlreadyExists, CrossesDevices, DirectoryNotEmpty};
    match fs_err::rename(tree, path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == CrossesDevices => Ok(false),
        Err(error) if matches!(error.kind(), AlreadyExists | DirectoryNotEmpty) => {
            remove_tree(tree)?;
            Ok(true)
        }
        Err(error) => Err(Error::Base(error.into())),
    }
}
