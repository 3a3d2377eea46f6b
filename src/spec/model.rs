//! A checked spec: defaults merged, strings parsed, nothing optional that decides anything.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::suite;
use crate::base::{Digest, Error, canon};
use crate::net::registry::Reference;

/// One environment of one repository version.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Spec {
    /// `owner/name`; `pypi/<package>` for release pairs.
    pub repo: String,
    /// The version the spec is for: SWE-bench's `version`, or the base release of a pair.
    pub version: String,
    /// The source whose metadata and requirement files are read when locking.
    pub setup: Setup,
    /// Name of the base image, defined by `images/<base>.toml`.
    pub base: String,
    /// Python `X.Y`, which must be what the base's interpreter is.
    pub python: String,
    /// Debian packages on top of the base's, sorted.
    pub system_packages: Vec<String>,
    /// Python dependencies.
    pub dependencies: Dependencies,
    /// Commands that build and install.
    pub commands: Commands,
    /// How tests run and are read.
    pub test: Test,
    /// Environment variables of the image, on top of hallmark's own.
    pub env: BTreeMap<String, String>,
    /// Limits of a run.
    pub limits: RunLimits,
    /// Whose paths and commands the image answers to besides its own.
    #[serde(skip_serializing_if = "Compat::is_none")]
    pub compat: Compat,
}

/// Paths and commands of other people's images.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Compat {
    /// Nobody's.
    #[default]
    None,
    /// Those of SWE-bench's images: `/opt/miniconda3` and `conda activate testbed`.
    Swebench,
}

impl Compat {
    /// Whether the image has its own paths and commands only.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// Where the metadata of the project comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Setup {
    /// A commit of the repository, 40 hex digits.
    Commit {
        /// The commit.
        commit: String,
    },
    /// The base sdist of a release pair.
    Sdist {
        /// File name on PyPI.
        file: String,
        /// Its digest.
        sha256: Digest,
        /// Its length in bytes.
        size: u64,
    },
}

/// What goes into the environment besides the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Dependencies {
    /// PEP 508 requirements, in the spec's order.
    pub requirements: Vec<String>,
    /// Requirement files of the repository, relative paths, read at the setup source.
    pub requirement_files: Vec<String>,
    /// Extras of the project; one that does not exist is an error when locking.
    pub extras: Vec<String>,
    /// Dependency groups (PEP 735) of the project; one that does not exist is an error when locking.
    pub groups: Vec<String>,
    /// PEP 508 constraints.
    pub constraints: Vec<String>,
    /// Whether the project's own dependencies and build requirements are locked too.
    pub project: bool,
    /// Packages that are taken as sdists even where a wheel fits.
    pub no_binary: Vec<String>,
    /// Files uploaded at or after this time do not exist.
    pub exclude_newer: Timestamp,
    /// The same for single packages, whose upload dates lie (files uploaded again later).
    pub exclude_newer_package: BTreeMap<String, PackageDate>,
}

/// A cut for one package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", untagged)]
pub enum PackageDate {
    /// Its own cut.
    Before(Timestamp),
    /// No cut: written `false` in the spec.
    Never(bool),
}

/// Shell commands, each run by `sh -c` in `/testbed`, offline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Commands {
    /// Before the install.
    pub pre_install: Vec<String>,
    /// The install of the project.
    pub install: Vec<String>,
    /// After patches are applied and before tests.
    pub rebuild: Vec<String>,
}

/// How tests run and are read.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Test {
    /// The test command, argv; test files are appended.
    pub command: Vec<String>,
    /// Which files are appended.
    pub files: TestFiles,
    /// Who reads the results.
    pub parser: Parser,
    /// Whether pytest goes on when a module does not import.
    pub continue_on_collection_errors: bool,
}

/// Which test files the command is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum TestFiles {
    /// The Python test files that the test patch touches and that exist after it.
    TestPatch,
    /// These paths.
    Listed {
        /// Relative to `/testbed`.
        paths: Vec<String>,
    },
    /// None: the command knows.
    All,
}

/// Who reads the results of the test command.
///
/// The first four take the runner's place and stream its results; what it prints is the cross-check. The others
/// only read what is printed or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Parser {
    /// hallmark's pytest plug-in.
    Pytest,
    /// hallmark's wrapper of unittest.
    Unittest,
    /// The same, around Django's `runtests.py` and `manage.py test`.
    Django,
    /// hallmark's wrapper of SymPy's `bin/test`.
    Sympy,
    /// The text of pytest or unittest, inside tox or another program.
    Tox,
    /// A JUnit XML file that the command writes to `/run/hallmark-report/junit.xml`.
    Junit,
}

impl Parser {
    /// Every parser.
    pub const ALL: [Self; 6] =
        [Self::Pytest, Self::Unittest, Self::Django, Self::Sympy, Self::Tox, Self::Junit];

    /// Its word in a spec.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pytest => "pytest",
            Self::Unittest => "unittest",
            Self::Django => "django",
            Self::Sympy => "sympy",
            Self::Tox => "tox",
            Self::Junit => "junit",
        }
    }
}

/// Limits of a run, all stated.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunLimits {
    /// Cores.
    pub cpus: f64,
    /// Bytes.
    pub memory: u64,
    /// Processes and threads.
    pub pids: u64,
    /// Bytes of /dev/shm.
    pub shm: u64,
    /// Wall time of the test command in seconds.
    pub timeout: f64,
    /// Wall time of one test in seconds.
    pub test_timeout: f64,
}

impl RunLimits {
    /// What holds where a spec is silent: one core, 4 GiB, 4,096 processes, Docker's 64 MiB of /dev/shm,
    /// SWE-bench's half hour for the command, and five minutes for one test.
    pub const DEFAULT: Self = Self {
        cpus: 1.0,
        memory: 4 << 30,
        pids: 4096,
        shm: 64 << 20,
        timeout: 1800.0,
        test_timeout: 300.0,
    };
}

impl Spec {
    /// Digest of what the environment is made from: changing a timeout or the test command does not
    /// change it.
    pub fn env_hash(&self) -> Result<Digest, Error> {
        canon::digest(&serde_json::json!({
            "repo": self.repo, "version": self.version, "setup": self.setup, "base": self.base,
            "python": self.python, "system-packages": self.system_packages,
            "dependencies": self.dependencies, "commands": self.commands, "env": self.env,
        }))
    }

    /// Digest of how tests run and are read.
    pub fn run_hash(&self) -> Result<Digest, Error> {
        canon::digest(&serde_json::json!({ "test": self.test, "limits": self.limits }))
    }

    /// The name of the spec: `owner__name/version`, as in `specs/` and `lockfiles/`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.repo.replace('/', "__"), self.version)
    }
}

/// A base image: `images/<name>.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BaseDefinition {
    /// The file's stem.
    pub name: String,
    /// Debian suite: `bullseye`, `bookworm`, `trixie`.
    pub suite: String,
    /// Root packages besides Essential and apt, sorted.
    pub packages: Vec<String>,
    /// Where Python comes from.
    pub interpreter: Interpreter,
    /// The image that the base is, where it is not bootstrapped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry: Option<RegistryImage>,
}

/// An image of a registry. What may change without the image changing (its registry, the tag) is no part of the hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RegistryImage {
    /// Host and port.
    #[serde(skip)]
    pub registry: String,
    /// Path of the repository.
    pub repository: String,
    /// The tag, where it is stated.
    #[serde(skip)]
    pub tag: Option<String>,
    /// The digest; without one the base cannot be locked.
    pub digest: Option<Digest>,
}

impl RegistryImage {
    /// Its name as it was written.
    pub fn reference(&self) -> Reference {
        Reference {
            registry: self.registry.clone(),
            repository: self.repository.clone(),
            tag: self.tag.clone(),
            digest: self.digest,
        }
    }
}

impl BaseDefinition {
    /// Digest of everything the base's lock depends on.
    pub fn hash(&self) -> Result<Digest, Error> {
        canon::digest(self)
    }

    /// `X.Y` of the suite's own Python.
    pub fn python(&self) -> Option<&'static str> {
        suite::python_of(&self.suite)
    }
}

/// A provider of Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Interpreter {
    /// The suite's `python3`.
    Debian,
}
