//! Files written whole or not at all, and bytes from outside checked to their end.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::{Digest, Error};

/// A file that appears under its name only when it is whole: a temporary file in the same folder,
/// renamed by [`AtomicFile::commit`] and removed when dropped before.
pub struct AtomicFile {
    file: NamedTempFile,
}

impl AtomicFile {
    /// A temporary file in `folder`, which is created when missing.
    pub fn new_in(folder: &Path) -> Result<Self, Error> {
        fs_err::create_dir_all(folder)?;
        let file = tempfile::Builder::new()
            .prefix(".tmp-")
            .tempfile_in(folder)
            .map_err(|error| with_path("create a temporary file in", folder, &error))?;
        Ok(Self { file })
    }

    /// Renames the file to `path`, which must lie in the same filesystem. An existing file is
    /// replaced. Mode 0644.
    pub fn commit(mut self, path: &Path) -> Result<(), Error> {
        use std::os::unix::fs::PermissionsExt as _;
        self.file.flush()?;
        self.file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
        self.file.persist(path).map_err(|error| with_path("write", path, &error.error))?;
        Ok(())
    }

    /// The path of the temporary file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }
}

impl Write for AtomicFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.file.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn with_path(verb: &str, path: &Path, error: &io::Error) -> Error {
    Error::Io(io::Error::new(error.kind(), format!("cannot {verb} {}: {error}", path.display())))
}

/// Writes `bytes` to `path`, whole or not at all; does nothing when the file holds them already.
/// Returns whether it wrote.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<bool, Error> {
    if fs_err::read(path).is_ok_and(|held| held == bytes) {
        return Ok(false);
    }
    let mut file = AtomicFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    file.commit(path)?;
    Ok(true)
}

/// What a user asked to be written: a file that appears when it is whole, where a link leads to one at its end; or what is there and
/// no file (a pipe, a device), which takes the bytes as they come.
pub enum OutputFile {
    /// A file, and its path.
    Whole(AtomicFile, PathBuf),
    /// Something else.
    Direct(fs_err::File),
}

impl OutputFile {
    /// Begins to write to `path`.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let Some(path) = file_at(path) else {
            return Ok(Self::Direct(fs_err::File::create(path)?));
        };
        let folder = path.parent().unwrap_or(Path::new("."));
        Ok(Self::Whole(AtomicFile::new_in(folder)?, path))
    }

    /// All is written.
    pub fn commit(self) -> Result<(), Error> {
        match self {
            Self::Whole(file, path) => file.commit(&path),
            Self::Direct(mut file) => Ok(file.flush()?),
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Whole(file, _) => file.write(buffer),
            Self::Direct(file) => file.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Whole(file, _) => file.flush(),
            Self::Direct(file) => file.flush(),
        }
    }
}

/// How many links may lead to each other, as for the kernel.
const LINKS: usize = 40;

/// Where links lead from `path`, if a file is there or nothing. The kernel's own links (`/dev/stdout`) name files that somebody holds
/// open, and another file in such a place would be none of theirs.
fn file_at(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Ok(metadata) = fs_err::symlink_metadata(&path) else { return Some(path) };
        if !metadata.is_symlink() {
            return metadata.is_file().then_some(path);
        }
        let folder = fs_err::canonicalize(path.parent()?).ok()?;
        if folder.starts_with("/proc") {
            return None;
        }
        path = folder.join(fs_err::read_link(&path).ok()?);
    }
    None
}

/// Writes `bytes` to the [`OutputFile`] at `path`.
pub fn write_output(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    // What may be a pipe is not read.
    if let Some(path) = file_at(path) {
        return write_atomic(&path, bytes).map(|_| ());
    }
    let mut file = OutputFile::create(path)?;
    file.write_all(bytes)?;
    file.commit()
}

/// The digest and the length of a file.
pub fn digest_file(path: &Path) -> Result<(Digest, u64), Error> {
    let mut reader = super::HashingReader::new(fs_err::File::open(path)?);
    let mut buffer = vec![0; 1 << 17];
    while reader.read(&mut buffer)? != 0 {}
    let (_, digest, size) = reader.finish();
    Ok((digest, size))
}

/// Reads at most the promised length and, at the end, demands length and digest.
///
/// The caller must read to the end (a read that returns 0) before using anything: that last read
/// fails with [`Error`] inside [`io::Error`] when the bytes are not the promised ones. Model: umoci's
/// verified reader.
pub struct VerifiedReader<R> {
    inner: R,
    name: String,
    expected: Digest,
    size: Option<u64>,
    hasher: Sha256,
    count: u64,
}

impl<R: Read> VerifiedReader<R> {
    /// Promises `expected` and, where known, `size` of what `inner` gives; `name` is for errors.
    pub fn new(inner: R, name: impl Into<String>, expected: Digest, size: Option<u64>) -> Self {
        Self { inner, name: name.into(), expected, size, hasher: Sha256::new(), count: 0 }
    }

    fn check_end(&self) -> io::Result<()> {
        if let Some(size) = self.size
            && self.count != size
        {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                Error::SizeMismatch {
                    name: self.name.clone(),
                    expected: size,
                    actual: self.count,
                    more: self.count > size,
                },
            ));
        }
        let actual = Digest::from_bytes(self.hasher.clone().finalize().into());
        if actual == self.expected {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            Error::DigestMismatch { name: self.name.clone(), expected: self.expected, actual },
        ))
    }
}

impl<R: Read> Read for VerifiedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        self.count += read as u64;
        if read == 0 || self.size.is_some_and(|size| self.count > size) {
            self.check_end()?;
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], digest: Digest, size: Option<u64>) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        VerifiedReader::new(bytes, "x", digest, size).read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn verified_reader_takes_only_the_promised_bytes() {
        let digest = Digest::of(b"abc");
        assert_eq!(read(b"abc", digest, Some(3)).unwrap(), b"abc");
        assert_eq!(read(b"abc", digest, None).unwrap(), b"abc");
        for (bytes, size, text) in [
            (&b"ab"[..], Some(3), "x: expected 3 bytes, got 2"),
            (b"abcd", Some(3), "x: expected 3 bytes, got more than 4"),
            (b"abd", Some(3), "x: expected sha256:ba78"),
        ] {
            let error = read(bytes, digest, size).unwrap_err().to_string();
            assert!(error.starts_with(text), "{error}");
        }
    }

    #[test]
    fn an_atomic_file_is_whole_or_absent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/file");
        let mut file = AtomicFile::new_in(path.parent().unwrap()).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs_err::read_dir(path.parent().unwrap()).unwrap().count(), 0);
        assert!(write_atomic(&path, b"whole").unwrap());
        assert!(!write_atomic(&path, b"whole").unwrap());
        assert_eq!(fs_err::read(&path).unwrap(), b"whole");
    }

    #[test]
    fn what_is_no_file_is_written_to_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        write_output(&file, b"first").unwrap();
        write_output(&file, b"new").unwrap();
        fs_err::os::unix::fs::symlink(&file, &link).unwrap();
        write_output(&link, b"through").unwrap();
        assert!(fs_err::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs_err::read(&file).unwrap(), b"through");
        // Whole or not at all, there too: who has the old file open keeps it.
        let mut old = fs_err::File::open(&file).unwrap();
        write_output(&link, b"again").unwrap();
        let mut text = String::new();
        old.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), fs_err::read(&link).unwrap()), ("through", b"again".to_vec()));
        let mut open = fs_err::File::create(folder.path().join("open")).unwrap();
        let own = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open));
        write_output(Path::new(&own), b"held").unwrap();
        open.write_all(b"HE").unwrap();
        assert_eq!(fs_err::read(folder.path().join("open")).unwrap(), b"HEld");
        fs_err::remove_file(folder.path().join("open")).unwrap();
        write_output(Path::new("/dev/null"), b"x").unwrap();
        assert!(!fs_err::metadata("/dev/null").unwrap().is_file());

        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs_err::read(pipe).unwrap()
        });
        write_output(&pipe, b"rows").unwrap();
        assert_eq!(reader.join().unwrap(), b"rows");
        assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 3);
    }
}
