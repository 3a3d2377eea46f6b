//! Unstable tests with their causes, counts and evidence.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::Digest;
use crate::results::Outcome;
use crate::verify::bound::upper_bound;
use crate::verify::ladder::{Evidence, Findings, Run};
use crate::verify::policy::{Policy, Remedy};
use crate::verify::rules;
use crate::verify::verdict::{Cause, Count, ListName, UnstableTest};

/// Every unstable test, by list and id; one with several causes is there for each.
pub(super) fn unstable_tests(
    policy: &Policy,
    evidence: &Evidence<'_>,
    findings: &Findings,
) -> Vec<UnstableTest> {
    let mut tests: Vec<UnstableTest> = findings
        .found
        .iter()
        .map(|finding| {
            let expected = &evidence.expected[finding.test];
            UnstableTest {
                id: expected.id.to_owned(),
                list: expected.list,
                cause: finding.cause.clone(),
                remedy: rules::remedy(policy, expected.list, finding),
                plain: count(policy, evidence, &expected.known_as),
                outcomes: outcomes(evidence, &expected.known_as),
                evidence: failing_runs(evidence, finding.test),
            }
        })
        .collect();
    tests.extend(others(policy, evidence));
    tests.sort_by(|a, b| (a.list, &a.id).cmp(&(b.list, &b.id)));
    tests
}

/// Tests that nobody expects and that are unstable all the same: by their ids, or in plain runs.
fn others(policy: &Policy, evidence: &Evidence<'_>) -> Vec<UnstableTest> {
    let expected: BTreeSet<&str> =
        evidence.expected.iter().map(|test| test.known_as.as_str()).collect();
    let unstable_ids = evidence.unstable_ids();
    let runs: Vec<&Run<'_>> = evidence.counted().filter(|run| run.completed()).collect();
    let mut passes: BTreeMap<&str, usize> = BTreeMap::new();
    for run in &runs {
        for id in run.record.tests.keys().filter(|id| !expected.contains(id.as_str())) {
            *passes.entry(id).or_default() += usize::from(run.outcome_of(id).satisfies());
        }
    }
    let changing = passes
        .iter()
        .filter(|(id, passes)| (1..runs.len()).contains(passes) && !unstable_ids.contains(*id))
        .map(|(id, _)| (*id, Cause::Flaky));
    unstable_ids
        .iter()
        .filter(|id| !expected.contains(**id))
        .map(|id| (*id, Cause::UnstableId))
        .chain(changing)
        .map(|(id, cause)| UnstableTest {
            id: id.to_owned(),
            list: ListName::Neither,
            cause,
            remedy: Remedy::Quarantine,
            plain: count(policy, evidence, id),
            outcomes: outcomes(evidence, id),
            evidence: evidence
                .counted()
                .filter(|run| !run.outcome_of(id).satisfies())
                .map(|run| run.record.key)
                .collect(),
        })
        .collect()
}

fn outcomes(evidence: &Evidence<'_>, known_as: &str) -> BTreeMap<Outcome, u64> {
    let mut outcomes = BTreeMap::new();
    for run in evidence.counted() {
        *outcomes.entry(run.outcome_of(known_as)).or_default() += 1;
    }
    outcomes
}

fn count(policy: &Policy, evidence: &Evidence<'_>, known_as: &str) -> Count {
    let runs = evidence.counted().count() as u64;
    let failed = evidence.counted().filter(|run| !run.outcome_of(known_as).satisfies());
    let failures = failed.count() as u64;
    Count { runs, failures, bound: upper_bound(runs, failures, policy.confidence) }
}

/// Runs after the gold patch in which a test did not pass: those with the fewest conditions first.
fn failing<'e, 'a>(evidence: &'e Evidence<'a>, test: usize) -> Vec<&'e Run<'a>> {
    let all = evidence.counted().chain(&evidence.varied).chain(&evidence.chosen);
    let mut runs: Vec<&Run<'a>> =
        all.filter(|run| !run.waits && run.ran(test) && run.failed(test)).collect();
    runs.sort_by_key(|run| {
        let profile = &run.record.profile;
        (profile.settings().len(), profile, run.record.repeat)
    });
    runs
}

fn failing_runs(evidence: &Evidence<'_>, test: usize) -> Vec<Digest> {
    failing(evidence, test).into_iter().map(|run| run.record.key).collect()
}

/// Unstable tests that failed in the same runs of all tests, where they are more than one.
pub(super) fn groups(evidence: &Evidence<'_>, findings: &Findings) -> Vec<Vec<String>> {
    let tests: BTreeSet<usize> = findings.found.iter().map(|finding| finding.test).collect();
    let mut groups: BTreeMap<Vec<Digest>, Vec<String>> = BTreeMap::new();
    for test in tests {
        let whole = evidence.counted().chain(&evidence.varied).filter(|run| !run.waits);
        let failed: Vec<Digest> =
            whole.filter(|run| run.failed(test)).map(|run| run.record.key).collect();
        if !failed.is_empty() {
            groups.entry(failed).or_default().push(evidence.expected[test].id.to_owned());
        }
    }
    let mut groups: Vec<Vec<String>> = groups.into_values().filter(|one| one.len() > 1).collect();
    for group in &mut groups {
        group.sort();
    }
    groups.sort();
    groups
}
