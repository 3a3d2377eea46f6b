//! Something to mount on where an image has nothing. Of the standard library alone: pid 1 of a daemon's container has
//! nothing else.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

/// How many links that lead nowhere may lead to each other.
const LINKS: usize = 8;

/// Makes sure that there is a folder, or a file, at an absolute `path`, and notes what was made. A link that leads nowhere
/// (`/etc/resolv.conf` of systemd-resolved does, outside of a running system) leads to what is made for it.
///
/// Nothing of the image runs yet. An error names what could not be made.
pub(crate) fn place(
    path: &str,
    folder: bool,
    made: &mut Vec<String>,
) -> Result<(), (PathBuf, io::Error)> {
    let mut path = PathBuf::from(path);
    for _ in 0..LINKS {
        if fs::metadata(&path).is_ok() {
            return Ok(());
        }
        match fill(&path, folder, made)? {
            None => return Ok(()),
            Some(target) => path = target,
        }
    }
    Err((path, io::Error::from_raw_os_error(ELOOP)))
}

const ELOOP: i32 = 40;

/// Makes each part that is not there; the whole path without the first link that leads nowhere, where there is one.
fn fill(
    path: &Path,
    folder: bool,
    made: &mut Vec<String>,
) -> Result<Option<PathBuf>, (PathBuf, io::Error)> {
    let mut here = PathBuf::from("/");
    let mut parts =
        path.components().filter(|part| matches!(part, Component::Normal(_))).peekable();
    while let Some(part) = parts.next() {
        here.push(part);
        let result = if folder || parts.peek().is_some() {
            DirBuilder::new().mode(0o755).create(&here)
        } else {
            OpenOptions::new().write(true).create_new(true).mode(0o644).open(&here).map(drop)
        };
        match result {
            Ok(()) => made.push(here.to_string_lossy().into_owned()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if fs::metadata(&here).is_err()
                    && let Ok(link) = fs::read_link(&here)
                {
                    let target = without_dots(&here.parent().unwrap_or(&here).join(link));
                    return Ok(Some(parts.fold(target, |path, part| path.join(part))));
                }
            }
            Err(error) => return Err((here, error)),
        }
    }
    Ok(None)
}

/// An absolute path without `.` and `..`, which a folder that is not there yet cannot resolve.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => {
                plain.pop();
            }
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_that_lead_nowhere_lead_to_what_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_str().unwrap();
        let at = |path: &str| format!("{root}/{path}");
        fs_err::create_dir(at("etc")).unwrap();
        symlink("../run/systemd/stub", at("etc/resolv")).unwrap();
        symlink(at("gone"), at("dev")).unwrap();
        symlink("b", at("a")).unwrap();
        symlink("a", at("b")).unwrap();
        let mut made = Vec::new();
        place(&at("etc/resolv"), false, &mut made).unwrap();
        assert!(Path::new(&at("run/systemd/stub")).is_file());
        place(&at("dev/x"), true, &mut made).unwrap();
        assert!(Path::new(&at("gone/x")).is_dir());
        let expected = ["run", "run/systemd", "run/systemd/stub", "gone", "gone/x"].map(at);
        assert_eq!(made, expected);
        let before = made.len();
        place(&at("etc/resolv"), false, &mut made).unwrap();
        assert_eq!(made.len(), before, "it is there");
        assert!(place(&at("a"), false, &mut made).is_err(), "a circle");
        fs_err::write(at("file"), "").unwrap();
        let (path, _) = place(&at("file/x"), false, &mut made).unwrap_err();
        assert_eq!(path, Path::new(&at("file/x")));
    }
}
