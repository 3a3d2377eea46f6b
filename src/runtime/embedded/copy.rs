//! Copies of folders of the root in memory filesystems, mounted over them: their entries are listed in a chosen
//! order, or all belong to one user.
//!
//! A memory filesystem lists entries by the order in which they were made: the oldest first since Linux 6.6, the
//! newest first before. Which one it is, is looked at; hence a folder's entries are made in the wanted order or
//! against it. An overlay would list its layers', which are a disk filesystem's hashes.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, chownat,
    fchmod, fchown, futimens, linkat, mkdirat, mknodat, openat, readlinkat, sendfile, statat,
    symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;

use super::super::{EntryOrder, FolderCopy};
use super::protocol::{During, Failure, Request};
use super::root::{attach, clone_tree_at, new_mount, place};

/// Files of `in_place` folders below this are copied all the same: a mount costs as much.
const LARGE: u64 = 64 << 10;

/// Most bytes copied by one call.
const CHUNK: usize = 1 << 30;

/// Names to find the order of listing with.
const PROBES: [&CStr; 3] = [c"1", c"2", c"3"];

/// Makes all copies. Whether each order that was asked for holds.
pub(super) fn make(request: &Request, made: &mut Vec<String>) -> Result<bool, Failure> {
    if request.copies.is_empty() {
        return Ok(true);
    }
    let umask = rustix::process::umask(Mode::empty());
    let mut held = true;
    for copy in &request.copies {
        place(&copy.path, true, made)?;
        held &= replace(copy, request.copy_size)?;
    }
    rustix::process::umask(umask);
    Ok(held)
}

fn replace(copy: &FolderCopy, size: Option<u64>) -> Result<bool, Failure> {
    let doing = || format!("copy {}", copy.path);
    let size = size.map(|size| size.to_string());
    // As many entries as there is memory for.
    let mut options = vec![("mode", "0755"), ("nr_inodes", "0")];
    options.extend(size.as_deref().map(|size| ("size", size)));
    let safe = MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOSUID;
    let mount = new_mount("tmpfs", &options, safe)?;
    let target = open_folder(&mount, ".").during(doing())?;
    let source = open_folder(CWD, copy.path.as_str()).during(doing())?;
    let stat = rustix::fs::fstat(&source).during(doing())?;
    let newest_first = newest_first(&target).during(doing())?;
    let mut copier =
        Copier { copy, target: &target, newest_first, links: BTreeMap::new(), mounts: Vec::new() };
    copier.entries(&source, &target, "").during(doing())?;
    copier.finish(&target, &stat).during(doing())?;
    let held = copy.order.is_none() || is_ordered(copy.order, &target).during(doing())?;
    let mounts = std::mem::take(&mut copier.mounts);
    attach(&mount, Path::new(&copy.path)).during(doing())?;
    for (tree, path) in mounts {
        attach(&tree, &Path::new(&copy.path).join(path)).during(doing())?;
    }
    Ok(held)
}

fn open_folder(at: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    openat(at, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// The names in a folder, as they are listed.
fn listing(folder: &OwnedFd) -> Result<Vec<CString>, Errno> {
    Dir::read_from(folder)?
        .map(|entry| entry.map(|entry| entry.file_name().to_owned()))
        .filter(|name| !matches!(name.as_deref().map(CStr::to_bytes), Ok(b"." | b"..")))
        .collect()
}

/// Whether the (empty) memory filesystem lists the newest entry first.
fn newest_first(folder: &OwnedFd) -> Result<bool, Errno> {
    for name in PROBES {
        mkdirat(folder, name, Mode::RWXU)?;
    }
    let listed = listing(folder)?;
    for name in PROBES {
        unlinkat(folder, name, AtFlags::REMOVEDIR)?;
    }
    Ok(listed.first().map(CString::as_c_str) == PROBES.last().copied())
}

fn sort(order: Option<EntryOrder>, names: &mut [CString]) {
    match order {
        None => {}
        Some(EntryOrder::Ascending) => names.sort(),
        Some(EntryOrder::Descending) => names.sort_by(|one, other| other.cmp(one)),
    }
}

fn is_ordered(order: Option<EntryOrder>, folder: &OwnedFd) -> Result<bool, Errno> {
    let listed = listing(folder)?;
    let mut sorted = listed.clone();
    sort(order, &mut sorted);
    Ok(listed == sorted)
}

struct Copier<'a> {
    copy: &'a FolderCopy,
    target: &'a OwnedFd,
    newest_first: bool,
    /// Files with several names: device and number there, and the first path here.
    links: BTreeMap<(u64, u64), String>,
    /// Files that are mounted once the copy has its place.
    mounts: Vec<(OwnedFd, String)>,
}

impl Copier<'_> {
    /// Copies what `source` holds; `path` is where that is below the copy, empty or with a slash at its end.
    fn entries(&mut self, source: &OwnedFd, target: &OwnedFd, path: &str) -> Result<(), Errno> {
        let mut names = listing(source)?;
        sort(self.copy.order, &mut names);
        if self.newest_first {
            names.reverse();
        }
        for name in names {
            self.entry(source, target, &name, path)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        source: &OwnedFd,
        target: &OwnedFd,
        name: &CStr,
        path: &str,
    ) -> Result<(), Errno> {
        let stat = statat(source, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let here = format!("{path}{}", name.to_string_lossy());
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                mkdirat(target, name, Mode::RWXU)?;
                let (inner, made) = (open_folder(source, name)?, open_folder(target, name)?);
                self.entries(&inner, &made, &format!("{here}/"))?;
                self.finish(&made, &stat)
            }
            FileType::Symlink => {
                symlinkat(readlinkat(source, name, Vec::new())?, target, name)?;
                self.finish_at(target, name, &stat)
            }
            FileType::RegularFile => self.file(source, target, name, path, here, &stat),
            // A device is nothing that a work tree may have: the kernel refuses it here.
            kind => {
                mknodat(target, name, kind, Mode::from_raw_mode(stat.st_mode), stat.st_rdev)?;
                self.finish_at(target, name, &stat)
            }
        }
    }

    fn file(
        &mut self,
        source: &OwnedFd,
        target: &OwnedFd,
        name: &CStr,
        path: &str,
        here: String,
        stat: &Stat,
    ) -> Result<(), Errno> {
        if stat.st_nlink > 1
            && let Some(first) = self.links.get(&(stat.st_dev, stat.st_ino))
        {
            return linkat(self.target, first.as_str(), target, name, AtFlags::empty());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let made = openat(target, name, flags, Mode::from_raw_mode(stat.st_mode))?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let in_place =
            self.copy.in_place.iter().any(|folder| path.strip_suffix('/') == Some(folder));
        if in_place && size >= LARGE {
            self.mounts.push((clone_tree_at(source, name)?, here));
            return self.finish(&made, stat);
        }
        if size > 0 {
            let from = openat(source, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
            let mut left = size;
            while left > 0 {
                match sendfile(&made, &from, None, CHUNK)? {
                    // Shorter than it said.
                    0 => break,
                    copied => left = left.saturating_sub(copied as u64),
                }
            }
        }
        self.finish(&made, stat)?;
        if stat.st_nlink > 1 {
            self.links.insert((stat.st_dev, stat.st_ino), here);
        }
        Ok(())
    }

    /// The owner of the copy of something, if it is not the one that makes it.
    fn owner(&self, stat: &Stat) -> Option<(Option<Uid>, Option<Gid>)> {
        let (uid, gid) = self.copy.owner.unwrap_or((stat.st_uid, stat.st_gid));
        ((uid, gid) != (0, 0)).then(|| (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))))
    }

    /// Owner, mode and time of an open file or folder.
    fn finish(&self, made: &OwnedFd, stat: &Stat) -> Result<(), Errno> {
        let owner = self.owner(stat);
        if let Some((uid, gid)) = owner {
            fchown(made, uid, gid)?;
        }
        let folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        // A change of the owner takes the set-uid bit away.
        if owner.is_some() || folder {
            fchmod(made, Mode::from_raw_mode(stat.st_mode))?;
        }
        futimens(made, &times(stat))
    }

    /// Owner and time of what cannot be opened.
    fn finish_at(&self, folder: &OwnedFd, name: &CStr, stat: &Stat) -> Result<(), Errno> {
        if let Some((uid, gid)) = self.owner(stat) {
            chownat(folder, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        utimensat(folder, name, &times(stat), AtFlags::SYMLINK_NOFOLLOW)
    }
}

fn times(stat: &Stat) -> Timestamps {
    let nanoseconds = |value: u64| value.try_into().unwrap_or(0);
    Timestamps {
        last_access: Timespec { tv_sec: stat.st_atime, tv_nsec: nanoseconds(stat.st_atime_nsec) },
        last_modification: Timespec {
            tv_sec: stat.st_mtime,
            tv_nsec: nanoseconds(stat.st_mtime_nsec),
        },
    }
}
