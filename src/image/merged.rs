//! The root filesystem of an image, merged from its unpacked layers without a mount: what overlayfs would show.
//!
//! Symlinks are entries, never followed. Order is that of archives: bytewise by path, folders with a `/` at their end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, statat};
use rustix::io::Errno;

use super::attributes;
use super::commit::ensure_unpacked;
use super::tree::open_root;
use super::walk::{Meta, joined, open_folder};
use super::{Error, Layer};
use crate::base::{Cancel, Store};

/// Layers seen as one tree.
#[derive(Debug)]
pub struct Merged {
    /// Bottom first.
    layers: Vec<(PathBuf, OwnedFd)>,
}

/// What an entry of the merged tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A folder.
    Directory,
    /// A regular file.
    File,
    /// A symlink.
    Symlink,
    /// A fifo.
    Fifo,
}

/// One entry of the merged tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedEntry {
    /// From the root, relative; empty for the root itself.
    pub path: PathBuf,
    /// The index of the layer that it comes from, the bottom one being 0.
    pub layer: usize,
    /// Where it is on this host.
    pub location: PathBuf,
    /// What it is.
    pub kind: EntryKind,
    /// The low twelve mode bits.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Seconds since 1970.
    pub mtime: i64,
    /// Length of a file.
    pub size: u64,
}

/// Unpacks the layers where needed and shows them as one tree.
pub fn merged(store: &Store, layers: &[Layer], cancel: &Cancel) -> Result<Merged, Error> {
    let layers = layers
        .iter()
        .map(|layer| {
            let path = ensure_unpacked(store, layer, cancel)?;
            let root = open_root(&path)?;
            Ok((path, root))
        })
        .collect::<Result<Vec<_>, Error>>()?;
    Ok(Merged { layers })
}

/// An entry and, for a folder, the layers that show in it, topmost first.
#[derive(Debug)]
struct Found {
    path: Vec<u8>,
    meta: Meta,
    layers: Vec<usize>,
}

/// A name while the layers are looked through from the top.
#[derive(Debug)]
struct Candidate {
    meta: Meta,
    layers: Vec<usize>,
    /// Whether lower layers may still add to it.
    open: bool,
}

impl Merged {
    /// The entry at `path` (with or without a leading `/`), if the image has it.
    pub fn lookup(&self, path: &Path) -> Result<Option<MergedEntry>, Error> {
        Ok(self.find(path)?.map(|found| self.entry(&found)))
    }

    /// All entries at and below `path`, each folder before what is in it. Nothing when there is no such path.
    pub fn walk(&self, path: &Path) -> Result<MergedWalk<'_>, Error> {
        Ok(MergedWalk { merged: self, stack: self.find(path)?.into_iter().collect() })
    }

    fn find(&self, path: &Path) -> Result<Option<Found>, Error> {
        let parts = path.as_os_str().as_bytes().split(|byte| *byte == b'/');
        let Some(mut found) = self.root()? else { return Ok(None) };
        for name in parts.filter(|part| !part.is_empty()) {
            if !found.meta.is_directory() {
                return Ok(None);
            }
            let mut candidate = None;
            let path = joined(&found.path, name);
            for layer in &found.layers {
                match statat(&self.layers[*layer].1, &path, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => self.add(&mut candidate, *layer, &path, Meta::new(&stat))?,
                    Err(Errno::NOENT) => {}
                    Err(errno) => return Err(Error::entry("read", &path, errno)),
                }
            }
            match candidate.filter(|candidate| !candidate.meta.is_whiteout()) {
                Some(Candidate { meta, layers, .. }) => found = Found { path, meta, layers },
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }

    fn root(&self) -> Result<Option<Found>, Error> {
        let mut candidate = None;
        for (index, (_, root)) in self.layers.iter().enumerate().rev() {
            let stat = rustix::fs::fstat(root).map_err(|e| Error::entry("read", b"", e))?;
            self.add(&mut candidate, index, b"", Meta::new(&stat))?;
        }
        Ok(candidate.map(|Candidate { meta, layers, .. }| Found { path: Vec::new(), meta, layers }))
    }

    /// What a lower layer adds to what the layers above it said of a path.
    fn add(
        &self,
        candidate: &mut Option<Candidate>,
        layer: usize,
        path: &[u8],
        meta: Meta,
    ) -> Result<(), Error> {
        let candidate = match candidate {
            None => candidate.insert(Candidate { meta, layers: vec![layer], open: true }),
            Some(candidate) if !candidate.open => return Ok(()),
            Some(candidate) if meta.is_directory() => {
                candidate.layers.push(layer);
                candidate
            }
            Some(candidate) => {
                candidate.open = false;
                return Ok(());
            }
        };
        candidate.open = meta.is_directory();
        if candidate.open {
            let folder = open_folder(&self.layers[layer].1, path)?;
            let found = attributes::read(&folder)
                .map_err(|e| Error::entry("read attributes of", path, e))?;
            candidate.open = !found.opaque;
        }
        Ok(())
    }

    /// The entries of a folder, sorted.
    fn children(&self, folder: &Found) -> Result<Vec<Found>, Error> {
        let mut names: BTreeMap<Vec<u8>, Option<Candidate>> = BTreeMap::new();
        for layer in &folder.layers {
            let open = open_folder(&self.layers[*layer].1, &folder.path)?;
            for entry in Dir::read_from(&open).map_err(|e| Error::entry("list", &folder.path, e))? {
                let entry = entry.map_err(|e| Error::entry("list", &folder.path, e))?;
                let name = entry.file_name().to_bytes();
                if name == b"." || name == b".." {
                    continue;
                }
                let path = joined(&folder.path, name);
                let stat = statat(&open, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_err(|e| Error::entry("read", &path, e))?;
                let candidate = names.entry(name.to_vec()).or_default();
                self.add(candidate, *layer, &path, Meta::new(&stat))?;
            }
        }
        let mut children: Vec<(Vec<u8>, Found)> = names
            .into_iter()
            .filter_map(|(name, candidate)| {
                let Candidate { meta, layers, .. } =
                    candidate.filter(|candidate| !candidate.meta.is_whiteout())?;
                let path = joined(&folder.path, &name);
                let mut key = name;
                if meta.is_directory() {
                    key.push(b'/');
                }
                Some((key, Found { path, meta, layers }))
            })
            .collect();
        children.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(children.into_iter().map(|(_, child)| child).collect())
    }

    fn entry(&self, found: &Found) -> MergedEntry {
        let path = PathBuf::from(OsString::from_vec(found.path.clone()));
        let layer = found.layers[0];
        let meta = &found.meta;
        MergedEntry {
            location: self.layers[layer].0.join(&path),
            path,
            layer,
            kind: match meta.file_type {
                FileType::Directory => EntryKind::Directory,
                FileType::Symlink => EntryKind::Symlink,
                FileType::Fifo => EntryKind::Fifo,
                // Layers hold no other types.
                _ => EntryKind::File,
            },
            mode: meta.mode,
            uid: meta.uid,
            gid: meta.gid,
            mtime: meta.mtime,
            size: if meta.file_type == FileType::RegularFile { meta.size } else { 0 },
        }
    }
}

/// An iterator over a part of a merged tree.
#[derive(Debug)]
pub struct MergedWalk<'a> {
    merged: &'a Merged,
    /// What comes next is last.
    stack: Vec<Found>,
}

impl Iterator for MergedWalk<'_> {
    type Item = Result<MergedEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.stack.pop()?;
        if found.meta.is_directory() {
            match self.merged.children(&found) {
                Ok(children) => self.stack.extend(children.into_iter().rev()),
                Err(error) => {
                    self.stack.clear();
                    return Some(Err(error));
                }
            }
        }
        Some(Ok(self.merged.entry(&found)))
    }
}
