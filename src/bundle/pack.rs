//! One file that carries a bundle to a machine without a network.
//!
//! ```text
//! bundle.tar                     ustar, uncompressed: what it holds is compressed already
//!   hallmark-bundle.json         first: {"files": [...], "version": 1}, canonical JSON
//!   blobs/sha256/<hex>           each content once, sorted by digest
//! ```
//!
//! The same files give the same bytes: sorted entries, no times, owners or modes of this machine.
//! An archive has exactly this shape and its exact length follows from its index, so unpacking
//! refuses a cut or lengthened one before it imports anything, and anything out of place after.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Error;
use super::history;
use super::presence::{by_content, is_present, open};
use crate::base::files::{AtomicFile, VerifiedReader};
use crate::base::progress::Task;
use crate::base::{Cancel, Digest, SharedReporter, Store, canon};
use crate::lock::FileRef;

const VERSION: u64 = 1;
const INDEX: &str = "hallmark-bundle.json";
const BLOCK: usize = 512;

/// An index of half a million files is smaller.
const LARGEST_INDEX: u64 = 256 * 1024 * 1024;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    files: Vec<FileRef>,
    version: u64,
}

/// Read before everything else, so that a newer format is named as such.
#[derive(Deserialize)]
struct VersionOnly {
    version: u64,
}

/// What a pack or an unpack moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackReport {
    /// The files of the archive, sorted.
    pub files: Vec<FileRef>,
    /// Contents written: all of them when packing, those that were not there when unpacking.
    pub written: usize,
    /// Length of the archive.
    pub size: u64,
}

/// Writes the files, all of which must be in the store, to one archive. Every byte is verified again.
pub fn pack(
    store: &Store,
    files: &[FileRef],
    out: &Path,
    reporter: &SharedReporter,
    cancel: &Cancel,
) -> Result<PackReport, Error> {
    let _lock = store.lock_shared(cancel)?;
    let contents = by_content(files)?;
    if let Some(file) = contents.values().find(|file| !is_present(store, file)) {
        return Err(Error::Missing { name: file.name.clone(), digest: file.sha256 });
    }
    let mut sorted: Vec<FileRef> = files.to_vec();
    sorted.sort();
    sorted.dedup();
    let index = Index { files: sorted, version: VERSION };
    let index_bytes = canon::to_vec(&index)?;
    let size = archive_size(index_bytes.len() as u64, contents.values().map(|file| file.size));
    let task = Task::start(reporter, "pack", out.display().to_string(), Some(size));

    let folder = match out.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let file = AtomicFile::new_in(folder)?;
    let mut out_file = io::BufWriter::with_capacity(1 << 20, file);
    write_entry(
        &mut out_file,
        INDEX,
        index_bytes.len() as u64,
        &mut index_bytes.as_slice(),
        cancel,
    )?;
    for file in contents.values() {
        let mut reader = open(store, file)?;
        write_entry(&mut out_file, &blob_name(&file.sha256), file.size, &mut reader, cancel)?;
        task.advance(file.size);
    }
    out_file.write_all(&[0; 2 * BLOCK])?;
    let file = out_file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.commit(out)?;
    task.done();
    Ok(PackReport { files: index.files, written: contents.len(), size })
}

fn blob_name(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

fn archive_size(index: u64, sizes: impl Iterator<Item = u64>) -> u64 {
    let block = BLOCK as u64;
    // Sizes in an index are a stranger's.
    let entry = |size: u64| size.div_ceil(block).saturating_mul(block).saturating_add(block);
    sizes.map(entry).fold(entry(index) + 2 * block, u64::saturating_add)
}

/// Bytes from the end of a content to the next block.
fn padding(size: u64) -> usize {
    let over = usize::try_from(size % BLOCK as u64).expect("less than a block");
    (BLOCK - over) % BLOCK
}

fn header(name: &str, size: u64) -> Result<tar::Header, Error> {
    let mut header = tar::Header::new_ustar();
    header.set_path(name)?;
    header.set_size(size);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_entry_type(tar::EntryType::Regular);
    header.set_cksum();
    Ok(header)
}

fn write_entry(
    out: &mut impl Write,
    name: &str,
    size: u64,
    content: &mut impl Read,
    cancel: &Cancel,
) -> Result<(), Error> {
    out.write_all(header(name, size)?.as_bytes())?;
    copy(content, out, cancel)?;
    out.write_all(&[0; BLOCK][..padding(size)])?;
    Ok(())
}

/// Copies to the end; a mismatch inside an I/O error comes out as what it is.
fn copy(from: &mut impl Read, to: &mut impl Write, cancel: &Cancel) -> Result<(), Error> {
    let mut buffer = vec![0; 1 << 18];
    loop {
        cancel.check()?;
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::from_reader(error)),
        };
        to.write_all(&buffer[..read])?;
    }
}

/// Brings the contents of an archive into the store, each verified. Blobs that are there already are
/// passed over. A bad archive leaves at most whole, verified blobs behind.
pub fn unpack(
    store: &Store,
    path: &Path,
    reporter: &SharedReporter,
    cancel: &Cancel,
) -> Result<PackReport, Error> {
    let _lock = store.lock_shared(cancel)?;
    let archive = Archive { path: path.to_owned() };
    let file = fs_err::File::open(path)?;
    let length = file.metadata()?.len();
    let mut input = io::BufReader::with_capacity(1 << 20, file);

    let size = archive.read_header(&mut input, INDEX)?;
    if size > LARGEST_INDEX {
        return Err(archive.broken(format!("its index has {size} bytes")));
    }
    let mut bytes = Vec::new();
    archive.read_content(&mut input, size, |reader| {
        reader.read_to_end(&mut bytes)?;
        Ok(())
    })?;
    let index = archive.parse(&bytes)?;
    let contents = by_content(&index.files)?;
    let expected = archive_size(size, contents.values().map(|file| file.size));
    if length != expected {
        return Err(archive.broken(format!("it has {length} bytes, its index says {expected}")));
    }

    let task = Task::start(reporter, "unpack", path.display().to_string(), Some(length));
    let mut written = 0;
    let mut left: u64 = contents.values().map(|file| file.size).sum();
    for file in contents.values() {
        cancel.check()?;
        let size = archive.read_header(&mut input, &blob_name(&file.sha256))?;
        if size != file.size {
            return Err(archive.broken(format!("{} has {size} bytes inside", file.name)));
        }
        archive
            .read_content(&mut input, size, |reader| {
                let mut reader = VerifiedReader::new(reader, &file.name, file.sha256, Some(size));
                if is_present(store, file) {
                    copy(&mut reader, &mut io::sink(), cancel)
                } else {
                    let mut out = store.blob_writer()?;
                    copy(&mut reader, &mut out, cancel)?;
                    out.commit_as(&file.name, file.sha256)?;
                    written += 1;
                    Ok(())
                }
            })
            .map_err(|error| match error {
                Error::Base(
                    error @ (crate::base::Error::DigestMismatch { .. }
                    | crate::base::Error::SizeMismatch { .. }),
                ) => archive.broken(error.to_string()),
                error => error.or_disk_full(store, left),
            })?;
        left -= size;
        task.advance(size);
    }
    let mut end = Vec::new();
    input.read_to_end(&mut end)?;
    if end.iter().any(|byte| *byte != 0) {
        return Err(archive.broken("its end is not empty"));
    }
    for file in &index.files {
        history::remember(store, file)?;
    }
    task.done();
    Ok(PackReport { files: index.files, written, size: length })
}

/// An archive being read; every complaint names it.
struct Archive {
    path: PathBuf,
}

impl Archive {
    fn broken(&self, reason: impl Into<String>) -> Error {
        Error::Archive { path: self.path.clone(), reason: reason.into() }
    }

    /// The length of the next entry, which must be a plain file of this name and nothing else.
    fn read_header(&self, input: &mut impl Read, name: &str) -> Result<u64, Error> {
        let mut block = [0; BLOCK];
        input.read_exact(&mut block).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.broken(format!("it ends before {name}")),
            _ => error.into(),
        })?;
        let found = tar::Header::from_byte_slice(&block);
        // Only we write such archives: the whole block must be the one that we would write.
        match found.size() {
            Ok(size) if header(name, size)?.as_bytes() == &block => Ok(size),
            _ if name == INDEX => Err(self.broken("it is no archive of `hallmark bundle pack`")),
            _ => {
                let found = found.path_bytes();
                let found: String =
                    String::from_utf8_lossy(&found).escape_debug().take(200).collect();
                Err(self.broken(format!("it holds `{found}` in the place of {name}")))
            }
        }
    }

    /// Lets `take` read the content of an entry to its end, then skips the padding.
    fn read_content(
        &self,
        input: &mut impl Read,
        size: u64,
        take: impl FnOnce(&mut io::Take<&mut dyn Read>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut content = (input as &mut dyn Read).take(size);
        take(&mut content)?;
        if content.limit() > 0 {
            return Err(self.broken("it is cut off"));
        }
        let mut rest = vec![0; padding(size)];
        input.read_exact(&mut rest).map_err(|_| self.broken("it is cut off"))?;
        if rest.iter().any(|byte| *byte != 0) {
            return Err(self.broken("there is something between its files"));
        }
        Ok(())
    }

    fn parse(&self, bytes: &[u8]) -> Result<Index, Error> {
        let unreadable = |error: serde_json::Error| self.broken(format!("its index: {error}"));
        let VersionOnly { version } = serde_json::from_slice(bytes).map_err(unreadable)?;
        if version != VERSION {
            return Err(Error::Version {
                path: self.path.clone(),
                expected: VERSION,
                actual: version,
            });
        }
        let index: Index = serde_json::from_slice(bytes).map_err(unreadable)?;
        // A lock refers to files by name; a name that is a path must not travel.
        if let Some(file) = index.files.iter().find(|file| !super::is_plain_name(&file.name)) {
            return Err(self.broken(format!("{:?} is not a file name", file.name)));
        }
        if canon::to_vec(&index)? != bytes {
            return Err(self.broken("its index is not in canonical form"));
        }
        if !index.files.is_sorted_by(|a, b| a < b) {
            return Err(self.broken("its index is not sorted, or names a file twice"));
        }
        Ok(index)
    }
}
