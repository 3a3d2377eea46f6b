//! The values that locks hold. Files on disk:
//!
//! ```text
//! lockfiles/_bases/<base>/
//!   lock.<arch>.toml                              BaseLock
//!   tools.<arch>.toml                             ToolsLock
//! lockfiles/<owner>__<name>/<version>/
//!   lock.<arch>.toml                              EnvLock, without `packages`
//!   pylock.toml                                   EnvLock::packages (PEP 751)
//! ```

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::base::{Arch, Digest, Error, canon};

/// A locked base image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BaseLock {
    /// [`crate::spec::BaseDefinition::hash`] of the definition this answers.
    pub base_hash: Digest,
    /// For which processor.
    pub arch: Arch,
    /// Debian suite.
    pub suite: String,
    /// The Release file's `Date`: the time of every file of the image, and the point in time that a
    /// snapshot service is asked for.
    pub as_of: Timestamp,
    /// Digest of the signed InRelease file.
    pub inrelease: Digest,
    /// Digest of the uncompressed Packages index of main.
    pub packages_index: Digest,
    /// Python `X.Y` of the interpreter.
    pub python: String,
    /// Every package of the image, sorted by name; none where the image is of a registry.
    pub debs: Vec<Deb>,
    /// The image of a registry that the base is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<LockedImage>,
}

/// An image of a registry, down to its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LockedImage {
    /// Path of the repository; the definition says in which registry.
    pub repository: String,
    /// What the definition names: a manifest, or an index of several platforms.
    pub digest: Digest,
    /// The manifest for the lock's processor.
    pub manifest: Digest,
    /// The image's config.
    pub config: LockedBlob,
    /// Its layers, bottom first. An image without any is none that can be used; its lock reads, so that this can be said.
    #[serde(default)]
    pub layers: Vec<LockedBlob>,
}

/// A file of an image, compressed as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LockedBlob {
    /// Digest.
    pub sha256: Digest,
    /// Length in bytes.
    pub size: u64,
}

/// One Debian package file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Deb {
    /// Package name.
    pub name: String,
    /// Debian version.
    pub version: String,
    /// Path below the archive's root: `pool/main/...`.
    pub path: String,
    /// Digest.
    pub sha256: Digest,
    /// Length in bytes.
    pub size: u64,
}

/// What runs on a base use besides its image: packages that are mounted, never installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ToolsLock {
    /// For which processor.
    pub arch: Arch,
    /// Debian suite.
    pub suite: String,
    /// As of when: the base's time.
    pub as_of: Timestamp,
    /// Digest of the package index that the packages are in: the base's.
    pub packages_index: Digest,
    /// The packages, sorted by name.
    pub debs: Vec<Deb>,
}

impl BaseLock {
    /// Digest of the lock's values, whatever the order of its packages.
    pub fn digest(&self) -> Result<Digest, Error> {
        let mut lock = self.clone();
        lock.debs.sort();
        canon::digest(&lock)
    }
}

impl Deb {
    /// The last part of the path.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// A locked environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct EnvLock {
    /// [`crate::spec::Spec::env_hash`] of the spec this answers.
    pub env_hash: Digest,
    /// For which processor.
    pub arch: Arch,
    /// Name of the base image.
    pub base: String,
    /// Digest of the base's lock (canonical JSON of its values).
    pub base_lock: Digest,
    /// Debian packages on top of the base's, sorted by name.
    pub debs: Vec<Deb>,
    /// Python packages of the environment, sorted by normalised name: `pylock.toml`.
    pub packages: Vec<PythonPackage>,
    /// How each sdist among `packages` is built, sorted by sdist file name.
    pub build_environments: Vec<BuildEnvironment>,
    /// The wheels made from sdists, once they were built.
    pub built: Vec<BuiltWheel>,
}

impl EnvLock {
    /// Digest of the lock's values, whatever the order of its parts.
    pub fn digest(&self) -> Result<Digest, Error> {
        let mut lock = self.clone();
        lock.debs.sort();
        lock.packages.sort();
        lock.build_environments.sort();
        for environment in &mut lock.build_environments {
            environment.packages.sort();
        }
        lock.built.sort();
        canon::digest(&lock)
    }

    /// [`EnvLock::digest`] without `built`: the inputs alone, the same before and after the first build.
    pub fn inputs_digest(&self) -> Result<Digest, Error> {
        Self { built: Vec::new(), ..self.clone() }.digest()
    }
}

/// One locked distribution: exactly one file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PythonPackage {
    /// Normalised name (PEP 503).
    pub name: String,
    /// Version.
    pub version: String,
    /// The file to install or build.
    pub file: PythonFile,
}

/// A wheel or sdist, host-free.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PythonFile {
    /// File name.
    pub name: String,
    /// Digest.
    pub sha256: Digest,
    /// Length in bytes.
    pub size: u64,
    /// When it was uploaded, where the index says.
    pub upload_time: Option<Timestamp>,
}

impl PythonFile {
    /// Whether this is a wheel, by its name.
    pub fn is_wheel(&self) -> bool {
        std::path::Path::new(&self.name).extension().is_some_and(|extension| extension == "whl")
    }
}

/// What must be installed to build one sdist (PEP 517/518).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BuildEnvironment {
    /// The sdist's file name.
    pub sdist: String,
    /// Its build requirements, resolved; wheels only, sorted by name.
    pub packages: Vec<PythonPackage>,
}

/// The wheel that an sdist became: later builds must meet it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BuiltWheel {
    /// The sdist's file name.
    pub sdist: String,
    /// The wheel's file name.
    pub wheel: String,
    /// Digest of the canonically repacked wheel.
    pub sha256: Digest,
    /// Length in bytes.
    pub size: u64,
}

/// A file that a bundle must hold, and where to look for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FileRef {
    /// File name.
    pub name: String,
    /// Digest.
    pub sha256: Digest,
    /// Length in bytes.
    pub size: u64,
    /// Where to look.
    pub origin: Origin,
}

/// The name of an archive or index, never its address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Origin {
    /// A project on PyPI.
    Pypi {
        /// Normalised project name.
        project: String,
    },
    /// The history of a commit, packed from a repository of the user's; no archive has it.
    Git {
        /// `owner/name`.
        repo: String,
        /// The commit, 40 hex digits.
        commit: String,
        /// Tags that peel to the commit or an ancestor: `(object id, refs/tags/...)`, sorted by name.
        tags: Vec<(String, String)>,
    },
    /// A repository of a registry; the base's definition says of which.
    Registry {
        /// Its path.
        repository: String,
    },
    /// The Debian archive, or a snapshot of it.
    Debian {
        /// Path below the archive's root.
        path: String,
        /// The point in time that a snapshot service is asked for.
        as_of: Timestamp,
    },
}
