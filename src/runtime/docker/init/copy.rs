//! Copies of folders of the root in memory filesystems, mounted over them: their entries are listed in a chosen order,
//! or all belong to one user. The embedded runtime's `copy.rs` says why.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{
    MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, lchown, symlink,
};
use std::path::{Path, PathBuf};

use super::request::{Copy, FOLDER, Request};
use super::root::place;
use super::sys;
use super::{During as _, Failure};

/// Files of `in_place` folders below this are copied all the same: a mount costs as much.
const LARGE: u64 = 64 << 10;

/// Names to find the order of listing with.
const PROBES: [&str; 3] = ["1", "2", "3"];

/// Makes all copies. Whether each order that was asked for holds.
pub(super) fn make(request: &Request, made: &mut Vec<String>) -> Result<bool, Failure> {
    let mut held = true;
    for (number, copy) in request.copies.iter().enumerate() {
        let doing = || format!("copy {}", copy.path);
        place(&copy.path, true, made)?;
        let target = Path::new(FOLDER).join(format!("c{number}"));
        fs::create_dir(&target).during(doing())?;
        // As many entries as there is memory for.
        let size = request.copy_size.map_or_else(String::new, |size| format!(",size={size}"));
        let options = format!("mode=0755,nr_inodes=0{size}");
        sys::mount_memory(&target, &options, sys::NODEV | sys::NOSUID).during(doing())?;
        let umask = sys::umask(0);
        held &= replace(copy, &target).during(doing())?;
        sys::umask(umask);
    }
    Ok(held)
}

fn replace(copy: &Copy, target: &Path) -> io::Result<bool> {
    let source = Path::new(&copy.path);
    let metadata = fs::metadata(source)?;
    let newest_first = newest_first(target)?;
    let mut copier = Copier { copy, newest_first, links: BTreeMap::new() };
    copier.entries(source, target, Path::new(""))?;
    copier.finish(target, &metadata)?;
    let held = copy.descending.is_none() || is_ordered(copy, target)?;
    sys::bind(target, source)?;
    Ok(held)
}

/// The names in a folder, as they are listed.
fn listing(folder: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
}

/// Whether the (empty) memory filesystem lists the newest entry first.
fn newest_first(folder: &Path) -> io::Result<bool> {
    for name in PROBES {
        fs::create_dir(folder.join(name))?;
    }
    let listed = listing(folder)?;
    for name in PROBES {
        fs::remove_dir(folder.join(name))?;
    }
    Ok(listed.first().is_some_and(|name| name == PROBES[2]))
}

fn sort(copy: &Copy, names: &mut [OsString]) {
    match copy.descending {
        None => {}
        Some(false) => names.sort(),
        Some(true) => names.sort_by(|one, other| other.cmp(one)),
    }
}

fn is_ordered(copy: &Copy, folder: &Path) -> io::Result<bool> {
    let listed = listing(folder)?;
    let mut sorted = listed.clone();
    sort(copy, &mut sorted);
    Ok(listed == sorted)
}

struct Copier<'a> {
    copy: &'a Copy,
    newest_first: bool,
    /// Files with several names: device and number there, and the first path here.
    links: BTreeMap<(u64, u64), PathBuf>,
}

impl Copier<'_> {
    /// Copies what `source` holds; `path` is where that is below the copy.
    fn entries(&mut self, source: &Path, target: &Path, path: &Path) -> io::Result<()> {
        let mut names = listing(source)?;
        sort(self.copy, &mut names);
        if self.newest_first {
            names.reverse();
        }
        for name in names {
            self.entry(&source.join(&name), &target.join(&name), path, &name)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        source: &Path,
        target: &Path,
        path: &Path,
        name: &OsString,
    ) -> io::Result<()> {
        let metadata = fs::symlink_metadata(source)?;
        let kind = metadata.file_type();
        if kind.is_dir() {
            fs::create_dir(target)?;
            self.entries(source, target, &path.join(name))?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(source)?, target)?;
        } else if kind.is_file() {
            return self.file(source, target, path, &metadata);
        } else {
            // A device is nothing that a work tree may have: the kernel refuses it here.
            sys::make_node(target, metadata.mode(), metadata.rdev())?;
        }
        self.finish(target, &metadata)
    }

    fn file(
        &mut self,
        source: &Path,
        target: &Path,
        path: &Path,
        metadata: &Metadata,
    ) -> io::Result<()> {
        let identity = (metadata.dev(), metadata.ino());
        if metadata.nlink() > 1
            && let Some(first) = self.links.get(&identity)
        {
            return fs::hard_link(first, target);
        }
        let mut made = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(metadata.mode() & 0o7777)
            .open(target)?;
        let in_place = self.copy.in_place.iter().any(|folder| path == Path::new(folder));
        if in_place && metadata.len() >= LARGE {
            self.finish(target, metadata)?;
            return sys::bind(source, target);
        }
        if metadata.len() > 0 {
            io::copy(&mut File::open(source)?, &mut made)?;
        }
        drop(made);
        self.finish(target, metadata)?;
        if metadata.nlink() > 1 {
            self.links.insert(identity, target.to_owned());
        }
        Ok(())
    }

    /// Owner, mode and times.
    fn finish(&self, target: &Path, metadata: &Metadata) -> io::Result<()> {
        let (uid, gid) = self.copy.owner.unwrap_or((metadata.uid(), metadata.gid()));
        let other_owner = (uid, gid) != (0, 0);
        if other_owner {
            lchown(target, Some(uid), Some(gid))?;
        }
        // A change of the owner takes the set-uid bit away.
        if metadata.is_dir() || (other_owner && metadata.is_file()) {
            fs::set_permissions(target, fs::Permissions::from_mode(metadata.mode() & 0o7777))?;
        }
        let times =
            [metadata.atime(), metadata.atime_nsec(), metadata.mtime(), metadata.mtime_nsec()];
        sys::set_times(target, times)
    }
}
