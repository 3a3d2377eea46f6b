//! What the runs say of an instance, with the rules that decided it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::near::NearMiss;
use super::policy::{Policy, Remedy};
use super::profile::{Axis, Profile, Setting};
use crate::base::Digest;
use crate::results::Outcome;
use crate::runtime::Gap;

/// The version that is written.
pub const VERDICT_VERSION: u64 = 2;

/// The tests that an instance expects.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Lists {
    /// They fail before the gold patch and pass after it.
    pub fail_to_pass: Vec<String>,
    /// They pass before and after.
    pub pass_to_pass: Vec<String>,
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
    /// Whether the instance is refused.
    pub fn is_rejection(self) -> bool {
        self == Self::Rejected
    }

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
    /// Tests depend on a condition that is held as it is in plain runs.
    Pins,
}

/// A rule by name.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// An instance expects at least one FAIL_TO_PASS test.
    FailToPassIsEmpty,
    /// Before the gold patch, at least one FAIL_TO_PASS test that is not set aside fails in every run.
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
    /// A FAIL_TO_PASS test fails under some condition.
    FailToPassIsSensitive,
    /// A PASS_TO_PASS test fails under some condition.
    PassToPassIsSensitive,
    /// Two collections find the same ids.
    IdIsUnstable,
    /// The policy's share of PASS_TO_PASS that may be set aside.
    TooManyQuarantined,
    /// At least one FAIL_TO_PASS test is not set aside.
    NothingLeft,
    /// The policy's time for all runs of an instance.
    TimeBudgetIsSpent,
    /// The policy's number of runs.
    TooFewRuns,
    /// The policy's two collections and its runs under other conditions.
    TooFewConditions,
    /// A run that ran out of time counts once that was confirmed alone.
    TimeoutIsUnconfirmed,
    /// The search for causes is done.
    CauseIsOpen,
    /// Runs that hallmark itself failed to make.
    TooManyInfraErrors,
    /// A policy whose verdicts are never better than provisional.
    PolicyIsProvisional,
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

/// Which of an instance's lists a test is in.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ListName {
    /// FAIL_TO_PASS.
    FailToPass,
    /// PASS_TO_PASS.
    PassToPass,
    /// Neither: it is watched, and decides nothing.
    Neither,
}

/// Runs of one test in plain conditions after the gold patch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Count {
    /// Runs that count.
    pub runs: u64,
    /// Those in which it did not pass.
    pub failures: u64,
    /// Exact one-sided upper bound of its failure rate, at the policy's confidence.
    pub bound: f64,
}

/// A test that does not always pass after the gold patch, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UnstableTest {
    /// The test.
    pub id: String,
    /// Which list it is in.
    pub list: ListName,
    /// Why.
    pub cause: Cause,
    /// What is done about it.
    pub remedy: Remedy,
    /// In plain conditions.
    pub plain: Count,
    /// How often each outcome was seen in plain conditions.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Keys of runs in which it did not pass, the most telling first.
    pub evidence: Vec<Digest>,
}

/// Why a test is unstable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    tag = "kind",
    deny_unknown_fields
)]
pub enum Cause {
    /// It failed in plain conditions, or failed under others and then did not fail again under the same.
    Flaky,
    /// It fails under these conditions and passes without them.
    Sensitive {
        /// The fewest settings that make it fail.
        settings: Vec<Setting>,
        /// For a test that depends on the order: on which tests.
        order: Option<OrderCause>,
    },
    /// It fails in plain conditions and passes under these.
    Needs {
        /// The fewest settings that make it pass.
        settings: Vec<Setting>,
    },
    /// It fails under a combination whose cause was not found within the policy's probes.
    NotIsolated {
        /// The settings that are left.
        settings: Vec<Setting>,
    },
    /// Two collections found different ids.
    UnstableId,
}

/// On what a test depends that depends on the order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum OrderCause {
    /// It fails after these, and alone it passes.
    Polluter {
        /// The fewest.
        tests: Vec<String>,
    },
    /// It fails alone, and passes after these.
    MissingSetter {
        /// The fewest.
        tests: Vec<String>,
    },
    /// Not found within the policy's probes, or no subset of tests shows it.
    NotFound,
}

/// What ran under other conditions than the plain ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Condition {
    /// The conditions.
    pub profile: Profile,
    /// Runs that count.
    pub runs: u64,
    /// Those in which an expected test did not pass.
    pub failures: u64,
    /// What the host could not give of it.
    pub unavailable: Vec<Gap>,
}

/// A test that tried to leave the container by network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NetworkTest {
    /// The test.
    pub id: String,
    /// Most packets in one run.
    pub packets: u64,
    /// Most name look-ups in one run.
    pub lookups: u64,
}

/// The dataset's list beside the one that the runs give.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Difference {
    /// In the dataset's and not in ours.
    pub missing: Vec<String>,
    /// In ours and not in the dataset's.
    pub unexpected: Vec<String>,
}

/// What the runs give, compared with the dataset.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Comparison {
    /// FAIL_TO_PASS.
    pub fail_to_pass: Difference,
    /// PASS_TO_PASS.
    pub pass_to_pass: Difference,
}

/// What the verdict cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cost {
    /// All runs, of every phase and condition.
    pub runs: u64,
    /// Their wall time in seconds.
    pub wall: f64,
}

/// An expected test that no run after the gold patch knows; where its id stands for several tests, once for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MissingTest {
    /// The expected id.
    pub id: String,
    /// The id of the test, or of one of the tests, that it can only mean.
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
    /// Runs that ran out of time, or tests in them, and did not when nothing else ran on the machine.
    SlowUnderLoad {
        /// How many.
        runs: u64,
    },
    /// Tests whose outcome changes between runs before the gold patch.
    UnstableBefore {
        /// The tests.
        tests: Vec<String>,
    },
    /// The tests could not be collected in a run of their own: ids and orders are not examined.
    NotCollected {
        /// What happened.
        reason: String,
    },
    /// Two collections found the same tests in different orders.
    CollectionOrder {
        /// How many stand elsewhere.
        tests: u64,
    },
    /// Conditions that the host or the test runner could not give: nothing is known of them.
    NotVaried {
        /// What they would have varied.
        axes: Vec<Axis>,
    },
    /// The policy's bound on runs to find causes ended the search.
    SearchCut {
        /// How many were made.
        probes: u64,
    },
    /// The runner ran tests again before it reported them: failures may be hidden.
    Reruns {
        /// The tests.
        tests: Vec<String>,
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
    /// What ran under other conditions.
    pub conditions: Vec<Condition>,
    /// Tests set aside.
    pub quarantined: Vec<String>,
    /// Tests that do not always pass, with the cause.
    pub unstable: Vec<UnstableTest>,
    /// Unstable tests that always failed in the same runs: likely one cause. Groups of two and more.
    pub groups: Vec<Vec<String>>,
    /// Tests that tried to reach the network, passing or not.
    pub network: Vec<NetworkTest>,
    /// Expected tests that are in no `post` run under their id.
    pub missing: Vec<MissingTest>,
    /// The dataset's lists beside those that the runs give.
    pub comparison: Comparison,
    /// Three times the slowest run after the gold patch, in seconds: a wall limit for the spec.
    pub proposed_timeout: Option<f64>,
    /// What it cost.
    pub cost: Cost,
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
