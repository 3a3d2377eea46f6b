//! Why a split could not be worked on.

use std::path::PathBuf;

use super::Kind;
use crate::verify::{Policy, PolicyErrors};

/// More names than this are not read.
const SHOWN: usize = 10;

/// What helps when a file operation fails for the host's sake.
const HOST: &str =
    "free some space or change the owner, or choose another folder with --store and --scratch";

/// An error of this room.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No project folder.
    #[error("no folder with `specs/` and `images/` at or above {}", start.display())]
    NoProject {
        /// Where the search began.
        start: PathBuf,
    },
    /// No such split.
    #[error("there is no split `{name}`")]
    NoSplit {
        /// What was asked for.
        name: String,
        /// Splits that exist.
        known: Vec<String>,
    },
    /// No such instance.
    #[error("split `{split}` has no instance `{id}`")]
    NoInstance {
        /// What was asked for.
        id: String,
        /// Where.
        split: String,
        /// Instances that it has.
        known: Vec<String>,
    },
    /// No such file.
    #[error("there is no file {}", path.display())]
    NoFile {
        /// What was asked for.
        path: PathBuf,
    },
    /// A file was asked for in a folder that is not there.
    #[error("cannot write {}: there is no folder {}", path.display(), folder.display())]
    NoFolder {
        /// The file.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// A file was asked for where a folder is.
    #[error("cannot write {}: it is a folder", path.display())]
    IsFolder {
        /// The place.
        path: PathBuf,
    },
    /// A folder was asked for where something else is.
    #[error("cannot write into {}: it is no folder", path.display())]
    IsNoFolder {
        /// The place.
        path: PathBuf,
    },
    /// An archive was asked for under the name of a compressed one.
    #[error("cannot write {}: an archive of images is a plain tar file", path.display())]
    CompressedName {
        /// The file.
        path: PathBuf,
    },
    /// An option was given that cannot have an effect.
    #[error("{option}: {why}")]
    NoEffect {
        /// The option.
        option: &'static str,
        /// Why it has none.
        why: &'static str,
        /// What has.
        instead: &'static str,
    },
    /// No mirror of a repository.
    #[error("no mirror of {repo} is known")]
    NoMirror {
        /// `owner/name`.
        repo: String,
    },
    /// A row has no lists of expected tests.
    #[error("{id} has no FAIL_TO_PASS and PASS_TO_PASS")]
    NotCollected {
        /// Which.
        id: String,
    },
    /// No such policy.
    #[error("there is no policy `{name}`")]
    NoPolicy {
        /// What was asked for.
        name: String,
    },
    /// A policy is wrong.
    #[error(transparent)]
    Policy(#[from] PolicyErrors),
    /// No verification was begun that could be gone on with.
    #[error("no verification was begun since this manifest")]
    NothingToResume,
    /// The file that counts series does not read.
    #[error("{} does not read", path.display())]
    UnreadableSeries {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// None of the manifest's instances is in the split.
    #[error("split `{split}` has none of the manifest's instances")]
    OtherSplit {
        /// The split.
        split: String,
    },
    /// A template of names does not say where to push.
    #[error("{template} names no registry")]
    NoHost {
        /// The template.
        template: String,
    },
    /// A manifest is to be attached to images that it does not speak of.
    #[error("{file} knows nothing of {}", short(unknown))]
    UnknownImages {
        /// The manifest.
        file: String,
        /// Instances whose images it does not know.
        unknown: Vec<String>,
    },
    /// A file was written by a newer hallmark.
    #[error("{} has version {actual}, but this hallmark reads up to {expected}", path.display())]
    NewerFile {
        /// The file.
        path: PathBuf,
        /// What is read.
        expected: u32,
        /// What is there.
        actual: u32,
    },
    /// A lock is missing or stale and may not be written.
    #[error("{why}")]
    NotLocked {
        /// Which, and what changed.
        why: String,
    },
    /// An image holds what gives the solution away.
    #[error("{instance}: the image holds {what}")]
    Leak {
        /// Which instance.
        instance: String,
        /// What was found where.
        what: String,
    },
    /// A file operation failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// From the room `base`.
    #[error(transparent)]
    Base(#[from] crate::base::Error),
    /// From the room `net`.
    #[error(transparent)]
    Net(#[from] crate::net::Error),
    /// From the room `spec`.
    #[error(transparent)]
    Spec(#[from] crate::spec::Error),
    /// From the room `dataset`.
    #[error(transparent)]
    Dataset(#[from] crate::dataset::Error),
    /// From the room `lock`.
    #[error(transparent)]
    Lock(#[from] crate::lock::Error),
    /// From the room `bundle`.
    #[error(transparent)]
    Bundle(#[from] crate::bundle::Error),
    /// From the room `image`.
    #[error(transparent)]
    Image(#[from] crate::image::Error),
    /// From the room `image`, its part about registries.
    #[error(transparent)]
    Registry(#[from] crate::image::registry::Error),
    /// From the room `runtime`.
    #[error(transparent)]
    Runtime(#[from] crate::runtime::Error),
    /// From the room `resolve`.
    #[error(transparent)]
    Resolve(#[from] crate::resolve::Error),
    /// From the room `resolve`, its Python part.
    #[error(transparent)]
    Python(#[from] crate::resolve::python::Error),
    /// From the room `build`.
    #[error(transparent)]
    Build(#[from] crate::build::Error),
    /// From the room `verify`.
    #[error(transparent)]
    Verify(#[from] crate::verify::Error),
    /// From the room `manifest`.
    #[error(transparent)]
    Manifest(#[from] crate::manifest::Error),
    /// From the room `report`.
    #[error(transparent)]
    Report(#[from] crate::report::Error),
}

/// The first of several names.
fn short(names: &[String]) -> String {
    match names.get(..SHOWN) {
        Some(first) if names.len() > SHOWN => {
            format!("{} and {} more", first.join(", "), names.len() - SHOWN)
        }
        _ => names.join(", "),
    }
}

impl Error {
    /// The way out, where there is one.
    pub fn hint(&self) -> Option<String> {
        self.own_hint().or_else(|| (self.kind() == Kind::Host).then(|| HOST.to_owned()))
    }

    fn own_hint(&self) -> Option<String> {
        match self {
            Self::NoProject { .. } => {
                Some("work in a hallmark project, or name one with --project".into())
            }
            Self::NoSplit { known, .. } if !known.is_empty() => {
                Some(format!("splits of this project: {}", known.join(", ")))
            }
            Self::NotLocked { .. } => Some(
                "run the command without --locked, or `hallmark lock`, and review the difference"
                    .into(),
            ),
            Self::NoMirror { repo } => Some(format!(
                "clone it to {}.git in a folder and name that folder with --mirrors",
                repo.replace('/', "__")
            )),
            Self::NotCollected { .. } => Some("compute them with `hallmark collect`".into()),
            Self::NoPolicy { .. } => Some(format!(
                "name a TOML file with `[admission]`, or one of {}",
                Policy::PRESETS.join(", ")
            )),
            Self::UnreadableSeries { .. } => {
                Some("remove it: runs of series that were begun before are then found again".into())
            }
            Self::OtherSplit { .. } => Some("name the split that the manifest is of".into()),
            Self::NoHost { template } => Some(format!(
                "write its host first: registry.example/{template}, or docker.io/{} for Docker Hub",
                if template.contains('/') { template.clone() } else { format!("TEAM/{template}") }
            )),
            Self::UnknownImages { .. } => Some(
                "push with -i what it speaks of, or verify and write it again with `hallmark export`"
                    .into(),
            ),
            Self::NothingToResume => Some("begin one: leave out --resume".into()),
            Self::NewerFile { .. } => Some("update hallmark".into()),
            Self::Io(_) | Self::Base(_) | Self::Leak { .. } | Self::Policy(_) => None,
            Self::NoFile { .. } => Some("paths are taken from the working folder".into()),
            Self::NoFolder { .. } => Some("make the folder first, or correct the path".into()),
            Self::IsFolder { .. } => Some("name a file, in this folder or elsewhere".into()),
            Self::IsNoFolder { .. } => {
                Some("name a folder, or a place where nothing is".into())
            }
            Self::CompressedName { .. } => Some(
                "name a file *.tar: it is its layers that are compressed (--compress); a folder of this name is made with \
                 --format layout"
                    .into(),
            ),
            Self::NoEffect { instead, .. } => Some((*instead).into()),
            Self::NoInstance { known, .. } => Some(match known.get(..SHOWN) {
                Some(first) => {
                    format!("it has {}, among them: {}", known.len(), first.join(", "))
                }
                None => format!("it has: {}", known.join(", ")),
            }),
            Self::NoSplit { .. } => {
                Some("write its rows to `images/<name>.rows.jsonl`, or name a file of rows".into())
            }
            Self::Net(error) => error.hint(),
            Self::Spec(error) => error.hint(),
            Self::Dataset(error) => error.hint(),
            Self::Lock(error) => error.hint().map(str::to_owned),
            Self::Bundle(error) => error.hint(),
            Self::Image(error) => error.hint().map(str::to_owned),
            Self::Registry(error) => error.hint(),
            Self::Runtime(error) => error.hint().map(str::to_owned),
            Self::Resolve(error) => error.hint(),
            Self::Python(error) => error.hint(),
            Self::Build(error) => error.hint(),
            Self::Verify(error) => error.hint().map(str::to_owned),
            Self::Manifest(error) => error.hint().map(str::to_owned),
            Self::Report(error) => error.hint().map(str::to_owned),
        }
    }
}

/// Something that went wrong with one base, environment or instance; the others went on.
#[derive(Debug)]
pub struct Failure {
    /// What was worked on, for people: `build of pypi__a-1.0`.
    pub subject: String,
    /// Why it failed.
    pub error: Error,
}
