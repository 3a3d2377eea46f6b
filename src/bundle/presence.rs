//! Which files of a list the store holds: by length, or to the last byte.

use std::collections::BTreeMap;
use std::io;

use super::Error;
use crate::base::files::VerifiedReader;
use crate::base::{Cancel, Store};
use crate::lock::FileRef;

/// A file that is not as promised.
#[derive(Debug)]
pub enum Fault {
    /// It is not there.
    Missing(FileRef),
    /// It is there with other bytes.
    Damaged {
        /// The file.
        file: FileRef,
        /// What differs.
        why: crate::base::Error,
    },
}

/// Each file once, by digest. Several names for one content are one file here.
pub(super) fn by_content(
    files: &[FileRef],
) -> Result<BTreeMap<crate::base::Digest, &FileRef>, Error> {
    let mut unique: BTreeMap<_, &FileRef> = BTreeMap::new();
    for file in files {
        let held = unique.entry(file.sha256).or_insert(file);
        if held.size != file.size {
            return Err(Error::Contradiction {
                name: file.name.clone(),
                first: held.size,
                second: file.size,
            });
        }
    }
    Ok(unique)
}

/// Whether the store holds a blob of the promised length.
pub(super) fn is_present(store: &Store, file: &FileRef) -> bool {
    fs_err::metadata(store.blob_path(&file.sha256))
        .is_ok_and(|metadata| metadata.is_file() && metadata.len() == file.size)
}

/// Opens a file of the store; the reader checks size and digest to the end.
pub fn open(store: &Store, file: &FileRef) -> Result<VerifiedReader<fs_err::File>, Error> {
    match fs_err::File::open(store.blob_path(&file.sha256)) {
        Ok(held) => Ok(VerifiedReader::new(held, &file.name, file.sha256, Some(file.size))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::Missing { name: file.name.clone(), digest: file.sha256 })
        }
        Err(error) => Err(error.into()),
    }
}

/// The files that the store does not hold, each once, in the order of their digests.
pub fn missing(store: &Store, files: &[FileRef]) -> Result<Vec<FileRef>, Error> {
    Ok(by_content(files)?.into_values().filter(|file| !is_present(store, file)).cloned().collect())
}

/// Reads every file to its end and compares size and digest. An empty answer means that all is well.
pub fn verify(store: &Store, files: &[FileRef], cancel: &Cancel) -> Result<Vec<Fault>, Error> {
    let mut faults = Vec::new();
    for file in by_content(files)?.into_values() {
        cancel.check()?;
        let mut reader = match open(store, file) {
            Ok(reader) => reader,
            Err(Error::Missing { .. }) => {
                faults.push(Fault::Missing(file.clone()));
                continue;
            }
            Err(error) => return Err(error),
        };
        if let Err(error) = io::copy(&mut reader, &mut io::sink()) {
            match Error::from_reader(error) {
                Error::Base(
                    why @ (crate::base::Error::DigestMismatch { .. }
                    | crate::base::Error::SizeMismatch { .. }),
                ) => faults.push(Fault::Damaged { file: file.clone(), why }),
                error => return Err(error),
            }
        }
    }
    Ok(faults)
}
