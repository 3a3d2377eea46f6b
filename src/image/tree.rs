//! Folders of the host as trees: opened without following links, removed however deep they are.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, openat, renameat};

use super::Error;

/// Levels that the plain way of removing may open at once, well below the usual limit of open files.
const LEVELS: usize = 200;

/// Opens the root of a tree.
pub(super) fn open_root(path: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty()).map_err(|errno| {
        let error = std::io::Error::from(errno);
        let text = format!("cannot open {}: {error}", path.display());
        Error::Base(std::io::Error::new(error.kind(), text).into())
    })
}

/// Removes a tree. One that is not there is no error.
pub fn remove_tree(path: &Path) -> Result<(), Error> {
    // The plain way holds a descriptor per level: deep folders are lifted to the top until it works.
    for round in 0_u32.. {
        match fs_err::remove_dir_all(path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !path.exists() => {
                return Ok(());
            }
            Err(error) => {
                if lift_deep(path, round)? == 0 {
                    return Err(Error::Base(error.into()));
                }
            }
        }
    }
    Ok(())
}

/// Moves every folder that lies `LEVELS` deep to the top; returns how many.
fn lift_deep(path: &Path, round: u32) -> Result<u32, Error> {
    let root = open_root(path)?;
    let mut lifted = 0;
    let mut levels = vec![root.try_clone()?];
    let mut pending: Vec<Vec<Vec<u8>>> = vec![folders(&root)?];
    while let Some(level) = pending.last_mut() {
        let Some(name) = level.pop() else {
            pending.pop();
            levels.pop();
            continue;
        };
        let parent = levels.last().expect("one per pending level");
        if levels.len() == LEVELS {
            let target = format!(".hallmark-lifted-{round}-{lifted}");
            renameat(parent, &name, &root, target).map_err(|e| Error::entry("move", &name, e))?;
            lifted += 1;
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(parent, &name, flags, Mode::empty())
            .map_err(|e| Error::entry("open", &name, e))?;
        pending.push(folders(&folder)?);
        levels.push(folder);
    }
    Ok(lifted)
}

fn folders(folder: &OwnedFd) -> Result<Vec<Vec<u8>>, Error> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder).map_err(|e| Error::entry("list", b"", e))? {
        let entry = entry.map_err(|e| Error::entry("list", b"", e))?;
        let name = entry.file_name().to_bytes();
        if entry.file_type() == FileType::Directory && name != b"." && name != b".." {
            names.push(name.to_vec());
        }
    }
    Ok(names)
}
