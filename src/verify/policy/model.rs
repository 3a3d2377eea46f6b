//! What an admission asks for.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::verify::profile::Axis;

/// What is done about a test that does not always pass.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Remedy {
    /// It stays: hallmark holds the condition as it is in plain runs, wherever it runs the instance.
    Pin,
    /// The test is set aside.
    Quarantine,
    /// The instance is refused.
    Reject,
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
    /// Confidence of the bounds.
    pub confidence: f64,
    /// Whether no verdict is better than provisional, however many runs.
    pub provisional: bool,
    /// What the combined runs vary.
    pub axes: BTreeSet<Axis>,
    /// A PASS_TO_PASS test that is flaky.
    pub flaky: Remedy,
    /// A FAIL_TO_PASS test that is flaky, or sensitive to a condition that is not pinned.
    pub flaky_fail_to_pass: Remedy,
    /// A test that is sensitive, by axis.
    pub sensitive: BTreeMap<Axis, Remedy>,
    /// Largest share of PASS_TO_PASS that may be set aside, from 0 to 1.
    pub max_quarantined: f64,
    /// Most runs to find causes, an instance.
    pub max_probes: u32,
    /// Wall time of all runs of an instance in seconds, after which no new one begins.
    pub time_budget: Option<f64>,
    /// Whether a run without a memory limit can carry more than a provisional verdict.
    pub require_memory_limit: bool,
}

impl Policy {
    fn preset(name: &str, runs: u32) -> Self {
        let sensitive = Axis::ALL.map(|axis| {
            // What no machine holds still is set aside; the rest is the same wherever hallmark runs.
            let remedy = match axis {
                Axis::Clock | Axis::Cpu | Axis::Load | Axis::DirectoryOrder => Remedy::Quarantine,
                _ => Remedy::Pin,
            };
            (axis, remedy)
        });
        Self {
            name: name.to_owned(),
            runs,
            pre_runs: 3,
            confidence: 0.95,
            provisional: false,
            axes: Axis::ALL.into(),
            flaky: Remedy::Quarantine,
            flaky_fail_to_pass: Remedy::Reject,
            sensitive: sensitive.into(),
            max_quarantined: 0.1,
            max_probes: 60,
            time_budget: None,
            require_memory_limit: true,
        }
    }

    /// 3 clean runs: a first look, always provisional.
    pub fn quick() -> Self {
        Self { provisional: true, ..Self::preset("quick", 3) }
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
