//! Paths in a tree that a container wrote, as the host may use them. Anybody's commands ran in it, and a link that leads
//! nowhere there leads somewhere here. Nothing runs in the tree any more, so what is looked at stays as it is.

use std::io;
use std::path::{Component, Path, PathBuf};

use super::Error;

/// `relative` below `root`, where every folder on the way is there and no link; else nothing. What stands at the end
/// may be anything, also nothing.
pub(crate) fn inside(root: &Path, relative: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = root.to_owned();
    let mut parts = relative.components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else { return Ok(None) };
        path.push(name);
        if parts.peek().is_none() {
            break;
        }
        match fs_err::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(path))
}

/// The same for a plain file, which must be there.
pub(crate) fn file_inside(root: &Path, relative: &str) -> Result<PathBuf, Error> {
    if let Some(path) = inside(root, Path::new(relative))?
        && fs_err::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file())
    {
        return Ok(path);
    }
    Err(Error::Invalid {
        what: format!("/{relative}"),
        problem: "a command of the build left no plain file there".to_owned(),
        hint: Some(
            "look for what the environment installs in the place of system programs".to_owned(),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (root, outside) = (folder.path().join("root"), folder.path().join("outside"));
        fs_err::create_dir_all(root.join("a")).unwrap();
        fs_err::create_dir_all(&outside).unwrap();
        fs_err::write(root.join("a/file"), "").unwrap();
        fs_err::write(outside.join("file"), "").unwrap();
        std::os::unix::fs::symlink(&outside, root.join("link")).unwrap();
        std::os::unix::fs::symlink(outside.join("file"), root.join("a/to-file")).unwrap();
        for (relative, there) in [
            ("a/file", true),
            ("a/new", true),
            ("link", true),
            ("link/file", false),
            ("no/file", false),
            ("a/file/x", false),
            ("../outside/file", false),
            ("a/../../outside/file", false),
            ("/etc/passwd", false),
        ] {
            let found = inside(&root, Path::new(relative)).unwrap();
            assert_eq!(found, there.then(|| root.join(relative)), "{relative}");
        }
        assert_eq!(file_inside(&root, "a/file").unwrap(), root.join("a/file"));
        for relative in ["a/new", "a", "a/to-file", "link/file"] {
            let error = file_inside(&root, relative).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("/{relative}: a command of the build left no plain file there")
            );
        }
    }
}
