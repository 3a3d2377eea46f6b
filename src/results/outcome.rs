//! The outcome of one test.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a test ended (DESIGN.md section 7).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It passed.
    Passed,
    /// It was expected to fail, did not, and its mark is not strict.
    Xpassed,
    /// It was expected to fail and did.
    Xfailed,
    /// It did not run to a result, by its own will.
    Skipped,
    /// It is not in the results. Never stored: the absence is the record.
    Missing,
    /// Its set-up or tear-down failed.
    Error,
    /// It failed, ran over its limit, or was running when the process died.
    Failed,
}

impl Outcome {
    /// Whether an expected test with this outcome counts as passing: what the field counts (passed, or
    /// failed as expected) and an unexpected pass, which the runner counts as success.
    pub fn satisfies(self) -> bool {
        matches!(self, Self::Passed | Self::Xpassed | Self::Xfailed)
    }

    /// The word of the stored form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Xpassed => "xpassed",
            Self::Xfailed => "xfailed",
            Self::Skipped => "skipped",
            Self::Missing => "missing",
            Self::Error => "error",
            Self::Failed => "failed",
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What one test did in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TestResult {
    /// How it ended; the worst of its phases.
    pub outcome: Outcome,
    /// Wall time of its phases in seconds, as the runner measured it.
    pub seconds: f64,
    /// Why, in one line, where it did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many times the runner ran it again before this outcome (rerunfailures).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reruns: u32,
    /// What it sent to the network, where it sent anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkUse>,
    /// The first line of its docstring, where the runner shows one (unittest): some datasets know it by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl TestResult {
    /// An outcome of which nothing more is known.
    pub fn new(outcome: Outcome) -> Self {
        Self { outcome, seconds: 0.0, reason: None, reruns: 0, network: None, description: None }
    }
}

/// What was sent to a network where nobody answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NetworkUse {
    /// Packets towards other machines.
    pub packets: u64,
    /// Datagrams to a port of this machine where nobody listens: name look-ups, since there is no name server.
    pub lookups: u64,
}

// The signature is serde's.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}
