//! What the runs say of an instance, with the rules that decided it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::near::NearMiss;
use super::record::Phase;
use crate::results::Outcome;

/// The version that is written.
pub const VERDICT_VERSION: u64 = 1;

/// The tests that an instance expects.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Lists {
    /// They fail before the gold patch and pass after it.
    pub fail_to_pass: Vec<String>,
    /// They pass before and after.
    pub pass_to_pass: Vec<String>,
}

/// What an admission asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Clean plain `post` runs that are asked for; below, a verdict is provisional.
    pub runs: u32,
    /// `pre` runs that are asked for.
    pub pre_runs: u32,
    /// Confidence of the bound.
    pub confidence: f64,
    /// Whether an unstable PASS_TO_PASS test is set aside instead of rejecting the instance.
    pub quarantine: bool,
    /// Whether a run without a memory limit can carry more than a provisional verdict.
    pub require_memory_limit: bool,
}

impl Policy {
    fn preset(name: &str, runs: u32) -> Self {
        Self {
            name: name.to_owned(),
            runs,
            pre_runs: 3,
            confidence: 0.95,
            quarantine: true,
            require_memory_limit: true,
        }
    }

    /// 14 clean runs: bounds the run's failure rate at 20 %.
    pub fn training() -> Self {
        Self::preset("training", 14)
    }

    /// 29 clean runs: 10 %. The default.
    pub fn benchmark() -> Self {
        Self::preset("benchmark", 29)
    }

    /// 59 clean runs: 5 %.
    pub fn release() -> Self {
        Self::preset("release", 59)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::benchmark()
    }
}

/// The verdict's word.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Stable, by the policy.
    Admitted,
    /// Stable without the tests that were set aside.
    AdmittedWithQuarantine,
    /// Nothing speaks against it, but the policy asks for more.
    Provisional,
    /// Not an instance that can be graded.
    Rejected,
}

impl Status {
    /// The word of the stored form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::AdmittedWithQuarantine => "admitted-with-quarantine",
            Self::Provisional => "provisional",
            Self::Rejected => "rejected",
        }
    }
}

/// What a rule does to the verdict.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The instance is refused.
    Rejects,
    /// Tests are set aside.
    Quarantines,
    /// The verdict cannot be better than provisional.
    HoldsBack,
    /// The policy is met.
    Admits,
}

/// A rule by name.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// An instance expects at least one FAIL_TO_PASS test.
    FailToPassIsEmpty,
    /// Before the gold patch, at least one FAIL_TO_PASS test fails in every run.
    NothingFailsBefore,
    /// A `pre` run must be readable and its patch must apply.
    BrokenBefore,
    /// Every `post` run completes.
    BrokenAfter,
    /// Every FAIL_TO_PASS test passes in every `post` run.
    FailToPassFailsAfter,
    /// No FAIL_TO_PASS test changes between `post` runs.
    FailToPassIsFlaky,
    /// Every PASS_TO_PASS test passes in some `post` run.
    PassToPassFailsAfter,
    /// A PASS_TO_PASS test that changes between `post` runs is flaky.
    PassToPassIsFlaky,
    /// The policy's number of runs.
    TooFewRuns,
    /// A run without a memory limit proves less.
    NoMemoryLimit,
    /// The policy's number of runs, all clean.
    EnoughCleanRuns,
}

/// A rule that decided, and what it decided on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Reason {
    /// What it does.
    pub effect: Effect,
    /// Which rule.
    pub rule: Rule,
    /// One line for people.
    pub text: String,
    /// The tests it is about.
    pub tests: Vec<String>,
}

/// A test whose outcome changed between runs of one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FlakyTest {
    /// The test.
    pub id: String,
    /// In which phase.
    pub phase: Phase,
    /// How often each outcome was seen.
    pub outcomes: BTreeMap<Outcome, u64>,
}

/// An expected test that no run after the gold patch knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MissingTest {
    /// The expected id.
    pub id: String,
    /// The id that it was taken for: the only one it can mean.
    pub taken_for: Option<String>,
    /// Ids that are almost it.
    pub near: Vec<NearMiss>,
}

/// Something that decides nothing but that people should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Warning {
    /// Every expected test is FAIL_TO_PASS: perhaps one import error ended the whole run before the fix.
    FailToPassIsEverything,
    /// FAIL_TO_PASS tests that pass before the gold patch already.
    PassesBefore {
        /// The tests.
        tests: Vec<String>,
    },
    /// Expected tests that were skipped in every run: coverage lost.
    Skipped {
        /// The tests.
        tests: Vec<String>,
    },
    /// Runs that were hallmark's own failure: they count for nothing.
    InfraErrors {
        /// How many.
        runs: u64,
    },
    /// `pre` runs that did not complete; the tests they lack count as failing.
    CutBefore {
        /// How many.
        runs: u64,
    },
    /// The runs tried to reach the network.
    Network {
        /// In how many.
        runs: u64,
    },
}

/// What the runs say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Verdict {
    /// [`VERDICT_VERSION`].
    pub version: u64,
    /// The word.
    pub status: Status,
    /// Every rule that decided, strongest first.
    pub reasons: Vec<Reason>,
    /// The policy that was applied.
    pub policy: Policy,
    /// `pre` runs that count.
    pub pre_runs: u64,
    /// `post` runs that count: those since the last quarantine.
    pub runs: u64,
    /// How many of them failed a test that is not set aside.
    pub failures: u64,
    /// Exact one-sided upper bound of the rate of failing runs, at the policy's confidence.
    pub bound: f64,
    /// Tests set aside.
    pub quarantined: Vec<String>,
    /// Expected tests whose outcome changed.
    pub flaky: Vec<FlakyTest>,
    /// Expected tests that are in no `post` run under their id.
    pub missing: Vec<MissingTest>,
    /// What else to know.
    pub warnings: Vec<Warning>,
}

impl Verdict {
    /// One line: the word, the numbers and the strongest reason.
    pub fn summary(&self) -> String {
        let reason = self.reasons.first().map(|reason| reason.text.as_str()).unwrap_or_default();
        format!(
            "{}: {} of {} runs failed, rate below {:.1} % ({:.0} % confidence); {reason}",
            self.status.as_str(),
            self.failures,
            self.runs,
            self.bound * 100.0,
            self.policy.confidence * 100.0,
        )
    }
}
