//! A tree becomes the bytes of its archive, in one walk.
//!
//! The tree may be a plain folder or an upper dir of overlayfs: a character device 0:0 becomes `.wh.NAME`, an opaque
//! folder gets `.wh..wh..opq` as its first entry, overlayfs' other attributes are dropped. Of several paths of one
//! file the first in order is the file and the others link to it. Holes are written as zeros, sockets
//! skipped, other devices refused.
//!
//! With [`Disk::Normalise`] the tree is brought into the very state that unpacking the archive would give, while it is
//! packed: owners, times, attributes; only whiteouts and opaque marks stay in overlayfs' form.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, chownat, fchmod, fchown,
    futimens, openat, readlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::Error;
use super::attributes::{self, Found};
use super::chunks::ChunkWriter;
use super::entry::{BLOCK, Entry, Kind, OPAQUE, WHITEOUT, padding};
use super::error::Problem;
use super::rules::{Owner, PackRules};
use super::walk::{Meta, Step, Walk, joined};
use crate::base::Cancel;

/// What happens to the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disk {
    /// Nothing.
    Keep,
    /// It becomes what the archive would unpack to.
    Normalise,
}

/// The root's mode, always.
const ROOT_MODE: u32 = 0o755;

struct Packer<'a> {
    root: &'a OwnedFd,
    rules: &'a PackRules,
    disk: Disk,
    out: &'a mut ChunkWriter,
    /// First path of each file that has several.
    links: BTreeMap<(u64, u64), Entry>,
    header: Vec<u8>,
}

/// Writes the archive of the tree at `root`.
pub(super) fn pack(
    root: &OwnedFd,
    rules: &PackRules,
    disk: Disk,
    out: &mut ChunkWriter,
    cancel: &Cancel,
) -> Result<(), Error> {
    let mut packer = Packer { root, rules, disk, out, links: BTreeMap::new(), header: Vec::new() };
    for step in Walk::new(root) {
        cancel.check()?;
        match step? {
            Step::Enter(path, meta) => packer.enter(path, &meta)?,
            Step::Leave(path, meta) => packer.leave(&path, &meta)?,
        }
    }
    // Two empty blocks end an archive.
    packer.header.clear();
    packer.header.resize(2 * BLOCK, 0);
    packer.flush_header()
}

impl Packer<'_> {
    fn enter(&mut self, path: Vec<u8>, meta: &Meta) -> Result<(), Error> {
        if meta.is_whiteout() {
            return self.whiteout(&path, meta);
        }
        let name = path.rsplit(|byte| *byte == b'/').next().expect("a split has a part");
        if name.starts_with(WHITEOUT) {
            return Err(Error::tree(&path, Problem::ReservedName));
        }
        if meta.links > 1
            && !meta.is_directory()
            && let Some(first) = self.links.get(&meta.identity)
        {
            let kind = Kind::HardLink { target: first.path.clone() };
            let link = Entry { path, kind, attributes: BTreeMap::new(), ..first.clone() };
            return self.put(&link);
        }
        match meta.file_type {
            FileType::Directory => self.directory(path, meta),
            FileType::RegularFile => self.file(path, meta),
            FileType::Symlink => {
                let target = readlinkat(self.root, &path, Vec::new())
                    .map_err(|e| Error::entry("read", &path, e))?
                    .into_bytes();
                let entry =
                    Entry { mode: 0o777, ..self.entry(path, Kind::Symlink { target }, meta) };
                self.put_unopened(entry, meta)
            }
            FileType::Fifo => {
                let entry = self.entry(path, Kind::Fifo, meta);
                self.put_unopened(entry, meta)
            }
            FileType::Socket if self.disk == Disk::Normalise => {
                unlinkat(self.root, &path, AtFlags::empty())
                    .map_err(|e| Error::entry("remove", &path, e))
            }
            FileType::Socket => Ok(()),
            FileType::CharacterDevice | FileType::BlockDevice => {
                Err(Error::tree(&path, Problem::Device))
            }
            FileType::Unknown => Err(Error::tree(&path, Problem::Type)),
        }
    }

    /// A folder's time is set when nothing in it changes any more.
    fn leave(&mut self, path: &[u8], meta: &Meta) -> Result<(), Error> {
        if self.disk == Disk::Keep {
            return Ok(());
        }
        let time = self.rules.time(path, false, meta.mtime);
        let name = if path.is_empty() { b"." } else { path };
        utimensat(self.root, name, &times(time), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|e| Error::entry("set the time of", path, e))
    }

    fn entry(&self, path: Vec<u8>, kind: Kind, meta: &Meta) -> Entry {
        let is_file = matches!(kind, Kind::File { .. });
        let mtime = self.rules.time(&path, is_file, meta.mtime);
        let (uid, gid) = match self.rules.owner {
            Owner::Keep => (meta.uid, meta.gid),
            Owner::Root => (0, 0),
        };
        Entry { path, kind, mode: meta.mode, uid, gid, mtime, attributes: BTreeMap::new() }
    }

    fn directory(&mut self, path: Vec<u8>, meta: &Meta) -> Result<(), Error> {
        let name = if path.is_empty() { b"." } else { &path[..] };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(self.root, name, flags, Mode::empty())
            .map_err(|e| Error::entry("open", &path, e))?;
        let mut found =
            attributes::read(&folder).map_err(|e| Error::entry("read attributes of", &path, e))?;
        if found.partial {
            return Err(Error::tree(&path, Problem::Partial));
        }
        let mut entry = self.entry(path, Kind::Directory, meta);
        if entry.path.is_empty() {
            // Scratch folders are private, and what made the root says nothing about the image.
            (entry.mode, entry.uid, entry.gid) = (ROOT_MODE, 0, 0);
            found.stale.extend(std::mem::take(&mut found.kept).into_keys());
        }
        entry.attributes = std::mem::take(&mut found.kept);
        self.put(&entry)?;
        if found.opaque {
            self.put(&Entry::mark(joined(&entry.path, OPAQUE)))?;
        }
        found.kept = entry.attributes;
        if self.disk == Disk::Normalise {
            normalise_open(&folder, &found, (entry.uid, entry.gid, entry.mode), meta)
                .map_err(|e| Error::entry("normalise", &entry.path, e))?;
        }
        Ok(())
    }

    fn file(&mut self, path: Vec<u8>, meta: &Meta) -> Result<(), Error> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(self.root, &path, flags, Mode::empty())
            .map_err(|e| Error::entry("open", &path, e))?;
        let mut found =
            attributes::read(&file).map_err(|e| Error::entry("read attributes of", &path, e))?;
        if found.partial {
            return Err(Error::tree(&path, Problem::Partial));
        }
        let mut entry = self.entry(path, Kind::File { size: meta.size }, meta);
        entry.attributes = std::mem::take(&mut found.kept);
        self.put(&entry)?;
        self.content(&file, &entry.path, meta.size)?;
        found.kept = std::mem::take(&mut entry.attributes);
        if self.disk == Disk::Normalise {
            normalise_open(&file, &found, (entry.uid, entry.gid, entry.mode), meta)
                .and_then(|()| {
                    if (entry.mtime, 0) == (meta.mtime, meta.nanoseconds) {
                        return Ok(());
                    }
                    futimens(&file, &times(entry.mtime))
                })
                .map_err(|e| Error::entry("normalise", &entry.path, e))?;
        }
        if meta.links > 1 {
            self.links.insert(meta.identity, entry);
        }
        Ok(())
    }

    fn content(&mut self, file: &OwnedFd, path: &[u8], size: u64) -> Result<(), Error> {
        let mut left = size;
        while left > 0 {
            let room = self.out.room()?;
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(room.len());
            let count = rustix::io::read(file, &mut room[..length])
                .map_err(|e| Error::entry("read", path, e))?;
            if count == 0 {
                let problem = Problem::Changed { expected: size, actual: size - left };
                return Err(Error::tree(path, problem));
            }
            self.out.advance(count);
            left -= count as u64;
        }
        self.header.clear();
        self.header.resize(padding(size), 0);
        self.flush_header()
    }

    /// A symlink or fifo, which is never opened: it has no attributes that a layer keeps.
    fn put_unopened(&mut self, entry: Entry, meta: &Meta) -> Result<(), Error> {
        self.put(&entry)?;
        if self.disk == Disk::Normalise {
            self.normalise_unopened(&entry.path, (entry.uid, entry.gid, entry.mtime), meta)
                .map_err(|e| Error::entry("normalise", &entry.path, e))?;
        }
        if meta.links > 1 {
            self.links.insert(meta.identity, entry);
        }
        Ok(())
    }

    fn whiteout(&mut self, path: &[u8], meta: &Meta) -> Result<(), Error> {
        let (folder, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&path[..0], path),
        };
        self.put(&Entry::mark(joined(folder, &[WHITEOUT, name].concat())))?;
        if self.disk == Disk::Normalise {
            self.normalise_unopened(path, (0, 0, 0), meta)
                .map_err(|e| Error::entry("normalise", path, e))?;
        }
        Ok(())
    }

    fn normalise_unopened(
        &self,
        path: &[u8],
        (uid, gid, mtime): (u32, u32, i64),
        meta: &Meta,
    ) -> Result<(), Errno> {
        if (uid, gid) != (meta.uid, meta.gid) {
            let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
            chownat(self.root, path, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        if (mtime, 0) != (meta.mtime, meta.nanoseconds) {
            utimensat(self.root, path, &times(mtime), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        Ok(())
    }

    fn put(&mut self, entry: &Entry) -> Result<(), Error> {
        self.header.clear();
        entry.encode(&mut self.header)?;
        self.flush_header()
    }

    fn flush_header(&mut self) -> Result<(), Error> {
        use std::io::Write as _;
        self.out.write_all(&self.header).map_err(Error::from)
    }
}

/// Owner, mode and attributes of an open file or folder. Order matters: a change of owner clears setuid bits and
/// capabilities.
fn normalise_open(
    file: &OwnedFd,
    found: &Found,
    (uid, gid, mode): (u32, u32, u32),
    meta: &Meta,
) -> Result<(), Errno> {
    let owned = (uid, gid) == (meta.uid, meta.gid);
    if !owned {
        fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
    }
    // Linux's mode of an access control list shows in the mode bits; without the list they stay as they are.
    if !owned || mode != meta.mode {
        fchmod(file, Mode::from_raw_mode(mode))?;
    }
    attributes::normalise(file, found)?;
    if !owned {
        attributes::write(file, &found.kept)?;
    }
    Ok(())
}

/// Access and change of content at the same whole second.
pub(super) fn times(seconds: i64) -> Timestamps {
    let time = Timespec { tv_sec: seconds, tv_nsec: 0 };
    Timestamps { last_access: time, last_modification: time }
}
