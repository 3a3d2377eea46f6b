//! A folder that any PEP 751 installer can use: `pylock.toml` beside its files.

use std::io;
use std::path::Path;

use super::presence::open;
use super::{Error, is_plain_name};
use crate::base::files::{AtomicFile, write_atomic};
use crate::base::{Cancel, Store};
use crate::lock::{EnvLock, FileRef, Origin};

/// The name that PEP 751 gives the file.
const PYLOCK: &str = "pylock.toml";

/// Writes the environment's wheels and sdists to `folder` under their file names, and `pylock`, the text
/// that names them, beside them. Files that are there are replaced. Returns how many files there are.
pub fn export_wheels(
    store: &Store,
    lock: &EnvLock,
    pylock: &str,
    folder: &Path,
    cancel: &Cancel,
) -> Result<usize, Error> {
    let _lock = store.lock_shared(cancel)?;
    for package in &lock.packages {
        cancel.check()?;
        let file = FileRef {
            name: package.file.name.clone(),
            sha256: package.file.sha256,
            size: package.file.size,
            origin: Origin::Pypi { project: package.name.clone() },
        };
        if !is_plain_name(&file.name) || file.name == PYLOCK {
            return Err(Error::Name { name: file.name });
        }
        let mut reader = open(store, &file)?;
        let mut out = AtomicFile::new_in(folder)?;
        io::copy(&mut reader, &mut out).map_err(Error::from_reader)?;
        out.commit(&folder.join(&file.name))?;
    }
    // Last: a folder with the lock in it is whole.
    write_atomic(&folder.join(PYLOCK), pylock.as_bytes())?;
    Ok(lock.packages.len())
}
