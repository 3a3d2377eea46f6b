//! What to run next.
//!
//! ```text
//! collect x2   ids, twice
//! pre x3, post x3
//! combined x4  every axis
//! causes       where a test failed there
//! top up       plain post runs, to the policy's number
//! ```
//!
//! A rung begins when the one before it is done. Nothing more is wanted once the verdict is certain.

use std::collections::BTreeSet;

use super::array::{combined_runs, second_collection};
use super::causes::{Finding, find};
use super::evidence::{Evidence, Run};
use crate::verify::policy::{Policy, Remedy};
use crate::verify::profile::Profile;
use crate::verify::record::{Phase, RunOutcome, RunRecord};
use crate::verify::rules;
use crate::verify::verdict::Lists;

/// Plain `post` runs that are made before the combined ones: a test that fails in all of them is not flaky.
pub(crate) const FIRST_RUNS: u32 = 3;
/// Runs that hallmark itself failed to make, after which it tries no more of an instance.
pub(crate) const MOST_INFRA_ERRORS: u64 = 8;

/// A run that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunRequest {
    /// Which patches, or collection.
    pub phase: Phase,
    /// Under which conditions.
    pub profile: Profile,
    /// Number of the run among those of its phase and profile, from 0.
    pub repeat: u32,
    /// Whether nothing else may run on the machine.
    pub alone: bool,
}

impl RunRequest {
    /// Whether this record is what was asked for.
    pub fn is(&self, record: &RunRecord) -> bool {
        self.phase == record.phase
            && self.profile == record.profile
            && self.repeat == record.repeat
            && self.alone == record.alone
    }

    /// The next run of a profile.
    pub(crate) fn next(evidence: &Evidence<'_>, phase: Phase, profile: Profile) -> Self {
        let repeat = missing(evidence, phase, &profile, 0, u32::MAX).next().unwrap_or(u32::MAX);
        Self { phase, profile, repeat, alone: false }
    }
}

/// The runs that are wanted now and of which no record is there, the most urgent first; they do not depend on each other
/// and may be made at once. Empty when the verdict needs no more.
///
/// `records` are those of one series. Their order does not matter.
pub fn wanted(policy: &Policy, lists: &Lists, records: &[RunRecord]) -> Vec<RunRequest> {
    let evidence = Evidence::gather(lists, records);
    let findings = find(policy, &evidence);
    if is_spent(policy, &evidence)
        || evidence.infra >= MOST_INFRA_ERRORS
        || rules::certain(policy, &evidence, &findings)
    {
        return Vec::new();
    }
    let confirmations = confirmations(&evidence);
    if !confirmations.is_empty() {
        return confirmations;
    }
    let rungs = [collections, first_runs, combined];
    for rung in rungs {
        let requests = rung(policy, &evidence);
        if !requests.is_empty() {
            return requests;
        }
    }
    if !findings.asks.is_empty() {
        return findings.asks;
    }
    if rules::rejected(policy, &evidence, &findings) {
        return Vec::new();
    }
    let start = counted_from(policy, &evidence, &findings.found);
    requests(&evidence, Phase::Post, &Profile::plain(), start, policy.runs)
}

/// Whether the policy's time is used up.
pub(crate) fn is_spent(policy: &Policy, evidence: &Evidence<'_>) -> bool {
    policy.time_budget.is_some_and(|budget| evidence.wall() >= budget)
}

/// Runs that ran out of time, alone: one of each profile, since a hang that is confirmed is not confirmed again.
fn confirmations(evidence: &Evidence<'_>) -> Vec<RunRequest> {
    let mut requests: Vec<RunRequest> = Vec::new();
    for Run { record, .. } in evidence.waiting() {
        let same = |one: &RunRequest| one.phase == record.phase && one.profile == record.profile;
        let request = RunRequest {
            phase: record.phase,
            profile: record.profile.clone(),
            repeat: record.repeat,
            alone: true,
        };
        let tried = evidence.all.iter().any(|record| request.is(record));
        if !tried && !requests.iter().any(same) {
            requests.push(request);
        }
    }
    requests
}

fn collections(policy: &Policy, evidence: &Evidence<'_>) -> Vec<RunRequest> {
    let second = second_collection(&policy.axes);
    if second.is_plain() {
        return requests(evidence, Phase::Collect, &second, 0, 2);
    }
    // The second is repeat 1 of its own profile, so that it is seen for what it is.
    let mut wanted = requests(evidence, Phase::Collect, &Profile::plain(), 0, 1);
    wanted.extend(requests(evidence, Phase::Collect, &second, 1, 1));
    wanted
}

fn first_runs(policy: &Policy, evidence: &Evidence<'_>) -> Vec<RunRequest> {
    let first = FIRST_RUNS.min(policy.runs);
    // Where even collection broke, one run tells whether anything runs.
    let broken = !evidence.collect.iter().any(Run::completed);
    if broken && evidence.plain.is_empty() {
        return requests(evidence, Phase::Post, &Profile::plain(), 0, 1);
    }
    let plain = Profile::plain();
    let mut wanted = requests(evidence, Phase::Pre, &plain, 0, policy.pre_runs);
    wanted.extend(requests(evidence, Phase::Post, &plain, 0, first));
    wanted
}

fn combined(policy: &Policy, evidence: &Evidence<'_>) -> Vec<RunRequest> {
    combined_runs(&policy.axes)
        .iter()
        .flat_map(|profile| requests(evidence, Phase::Post, profile, 0, 1))
        .collect()
}

/// As many runs of a profile from a repeat on as are lacking to `runs`.
pub(crate) fn requests(
    evidence: &Evidence<'_>,
    phase: Phase,
    profile: &Profile,
    from: u32,
    runs: u32,
) -> Vec<RunRequest> {
    missing(evidence, phase, profile, from, runs)
        .map(|repeat| RunRequest { phase, profile: profile.clone(), repeat, alone: false })
        .collect()
}

/// The repeats that are lacking to `runs` runs that count. A run that was hallmark's own failure has used its number up.
fn missing(
    evidence: &Evidence<'_>,
    phase: Phase,
    profile: &Profile,
    from: u32,
    runs: u32,
) -> impl Iterator<Item = u32> {
    let mut used = BTreeSet::new();
    let mut counted = BTreeSet::new();
    let of_profile = |record: &&&RunRecord| {
        record.phase == phase && record.repeat >= from && record.profile == *profile
    };
    for record in evidence.all.iter().filter(of_profile) {
        used.insert(record.repeat);
        if !matches!(record.outcome, RunOutcome::InfraError { .. }) {
            counted.insert(record.repeat);
        }
    }
    let lacking = (runs as usize).saturating_sub(counted.len());
    (from..u32::MAX).filter(move |repeat| !used.contains(repeat)).take(lacking)
}

/// The repeat from which on plain `post` runs count: the one after the last run in which a test that is set aside failed
/// for the first time. What it does later changes nothing any more.
pub(crate) fn counted_from(policy: &Policy, evidence: &Evidence<'_>, found: &[Finding]) -> u32 {
    let aside = found.iter().filter(|finding| {
        !finding.is_open
            && rules::remedy(policy, evidence.expected[finding.test].list, finding)
                == Remedy::Quarantine
    });
    let first_failure = |finding: &Finding| {
        let failed = evidence.counted().find(|run| run.failed(finding.test));
        failed.map_or(0, |run| run.record.repeat + 1)
    };
    aside.map(first_failure).max().unwrap_or(0)
}

/// Whether both collections and all combined runs were made.
pub(crate) fn is_climbed(policy: &Policy, evidence: &Evidence<'_>) -> bool {
    collections(policy, evidence).is_empty() && combined(policy, evidence).is_empty()
}
