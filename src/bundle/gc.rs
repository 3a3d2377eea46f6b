//! Throwing away what nobody needs any more: mark and sweep over the whole store.
//!
//! What refers to what is found by reading: a step's result, a run's record or a JSON blob (manifest, config,
//! index) keeps every digest that is written in it, whatever the field is called. So a new kind of record
//! needs no change here, and an unknown one keeps too much rather than too little.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::Error;
use crate::base::progress::Task;
use crate::base::{Cancel, Digest, SharedReporter, Store, clock};

/// What was touched this recently may be in the making and not yet referred to.
const GRACE: Duration = Duration::from_hours(1);

/// Manifests, configs and indexes are smaller.
const LARGEST_JSON: u64 = 8 * 1024 * 1024;

/// What to keep.
#[derive(Debug, Clone, Default)]
pub struct Keep {
    /// Blobs, layers, steps or runs that are needed, with all that they refer to.
    pub roots: BTreeSet<Digest>,
    /// Whatever was used within this time is kept as well. `None`: every step and run is.
    pub max_age: Option<Duration>,
    /// Let go of the longest unused until no more than this is left, roots apart.
    pub max_bytes: Option<u64>,
}

/// The kinds of things in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A file by content.
    Blob,
    /// An unpacked layer.
    Layer,
    /// An unpacked distribution that layers share files with; it is made again when it is missed.
    Tree,
    /// A step's result.
    Step,
    /// A run's record.
    Run,
    /// What a dead writer left.
    Leftover,
}

/// Something that was, or would be, removed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Removed {
    /// What it was.
    pub kind: Kind,
    /// Where it was.
    pub path: PathBuf,
    /// How much room it took.
    pub bytes: u64,
}

/// What was, or would be, done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GcReport {
    /// What went, sorted.
    pub removed: Vec<Removed>,
    /// How much room that made.
    pub freed: u64,
    /// How much is left.
    pub kept: u64,
}

/// Removes what `keep` does not name; with `dry_run` only tells what it would. Waits until nobody uses the store.
pub fn gc(
    store: &Store,
    keep: &Keep,
    dry_run: bool,
    reporter: &SharedReporter,
    cancel: &Cancel,
) -> Result<GcReport, Error> {
    let _lock = if dry_run { store.lock_shared(cancel)? } else { store.lock_exclusive(cancel)? };
    let inventory = Inventory::of(store, cancel)?;
    let live = inventory.live_within(keep);
    let mut report = GcReport::default();
    for (key, item) in &inventory.items {
        if live.contains(key) {
            report.kept += item.bytes;
        } else {
            report.add(key.0, &item.path, item.bytes);
        }
    }
    for (path, bytes) in inventory.leftovers {
        report.add(Kind::Leftover, &path, bytes);
    }
    // Records go before what they refer to, so that a gc that is killed leaves no record of what is gone.
    report.removed.sort_by_key(|removed| {
        (!matches!(removed.kind, Kind::Step | Kind::Run), removed.path.clone())
    });
    if !dry_run {
        let task = Task::start(reporter, "gc", "store", Some(report.freed));
        for removed in &report.removed {
            cancel.check()?;
            remove(&removed.path)?;
            task.advance(removed.bytes);
        }
        task.done();
    }
    report.removed.sort();
    Ok(report)
}

impl GcReport {
    fn add(&mut self, kind: Kind, path: &Path, bytes: u64) {
        self.freed += bytes;
        self.removed.push(Removed { kind, path: path.to_owned(), bytes });
    }
}

/// A folder is renamed first: it is whole under its name, or not there.
fn remove(path: &Path) -> Result<(), Error> {
    if !path.is_dir() {
        return Ok(fs_err::remove_file(path)?);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let doomed = if name.starts_with(".tmp-") {
        path.to_owned()
    } else {
        let doomed = path.with_file_name(format!(".tmp-gone-{name}"));
        fs_err::rename(path, &doomed)?;
        doomed
    };
    Ok(crate::base::scratch::remove_tree(&doomed)?)
}

type Key = (Kind, Digest);

struct Item {
    path: PathBuf,
    bytes: u64,
    idle: Duration,
    mentions: BTreeSet<Digest>,
}

/// All that is in a store.
struct Inventory {
    items: BTreeMap<Key, Item>,
    leftovers: Vec<(PathBuf, u64)>,
}

impl Inventory {
    fn of(store: &Store, cancel: &Cancel) -> Result<Self, Error> {
        let now = u64::try_from(clock::now().as_millisecond()).unwrap_or_default();
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(now);
        let mut inventory = Self { items: BTreeMap::new(), leftovers: Vec::new() };
        for (kind, folder) in [
            (Kind::Blob, "blobs/sha256"),
            (Kind::Layer, "layers"),
            (Kind::Tree, "trees"),
            (Kind::Step, "steps"),
            (Kind::Run, "runs"),
        ] {
            for entry in fs_err::read_dir(store.root().join(folder))? {
                cancel.check()?;
                let path = entry?.path();
                let metadata = fs_err::symlink_metadata(&path)?;
                let modified = metadata.modified()?;
                // Looking into a folder, as this very walk does, already counts as access.
                let used = match metadata.accessed() {
                    Ok(accessed) if !metadata.is_dir() => accessed.max(modified),
                    _ => modified,
                };
                let idle = now.duration_since(used).unwrap_or_default();
                let bytes = size_of(&path, &metadata);
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let stem =
                    if kind == Kind::Step { name.strip_suffix(".json") } else { Some(&*name) };
                let Some(Ok(digest)) = stem.map(Digest::from_hex) else {
                    // Anything else that is there is not ours to judge.
                    if name.starts_with(".tmp-") && idle > GRACE {
                        inventory.leftovers.push((path, bytes));
                    }
                    continue;
                };
                let mentions = match kind {
                    Kind::Blob => json_mentions(&path, metadata.len()),
                    Kind::Step => mentions(&path),
                    Kind::Run => records_of(&path).iter().flat_map(|path| mentions(path)).collect(),
                    Kind::Layer | Kind::Tree | Kind::Leftover => BTreeSet::new(),
                };
                inventory.items.insert((kind, digest), Item { path, bytes, idle, mentions });
            }
        }
        Ok(inventory)
    }

    /// What lives under the age limit and, where that is too much, under the strictest age that the budget asks for.
    fn live_within(&self, keep: &Keep) -> BTreeSet<Key> {
        let live = self.live(keep, keep.max_age);
        let Some(budget) = keep.max_bytes else { return live };
        if self.bytes(&live) <= budget {
            return live;
        }
        let limit = keep.max_age.unwrap_or(Duration::MAX);
        let mut ages: Vec<Duration> =
            self.items.values().map(|item| item.idle).filter(|idle| *idle < limit).collect();
        ages.sort();
        ages.dedup();
        // The longer the age, the more lives: find the longest that fits.
        let fits = ages.partition_point(|age| self.bytes(&self.live(keep, Some(*age))) <= budget);
        let age = fits.checked_sub(1).map_or(Duration::ZERO, |last| ages[last]);
        self.live(keep, Some(age))
    }

    fn bytes(&self, live: &BTreeSet<Key>) -> u64 {
        live.iter().map(|key| self.items[key].bytes).sum()
    }

    fn live(&self, keep: &Keep, age: Option<Duration>) -> BTreeSet<Key> {
        let mut live = BTreeSet::new();
        let mut queue: Vec<Key> = Vec::new();
        let all = |digest: &Digest| {
            [Kind::Blob, Kind::Layer, Kind::Step, Kind::Run].map(|kind| (kind, *digest))
        };
        queue.extend(keep.roots.iter().flat_map(all));
        queue.extend(self.items.iter().filter_map(|(key, item)| {
            let lives = match (age, key.0) {
                (None, Kind::Step | Kind::Run | Kind::Tree) => true,
                (None, _) => item.idle < GRACE,
                (Some(age), _) => item.idle < age,
            };
            lives.then_some(*key)
        }));
        while let Some(key) = queue.pop() {
            if let Some(item) = self.items.get(&key)
                && live.insert(key)
            {
                queue.extend(item.mentions.iter().flat_map(all));
            }
        }
        live
    }
}

fn size_of(path: &Path, metadata: &std::fs::Metadata) -> u64 {
    if !metadata.is_dir() {
        return metadata.len();
    }
    let files = walkdir::WalkDir::new(path).into_iter().flatten();
    files
        .filter_map(|entry| entry.metadata().ok())
        .filter(std::fs::Metadata::is_file)
        .map(|m| m.len())
        .sum()
}

fn records_of(run: &Path) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(run).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect()
}

fn json_mentions(path: &Path, length: u64) -> BTreeSet<Digest> {
    if length > LARGEST_JSON {
        return BTreeSet::new();
    }
    let Ok(bytes) = read_unnoticed(path) else { return BTreeSet::new() };
    if bytes.starts_with(b"{") || bytes.starts_with(b"[") { find(&bytes) } else { BTreeSet::new() }
}

fn mentions(path: &Path) -> BTreeSet<Digest> {
    match read_unnoticed(path) {
        Ok(bytes) => find(&bytes),
        Err(error) => {
            tracing::debug!(%error, "unreadable record");
            BTreeSet::new()
        }
    }
}

/// Reads a file without that counting as use, where the kernel lets us.
fn read_unnoticed(path: &Path) -> std::io::Result<Vec<u8>> {
    #[cfg(target_os = "linux")]
    {
        use std::io::Read as _;
        use std::os::unix::fs::OpenOptionsExt as _;
        let mut options = std::fs::OpenOptions::new();
        options.read(true).custom_flags(libc::O_NOATIME);
        if let Ok(mut file) = options.open(path) {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            return Ok(bytes);
        }
    }
    fs_err::read(path)
}

/// Every digest that is written in a text.
fn find(bytes: &[u8]) -> BTreeSet<Digest> {
    const PREFIX: &[u8] = b"sha256:";
    let text = PREFIX.len() + 64;
    let starts = bytes.windows(text).filter(|window| window.starts_with(PREFIX));
    starts.filter_map(|window| std::str::from_utf8(window).ok()?.parse().ok()).collect()
}
