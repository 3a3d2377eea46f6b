//! A Debian package file (deb(5)): an ar archive of `debian-binary`, `control.tar.*` and `data.tar.*`, read
//! without dpkg. Only what bootstraps a tree passes here; dpkg itself then installs every package.
//!
//! Packages come from a signed index, so this guards against mistakes and broken files more than against malice:
//! no entry leaves the tree or passes through a symlink, no device is made, a cut file is an error.

use std::ffi::OsStr;
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use tar::EntryType;

use super::Error;

/// The folders of `/` that are links into `/usr` (merged /usr, all supported suites).
pub(super) const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

/// Largest control archive that is read: real ones have some hundred kilobytes.
const LARGEST_CONTROL: u64 = 64 << 20;

/// Largest single file that is read.
const LARGEST_FILE: u64 = 64 << 20;

/// The text of the package's `control` file.
pub(super) fn control(name: &str, archive: impl Read) -> Result<String, Error> {
    let mut text = None;
    with_member(name, archive, "control.tar", |member| {
        let mut tar = tar::Archive::new(member.take(LARGEST_CONTROL));
        for entry in tar.entries()? {
            let mut entry = entry?;
            if entry.path_bytes().strip_prefix(b"./").unwrap_or(&entry.path_bytes()) == b"control" {
                let mut found = String::new();
                entry.read_to_string(&mut found)?;
                text = Some(found);
                break;
            }
        }
        Ok(())
    })?;
    text.ok_or_else(|| broken(name, "it has no control file"))
}

/// The one file of the package whose path ends in `suffix`.
pub(super) fn file(name: &str, archive: impl Read, suffix: &str) -> Result<Vec<u8>, Error> {
    let mut contents = None;
    with_member(name, archive, "data.tar", |member| {
        let mut tar = tar::Archive::new(member);
        for entry in tar.entries()? {
            let entry = entry?;
            if entry.header().entry_type() == EntryType::Regular
                && entry.path_bytes().ends_with(suffix.as_bytes())
            {
                let mut found = Vec::new();
                entry.take(LARGEST_FILE).read_to_end(&mut found)?;
                contents = Some(found);
            }
        }
        // The decompressor's own check comes at the end of its input, past the end of the archive.
        io::copy(&mut tar.into_inner(), &mut io::sink())?;
        Ok(())
    })?;
    contents.ok_or_else(|| broken(name, &format!("it has no {suffix}")))
}

/// Unpacks the package's files into `tree`, with owners, modes and times.
pub(super) fn unpack(name: &str, archive: impl Read, tree: &Path) -> Result<(), Error> {
    with_member(name, archive, "data.tar", |member| {
        let mut tar = tar::Archive::new(member);
        for entry in tar.entries()? {
            let mut entry = entry?;
            let path = entry.path_bytes().into_owned();
            unpack_entry(&mut entry, &path, tree).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.escape_ascii()))
            })?;
        }
        // The decompressor's own check comes at the end of its input, past the end of the archive.
        io::copy(&mut tar.into_inner(), &mut io::sink())?;
        Ok(())
    })
}

/// Calls `read` with the decompressed member whose name starts with `prefix`.
fn with_member(
    name: &str,
    archive: impl Read,
    prefix: &str,
    read: impl FnOnce(&mut dyn Read) -> io::Result<()>,
) -> Result<(), Error> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::from(error),
        _ => broken(name, &error.to_string()),
    };
    let mut archive = ar::Archive::new(BufReader::new(archive));
    let mut first = true;
    while let Some(member) = archive.next_entry() {
        let mut member = member.map_err(failed)?;
        let member_name = String::from_utf8_lossy(member.header().identifier()).into_owned();
        if first {
            let mut format = String::new();
            member.by_ref().take(16).read_to_string(&mut format).map_err(failed)?;
            if member_name != "debian-binary" || !format.starts_with("2.") {
                return Err(broken(name, "it is not a Debian package of format 2"));
            }
            first = false;
        } else if let Some(suffix) = member_name.strip_prefix(prefix) {
            let mut whole = Whole { left: member.header().size(), inner: member };
            return match suffix {
                "" => read(&mut whole),
                ".gz" => read(&mut flate2::read::MultiGzDecoder::new(whole)),
                ".xz" => read(&mut liblzma::read::XzDecoder::new_multi_decoder(whole)),
                ".zst" => zstd::Decoder::new(whole).and_then(|mut member| read(&mut member)),
                _ => Err(io::Error::other(format!("{member_name} has an unknown compression"))),
            }
            .map_err(failed);
        }
    }
    Err(broken(name, &format!("it has no {prefix}")))
}

/// Reports a member that ends before its stated length, which the ar reader does not.
struct Whole<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.saturating_sub(read as u64);
        if read == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it is cut short"));
        }
        Ok(read)
    }
}

fn broken(name: &str, problem: &str) -> Error {
    Error::Invalid {
        what: name.to_owned(),
        problem: problem.to_owned(),
        hint: Some(
            "its digest is the locked one, so the archive itself serves a broken package"
                .to_owned(),
        ),
    }
}

fn unpack_entry<R: Read>(
    entry: &mut tar::Entry<'_, R>,
    path: &[u8],
    tree: &Path,
) -> io::Result<()> {
    let Some(relative) = safe_path(path)? else { return Ok(()) };
    let kind = entry.header().entry_type();
    if relative.components().count() == 1
        && let Some(name) = relative.to_str()
        && MERGED.contains(&name)
    {
        let merged = match kind {
            EntryType::Directory => true,
            EntryType::Symlink => {
                entry.link_name_bytes().as_deref() == Some(format!("usr/{name}").as_bytes())
            }
            _ => false,
        };
        return if merged { Ok(()) } else { Err(invalid("it breaks the merged /usr")) };
    }
    let relative = merged_path(&relative);
    let target = below(tree, &relative)?;
    let header = entry.header();
    let (mode, uid, gid) = (header.mode()?, id(header.uid()?)?, id(header.gid()?)?);
    let mtime = i64::try_from(header.mtime()?).map_err(|_| invalid("its time is out of range"))?;
    match kind {
        EntryType::Directory => {
            match std::fs::create_dir(&target) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && target.is_dir() => {}
                other => other?,
            }
            std::os::unix::fs::lchown(&target, Some(uid), Some(gid))?;
            std::fs::set_permissions(&target, std::fs::Permissions::from_mode(mode & 0o7777))?;
        }
        EntryType::Regular | EntryType::Continuous => {
            remove_other(&target)?;
            let mut file = std::fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&target)?;
            let size = entry.size();
            let copied = io::copy(entry, &mut file)?;
            if copied != size {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it is cut short"));
            }
            std::os::unix::fs::fchown(&file, Some(uid), Some(gid))?;
            // After the owner: changing the owner clears set-user-id bits.
            file.set_permissions(std::fs::Permissions::from_mode(mode & 0o7777))?;
            let time = std::time::UNIX_EPOCH
                + std::time::Duration::from_secs(u64::try_from(mtime).unwrap_or_default());
            file.set_times(std::fs::FileTimes::new().set_modified(time).set_accessed(time))?;
        }
        EntryType::Symlink => {
            let link = entry.link_name_bytes().ok_or_else(|| invalid("a symlink to nowhere"))?;
            remove_other(&target)?;
            std::os::unix::fs::symlink(OsStr::from_bytes(&link), &target)?;
            std::os::unix::fs::lchown(&target, Some(uid), Some(gid))?;
        }
        EntryType::Link => {
            let link = entry.link_name_bytes().ok_or_else(|| invalid("a hard link to nowhere"))?;
            let source = safe_path(&link)?.ok_or_else(|| invalid("a hard link to the root"))?;
            let source = below(tree, &merged_path(&source))?;
            remove_other(&target)?;
            std::fs::hard_link(source, &target)?;
        }
        other => return Err(invalid(&format!("entries of type {other:?} are refused"))),
    }
    Ok(())
}

/// Debian's own ids only: what is above needs no package of ours and may not be mapped.
fn id(id: u64) -> io::Result<u32> {
    u32::try_from(id)
        .ok()
        .filter(|id| *id < 65_536)
        .ok_or_else(|| invalid("its owner is out of range"))
}

fn invalid(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem.to_owned())
}

/// The entry's path below the tree; `None` is the root itself.
fn safe_path(path: &[u8]) -> io::Result<Option<PathBuf>> {
    let mut out = PathBuf::new();
    for component in Path::new(OsStr::from_bytes(path)).components() {
        match component {
            Component::CurDir => {}
            Component::Normal(name) => out.push(name),
            Component::RootDir | Component::ParentDir | Component::Prefix(_) => {
                return Err(invalid("it leaves the tree"));
            }
        }
    }
    Ok((out != Path::new("")).then_some(out))
}

/// `bin/sh` lies at `usr/bin/sh`.
fn merged_path(path: &Path) -> PathBuf {
    match path.components().next() {
        Some(Component::Normal(first)) if MERGED.iter().any(|name| first == *name) => {
            Path::new("usr").join(path)
        }
        _ => path.to_owned(),
    }
}

/// The path in the tree, whose parents are real folders.
fn below(tree: &Path, relative: &Path) -> io::Result<PathBuf> {
    let mut current = tree.to_owned();
    if let Some(parent) = relative.parent() {
        for part in parent.components() {
            current.push(part);
            if !current.symlink_metadata()?.is_dir() {
                return Err(invalid("it passes through something that is no folder"));
            }
        }
    }
    Ok(tree.join(relative))
}

/// Makes way for a file that replaces another package's.
fn remove_other(target: &Path) -> io::Result<()> {
    match std::fs::remove_file(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A package with these data entries: kind, path, link or contents.
    fn package(entries: &[(EntryType, &str, &str)]) -> Vec<u8> {
        let mut data = tar::Builder::new(Vec::new());
        for (kind, path, rest) in entries {
            let mut header = tar::Header::new_gnu();
            // Past the checks of the builder's own path setter.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(*kind);
            header.set_mode(0o755);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(1_000_000);
            let is_link = matches!(kind, EntryType::Symlink | EntryType::Link);
            if is_link {
                header.as_old_mut().linkname[..rest.len()].copy_from_slice(rest.as_bytes());
            }
            let contents = if is_link { "" } else { rest };
            header.set_size(contents.len() as u64);
            header.set_cksum();
            data.append(&header, contents.as_bytes()).unwrap();
        }
        let data = data.into_inner().unwrap();
        let mut control = tar::Builder::new(Vec::new());
        let text = "Package: x\nVersion: 1\nEssential: yes\n";
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        control.append_data(&mut header, "./control", text.as_bytes()).unwrap();
        let control = zstd::encode_all(&control.into_inner().unwrap()[..], 1).unwrap();
        let mut compressor = liblzma::write::XzEncoder::new(Vec::new(), 1);
        io::Write::write_all(&mut compressor, &data).unwrap();
        let data = compressor.finish().unwrap();
        let mut out = ar::Builder::new(Vec::new());
        for (name, bytes) in [
            ("debian-binary", &b"2.0\n"[..]),
            ("control.tar.zst", &control),
            ("data.tar.xz", &data),
        ] {
            out.append(&ar::Header::new(name.into(), bytes.len() as u64), bytes).unwrap();
        }
        out.into_inner().unwrap()
    }

    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        fs_err::create_dir_all(tree.path().join("usr/bin")).unwrap();
        std::os::unix::fs::symlink("usr/bin", tree.path().join("bin")).unwrap();
        tree
    }

    const DIR: EntryType = EntryType::Directory;
    const FILE: EntryType = EntryType::Regular;
    const LINK: EntryType = EntryType::Symlink;
    const HARD: EntryType = EntryType::Link;

    #[test]
    fn unpacks_into_the_merged_tree() {
        let tree = tree();
        let deb = package(&[
            (DIR, "./", ""),
            (DIR, "./bin/", ""),
            (FILE, "./bin/sh", "#!"),
            (HARD, "./bin/dash", "./bin/sh"),
            (LINK, "./bin/bash", "sh"),
            (LINK, "./bin", "usr/bin"),
            (DIR, "./etc/", ""),
            (FILE, "./etc/a b", "x"),
        ]);
        unpack("x", &deb[..], tree.path()).unwrap();
        let root = tree.path();
        assert!(root.join("bin").symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs_err::read(root.join("usr/bin/dash")).unwrap(), b"#!");
        assert_eq!(fs_err::read_link(root.join("usr/bin/bash")).unwrap(), Path::new("sh"));
        let metadata = fs_err::metadata(root.join("etc/a b")).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o7777, 0o755);
        assert_eq!(std::os::unix::fs::MetadataExt::mtime(&metadata), 1_000_000);
        assert_eq!(control("x", &deb[..]).unwrap(), "Package: x\nVersion: 1\nEssential: yes\n");
    }

    #[test]
    fn hostile_entries_are_refused() {
        for (entries, message) in [
            (&[(FILE, "../out", "x")][..], "../out: it leaves the tree"),
            (&[(FILE, "./etc/../../out", "x")], "./etc/../../out: it leaves the tree"),
            (&[(FILE, "/etc/passwd", "x")], "/etc/passwd: it leaves the tree"),
            (&[(LINK, "./out", "/"), (FILE, "./out/file", "x")], "./out/file: it passes through"),
            (&[(LINK, "./bin", "/tmp")], "./bin: it breaks the merged /usr"),
            (&[(HARD, "./x", "../../etc/passwd")], "./x: it leaves the tree"),
            (&[(EntryType::Char, "./null", "")], "./null: entries of type Char are refused"),
            (&[(FILE, "./missing/file", "x")], "./missing/file: No such file"),
        ] {
            let tree = tree();
            let error = unpack("x.deb", &package(entries)[..], tree.path()).unwrap_err();
            assert!(error.to_string().starts_with(&format!("x.deb: {message}")), "{error}");
            assert!(error.hint().is_some());
            assert!(!tree.path().parent().unwrap().join("out").exists());
        }
    }

    #[test]
    fn a_cut_package_is_refused_wherever_it_is_cut() {
        let deb = package(&[(FILE, "./file", "contents")]);
        for length in 0..deb.len() {
            let tree = tree();
            assert!(unpack("x", &deb[..length], tree.path()).is_err(), "{length} of {}", deb.len());
        }
    }
}
