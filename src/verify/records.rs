//! Records on disk: written to a folder beside their place and renamed, read back with their version first.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Error;
use super::record::{LogRef, RECORD_VERSION, RunRecord};
use crate::base::{Digest, Store, canon};

/// One of the files of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogKind {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// The runner's stream.
    Report,
}

impl LogKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Stdout, Self::Stderr, Self::Report];

    /// The file's name.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Report => "report",
        }
    }

    /// What the record says of it.
    pub fn of(self, record: &RunRecord) -> LogRef {
        match self {
            Self::Stdout => record.stdout,
            Self::Stderr => record.stderr,
            Self::Report => record.report,
        }
    }
}

/// Where a log of the run with this key is, or would be.
pub fn log_path(store: &Store, key: &Digest, kind: LogKind) -> PathBuf {
    store.run_path(key).join(kind.file_name())
}

/// The record of the run with this key, if it was made. One that is cut off (by a power failure) counts as
/// absent; one of a newer version is an error.
pub fn load(store: &Store, key: &Digest) -> Result<Option<RunRecord>, Error> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u64,
    }
    let path = store.run_path(key).join("record.json");
    let bytes = match fs_err::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let cut = |error: serde_json::Error| {
        tracing::warn!(path = %path.display(), %error, "unreadable run record: the run is made again");
        Ok(None)
    };
    match serde_json::from_slice::<Versioned>(&bytes) {
        Ok(Versioned { version }) if version > RECORD_VERSION => {
            return Err(Error::NewerRecord { path, expected: RECORD_VERSION, actual: version });
        }
        Ok(_) => {}
        Err(error) => return cut(error),
    }
    let record = match read_record(&bytes) {
        Ok(record) => record,
        Err(error) => return cut(error),
    };
    if record.key != *key {
        return Err(Error::WrongRecord { path, expected: *key, actual: record.key });
    }
    Ok(Some(record))
}

/// Reads a record of this version or an older one.
fn read_record(bytes: &[u8]) -> Result<RunRecord, serde_json::Error> {
    let mut value: serde_json::Value = serde_json::from_slice(bytes)?;
    // Version 1 knew plain runs only, by a word.
    if value["version"] == 1 && value["profile"] == "plain" {
        value["profile"] = serde_json::json!([]);
    }
    serde_json::from_value(value)
}

/// Keeps a record and its logs: `logs` are paths of [`LogKind::ALL`], copied. When another process was
/// faster, its record is returned.
pub(crate) fn store_record(
    store: &Store,
    record: RunRecord,
    logs: [&Path; 3],
) -> Result<RunRecord, Error> {
    let target = store.run_path(&record.key);
    let parent = target.parent().expect("runs have a parent folder");
    let folder = tempfile::Builder::new()
        .prefix(".tmp-")
        .tempdir_in(parent)
        .map_err(crate::base::Error::from)?;
    for (kind, path) in LogKind::ALL.into_iter().zip(logs) {
        fs_err::copy(path, folder.path().join(kind.file_name()))?;
    }
    let mut file = fs_err::File::create(folder.path().join("record.json"))?;
    file.write_all(&canon::to_vec(&record)?)?;
    drop(file);
    // A record that does not read, and that the rename would trip over.
    if target.exists() {
        if let Some(held) = load(store, &record.key)? {
            return Ok(held);
        }
        fs_err::remove_dir_all(&target)?;
    }
    let folder = folder.keep();
    match fs_err::rename(&folder, &target) {
        Ok(()) => Ok(record),
        Err(error) => {
            let held = load(store, &record.key)?;
            fs_err::remove_dir_all(&folder)?;
            held.ok_or_else(|| error.into())
        }
    }
}
