//! The scratch of one runtime that this process has:
//!
//! ```text
//! <scratch>/runtime-<owner>-<n>/
//!   skeleton/            an empty tree with what every container is mounted on, below all layers: so
//!                        that nothing is made in an upper dir just to mount on it
//!   run-<n>/             upper, work, targets and root of a run that goes on
//!   upper-<n>/           an upper dir that its run's caller was given
//! ```
//!
//! The owner's name in it tells a later process whether it may be swept.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::scratch::remove_tree;
use crate::base::{Owner, Store};

const PREFIX: &str = "runtime-";

/// Removed when dropped, but for upper dirs that were given away.
pub(crate) struct Session {
    store: Store,
    folder: PathBuf,
    next: AtomicU64,
}

impl Session {
    /// A fresh one in the store's scratch.
    pub(crate) fn create(store: &Store) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = store.scratch().join(format!("{PREFIX}{}-{number}", Owner::own()?));
        fs_err::create_dir(&folder)?;
        let session = Self { store: store.clone(), folder, next: AtomicU64::new(1) };
        let skeleton = session.skeleton();
        fs_err::create_dir(&skeleton)?;
        let folders = ["/dev", "/proc", "/sys"].map(|path| (path, true));
        let files = ["/etc/hosts", "/etc/hostname", "/etc/resolv.conf"].map(|path| (path, false));
        make_targets(&skeleton, folders.into_iter().chain(files))?;
        Ok(session)
    }

    pub(crate) fn skeleton(&self) -> PathBuf {
        self.folder.join("skeleton")
    }

    /// A fresh folder for one run.
    pub(crate) fn run(&self) -> io::Result<RunFolder> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("run-{number}"));
        fs_err::create_dir(&path)?;
        let kept = self.folder.join(format!("upper-{number}"));
        Ok(RunFolder { store: self.store.clone(), path, kept })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.store.settle();
        let removed = remove_tree(&self.skeleton()).and_then(|()| fs_err::remove_dir(&self.folder));
        if let Err(error) = removed {
            tracing::debug!(%error, "the scratch folder stays");
        }
    }
}

/// The folder of one run, given up when dropped.
pub(crate) struct RunFolder {
    store: Store,
    path: PathBuf,
    kept: PathBuf,
}

impl RunFolder {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the upper dir is.
    pub(crate) fn upper(&self) -> PathBuf {
        self.path.join("upper")
    }

    /// A folder in it that the container's users may enter.
    pub(crate) fn make(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        fs_err::create_dir(&path)?;
        open_to_all(&path)?;
        Ok(path)
    }

    /// Takes the upper dir out.
    pub(crate) fn keep_upper(&self) -> io::Result<PathBuf> {
        fs_err::rename(self.upper(), &self.kept)?;
        Ok(self.kept.clone())
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        self.store.give_up(std::mem::take(&mut self.path));
    }
}

/// Removes what dead processes left in `scratch`: anything named `<word>-<owner>-...`.
pub(crate) fn sweep(scratch: &Path) -> io::Result<()> {
    for entry in fs_err::read_dir(scratch)? {
        let entry = entry?;
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.split_once('-'));
        if owner.and_then(|(_, owner)| Owner::parse(owner)).is_some_and(Owner::is_dead) {
            // Its launcher, or another sweep, may be at it too. What stays is no reason not to start.
            if let Err(error) = remove_tree(&entry.path()) {
                tracing::warn!(%error, "what a dead run left stays");
            }
        }
    }
    Ok(())
}

/// Whatever the process's umask is.
fn open_to_all(folder: &Path) -> io::Result<()> {
    fs_err::set_permissions(folder, std::fs::Permissions::from_mode(0o755))
}

/// Makes empty files and folders to mount on below `root`.
pub(crate) fn make_targets<'a>(
    root: &Path,
    targets: impl Iterator<Item = (&'a str, bool)>,
) -> io::Result<()> {
    open_to_all(root)?;
    for (target, folder) in targets {
        let parts: Vec<_> = target.split('/').filter(|part| !part.is_empty()).collect();
        let mut path = root.to_owned();
        for (index, part) in parts.iter().enumerate() {
            path.push(part);
            if path.exists() {
                continue;
            }
            if folder || index + 1 < parts.len() {
                fs_err::create_dir(&path)?;
                open_to_all(&path)?;
            } else {
                fs_err::File::create(&path)?;
                fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o644))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_deads_scratch_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), scratch.path()).unwrap();
        let session = Session::create(&store).unwrap();
        let run = session.run().unwrap();
        run.make("upper").unwrap();
        let kept = run.keep_upper().unwrap();
        drop(run);
        store.settle();
        let own = Owner::own().unwrap().to_string();
        let namespace = own.split('-').next().unwrap();
        let dead = scratch.path().join(format!("runtime-{namespace}-4294967295-5-1/run-1/deep"));
        fs_err::create_dir_all(&dead).unwrap();
        fs_err::create_dir(scratch.path().join("runtime-strange")).unwrap();
        sweep(scratch.path()).unwrap();
        assert!(!dead.exists() && session.skeleton().join("etc/hosts").exists());
        assert!(kept.exists() && scratch.path().join("runtime-strange").exists());
        drop(session);
        assert!(kept.exists() && !kept.with_file_name("skeleton").exists());
    }
}
