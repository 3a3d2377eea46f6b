//! Work in progress, and how trees are removed that strangers made.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::remover::Remover;

/// How many folders are open at once, well below the usual limit of open files.
const LEVELS: usize = 200;

/// A folder that is given up when dropped, whatever came into it: soon after, it is removed.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    remover: Arc<Remover>,
    kept: bool,
}

impl Scratch {
    /// Takes a folder over.
    pub(super) fn new(folder: tempfile::TempDir, remover: &Arc<Remover>) -> Self {
        Self { path: folder.keep(), remover: Arc::clone(remover), kept: false }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it to the caller.
    pub fn keep(mut self) -> PathBuf {
        self.kept = true;
        std::mem::take(&mut self.path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.kept {
            self.remover.remove(std::mem::take(&mut self.path));
        }
    }
}

struct Level {
    folder: OwnedFd,
    name: Vec<u8>,
    /// Folders in it that are still to be removed.
    folders: Vec<Vec<u8>>,
}

/// Removes a tree. What is not there, or no longer, is no error.
///
/// The standard library's way calls itself and holds a descriptor for every level: a container that nests its folders
/// deep enough would exhaust the stack or the descriptors. Here folders at a certain depth are lifted to the top.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    remove(path).map_err(|errno| {
        let error = io::Error::from(errno);
        io::Error::new(error.kind(), format!("cannot remove {}: {error}", path.display()))
    })
}

fn remove(path: &Path) -> Result<(), Errno> {
    let root = match open(CWD, path) {
        Ok(root) => root,
        Err(Errno::NOENT) => return Ok(()),
        // Neither a folder; nor is a link followed.
        Err(Errno::NOTDIR | Errno::LOOP) => return gone(unlinkat(CWD, path, AtFlags::empty())),
        Err(errno) => return Err(errno),
    };
    let folders = empty(&root)?;
    let mut levels = vec![Level { folder: root, name: Vec::new(), folders }];
    let mut lifted = 0_u64;
    loop {
        let depth = levels.len();
        let Some(level) = levels.last_mut() else { break };
        let Some(name) = level.folders.pop() else {
            let name = levels.pop().expect("there is a last one").name;
            if let Some(parent) = levels.last() {
                gone(unlinkat(&parent.folder, name.as_slice(), AtFlags::REMOVEDIR))?;
            }
            continue;
        };
        if depth == LEVELS {
            let new = lift(&levels[LEVELS - 1].folder, &name, &levels[0].folder, &mut lifted)?;
            levels[0].folders.extend(new);
            continue;
        }
        match open(&level.folder, name.as_slice()) {
            Ok(folder) => {
                let folders = empty(&folder)?;
                levels.push(Level { folder, name, folders });
            }
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    gone(unlinkat(CWD, path, AtFlags::REMOVEDIR))
}

fn open(parent: impl std::os::fd::AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// Another sweep may have been faster.
fn gone(result: Result<(), Errno>) -> Result<(), Errno> {
    match result {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

/// Removes all but folders; returns these.
fn empty(folder: &OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
    let mut folders = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if entry.file_type() == FileType::Directory {
            folders.push(name.to_vec());
            continue;
        }
        match gone(unlinkat(folder, name, AtFlags::empty())) {
            // Not every filesystem tells the kind.
            Err(Errno::ISDIR | Errno::PERM) if entry.file_type() == FileType::Unknown => {
                folders.push(name.to_vec());
            }
            other => other?,
        }
    }
    Ok(folders)
}

/// Moves a folder to the top under a name that nothing has; returns the name, or nothing where the folder is gone.
fn lift(
    parent: &OwnedFd,
    name: &[u8],
    top: &OwnedFd,
    lifted: &mut u64,
) -> Result<Option<Vec<u8>>, Errno> {
    loop {
        let target = format!(".lifted-{}-{lifted}", std::process::id()).into_bytes();
        *lifted += 1;
        match renameat(parent, name, top, target.as_slice()) {
            Ok(()) => return Ok(Some(target)),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nest(root: &Path, levels: usize) {
        let mut folder = open(CWD, root).unwrap();
        for level in 0..levels {
            rustix::fs::mkdirat(&folder, "d", Mode::from_raw_mode(0o755)).unwrap();
            if level % 100 == 0 {
                let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
                openat(&folder, "file", flags, Mode::from_raw_mode(0)).unwrap();
                rustix::fs::symlinkat("/", &folder, "link").unwrap();
            }
            folder = open(&folder, "d").unwrap();
        }
    }

    #[test]
    fn trees_are_removed_however_deep() {
        let folder = tempfile::tempdir().unwrap();
        let remover = Arc::default();
        let scratch = Scratch::new(tempfile::tempdir_in(folder.path()).unwrap(), &remover);
        let path = scratch.path().to_owned();
        // More than a process may usually open; at 15,000 the standard library's way overflows a thread's stack.
        nest(&path, 3_000);
        fs_err::write(path.join(format!(".lifted-{}-0", std::process::id())), "").unwrap();
        fs_err::create_dir_all(path.join("a/b")).unwrap();
        drop(scratch);
        remover.settle();
        assert!(fs_err::symlink_metadata(&path).is_err());
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("kept");
        fs_err::create_dir(&kept).unwrap();
        fs_err::write(kept.join("file"), "").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&kept, &link).unwrap();
        remove_tree(&link).unwrap();
        remove_tree(&link).unwrap();
        assert!(fs_err::symlink_metadata(&link).is_err() && kept.join("file").exists());
        remove_tree(&kept.join("file")).unwrap();
        assert_eq!(fs_err::read_dir(&kept).unwrap().count(), 0);
    }

    #[test]
    fn what_is_kept_stays() {
        let folder = tempfile::tempdir().unwrap();
        let remover = Arc::default();
        let path = Scratch::new(tempfile::tempdir_in(folder.path()).unwrap(), &remover).keep();
        remover.settle();
        assert!(path.is_dir());
    }
}
