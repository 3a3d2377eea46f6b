//! The search for what gives a solution away: files of the gold patch, and releases of the project
//! newer than the base, in `/testbed`, in git's objects and in the prefix; and whatever git holds besides
//! the base commit's history.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::patches::{GoldFile, Patches, gold_of_git};
use super::{Error, command, offline};
use crate::base::canon;
use crate::base::files::digest_file;
use crate::dataset::{Instance, Source};
use crate::image::{self, EntryKind, Image};
use crate::lock::EnvLock;
use crate::runtime::{Root, Workbench};

const STEP: &str = "leaks/3";

/// Where an image is searched: the repository, and where distributions are.
const SEARCHED: [&str; 3] = ["testbed", "usr/local", "usr/lib/python3"];

/// Lists what git holds besides one pack and the references into the base commit's history, then which of the
/// blob ids it has.
const OBJECTS: &str = r"
set -e
PATH=/usr/bin:/bin
cd /testbed
git for-each-ref --no-merged HEAD --format='stray %(refname)'
git for-each-ref refs/remotes --format='stray %(refname)'
find .git/logs .git/objects/?? -type f 2> /dev/null | LC_ALL=C sort | sed 's/^/stray /'
git cat-file --batch-check < /run/hallmark/ids
";

/// Something in an image that gives the solution away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Leak {
    /// A file with the bytes that the gold patch makes.
    GoldFile {
        /// The path that the gold patch changes.
        gold: String,
        /// Where the bytes are.
        found: String,
    },
    /// A git object with the bytes that the gold patch makes.
    GoldObject {
        /// The path that the gold patch changes.
        gold: String,
        /// The object's id.
        blob: String,
    },
    /// Something of git's that is no part of the base commit's history: a later reference, a remote's, a reflog, a loose object.
    Stray {
        /// The reference, or the file below `/testbed`.
        found: String,
    },
    /// The project itself, as a locked distribution.
    OwnRelease {
        /// Its name and version.
        release: String,
    },
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GoldFile { gold, found } => {
                write!(f, "{gold} as the gold patch makes it, at {found}")
            }
            Self::GoldObject { gold, blob } => {
                write!(f, "{gold} as the gold patch makes it, as git object {blob}")
            }
            Self::Stray { found } => {
                write!(f, "{found}, which is no part of the base commit's history")
            }
            Self::OwnRelease { release } => write!(f, "the project's own release {release}"),
        }
    }
}

/// Everything in the image that gives the solution away; nothing is good.
pub fn leaks(
    bench: Workbench<'_>,
    image: &Image,
    lock: &EnvLock,
    instance: &Instance,
    patches: &Patches,
) -> Result<Vec<Leak>, Error> {
    let key = canon::digest(&(STEP, image.key, patches.gold, &patches.gold_files, lock.digest()?))?;
    if let Some(found) = bench.store.step::<Vec<Leak>>(&key) {
        return Ok(found);
    }
    let mut found = Vec::new();
    if let Source::Pair(pair) = &instance.source {
        let own = lock.packages.iter().filter(|package| package.name == pair.package);
        found.extend(own.map(|package| Leak::OwnRelease {
            release: format!("{} {}", package.name, package.version),
        }));
    }
    let made;
    let gold_files = match &instance.source {
        Source::Pair(_) => &patches.gold_files,
        Source::Git { gold_patch, .. } => {
            made = gold_of_git(bench, image, instance, gold_patch)?;
            &made
        }
    };
    // Contents shorter than this say nothing: an empty file is everywhere.
    let telling: Vec<&GoldFile> = gold_files.iter().filter(|file| file.size >= 32).collect();
    if !telling.is_empty() {
        found.extend(files(bench, image, &telling)?);
    }
    found.extend(objects(bench, image, instance, &telling)?);
    bench.store.put_step(&key, &found)?;
    Ok(found)
}

fn files(bench: Workbench<'_>, image: &Image, gold: &[&GoldFile]) -> Result<Vec<Leak>, Error> {
    let mut by_size: BTreeMap<u64, Vec<&GoldFile>> = BTreeMap::new();
    for file in gold {
        by_size.entry(file.size).or_default().push(file);
    }
    let merged = image::merged(bench.store, &image.layers, bench.cancel)?;
    let mut found = Vec::new();
    for folder in SEARCHED {
        for entry in merged.walk(Path::new(folder))? {
            let entry = entry?;
            if entry.kind != EntryKind::File {
                continue;
            }
            let Some(candidates) = by_size.get(&entry.size) else { continue };
            let (digest, _) = digest_file(&entry.location)?;
            found.extend(candidates.iter().filter(|file| file.sha256 == digest).map(|file| {
                Leak::GoldFile {
                    gold: file.path.clone(),
                    found: format!("/{}", entry.path.display()),
                }
            }));
        }
    }
    Ok(found)
}

fn objects(
    bench: Workbench<'_>,
    image: &Image,
    instance: &Instance,
    gold: &[&GoldFile],
) -> Result<Vec<Leak>, Error> {
    let scratch = bench.store.scratch_dir("leaks")?;
    let ids = scratch.path().join("ids");
    let mut list = fs_err::File::create(&ids)?;
    for file in gold {
        writeln!(list, "{}", file.blob)?;
    }
    let mut spec = offline::shell(OBJECTS, image.created, scratch.path());
    spec.mounts = vec![offline::input(&ids, "ids")];
    spec.keep_upper = false;
    let step = format!("search of git objects of {}", instance.id);
    let log = command::run(bench, &step, Root::Layers(&image.layers), &spec)?;
    let text = fs_err::read_to_string(&log.stdout)?;
    let (stray, known): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("stray "));
    let stray = stray
        .into_iter()
        .map(|line| Leak::Stray { found: line.trim_start_matches("stray ").to_owned() });
    let objects = known
        .into_iter()
        .zip(gold)
        .filter(|(line, _)| !line.ends_with(" missing"))
        .map(|(_, file)| Leak::GoldObject { gold: file.path.clone(), blob: file.blob.clone() });
    Ok(stray.chain(objects).collect())
}
