//! Archives become trees, in overlayfs' form: `.wh.NAME` is a character device 0:0, an opaque folder has
//! `user.overlay.opaque`.
//!
//! Nothing leaves the target and nothing is written through a symlink: an entry's parent must be a folder that this
//! archive made, and no path has two entries. (A whiteout beside a real entry of the same name hides the lower
//! one only, as the OCI image specification has it: the entry stays, and a folder becomes opaque.)

use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Uid, chownat, fchmod, fchown, futimens, linkat, mkdirat,
    openat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::archive::Archive;
use super::attributes;
use super::entry::{Entry, Kind, OPAQUE, WHITEOUT};
use super::error::{Problem, readable};
use super::pack::times;
use super::tree::open_root;
use super::walk::{joined, open_folder};
use super::{Error, Layer};
use crate::base::{Cancel, HashingReader};

/// What an archive may unpack to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the uncompressed archive.
    pub bytes: u64,
    /// Entries.
    pub entries: u64,
}

impl Default for Limits {
    /// 64 GiB and four million entries: more than any image of this field has.
    fn default() -> Self {
        Self { bytes: 64 << 30, entries: 4_000_000 }
    }
}

/// What a path of the target is, as far as later entries care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// With the time it gets in the end.
    Directory {
        mtime: i64,
        implied: bool,
    },
    /// Anything that a hard link may name.
    Leaf,
    Whiteout,
}

struct Unpacker {
    root: OwnedFd,
    seen: BTreeMap<Vec<u8>, Seen>,
}

/// Unpacks an uncompressed archive into an empty folder.
pub fn unpack(
    archive: impl Read,
    target: &Path,
    limits: &Limits,
    cancel: &Cancel,
) -> Result<(), Error> {
    unpack_layer(archive, target, limits, cancel).map(|_| ())
}

/// The same, and says what layer it was.
pub(super) fn unpack_layer(
    archive: impl Read,
    target: &Path,
    limits: &Limits,
    cancel: &Cancel,
) -> Result<Layer, Error> {
    let mut archive = Archive::new(HashingReader::new(archive), limits.bytes);
    let seen = BTreeMap::from([(Vec::new(), Seen::Directory { mtime: 0, implied: true })]);
    let mut unpacker = Unpacker { root: open_root(target)?, seen };
    fchmod(&unpacker.root, Mode::from_raw_mode(0o755))
        .map_err(|e| Error::entry("set the mode of", b"", e))?;
    let mut entries = 0;
    while let Some(entry) = archive.next()? {
        cancel.check()?;
        entries += 1;
        if entries > limits.entries {
            let problem = Problem::TooMany { limit: limits.entries };
            return Err(Error::archive(&entry.path, problem));
        }
        unpacker.put(&entry, &mut archive)?;
    }
    let (_, diff_id, size) = archive.finish()?.finish();
    unpacker.finish()?;
    Ok(Layer { diff_id, size })
}

impl Unpacker {
    fn put<R: Read>(&mut self, entry: &Entry, archive: &mut Archive<R>) -> Result<(), Error> {
        let (parent, name) = match entry.path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&entry.path[..at], &entry.path[at + 1..]),
            None => (&entry.path[..0], &entry.path[..]),
        };
        if !entry.path.is_empty() {
            self.make_parents(parent, entry)?;
        }
        if let Some(hidden) = name.strip_prefix(WHITEOUT) {
            return self.mark(parent, name, hidden, entry, archive);
        }
        let before = self.seen.get(&entry.path).copied();
        match (before, &entry.kind) {
            (None | Some(Seen::Whiteout), _)
            | (Some(Seen::Directory { implied: true, .. }), Kind::Directory) => {}
            _ => return Err(Error::archive(&entry.path, Problem::Duplicate)),
        }
        let fail = |verb| move |errno: Errno| Error::entry(verb, &entry.path, errno);
        if before == Some(Seen::Whiteout) {
            unlinkat(&self.root, &entry.path, AtFlags::empty()).map_err(fail("remove"))?;
        }
        let seen = match &entry.kind {
            Kind::Directory => {
                if !matches!(before, Some(Seen::Directory { .. })) {
                    mkdirat(&self.root, &entry.path, Mode::from_raw_mode(0o700))
                        .map_err(fail("create"))?;
                }
                let folder = open_folder(&self.root, &entry.path)?;
                finish_open(&folder, entry).map_err(fail("set up"))?;
                if before == Some(Seen::Whiteout) {
                    attributes::set_opaque(&folder).map_err(fail("set up"))?;
                }
                Seen::Directory { mtime: entry.mtime, implied: false }
            }
            Kind::File { size } => {
                let flags = OFlags::WRONLY
                    | OFlags::CREATE
                    | OFlags::EXCL
                    | OFlags::NOFOLLOW
                    | OFlags::CLOEXEC;
                let file = openat(&self.root, &entry.path, flags, Mode::from_raw_mode(0o600))
                    .map_err(fail("create"))?;
                archive.content(entry, *size, |mut bytes| {
                    while !bytes.is_empty() {
                        let count = rustix::io::write(&file, bytes).map_err(fail("write"))?;
                        bytes = &bytes[count..];
                    }
                    Ok(())
                })?;
                finish_open(&file, entry)
                    .and_then(|()| futimens(&file, &times(entry.mtime)))
                    .map_err(fail("set up"))?;
                Seen::Leaf
            }
            Kind::Symlink { target } => {
                symlinkat(target, &self.root, &entry.path).map_err(fail("create"))?;
                self.finish_unopened(&entry.path, entry).map_err(fail("set up"))?;
                Seen::Leaf
            }
            Kind::HardLink { target } => {
                if self.seen.get(target) != Some(&Seen::Leaf) {
                    let problem = Problem::LinkTarget { target: readable(target) };
                    return Err(Error::archive(&entry.path, problem));
                }
                linkat(&self.root, target, &self.root, &entry.path, AtFlags::empty())
                    .map_err(fail("link"))?;
                Seen::Leaf
            }
            Kind::Fifo => {
                let mode = Mode::from_raw_mode(entry.mode);
                make_node(&self.root, &entry.path, FileType::Fifo, mode).map_err(fail("create"))?;
                self.finish_unopened(&entry.path, entry).map_err(fail("set up"))?;
                rustix::fs::chmodat(&self.root, &entry.path, mode, AtFlags::empty())
                    .map_err(fail("set up"))?;
                Seen::Leaf
            }
        };
        self.seen.insert(entry.path.clone(), seen);
        Ok(())
    }

    /// A whiteout or an opaque mark.
    fn mark<R: Read>(
        &mut self,
        parent: &[u8],
        name: &[u8],
        hidden: &[u8],
        entry: &Entry,
        archive: &mut Archive<R>,
    ) -> Result<(), Error> {
        let fail = |verb| move |errno: Errno| Error::entry(verb, &entry.path, errno);
        if name == OPAQUE {
            let folder = open_folder(&self.root, parent)?;
            attributes::set_opaque(&folder).map_err(fail("set up"))?;
        } else if matches!(hidden, b"" | b"." | b"..") || hidden.starts_with(WHITEOUT) {
            return Err(Error::archive(&entry.path, Problem::Escapes));
        } else {
            let path = joined(parent, hidden);
            match self.seen.get(&path) {
                None => {
                    make_node(&self.root, &path, FileType::CharacterDevice, Mode::empty())
                        .and_then(|()| self.finish_unopened(&path, &Entry::mark(Vec::new())))
                        .map_err(fail("create"))?;
                    self.seen.insert(path, Seen::Whiteout);
                }
                Some(Seen::Directory { .. }) => {
                    let folder = open_folder(&self.root, &path)?;
                    attributes::set_opaque(&folder).map_err(fail("set up"))?;
                }
                // The new entry hides the lower one as it is.
                Some(Seen::Leaf) => {}
                Some(Seen::Whiteout) => {
                    return Err(Error::archive(&entry.path, Problem::Duplicate));
                }
            }
        }
        match entry.kind {
            Kind::File { size } => archive.content(entry, size, |_| Ok(())),
            _ => Err(Error::archive(&entry.path, Problem::ReservedName)),
        }
    }

    /// Makes sure that `parent` is a folder of this archive. Folders that it forgot are made with a mode of 0755.
    fn make_parents(&mut self, parent: &[u8], entry: &Entry) -> Result<(), Error> {
        let mut missing = Vec::new();
        let mut path = parent;
        loop {
            match self.seen.get(path) {
                Some(Seen::Directory { .. }) => break,
                Some(Seen::Leaf | Seen::Whiteout) => {
                    let problem = Problem::Parent { parent: readable(path) };
                    return Err(Error::archive(&entry.path, problem));
                }
                None => missing.push(path),
            }
            let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            path = &path[..end];
        }
        for path in missing.into_iter().rev() {
            let folder = Entry { path: path.to_vec(), mode: 0o755, ..Entry::mark(Vec::new()) };
            mkdirat(&self.root, path, Mode::from_raw_mode(0o700))
                .map_err(|e| Error::entry("create", path, e))?;
            finish_open(&open_folder(&self.root, path)?, &folder)
                .map_err(|e| Error::entry("set up", path, e))?;
            self.seen.insert(path.to_vec(), Seen::Directory { mtime: 0, implied: true });
        }
        Ok(())
    }

    fn finish_unopened(&self, path: &[u8], entry: &Entry) -> Result<(), Errno> {
        let (uid, gid) = (Some(Uid::from_raw(entry.uid)), Some(Gid::from_raw(entry.gid)));
        chownat(&self.root, path, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        utimensat(&self.root, path, &times(entry.mtime), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Sets the times of folders, when nothing in them changes any more.
    fn finish(self) -> Result<(), Error> {
        for (path, seen) in self.seen.iter().rev() {
            if let Seen::Directory { mtime, .. } = seen {
                let name = if path.is_empty() { b"." } else { &path[..] };
                utimensat(&self.root, name, &times(*mtime), AtFlags::SYMLINK_NOFOLLOW)
                    .map_err(|e| Error::entry("set the time of", path, e))?;
            }
        }
        Ok(())
    }
}

/// Owner, mode and attributes of an open file or folder, in the order in which none undoes another.
fn finish_open(file: &OwnedFd, entry: &Entry) -> Result<(), Errno> {
    fchown(file, Some(Uid::from_raw(entry.uid)), Some(Gid::from_raw(entry.gid)))?;
    fchmod(file, Mode::from_raw_mode(entry.mode))?;
    attributes::write(file, &entry.attributes)
}

#[cfg(not(target_vendor = "apple"))]
fn make_node(root: &OwnedFd, path: &[u8], file_type: FileType, mode: Mode) -> Result<(), Errno> {
    rustix::fs::mknodat(root, path, file_type, mode, 0)
}

/// Unpacked layers are for overlayfs: elsewhere they cannot be made whole.
#[cfg(target_vendor = "apple")]
fn make_node(_: &OwnedFd, _: &[u8], _: FileType, _: Mode) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}
