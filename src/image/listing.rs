//! The tree digest: what an image's root filesystem is, however its bytes are cut into layers.
//!
//! It is the sha256 of a listing, one line per path in the order of archives:
//!
//! ```text
//! hallmark-tree 1
//! TYPE MODE UID GID MTIME CONTENT ATTRIBUTES PATH
//! ```
//!
//! TYPE is `d`, `f`, `l` or `p`; MODE is octal; MTIME is in seconds; CONTENT is the digest of a file or the target of a
//! link in hex; ATTRIBUTES are `NAME=VALUE` in hex, sorted, joined by commas; what does not apply is `-`. PATH is
//! escaped, `/` for the root. Times of folders and hard links are left out: both depend on the cut.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read as _, Write};
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{Mode, OFlags};
use sha2::{Digest as _, Sha256};

use super::error::readable;
use super::merged::{EntryKind, Merged, MergedEntry, merged};
use super::{Error, Layer, attributes};
use crate::base::{Cancel, Digest, HashingWriter, Store, canon};

/// Entries whose contents are hashed side by side.
const BATCH: usize = 512;

/// The digest of the merged root filesystem of these layers, remembered in the store.
pub fn tree_digest(store: &Store, layers: &[Layer], cancel: &Cancel) -> Result<Digest, Error> {
    let key = canon::digest(&("image.tree", 1, layers))?;
    if let Some(digest) = store.step::<Digest>(&key) {
        return Ok(digest);
    }
    let mut out = HashingWriter::new(std::io::sink());
    write_listing(&merged(store, layers, cancel)?, &mut out, cancel)?;
    let (_, digest, _) = out.finish();
    store.put_step(&key, &digest)?;
    Ok(digest)
}

/// Writes the listing that the tree digest is the digest of.
pub fn write_listing(merged: &Merged, out: &mut dyn Write, cancel: &Cancel) -> Result<(), Error> {
    out.write_all(b"hallmark-tree 1\n")?;
    let mut walk = merged.walk(Path::new(""))?;
    loop {
        cancel.check()?;
        let batch = walk.by_ref().take(BATCH).collect::<Result<Vec<_>, _>>()?;
        if batch.is_empty() {
            return Ok(());
        }
        for line in lines(&batch) {
            out.write_all(line?.as_bytes())?;
        }
    }
}

/// The lines of some entries, made by all cores, in order.
fn lines(batch: &[MergedEntry]) -> Vec<Result<String, Error>> {
    let next = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut lines = BTreeMap::new();
    std::thread::scope(|scope| {
        let work = || {
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(entry) = batch.get(index) else { return done };
                done.push((index, line(entry)));
            }
        };
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            lines.extend(thread.join().expect("hashing does not panic"));
        }
    });
    lines.into_values().collect()
}

fn line(entry: &MergedEntry) -> Result<String, Error> {
    let path = entry.path.as_os_str().as_bytes();
    let fail = |verb| {
        move |errno: rustix::io::Errno| Error::Entry {
            verb,
            path: readable(path),
            source: errno.into(),
        }
    };
    let (letter, content, mtime, attributes) = match entry.kind {
        EntryKind::Directory | EntryKind::File => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file =
                rustix::fs::open(&entry.location, flags, Mode::empty()).map_err(fail("open"))?;
            let found = attributes::read(&file).map_err(fail("read attributes of"))?;
            let attributes = found
                .kept
                .iter()
                .map(|(name, value)| format!("{}={}", hex::encode(name), hex::encode(value)))
                .collect::<Vec<_>>()
                .join(",");
            if entry.kind == EntryKind::Directory {
                ('d', None, None, attributes)
            } else {
                let mut hasher = Sha256::new();
                let mut file = std::fs::File::from(file);
                let mut buffer = vec![0; 128 << 10];
                loop {
                    let count = file.read(&mut buffer).map_err(|source| Error::Entry {
                        verb: "read",
                        path: readable(path),
                        source,
                    })?;
                    if count == 0 {
                        break;
                    }
                    hasher.update(&buffer[..count]);
                }
                let digest = Digest::from_bytes(hasher.finalize().into());
                ('f', Some(digest.to_string()), Some(entry.mtime), attributes)
            }
        }
        EntryKind::Symlink => {
            let target = fs_err::read_link(&entry.location)?;
            let target = hex::encode(target.as_os_str().as_bytes());
            ('l', Some(target), Some(entry.mtime), String::new())
        }
        EntryKind::Fifo => ('p', None, Some(entry.mtime), String::new()),
    };
    let mut line = format!("{letter} {:o} {} {} ", entry.mode, entry.uid, entry.gid);
    match mtime {
        Some(mtime) => write!(line, "{mtime} ").expect("strings take everything"),
        None => line.push_str("- "),
    }
    line.push_str(content.as_deref().unwrap_or("-"));
    line.push(' ');
    line.push_str(if attributes.is_empty() { "-" } else { &attributes });
    if path.is_empty() {
        line.push_str(" /\n");
    } else {
        writeln!(line, " {}", path.escape_ascii()).expect("strings take everything");
    }
    Ok(line)
}
