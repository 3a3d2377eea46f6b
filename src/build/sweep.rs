//! What commands leave that is no part of a layer, since it differs from run to run or could run old code.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::inside::inside;
use crate::image::{self, Error};

/// Temporary files, caches, and git's own: a look at the work tree already writes its index again.
const SWEPT: [&str; 5] = ["tmp", "var/tmp", "run", "root/.cache", "testbed/.git"];

/// Removes those from the upper dir of a command, and compiled Python: `/testbed` and what is installed from it carry none
/// (docs/decisions/0003-pyc.md).
pub fn sweep(upper: &Path) -> Result<(), Error> {
    for path in SWEPT {
        remove(upper, path)?;
    }
    for entry in walkdir::WalkDir::new(upper).contents_first(true) {
        let entry = entry.map_err(std::io::Error::from)?;
        if entry.file_type().is_dir() {
            if entry.file_name() == "__pycache__" {
                image::remove_tree(entry.path())?;
            }
        } else if entry.file_name().as_bytes().ends_with(b".pyc") {
            fs_err::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes what is at a path of an upper dir, following no link.
pub(crate) fn remove(upper: &Path, path: &str) -> Result<(), Error> {
    let Some(path) = inside(upper, Path::new(path))? else { return Ok(()) };
    match fs_err::symlink_metadata(&path) {
        Ok(metadata) if metadata.is_dir() => image::remove_tree(&path)?,
        Ok(_) => fs_err::remove_file(&path)?,
        Err(_) => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_the_sweep_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let (upper, host) = (folder.path().join("upper"), folder.path().join("host"));
        let kept = ["tmp/x", ".cache/x", ".git/x", "build/x", "__pycache__/x", "x.pyc"];
        for path in kept {
            fs_err::create_dir_all(host.join(path).parent().unwrap()).unwrap();
            fs_err::write(host.join(path), "").unwrap();
        }
        fs_err::create_dir_all(upper.join("usr/__pycache__")).unwrap();
        fs_err::create_dir_all(upper.join("run/x")).unwrap();
        for name in ["tmp", "var", "root", "testbed"] {
            std::os::unix::fs::symlink(&host, upper.join(name)).unwrap();
        }
        sweep(&upper).unwrap();
        remove(&upper, "testbed/build").unwrap();
        for path in kept {
            assert!(host.join(path).exists(), "{path}");
        }
        let mut left: Vec<_> =
            fs_err::read_dir(&upper).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["root", "testbed", "usr", "var"]);
        assert_eq!(fs_err::read_dir(upper.join("usr")).unwrap().count(), 0);
    }
}
