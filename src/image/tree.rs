//! Folders of the host as trees: opened without following links, removed however deep they are.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::Error;
use crate::base;

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
    Ok(base::scratch::remove_tree(path).map_err(base::Error::from)?)
}
