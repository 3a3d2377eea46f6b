//! The launcher's side: opening cgroups in the host's namespaces, joining them from inside, removing them.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// Opens the `tasks` files of v1 cgroups, so that pid 1 can join them from inside.
pub(in super::super) fn open_v1(folders: &[PathBuf]) -> io::Result<Vec<OwnedFd>> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    folders
        .iter()
        .map(|folder| Ok(rustix::fs::open(folder.join("tasks"), flags, Mode::empty())?))
        .collect()
}

/// Opens a v2 cgroup, for a process to be born in.
pub(in super::super) fn open_v2(folder: Option<&Path>) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    folder.map(|folder| Ok(rustix::fs::open(folder, flags, Mode::empty())?)).transpose()
}

/// Moves the calling thread, which is all of its process. Through `tasks` and with "0" the kernel need
/// not stop every fork of the machine for it, as it does for `cgroup.procs`.
pub(in super::super) fn join(files: Vec<OwnedFd>) -> io::Result<()> {
    for file in files {
        rustix::io::write(&file, b"0")?;
    }
    Ok(())
}

/// Removes an empty cgroup, waiting a moment for the last of its dead.
pub(in super::super) fn remove(folder: &Path) {
    for _ in 0..100 {
        match rustix::fs::rmdir(folder) {
            Err(rustix::io::Errno::BUSY) => {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            Ok(()) | Err(rustix::io::Errno::NOENT) => return,
            Err(errno) => {
                tracing::debug!(folder = %folder.display(), %errno, "a cgroup stays");
                return;
            }
        }
    }
    tracing::debug!(folder = %folder.display(), "a cgroup stays busy");
}
