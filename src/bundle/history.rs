//! The history of a base commit, taken from a repository of the user's: one pack with the commit's closure, and the
//! tags that peel into it. Nothing later gets into the bundle, so nothing later can get into an image.
//!
//! Git itself reads the repository: it is on every machine that cloned this project, and mirrors come in all of its
//! storage formats. The pack's bytes depend on git's version; `build` packs its objects again with the base image's git, so images do not.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Error;
use super::git::{git, tags_into};
use crate::base::{Cancel, Digest, Store, canon};
use crate::lock::{FileRef, Origin};

/// A commit's closure as blobs of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct History {
    /// Digest of the pack.
    pub pack: Digest,
    /// Its length in bytes.
    pub size: u64,
    /// Tags that peel to the commit or an ancestor: `(object id, refs/tags/...)`, sorted by name.
    pub tags: Vec<(String, String)>,
}

fn key(commit: &str) -> Result<Digest, Error> {
    Ok(canon::digest(&("history/1", commit))?)
}

/// The closure of `commit`, if it was taken or unpacked before.
pub fn held(store: &Store, commit: &str) -> Result<Option<History>, Error> {
    Ok(store.step::<History>(&key(commit)?).filter(|history| store.has_blob(&history.pack)))
}

/// The pack as a file of the bundle.
pub fn file(repo: &str, commit: &str, history: &History) -> FileRef {
    FileRef {
        name: format!("{}-{commit}.pack", repo.replace('/', "__")),
        sha256: history.pack,
        size: history.size,
        origin: Origin::Git {
            repo: repo.to_owned(),
            commit: commit.to_owned(),
            tags: history.tags.clone(),
        },
    }
}

/// Remembers a pack that came in a bundle, so that [`held`] finds it; does nothing with other files.
pub fn remember(store: &Store, file: &FileRef) -> Result<(), Error> {
    if let Origin::Git { commit, tags, .. } = &file.origin {
        let history = History { pack: file.sha256, size: file.size, tags: tags.clone() };
        store.put_step(&key(commit)?, &history)?;
    }
    Ok(())
}

/// Takes the closure of `commit` from the repository at `location` (a path or a URL that git understands).
pub fn take(
    store: &Store,
    location: &str,
    commit: &str,
    cancel: &Cancel,
) -> Result<History, Error> {
    if let Some(history) = held(store, commit)? {
        return Ok(history);
    }
    let key = key(commit)?;
    let _lock = store.lock_step(&key, cancel)?;
    let clone;
    let repository = if Path::new(location).exists() {
        Path::new(location)
    } else {
        clone = store.scratch_dir("clone")?;
        let target = clone.path().to_string_lossy().into_owned();
        git(location, None, &["clone", "-q", "--bare", "--", location, &target], &[])?;
        clone.path()
    };
    let kind =
        git(location, Some(repository), &["cat-file", "-t", commit], &[]).map_err(|error| {
            match error {
                Error::Git { .. } => {
                    Error::NoCommit { location: location.to_owned(), commit: commit.to_owned() }
                }
                other => other,
            }
        })?;
    if kind.trim_ascii() != b"commit" {
        return Err(Error::NoCommit { location: location.to_owned(), commit: commit.to_owned() });
    }
    let shallow = git(location, Some(repository), &["rev-parse", "--is-shallow-repository"], &[])?;
    if shallow.trim_ascii() == b"true" {
        return Err(Error::Git {
            location: location.to_owned(),
            message: "it is a shallow clone: parts of the history are missing; fetch the rest with `git fetch --unshallow`"
                .to_owned(),
        });
    }
    let tags = tags_into(location, repository, commit)?;
    let mut wanted = format!("{commit}\n");
    for (id, _) in &tags {
        wanted.push_str(id);
        wanted.push('\n');
    }
    let pack = git(
        location,
        Some(repository),
        &["pack-objects", "--revs", "--stdout", "-q", "--delta-base-offset"],
        wanted.as_bytes(),
    )?;
    let history = History { pack: store.put_blob(&pack)?, size: pack.len() as u64, tags };
    store.put_step(&key, &history)?;
    Ok(history)
}
