//! The store: everything that is kept between two calls, outside the repository.
//!
//! ```text
//! <store>/
//!   blobs/sha256/<hex>      files by content: bundle files, compressed layers, configs, manifests
//!   layers/<hex>/           unpacked layers by diff ID, in overlayfs form (whiteouts are char 0:0)
//!   trees/<hex>/            unpacked Python distributions by key; env layers hold hard links to their files
//!   steps/<hex>.json        results of steps by key
//!   runs/<hex>/             run records by key: record.json, stdout, stderr, report
//!   locks/<name>            flock files; correctness never needs them
//! <scratch>/                upper dirs and work in progress, local; swept at start
//! ```
//!
//! `blobs/` is a valid OCI layout's blob folder. Everything is written to a temporary name and
//! renamed, so a reader sees whole things only, and a killed writer leaves only what gc sweeps.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::files::{AtomicFile, VerifiedReader, write_atomic};
use super::remover::Remover;
use super::{Cancel, Digest, Error, HashingWriter, Owner, Scratch};
use crate::base::flock::FileLock;

/// Where things are kept. Cheap to clone; safe to share between processes.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
    scratch: PathBuf,
    remover: Arc<Remover>,
}

impl Store {
    /// Opens (and creates) a store at `root` with scratch at `scratch`.
    pub fn open(root: &Path, scratch: &Path) -> Result<Self, Error> {
        for folder in ["blobs/sha256", "layers", "trees", "steps", "runs", "locks"] {
            fs_err::create_dir_all(root.join(folder))?;
        }
        fs_err::create_dir_all(scratch)?;
        Ok(Self {
            root: fs_err::canonicalize(root)?,
            scratch: fs_err::canonicalize(scratch)?,
            remover: Arc::default(),
        })
    }

    /// The store's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of work in progress, always local.
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// A fresh folder in scratch, given up when dropped. `purpose` is one word without a dash. The folder's
    /// name says whose it is, so that it is swept when this process is killed.
    pub fn scratch_dir(&self, purpose: &str) -> Result<Scratch, Error> {
        let prefix = format!("{purpose}-{}-", Owner::own()?);
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(&self.scratch)?;
        Ok(Scratch::new(folder, &self.remover))
    }

    /// Removes a tree of scratch, soon: at the latest when the last copy of this store is dropped.
    pub fn give_up(&self, path: PathBuf) {
        self.remover.remove(path);
    }

    /// Waits until everything given up so far is removed.
    pub fn settle(&self) {
        self.remover.settle();
    }

    /// Where the blob is, or would be.
    pub fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.root.join("blobs/sha256").join(digest.hex())
    }

    /// Whether the blob is here. Blobs are verified when they come in.
    pub fn has_blob(&self, digest: &Digest) -> bool {
        self.blob_path(digest).exists()
    }

    /// A writer for a blob whose digest is known at the end.
    pub fn blob_writer(&self) -> Result<BlobWriter, Error> {
        let file = AtomicFile::new_in(&self.root.join("blobs/sha256"))?;
        Ok(BlobWriter { store: self.clone(), out: HashingWriter::new(io::BufWriter::new(file)) })
    }

    /// Stores bytes under their digest.
    pub fn put_blob(&self, bytes: &[u8]) -> Result<Digest, Error> {
        let digest = Digest::of(bytes);
        if !self.has_blob(&digest) {
            let mut writer = self.blob_writer()?;
            writer.write_all(bytes)?;
            writer.commit()?;
        }
        Ok(digest)
    }

    /// Opens a blob; the reader checks its digest at the end.
    pub fn open_blob(&self, digest: &Digest) -> Result<VerifiedReader<fs_err::File>, Error> {
        let path = self.blob_path(digest);
        let file = fs_err::File::open(&path)?;
        Ok(VerifiedReader::new(file, path.display().to_string(), *digest, None))
    }

    /// Reads a whole blob and checks it.
    pub fn read_blob(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.open_blob(digest)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Where the unpacked layer is, or would be. It exists only when whole.
    pub fn layer_path(&self, diff_id: &Digest) -> PathBuf {
        self.root.join("layers").join(diff_id.hex())
    }

    /// Where the tree with this key (an unpacked distribution) is, or would be. It exists only when whole, and nothing
    /// changes it: layers share its files.
    pub fn tree_path(&self, key: &Digest) -> PathBuf {
        self.root.join("trees").join(key.hex())
    }

    /// Where the run's record folder is, or would be. It exists only when whole.
    pub fn run_path(&self, key: &Digest) -> PathBuf {
        self.root.join("runs").join(key.hex())
    }

    /// The result of the step with this key, if it ran before. A file that does not read (cut by
    /// a power failure) counts as absent.
    pub fn step<T: DeserializeOwned>(&self, key: &Digest) -> Option<T> {
        let path = self.root.join("steps").join(format!("{}.json", key.hex()));
        let bytes = fs_err::read(&path).ok()?;
        serde_json::from_slice(&bytes)
            .map_err(
                |error| tracing::debug!(path = %path.display(), %error, "unreadable step result"),
            )
            .ok()
    }

    /// Keeps the result of a step.
    pub fn put_step<T: Serialize>(&self, key: &Digest, result: &T) -> Result<(), Error> {
        let path = self.root.join("steps").join(format!("{}.json", key.hex()));
        write_atomic(&path, &super::canon::to_vec(result)?).map(|_| ())
    }

    /// Waits for the right to do the work named by `key`, so that nobody does it twice at once.
    pub fn lock_step(&self, key: &Digest, cancel: &Cancel) -> Result<FileLock, Error> {
        FileLock::exclusive(&self.root.join("locks").join(key.hex()), cancel)
    }

    /// Held while the store is used; gc waits for it.
    pub fn lock_shared(&self, cancel: &Cancel) -> Result<FileLock, Error> {
        FileLock::shared(&self.root.join("locks/store"), cancel)
    }

    /// Held by gc.
    pub fn lock_exclusive(&self, cancel: &Cancel) -> Result<FileLock, Error> {
        FileLock::exclusive(&self.root.join("locks/store"), cancel)
    }
}

/// Writes one blob; nothing is left when it is dropped before [`BlobWriter::commit`].
pub struct BlobWriter {
    store: Store,
    out: HashingWriter<io::BufWriter<AtomicFile>>,
}

impl BlobWriter {
    /// Puts the blob in its place and returns its digest and length.
    pub fn commit(self) -> Result<(Digest, u64), Error> {
        let (buffer, digest, size) = self.out.finish();
        let file = buffer.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.commit(&self.store.blob_path(&digest))?;
        Ok((digest, size))
    }

    /// Puts the blob in its place if it has the promised digest; leaves nothing otherwise.
    pub fn commit_as(self, name: &str, expected: Digest) -> Result<u64, Error> {
        let (buffer, actual, size) = self.out.finish();
        if actual != expected {
            return Err(Error::DigestMismatch { name: name.to_owned(), expected, actual });
        }
        let file = buffer.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.commit(&self.store.blob_path(&expected))?;
        Ok(size)
    }
}

impl Write for BlobWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.out.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
