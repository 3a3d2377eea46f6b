//! The archive formats of sdists, read under limits.
//!
//! `.tar.gz` is what PEP 625 asks for; `.zip`, `.tgz`, `.tar.xz` and `.tar` are met among older ones.
//! A zip file's links are plain files, as Python's own reader has them.

use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::SdistError;
use super::tree::{Stop, Tree};
use crate::base::{Digest, Store};
use crate::bundle::Error;

/// Source text packs to a tenth, tables of zeros to a hundredth.
const LARGEST_RATIO: u64 = 200;

/// Small archives may exceed the ratio up to this.
const ALWAYS_ALLOWED: u64 = 64 * 1024 * 1024;

/// The largest sdists of PyPI unpack to some hundred megabytes.
const LARGEST: u64 = 8 * 1024 * 1024 * 1024;

/// Unpacks a stored sdist into `folder`, which is created, and returns its top folder: the only one, or `folder` itself
/// where there is more at the top. Nothing is stripped.
pub fn extract(
    store: &Store,
    digest: &Digest,
    file_name: &str,
    folder: &Path,
) -> Result<PathBuf, Error> {
    let path = store.blob_path(digest);
    let mut reader = match store.open_blob(digest) {
        Ok(reader) => reader,
        Err(_) if !path.exists() => {
            return Err(Error::Missing { name: file_name.to_owned(), digest: *digest });
        }
        Err(error) => return Err(error.into()),
    };
    // Read to its end before anything of it is used.
    io::copy(&mut reader, &mut io::sink()).map_err(Error::from_reader)?;
    extract_file(&path, file_name, folder)
}

/// The same for a file that was verified by the caller; the name tells its format.
pub fn extract_file(path: &Path, file_name: &str, folder: &Path) -> Result<PathBuf, Error> {
    let file = fs_err::File::open(path)?;
    let packed = file.metadata()?.len();
    let limit = packed.saturating_mul(LARGEST_RATIO).clamp(ALWAYS_ALLOWED, LARGEST);
    let unpacking = Unpacking { name: file_name, packed, limit };
    let mut tree = Tree::new(folder)?;
    let lower = file_name.to_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| lower.ends_with(ending));
    if ends(&[".tar.gz", ".tgz"]) {
        unpacking.tar(&mut tree, flate2::read::MultiGzDecoder::new(io::BufReader::new(file)))?;
    } else if ends(&[".tar.xz"]) {
        unpacking.tar(&mut tree, liblzma::read::XzDecoder::new(io::BufReader::new(file)))?;
    } else if ends(&[".tar"]) {
        unpacking.tar(&mut tree, io::BufReader::new(file))?;
    } else if ends(&[".zip"]) {
        unpacking.zip(&mut tree, file)?;
    } else {
        return Err(SdistError::Kind { name: file_name.to_owned() }.into());
    }
    Ok(tree.top())
}

struct Unpacking<'a> {
    name: &'a str,
    packed: u64,
    limit: u64,
}

impl Unpacking<'_> {
    fn tar(&self, tree: &mut Tree, reader: impl Read) -> Result<(), Error> {
        let mut archive = tar::Archive::new(Limited { inner: reader, left: self.limit });
        let unreadable = |error| self.stopped(b"", Stop::Read(error));
        for entry in archive.entries().map_err(unreadable)? {
            let mut entry = entry.map_err(unreadable)?;
            let name = entry.path_bytes().into_owned();
            let kind = entry.header().entry_type();
            let result = if kind.is_dir() || kind.is_file() && name.ends_with(b"/") {
                tree.folder(&name)
            } else if kind.is_file() || kind.is_contiguous() {
                let header = entry.header();
                let executable = header.mode().is_ok_and(|mode| mode & 0o100 != 0);
                let mtime = header.mtime().ok();
                tree.file(&name, executable, mtime, &mut entry)
            } else if kind.is_symlink() || kind.is_hard_link() {
                match entry.link_name_bytes().map(std::borrow::Cow::into_owned) {
                    Some(target) if kind.is_symlink() => tree.symbolic_link(&name, &target),
                    Some(target) => tree.hard_link(&name, &target),
                    None => Err(Stop::Refused("is a link to nothing")),
                }
            } else if kind.is_pax_global_extensions() {
                Ok(())
            } else {
                Err(Stop::Refused("is neither file, folder nor link"))
            };
            result.map_err(|stop| self.stopped(&name, stop))?;
        }
        // What follows the end mark still counts against the limit, and shows a cut or damaged stream.
        io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(unreadable)?;
        Ok(())
    }

    fn zip(&self, tree: &mut Tree, mut file: fs_err::File) -> Result<(), Error> {
        let unreadable = |error: io::Error| self.stopped(b"", Stop::Read(error));
        let promised = entry_count(&mut file, self.packed).map_err(unreadable)?;
        let mut archive = zip::ZipArchive::new(io::BufReader::new(file))
            .map_err(|error| unreadable(io::Error::other(error)))?;
        if promised.is_some_and(|count| usize::from(count) != archive.len()) {
            // The library keeps one entry of each name.
            return Err(self.stopped(b"?", Stop::Refused("comes twice")));
        }
        let mut left = self.limit;
        for index in 0..archive.len() {
            let entry =
                archive.by_index(index).map_err(|error| unreadable(io::Error::other(error)))?;
            let name = entry.name_raw().to_owned();
            let result = if name.contains(&b'\\') {
                Err(Stop::Refused("has a backslash in its path"))
            } else if entry.is_dir() {
                tree.folder(&name)
            } else {
                let executable = entry.unix_mode().is_some_and(|mode| mode & 0o100 != 0);
                let mtime = entry.last_modified().and_then(seconds);
                let mut content = Limited { inner: entry, left };
                let result = tree.file(&name, executable, mtime, &mut content);
                left = content.left;
                result
            };
            result.map_err(|stop| self.stopped(&name, stop))?;
        }
        Ok(())
    }

    fn stopped(&self, entry: &[u8], stop: Stop) -> Error {
        let name = self.name.to_owned();
        match stop {
            Stop::Refused(reason) => {
                let entry = entry.escape_ascii().to_string().chars().take(200).collect();
                SdistError::Entry { name, entry, reason }.into()
            }
            Stop::Read(error) if is_over_limit(&error) => {
                SdistError::Bomb { name, packed: self.packed, limit: self.limit }.into()
            }
            Stop::Read(source) => SdistError::Unreadable { name, source }.into(),
            Stop::Write(error) => error.into(),
        }
    }
}

/// A zip file's time, whose zone is not told, taken as UTC.
fn seconds(time: zip::DateTime) -> Option<u64> {
    let date = jiff::civil::DateTime::new(
        i16::try_from(time.year()).ok()?,
        i8::try_from(time.month()).ok()?,
        i8::try_from(time.day()).ok()?,
        i8::try_from(time.hour()).ok()?,
        i8::try_from(time.minute()).ok()?,
        i8::try_from(time.second()).ok()?,
        0,
    );
    let time = jiff::tz::TimeZone::UTC.to_timestamp(date.ok()?).ok()?;
    u64::try_from(time.as_second()).ok()
}

/// How many entries a zip file's end record promises; `None` where it says that there are too many for it.
fn entry_count(file: &mut fs_err::File, length: u64) -> io::Result<Option<u16>> {
    const RECORD: usize = 22;
    let tail = length.min(RECORD as u64 + u64::from(u16::MAX));
    file.seek(SeekFrom::Start(length - tail))?;
    let mut bytes = Vec::new();
    file.take(tail).read_to_end(&mut bytes)?;
    file.seek(SeekFrom::Start(0))?;
    let record = bytes.windows(RECORD).rfind(|window| window.starts_with(b"PK\x05\x06"));
    let count = record.map(|record| u16::from_le_bytes([record[10], record[11]]));
    Ok(count.filter(|count| *count != u16::MAX))
}

#[derive(Debug, thiserror::Error)]
#[error("more bytes than allowed")]
struct OverLimit;

/// Looks through what libraries wrap around our own error.
fn is_over_limit(error: &io::Error) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> =
        error.get_ref().map(|inner| inner as _);
    while let Some(inner) = next {
        if inner.is::<OverLimit>() {
            return true;
        }
        next = match inner.downcast_ref::<io::Error>() {
            Some(error) => error.get_ref().map(|inner| inner as _),
            None => inner.source(),
        };
    }
    false
}

/// Gives so many bytes; one more is an error.
struct Limited<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => return Err(io::Error::new(io::ErrorKind::InvalidData, OverLimit)),
        }
        Ok(read)
    }
}
