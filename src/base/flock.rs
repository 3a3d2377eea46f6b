//! Advisory locks on files (flock(2)): shared to use a store, exclusive to collect garbage, and
//! exclusive per step so that two processes do not do the same work. Correctness never needs them.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::{Cancel, Error};

/// Held until dropped; the kernel drops it when the process dies.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

impl FileLock {
    /// Waits for a lock that others may share.
    pub fn shared(path: &Path, cancel: &Cancel) -> Result<Self, Error> {
        Self::wait(path, FlockOperation::NonBlockingLockShared, cancel)
    }

    /// Waits for a lock that nobody shares.
    pub fn exclusive(path: &Path, cancel: &Cancel) -> Result<Self, Error> {
        Self::wait(path, FlockOperation::NonBlockingLockExclusive, cancel)
    }

    /// Takes an exclusive lock if nobody holds one.
    pub fn try_exclusive(path: &Path) -> Result<Option<Self>, Error> {
        Self::attempt(path, FlockOperation::NonBlockingLockExclusive)
    }

    fn wait(path: &Path, operation: FlockOperation, cancel: &Cancel) -> Result<Self, Error> {
        loop {
            cancel.check()?;
            if let Some(lock) = Self::attempt(path, operation)? {
                return Ok(lock);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn attempt(path: &Path, operation: FlockOperation) -> Result<Option<Self>, Error> {
        if let Some(folder) = path.parent() {
            fs_err::create_dir_all(folder)?;
        }
        let file = fs_err::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?
            .into_parts()
            .0;
        match flock(&file, operation) {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(Error::Io(errno.into())),
        }
    }
}
