//! Runs reduced to what a line of the report shows.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::Digest;
use crate::results::Outcome;
use crate::runtime::Gap;
use crate::verify::{Phase, Profile, RunOutcome, RunRecord, Verdict};

/// How many failing tests of a run are told with their reason.
const REASONS: usize = 5;
/// How many of the slowest tests are told.
const SLOWEST: usize = 8;

/// A run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunLine {
    /// The run's key.
    pub key: Digest,
    /// Which patches.
    pub phase: Phase,
    /// Which verification it belongs to; empty for the first.
    pub series: String,
    /// Conditions.
    pub profile: Profile,
    /// Whether nothing else ran on the machine.
    pub alone: bool,
    /// How it ended, in one word.
    pub outcome: &'static str,
    /// What happened, where it did not complete.
    pub explanation: Option<String>,
    /// How many expected tests did not pass, of those that were asked to run.
    pub failed: usize,
    /// How many of those are not set aside.
    pub counted: usize,
    /// Some of them, with the reason.
    pub reasons: Vec<(String, String)>,
    /// How many tests it has results of.
    pub tests: usize,
    /// Wall time in seconds.
    pub wall: f64,
    /// User and system time in seconds, where known.
    pub cpu: Option<f64>,
    /// Peak memory in bytes, where known.
    pub peak_memory: Option<u64>,
    /// Packets sent towards other machines and name look-ups, where counted.
    pub network: Option<(u64, u64)>,
    /// What the host could not give.
    pub gaps: Vec<Gap>,
}

impl RunLine {
    /// Whether it says something against the instance: it should have passed and did not, or did not complete.
    pub fn is_telling(&self) -> bool {
        self.outcome != RunOutcome::Completed.as_str()
            || (self.phase == Phase::Post && self.failed > 0)
    }
}

/// How long a test takes after the gold patch.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowTest {
    /// The test.
    pub id: String,
    /// Median over the runs, in seconds.
    pub median: f64,
    /// The longest, in seconds.
    pub max: f64,
}

/// The tests that the run was restricted to.
pub(super) fn selected(record: &RunRecord) -> Option<&[String]> {
    use crate::verify::{Setting, TestOrder};
    record.profile.settings().iter().find_map(|setting| match setting {
        Setting::Order { order: TestOrder::Only { tests } } => Some(tests.as_slice()),
        _ => None,
    })
}

/// The order in which runs are shown, and counted.
pub(super) fn in_order(records: &[RunRecord]) -> Vec<&RunRecord> {
    let mut order: Vec<&RunRecord> = records.iter().collect();
    order.sort_by(|a, b| {
        (a.phase, !a.profile.is_plain(), &a.series, a.alone, &a.profile, a.repeat, a.key).cmp(&(
            b.phase,
            !b.profile.is_plain(),
            &b.series,
            b.alone,
            &b.profile,
            b.repeat,
            b.key,
        ))
    });
    order
}

/// One run's line. `expected` are the tests of both lists under the ids that runs know.
pub(super) fn line(record: &RunRecord, expected: &BTreeSet<&str>, verdict: &Verdict) -> RunLine {
    let aside: BTreeSet<&str> = verdict.quarantined.iter().map(String::as_str).collect();
    let only: Option<BTreeSet<&str>> =
        selected(record).map(|tests| tests.iter().map(String::as_str).collect());
    let failing: Vec<&str> = expected
        .iter()
        .copied()
        .filter(|id| only.as_ref().is_none_or(|only| only.contains(id)))
        .filter(|id| !record.outcome_of(id).satisfies())
        .collect();
    let completed = record.outcome == RunOutcome::Completed;
    let after = record.phase == Phase::Post;
    let reasons = failing
        .iter()
        .filter(|_| after)
        .filter_map(|id| {
            let reason = record.tests.get(*id)?.reason.clone()?;
            Some(((*id).to_owned(), reason))
        })
        .take(REASONS)
        .collect();
    RunLine {
        key: record.key,
        phase: record.phase,
        series: record.series.clone(),
        profile: record.profile.clone(),
        alone: record.alone,
        outcome: record.outcome.as_str(),
        explanation: (!completed).then(|| record.outcome.explain()),
        failed: if record.phase == Phase::Collect { 0 } else { failing.len() },
        counted: failing.iter().filter(|id| !aside.contains(*id)).count(),
        reasons,
        tests: if record.phase == Phase::Collect { record.ids.len() } else { record.tests.len() },
        wall: record.wall,
        cpu: record.cpu,
        peak_memory: record.peak_memory,
        network: record.network_attempts.map(|attempts| (attempts.packets, attempts.lookups)),
        gaps: record.gaps.clone(),
    }
}

/// The slowest tests after the gold patch in plain conditions.
pub(super) fn slowest(records: &[RunRecord]) -> Vec<SlowTest> {
    let mut seconds: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let plain = |run: &&RunRecord| run.phase == Phase::Post && run.profile.is_plain();
    for record in records.iter().filter(plain) {
        for (id, result) in &record.tests {
            if result.outcome != Outcome::Skipped {
                seconds.entry(id).or_default().push(result.seconds);
            }
        }
    }
    let mut tests: Vec<SlowTest> = seconds
        .into_iter()
        .map(|(id, mut seconds)| {
            seconds.sort_by(f64::total_cmp);
            let max = seconds.last().copied().unwrap_or_default();
            SlowTest { id: id.to_owned(), median: seconds[seconds.len() / 2], max }
        })
        .filter(|test| test.max > 0.0)
        .collect();
    tests.sort_by(|a, b| b.max.total_cmp(&a.max).then_with(|| a.id.cmp(&b.id)));
    tests.truncate(SLOWEST);
    tests
}
