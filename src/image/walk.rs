//! Walks a tree in the order of its archive: bytewise by path, folders with a `/` at their end.
//!
//! A depth-first walk whose siblings are sorted by name, folders by name and `/`, gives just that order, so
//! nothing but the open levels is kept in memory. Files are reached from the root's descriptor and symlinks never
//! followed; one descriptor is open at a time, however deep the tree.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, openat, statat};

use super::Error;
use super::entry::WHITEOUT;
use super::error::Problem;

/// The longest path that a system call takes.
const PATH_MAX: usize = 4095;

/// What `stat` says, in types that do not differ between systems.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meta {
    pub(super) file_type: FileType,
    /// The low twelve bits.
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) size: u64,
    pub(super) mtime: i64,
    pub(super) nanoseconds: u64,
    /// Device and inode.
    pub(super) identity: (u64, u64),
    pub(super) links: u64,
    pub(super) device: u64,
}

impl Meta {
    #[allow(
        clippy::allow_attributes,
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        clippy::cast_lossless,
        clippy::cast_possible_wrap,
        reason = "the field types differ between systems, and sizes and nanoseconds are never negative"
    )]
    pub(super) fn new(stat: &Stat) -> Self {
        Self {
            file_type: FileType::from_raw_mode(stat.st_mode),
            mode: stat.st_mode as u32 & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            size: stat.st_size as u64,
            mtime: stat.st_mtime as i64,
            nanoseconds: stat.st_mtime_nsec as u64,
            identity: (stat.st_dev as u64, stat.st_ino as u64),
            links: stat.st_nlink as u64,
            device: stat.st_rdev as u64,
        }
    }

    /// Overlayfs' mark of a deleted file: a character device 0:0.
    pub(super) fn is_whiteout(&self) -> bool {
        self.file_type == FileType::CharacterDevice && self.device == 0
    }

    pub(super) fn is_directory(&self) -> bool {
        self.file_type == FileType::Directory
    }
}

/// One stop of the walk.
#[derive(Debug)]
pub(super) enum Step {
    /// A folder, before anything in it, or anything else.
    Enter(Vec<u8>, Meta),
    /// A folder, after everything in it.
    Leave(Vec<u8>, Meta),
}

#[derive(Debug)]
struct Level {
    path: Vec<u8>,
    meta: Meta,
    /// Sorted, the first one last.
    children: Vec<(Vec<u8>, Meta)>,
}

/// The walk: an iterator of [`Step`]s that ends after the root's `Leave`.
pub(super) struct Walk<'a> {
    root: &'a OwnedFd,
    levels: Vec<Level>,
    started: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(root: &'a OwnedFd) -> Self {
        Self { root, levels: Vec::new(), started: false }
    }

    fn enter(&mut self, path: Vec<u8>, meta: Meta) -> Result<Step, Error> {
        if meta.is_directory() {
            let children = children(self.root, &path)?;
            self.levels.push(Level { path: path.clone(), meta, children });
        }
        Ok(Step::Enter(path, meta))
    }

    fn step(&mut self) -> Result<Option<Step>, Error> {
        if !self.started {
            self.started = true;
            let meta = rustix::fs::fstat(self.root).map_err(|e| Error::entry("read", b"", e))?;
            return self.enter(Vec::new(), Meta::new(&meta)).map(Some);
        }
        let Some(level) = self.levels.last_mut() else { return Ok(None) };
        let Some((name, meta)) = level.children.pop() else {
            let level = self.levels.pop().expect("there is a last one");
            return Ok(Some(Step::Leave(level.path, level.meta)));
        };
        let path = joined(&level.path, &name);
        if path.len() > PATH_MAX {
            return Err(Error::tree(&path, Problem::TooLong));
        }
        self.enter(path, meta).map(Some)
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<Step, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

/// Opens a folder of the tree; an empty path is the root.
pub(super) fn open_folder(root: &OwnedFd, path: &[u8]) -> Result<OwnedFd, Error> {
    let name = if path.is_empty() { b"." } else { path };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(root, name, flags, Mode::empty()).map_err(|e| Error::entry("open", path, e))
}

/// `name` in the folder `path`.
pub(super) fn joined(path: &[u8], name: &[u8]) -> Vec<u8> {
    if path.is_empty() { name.to_vec() } else { [path, b"/", name].concat() }
}

/// The entries of a folder, the last one first.
fn children(root: &OwnedFd, path: &[u8]) -> Result<Vec<(Vec<u8>, Meta)>, Error> {
    let folder = open_folder(root, path)?;
    let mut children = Vec::new();
    for entry in Dir::read_from(&folder).map_err(|e| Error::entry("list", path, e))? {
        let entry = entry.map_err(|e| Error::entry("list", path, e))?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let stat = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|e| Error::entry("read", &joined(path, name), e))?;
        let meta = Meta::new(&stat);
        let mut key = Vec::with_capacity(name.len() + WHITEOUT.len() + 1);
        if meta.is_whiteout() {
            key.extend_from_slice(WHITEOUT);
        }
        key.extend_from_slice(name);
        if meta.is_directory() {
            key.push(b'/');
        }
        children.push((key, name.to_vec(), meta));
    }
    children.sort_unstable_by(|a, b| b.0.cmp(&a.0));
    Ok(children.into_iter().map(|(_, name, meta)| (name, meta)).collect())
}
