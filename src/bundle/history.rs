//! The history of a base commit, taken from a repository of the user's: one pack with the commit's closure, and the
//! tags that peel into it. Nothing later gets into the bundle, so nothing later can get into an image.
//!
//! Git itself reads the repository: it is on every machine that cloned this project, and mirrors come in all of its
//! storage formats. The pack's bytes depend on git's version; `build` packs its objects again with the base image's git, so images do not.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::Error;
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
    let listing = git(
        location,
        Some(repository),
        &["for-each-ref", "--merged", commit, "--format=%(objectname) %(refname)", "refs/tags"],
        &[],
    )?;
    let mut tags: Vec<(String, String)> = String::from_utf8_lossy(&listing)
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(id, name)| (id.to_owned(), name.to_owned()))
        .collect();
    tags.sort_by(|a, b| a.1.cmp(&b.1));
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

/// Variables that would make git read another repository than the one that it is given.
const REDIRECTIONS: [&str; 11] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Runs git without the host's configuration; `input` goes to its standard input.
fn git(
    location: &str,
    repository: Option<&Path>,
    arguments: &[&str],
    input: &[u8],
) -> Result<Vec<u8>, Error> {
    let failed = |message: String| Error::Git { location: location.to_owned(), message };
    let mut command = Command::new("git");
    if let Some(repository) = repository {
        command.arg("-C").arg(repository);
    }
    // The repository is read only and often somebody else's: ownership does not matter.
    command
        .args(["-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null"])
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        // A replaced commit would have another closure than its id says.
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        // A repository that lacks an object may name a program to fetch it.
        .env("GIT_NO_LAZY_FETCH", "1");
    for name in REDIRECTIONS {
        command.env_remove(name);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("cannot start git: {error}")))?;
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // Git may end without reading all; its own error says why.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    writer.join().expect("the writer does not panic");
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// Writes the files of `commit` below `into`: what locking reads metadata and requirement files from.
pub fn checkout(location: &str, commit: &str, into: &Path) -> Result<(), Error> {
    let archive =
        git(location, Some(Path::new(location)), &["archive", "--format=tar", commit], &[])?;
    tar::Archive::new(archive.as_slice()).unpack(into).map_err(|error| Error::Git {
        location: location.to_owned(),
        message: format!("cannot write the files of {commit}: {error}"),
    })
}
