//! From a list of files to blobs in the store.
//!
//! Files come over several connections at once. Each is verified while it is read and appears in the
//! store whole or not at all; what is there already is not asked for. One bad file does not stop the
//! others: all failures are reported together.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::presence::{by_content, is_present};
use super::{Error, FetchFailure};
use crate::base::progress::Task;
use crate::base::store::BlobWriter;
use crate::base::{Cancel, SharedReporter, Store};
use crate::lock::{FileRef, Origin};
use crate::net::{self, Client};

/// Enough to hide the latency of small files; more would only be rude to the servers.
const CONNECTIONS: usize = 12;

/// What a fetch did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FetchReport {
    /// Files that came over the network.
    pub fetched: usize,
    /// Files that were in the store already.
    pub cached: usize,
    /// Bytes of the fetched files.
    pub bytes: u64,
}

/// Brings every file of `files` into the store.
pub fn fetch(
    store: &Store,
    client: &Client,
    files: &[FileRef],
    reporter: &SharedReporter,
    cancel: &Cancel,
) -> Result<FetchReport, Error> {
    fetch_with(store, client, None, files, reporter, cancel)
}

/// The same for files some of which are in this registry.
pub fn fetch_with(
    store: &Store,
    client: &Client,
    registry: Option<&str>,
    files: &[FileRef],
    reporter: &SharedReporter,
    cancel: &Cancel,
) -> Result<FetchReport, Error> {
    let unique = by_content(files)?;
    let total = unique.len();
    let mut wanted: Vec<&FileRef> =
        unique.into_values().filter(|file| !is_present(store, file)).collect();
    let mut report = FetchReport { cached: total - wanted.len(), ..FetchReport::default() };
    if wanted.is_empty() {
        return Ok(report);
    }
    let is_nowhere = |file: &&&FileRef| match file.origin {
        // Packs are taken from a repository or come in a bundle.
        Origin::Git { .. } => true,
        Origin::Registry { .. } => registry.is_none(),
        _ => false,
    };
    if let Some(file) = wanted.iter().find(is_nowhere) {
        return Err(Error::Missing { name: file.name.clone(), digest: file.sha256 });
    }
    let _lock = store.lock_shared(cancel)?;
    // The largest first, so that none of them is left running alone at the end.
    wanted.sort_by(|a, b| (b.size, &a.name).cmp(&(a.size, &b.name)));
    let bytes = wanted.iter().map(|file| file.size).sum();
    let job = Job {
        store,
        client: &client.with_cancel(cancel),
        registry,
        reporter,
        cancel,
        whole: Task::start(reporter, "fetch", format!("{} files", wanted.len()), Some(bytes)),
        stop: AtomicBool::new(false),
        queue: Mutex::new(wanted.iter().copied().collect()),
        failures: Mutex::default(),
    };
    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS.min(wanted.len()) {
            scope.spawn(|| job.work());
        }
    });
    cancel.check()?;
    let mut failures = job.failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    if failures.iter().any(|failure| is_disk_full(&failure.why)) {
        let wanted =
            wanted.iter().filter(|file| !is_present(store, file)).map(|file| file.size).sum();
        return Err(Error::DiskFull { store: store.root().to_owned(), wanted });
    }
    if !failures.is_empty() {
        failures.sort_by(|a, b| a.name.cmp(&b.name));
        return Err(Error::Fetch { total, failures });
    }
    report.fetched = wanted.len();
    report.bytes = bytes;
    job.whole.done();
    Ok(report)
}

fn is_disk_full(error: &net::Error) -> bool {
    matches!(error, net::Error::Base(error) if error.is_disk_full())
}

/// What the workers share.
struct Job<'a> {
    store: &'a Store,
    client: &'a Client,
    registry: Option<&'a str>,
    reporter: &'a SharedReporter,
    cancel: &'a Cancel,
    whole: Task,
    /// Set when going on makes no sense.
    stop: AtomicBool,
    queue: Mutex<VecDeque<&'a FileRef>>,
    failures: Mutex<Vec<FetchFailure>>,
}

impl Job<'_> {
    fn work(&self) {
        while !self.cancel.is_cancelled() && !self.stop.load(Ordering::Relaxed) {
            let next = self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(file) = next else { return };
            if let Err(why) = self.fetch_one(file) {
                if why.is_final() {
                    self.stop.store(true, Ordering::Relaxed);
                }
                let failure =
                    FetchFailure { name: file.name.clone(), origin: file.origin.clone(), why };
                self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
            }
        }
    }

    fn fetch_one(&self, file: &FileRef) -> Result<(), net::Error> {
        let task = Task::start(self.reporter, "file", &file.name, Some(file.size));
        let candidates = match &file.origin {
            Origin::Pypi { project } => {
                vec![net::pypi::locate(self.client, project, &file.name, file.sha256)?]
            }
            Origin::Debian { path, as_of } => {
                net::debian::candidates(self.client.config(), path, *as_of)?
            }
            Origin::Git { .. } | Origin::Registry { .. } => Vec::new(),
        };
        let places = match (&file.origin, self.registry) {
            (Origin::Registry { repository }, Some(registry)) => {
                self.client.repositories(registry, repository)?
            }
            _ => Vec::new(),
        };
        // Kept over all tries, so that nothing is counted twice.
        let reported = Cell::new(0);
        let open = || {
            let out = self.store.blob_writer()?;
            Ok(Sink { out, job: self, task: &task, count: 0, reported: &reported })
        };
        let (name, sha256, size) = (&file.name, file.sha256, file.size);
        let sink = if places.is_empty() {
            self.client.download(&candidates, name, sha256, Some(size), open)?
        } else {
            self.client.download_blob(&places, name, sha256, size, open)?
        };
        sink.out.commit_as(&file.name, file.sha256)?;
        task.done();
        Ok(())
    }
}

/// Writes a blob and tells how far it is.
struct Sink<'s, 'j> {
    out: BlobWriter,
    job: &'s Job<'j>,
    task: &'s Task,
    count: u64,
    reported: &'s Cell<u64>,
}

impl Write for Sink<'_, '_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if self.job.stop.load(Ordering::Relaxed) {
            return Err(io::Error::other("stopped, since another file could not be written"));
        }
        let written = self.out.write(buffer)?;
        self.count += written as u64;
        if self.count > self.reported.get() {
            let by = self.count - self.reported.replace(self.count);
            self.task.advance(by);
            self.job.whole.advance(by);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
