//! Files of a source tree, read by the host. A repository may hold links to anywhere.

use std::io::{Error, ErrorKind};
use std::path::Path;

/// Reads `file` (relative) of the tree at `source`, through links that stay in it.
pub(super) fn read(source: &Path, file: &Path) -> std::io::Result<String> {
    let path = fs_err::canonicalize(source.join(file))?;
    if !path.starts_with(fs_err::canonicalize(source)?) {
        let text = format!("{} is a link that leads out of the project", file.display());
        return Err(Error::new(ErrorKind::InvalidInput, text));
    }
    fs_err::read_to_string(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_inside_only() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        fs_err::create_dir(&source).unwrap();
        fs_err::write(source.join("real"), "inside").unwrap();
        fs_err::write(folder.path().join("secret"), "outside").unwrap();
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(target, source.join(name)).unwrap();
        };
        link("real", "in");
        link("../secret", "out");
        link("..", "up");
        assert_eq!(read(&source, Path::new("in")).unwrap(), "inside");
        for name in ["out", "up/secret"] {
            let error = read(&source, Path::new(name)).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("{name} is a link that leads out of the project")
            );
        }
        assert_eq!(read(&source, Path::new("no")).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
