//! A folder that an archive is unpacked into, entry by entry.
//!
//! The rules are those of Python's `data` filter for tar files (PEP 706), made stricter where that costs no
//! known sdist:
//!
//! - no absolute path, no `..` that is not undone by what is before it in a link, no device, FIFO or sparse file;
//! - nothing is written through a symbolic link, and a link points inside the folder;
//! - an entry that comes twice is passed over when it says the same again, and refused otherwise: the first and the last
//!   one would both be somebody's reading of the archive;
//! - modes are 0644, or 0755 where the owner may execute; owners are ours.
//!
//! All that was made is known here, so that the checks do not race with the filesystem.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What stops an unpacking.
pub(super) enum Stop {
    /// The entry is at fault.
    Refused(&'static str),
    /// The archive cannot be read.
    Read(io::Error),
    /// The disk cannot be written.
    Write(io::Error),
}

#[derive(Clone, PartialEq, Eq)]
enum Made {
    Folder,
    File,
    Link(Vec<u8>),
}

/// The folder and what was made in it.
pub(super) struct Tree {
    root: PathBuf,
    made: BTreeMap<Vec<u8>, Made>,
}

/// Longer paths are refused by the kernel.
const LONGEST_PATH: usize = 4095;

impl Tree {
    /// Starts in `root`, which is created; what is in it already is never replaced.
    pub(super) fn new(root: &Path) -> io::Result<Self> {
        fs_err::create_dir_all(root)?;
        Ok(Self { root: root.to_owned(), made: BTreeMap::new() })
    }

    /// The only top folder, or the root where there are several or a file beside it, as pip does.
    pub(super) fn top(&self) -> PathBuf {
        let mut tops = self.made.iter().filter(|(path, _)| !path.contains(&b'/'));
        match (tops.next(), tops.next()) {
            (Some((path, Made::Folder)), None) => self.path(path),
            _ => self.root.clone(),
        }
    }

    pub(super) fn folder(&mut self, name: &[u8]) -> Result<(), Stop> {
        match clean(name)? {
            Some(path) => self.make_folder(&path),
            None => Ok(()),
        }
    }

    pub(super) fn file(
        &mut self,
        name: &[u8],
        executable: bool,
        mtime: Option<u64>,
        content: &mut impl Read,
    ) -> Result<(), Stop> {
        let path = clean(name)?.ok_or(Stop::Refused("has no name"))?;
        match self.made.get(&path) {
            None => {}
            Some(Made::File) => return same_content(&self.path(&path), content),
            Some(_) => return Err(TWICE),
        }
        self.make_parents(&path)?;
        let mut file = fs_err::OpenOptions::new();
        file.write(true).create_new(true);
        file.options_mut().mode(0o644);
        let mut file = file.open(self.path(&path)).map_err(Stop::Write)?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = content.read(&mut buffer).map_err(Stop::Read)?;
            if read == 0 {
                break;
            }
            file.write_all(&buffer[..read]).map_err(Stop::Write)?;
        }
        // Whatever the umask is.
        let mode = if executable { 0o755 } else { 0o644 };
        file.set_permissions(std::fs::Permissions::from_mode(mode)).map_err(Stop::Write)?;
        if let Some(mtime) = mtime {
            // Build tools compare the times of sources and generated files.
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(mtime.min(u32::MAX.into()));
            file.into_parts().0.set_modified(time).map_err(Stop::Write)?;
        }
        self.made.insert(path, Made::File);
        Ok(())
    }

    pub(super) fn symbolic_link(&mut self, name: &[u8], target: &[u8]) -> Result<(), Stop> {
        let path = clean(name)?.ok_or(Stop::Refused("has no name"))?;
        if !stays_inside(&path, target) {
            return Err(Stop::Refused("is a symbolic link that may lead out of the archive"));
        }
        match self.made.get(&path) {
            None => {}
            Some(Made::Link(held)) if held == target => return Ok(()),
            Some(_) => return Err(TWICE),
        }
        self.make_parents(&path)?;
        std::os::unix::fs::symlink(OsStr::from_bytes(target), self.path(&path))
            .map_err(Stop::Write)?;
        self.made.insert(path, Made::Link(target.to_owned()));
        Ok(())
    }

    pub(super) fn hard_link(&mut self, name: &[u8], target: &[u8]) -> Result<(), Stop> {
        let path = clean(name)?.ok_or(Stop::Refused("has no name"))?;
        let outside = Stop::Refused("is a hard link to what is no earlier file of the archive");
        let target = match clean(target) {
            Ok(Some(target)) if self.made.get(&target) == Some(&Made::File) => target,
            _ => return Err(outside),
        };
        match self.made.get(&path) {
            None => {}
            Some(Made::File) => {
                let mut content = fs_err::File::open(self.path(&target)).map_err(Stop::Write)?;
                return same_content(&self.path(&path), &mut content);
            }
            Some(_) => return Err(TWICE),
        }
        self.make_parents(&path)?;
        fs_err::hard_link(self.path(&target), self.path(&path)).map_err(Stop::Write)?;
        self.made.insert(path, Made::File);
        Ok(())
    }

    fn path(&self, path: &[u8]) -> PathBuf {
        self.root.join(OsStr::from_bytes(path))
    }

    fn make_parents(&mut self, path: &[u8]) -> Result<(), Stop> {
        match path.iter().rposition(|byte| *byte == b'/') {
            Some(end) => self.make_folder(&path[..end]),
            None => Ok(()),
        }
    }

    fn make_folder(&mut self, path: &[u8]) -> Result<(), Stop> {
        match self.made.get(path) {
            Some(Made::Folder) => return Ok(()),
            Some(Made::Link(_)) => return Err(Stop::Refused("leads through a symbolic link")),
            Some(Made::File) => return Err(TWICE),
            None => {}
        }
        self.make_parents(path)?;
        let folder = self.path(path);
        fs_err::create_dir(&folder).map_err(Stop::Write)?;
        fs_err::set_permissions(&folder, std::fs::Permissions::from_mode(0o755))
            .map_err(Stop::Write)?;
        self.made.insert(path.to_owned(), Made::Folder);
        Ok(())
    }
}

const TWICE: Stop = Stop::Refused("comes twice, and differs");

/// The components of a name joined again, without `.` and doubled slashes; `None` for the root itself.
fn clean(name: &[u8]) -> Result<Option<Vec<u8>>, Stop> {
    if name.starts_with(b"/") {
        return Err(Stop::Refused("has an absolute path"));
    }
    if name.contains(&0) {
        return Err(Stop::Refused("has a NUL in its path"));
    }
    let mut parts = Vec::new();
    for part in name.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => return Err(Stop::Refused("has `..` in its path")),
            part if part.len() > 255 => return Err(Stop::Refused("has too long a name")),
            part => parts.push(part),
        }
    }
    let path = parts.join(&b'/');
    if path.len() > LONGEST_PATH {
        return Err(Stop::Refused("has too long a path"));
    }
    Ok((!path.is_empty()).then_some(path))
}

/// Whether a link at `path` leads inside, whatever other links are on its way: it may first go up, no further than to the
/// root, then only down. Going up is exact since no parent of an entry is a link, and going down meets only links of which
/// the same holds.
fn stays_inside(path: &[u8], target: &[u8]) -> bool {
    if target.is_empty() || target.starts_with(b"/") || target.contains(&0) {
        return false;
    }
    let mut depth = path.split(|byte| *byte == b'/').count() - 1;
    let mut down = false;
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if down || depth == 0 => return false,
            b".." => depth -= 1,
            _ => down = true,
        }
    }
    true
}

fn same_content(path: &Path, content: &mut impl Read) -> Result<(), Stop> {
    let held = fs_err::read(path).map_err(Stop::Write)?;
    let mut again = Vec::new();
    content.take(held.len() as u64 + 1).read_to_end(&mut again).map_err(Stop::Read)?;
    if again == held { Ok(()) } else { Err(TWICE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stay_inside() {
        for (path, target, inside) in [
            ("a", "b", true),
            ("a/b", "../c", true),
            ("a/b", "../../c", false),
            ("a", "..", false),
            ("a", "/etc", false),
            ("a/b", "..", true),
            ("a/b/c", "../../d/e", true),
            // `x` may itself be a link to somewhere else, whose parent is not ours.
            ("a/b/c", "x/..", false),
            ("a", "./b", true),
            ("a", "", false),
        ] {
            assert_eq!(stays_inside(path.as_bytes(), target.as_bytes()), inside, "{path} {target}");
        }
    }
}
