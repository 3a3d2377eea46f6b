//! The record of one run: what went in, by digest, and what came out.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::profile::Profile;
use crate::base::Digest;
use crate::image::Layer;
use crate::results::{Disagreement, Source, TestResult};
use crate::runtime::{EMBEDDED, ExitStatus, Gap, NetworkAttempts};

/// The version that is written.
pub const RECORD_VERSION: u64 = 2;

/// Which patches are applied.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Both patches; tests are collected and not run.
    Collect,
    /// The test patch only.
    Pre,
    /// The gold patch and the test patch.
    Post,
}

impl Phase {
    /// The word of the stored form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Collect => "collect",
            Self::Pre => "pre",
            Self::Post => "post",
        }
    }
}

/// A patch by its role.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum PatchName {
    /// The row's fix.
    Gold,
    /// The row's tests.
    Test,
}

impl PatchName {
    /// The word of the stored form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gold => "gold",
            Self::Test => "test",
        }
    }
}

/// A patch that was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PatchRef {
    /// Its role.
    pub name: PatchName,
    /// Digest of its bytes as they were applied.
    pub sha256: Digest,
    /// Length in bytes.
    pub size: u64,
    /// Whether a missing last newline was added before.
    pub normalised: bool,
}

/// A log by digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LogRef {
    /// Digest.
    pub sha256: Digest,
    /// Length in bytes.
    pub size: u64,
}

/// How a run ended (DESIGN.md section 7).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum RunOutcome {
    /// Tests ran, and their results can be read.
    Completed,
    /// Killed for the wall limit; what was streamed is kept.
    Timeout,
    /// Killed for the memory limit.
    Oom,
    /// Killed for the disk limit.
    DiskFull,
    /// Killed for the limit of output.
    OutputFull,
    /// A rebuild command failed.
    BuildFailed {
        /// Exit code, signal, timeout ...
        how: String,
        /// The last lines it printed.
        tail: String,
    },
    /// A patch does not apply, or only in part; nothing of it was kept.
    PatchError {
        /// Which.
        patch: PatchName,
        /// The file that it stops at, where git names one.
        file: Option<String>,
        /// The hunk of that file, from 1, where git names its line.
        hunk: Option<u64>,
        /// git's words.
        message: String,
    },
    /// It broke before the first test.
    EnvError {
        /// How.
        reason: String,
    },
    /// Sources that should agree do not: the results are not to be trusted.
    ParserError {
        /// About what.
        problems: Vec<Disagreement>,
    },
    /// Our own fault: no statement about the instance.
    InfraError {
        /// What failed.
        reason: String,
    },
}

impl RunOutcome {
    /// The word of the stored form.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Timeout => "timeout",
            Self::Oom => "oom",
            Self::DiskFull => "disk-full",
            Self::OutputFull => "output-full",
            Self::BuildFailed { .. } => "build-failed",
            Self::PatchError { .. } => "patch-error",
            Self::EnvError { .. } => "env-error",
            Self::ParserError { .. } => "parser-error",
            Self::InfraError { .. } => "infra-error",
        }
    }

    /// What to do about it, as one clause.
    pub fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Self::Completed => return None,
            Self::Timeout => "find the test that hangs in the log, or raise `limits.timeout`",
            Self::Oom => "find the test that takes the memory, or raise `limits.memory`",
            Self::DiskFull => "find the test that fills the disk",
            Self::OutputFull => "find the test that floods its output, or run pytest quieter",
            Self::BuildFailed { .. } => "mend `commands.rebuild` or the patch",
            Self::PatchError { patch: PatchName::Gold, .. } => {
                "compare the row's gold patch with its base commit"
            }
            Self::PatchError { patch: PatchName::Test, .. } => {
                "compare the row's test patch with its base commit"
            }
            Self::EnvError { .. } => {
                "run the test command in the image, and mend the spec's environment or `test.files`"
            }
            Self::ParserError { .. } => {
                "compare the log with the report: a test writes results itself, or the runner is not the spec's"
            }
            Self::InfraError { .. } => "run `hallmark doctor`, then verify again",
        })
    }

    /// What happened and what to do, in one line.
    pub fn explain_with_advice(&self) -> String {
        match self.advice() {
            Some(advice) => format!("{}; {advice}", self.explain()),
            None => self.explain(),
        }
    }

    /// One line for people: what happened.
    pub fn explain(&self) -> String {
        match self {
            Self::Completed => "completed".to_owned(),
            Self::Timeout => "killed at the wall limit".to_owned(),
            Self::Oom => "killed at the memory limit".to_owned(),
            Self::DiskFull => "killed at the disk limit".to_owned(),
            Self::OutputFull => {
                "killed at the limit of output: it printed more than 1 GiB".to_owned()
            }
            Self::BuildFailed { how, tail } => {
                let last = tail.trim_end().lines().next_back().unwrap_or_default();
                format!("the rebuild failed ({how}): {last}")
            }
            Self::PatchError { patch, file, hunk, message } => {
                let place = match (file, hunk) {
                    (Some(file), Some(hunk)) => format!(" at hunk {hunk} of {file}"),
                    (Some(file), None) => format!(" at {file}"),
                    _ => String::new(),
                };
                let first = message.lines().next().unwrap_or_default();
                format!("the {} patch does not apply{place}: {first}", patch.as_str())
            }
            Self::EnvError { reason } => format!("broke before the first test: {reason}"),
            Self::ParserError { problems } => match problems.first() {
                Some(first) => format!("the results cannot be trusted: {first}"),
                None => "the results cannot be trusted".to_owned(),
            },
            Self::InfraError { reason } => format!("hallmark's own failure: {reason}"),
        }
    }
}

fn embedded() -> String {
    EMBEDDED.to_owned()
}

fn is_embedded(runtime: &str) -> bool {
    runtime == EMBEDDED
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunRecord {
    /// [`RECORD_VERSION`].
    pub version: u64,
    /// The run's key: digest of all its inputs.
    pub key: Digest,
    /// The instance.
    pub instance: String,
    /// Which patches.
    pub phase: Phase,
    /// Which verification it belongs to; empty for the first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub series: String,
    /// Number of this run among those of its phase and profile, from 0.
    pub repeat: u32,
    /// Whether nothing else ran on the machine: a time-out is confirmed like that before it counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// Conditions.
    pub profile: Profile,
    /// Key of the instance image.
    pub image: Digest,
    /// The spec's run-hash.
    pub run_hash: Digest,
    /// Digest of the source of the runner that reported.
    pub runner: Digest,
    /// What its conditions were made with besides the runtime, by name: mounted, not in the image.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Digest>,
    /// The patches, in the order of application.
    pub patches: Vec<PatchRef>,
    /// Layers over the image's that hold the patches and what was rebuilt.
    pub layers: Vec<Layer>,
    /// The command inside the container; empty when it came to none.
    pub command: Vec<String>,
    /// How the run ended.
    pub outcome: RunOutcome,
    /// How the command ended.
    pub status: Option<ExitStatus>,
    /// What the results were read from.
    #[serde(default, skip_serializing_if = "Source::is_stream")]
    pub source: Source,
    /// Options of the run that its runner could not obey, by their names in the file of options: what they ask for was
    /// not tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disobeyed: Vec<String>,
    /// Whether the runner itself came to its end.
    pub session_ended: bool,
    /// How many tests were collected, where collection ended.
    pub collected: Option<u64>,
    /// The collected ids in their order; in [`Phase::Collect`] only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// Outcome per test id.
    pub tests: BTreeMap<String, TestResult>,
    /// Modules that could not be collected, with the reason.
    pub collection_errors: BTreeMap<String, String>,
    /// Modules that were skipped whole, with the reason.
    pub collection_skips: BTreeMap<String, String>,
    /// The secret of this run's report: it lets an audit read the stream again.
    pub nonce: String,
    /// All of standard output.
    pub stdout: LogRef,
    /// All of standard error.
    pub stderr: LogRef,
    /// The runner's stream.
    pub report: LogRef,
    /// Wall time in seconds.
    pub wall: f64,
    /// User and system time in seconds, where known.
    pub cpu: Option<f64>,
    /// Peak memory in bytes, where known.
    pub peak_memory: Option<u64>,
    /// Whether the kernel killed something in it for the memory limit.
    pub oom_killed: bool,
    /// Tries to leave the container by network, where counted.
    pub network_attempts: Option<NetworkAttempts>,
    /// What the host could not give.
    pub gaps: Vec<Gap>,
    /// What made the container: the embedded runtime, or a daemon with its version.
    #[serde(default = "embedded", skip_serializing_if = "is_embedded")]
    pub runtime: String,
    /// How many runs the machine made at once.
    pub slots: u32,
}

impl RunRecord {
    /// The outcome of a test; missing when the run says nothing of it.
    pub fn outcome_of(&self, id: &str) -> crate::results::Outcome {
        self.tests.get(id).map_or(crate::results::Outcome::Missing, |result| result.outcome)
    }
}
