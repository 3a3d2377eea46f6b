//! What decides nothing and that people should know.

use std::collections::{BTreeMap, BTreeSet};

use crate::results::Outcome;
use crate::verify::ladder::{Evidence, Findings, Run, axis_of};
use crate::verify::policy::Policy;
use crate::verify::profile::{Axis, Profile};
use crate::verify::verdict::{Condition, ListName, NetworkTest, Warning};

pub(super) fn warnings(
    policy: &Policy,
    evidence: &Evidence<'_>,
    findings: &Findings,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    warnings.extend(before(evidence));
    let has = |list| evidence.list(list).next().is_some();
    if has(ListName::FailToPass) && !has(ListName::PassToPass) {
        warnings.push(Warning::FailToPassIsEverything);
    }
    let skipped = |test: usize| {
        let known_as = &evidence.expected[test].known_as;
        let mut runs = evidence.counted().peekable();
        runs.peek().is_some() && runs.all(|run| run.outcome_of(known_as) == Outcome::Skipped)
    };
    let tests = ids(evidence, (0..evidence.expected.len()).filter(|test| skipped(*test)));
    if !tests.is_empty() {
        warnings.push(Warning::Skipped { tests });
    }
    let rerun: BTreeSet<&str> = evidence
        .plain
        .iter()
        .chain(&evidence.varied)
        .flat_map(|run| run.record.tests.iter().filter(|(_, result)| result.reruns > 0))
        .map(|(id, _)| id.as_str())
        .collect();
    if !rerun.is_empty() {
        let tests = rerun.into_iter().map(str::to_owned).collect();
        warnings.push(Warning::Reruns { tests });
    }
    if evidence.infra > 0 {
        warnings.push(Warning::InfraErrors { runs: evidence.infra });
    }
    let slow = evidence.slow_runs();
    if slow > 0 {
        warnings.push(Warning::SlowUnderLoad { runs: slow });
    }
    let network = evidence
        .runs()
        .filter(|run| {
            let tries = run.record.network_attempts;
            tries.is_some_and(|tries| tries.packets + tries.lookups > 0)
        })
        .count();
    if network > 0 {
        warnings.push(Warning::Network { runs: network as u64 });
    }
    warnings.extend(collections(evidence));
    let lacking: BTreeSet<Axis> = evidence
        .varied
        .iter()
        .flat_map(|run| {
            run.record.profile.axes().difference(&run.given.axes()).copied().collect::<Vec<_>>()
        })
        .filter(|axis| policy.axes.contains(axis))
        .collect();
    if !lacking.is_empty() {
        warnings.push(Warning::NotVaried { axes: lacking.into_iter().collect() });
    }
    if findings.is_cut {
        warnings.push(Warning::SearchCut { probes: findings.probes });
    }
    warnings
}

fn ids(evidence: &Evidence<'_>, tests: impl Iterator<Item = usize>) -> Vec<String> {
    let mut ids: Vec<String> = tests.map(|test| evidence.expected[test].id.to_owned()).collect();
    ids.sort();
    // An id may stand for several tests.
    ids.dedup();
    ids
}

fn before(evidence: &Evidence<'_>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let runs: Vec<&Run<'_>> = evidence.pre.iter().filter(|run| !run.waits).collect();
    if runs.is_empty() {
        return warnings;
    }
    let failures = |test: usize| runs.iter().filter(|run| run.failed(test)).count();
    let fail_to_pass: Vec<usize> = evidence.list(ListName::FailToPass).collect();
    let rejected = runs.iter().any(|run| !fail_to_pass.iter().any(|test| run.failed(*test)));
    let passing =
        ids(evidence, fail_to_pass.into_iter().filter(|test| !rejected && failures(*test) == 0));
    if !passing.is_empty() {
        warnings.push(Warning::PassesBefore { tests: passing });
    }
    let changes = |test: &usize| (1..runs.len()).contains(&failures(*test));
    let tests = ids(evidence, (0..evidence.expected.len()).filter(changes));
    if !tests.is_empty() {
        warnings.push(Warning::UnstableBefore { tests });
    }
    let cut = runs.iter().filter(|run| !run.completed()).count();
    if cut > 0 {
        warnings.push(Warning::CutBefore { runs: cut as u64 });
    }
    warnings
}

fn collections(evidence: &Evidence<'_>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let broken: BTreeSet<String> = evidence
        .collect
        .iter()
        .filter(|run| !run.completed())
        .map(|run| run.outcome().explain())
        .collect();
    warnings.extend(broken.into_iter().map(|reason| Warning::NotCollected { reason }));
    let mut orders = evidence
        .collect
        .iter()
        .filter(|run| run.completed() && !run.record.ids.is_empty())
        .map(|run| &run.record.ids);
    let Some(first) = orders.next() else { return warnings };
    for other in orders {
        let common: BTreeSet<&String> = first.iter().collect::<BTreeSet<_>>();
        let both: BTreeSet<&String> =
            other.iter().filter(|id| common.contains(id)).collect::<BTreeSet<_>>();
        let left = first.iter().filter(|id| both.contains(id));
        let right = other.iter().filter(|id| both.contains(id));
        let tests = left.zip(right).filter(|(a, b)| a != b).count() as u64;
        if tests > 0 {
            warnings.push(Warning::CollectionOrder { tests });
        }
    }
    warnings
}

/// What ran with all tests under other conditions, by profile.
pub(super) fn conditions(evidence: &Evidence<'_>) -> Vec<Condition> {
    let mut conditions: BTreeMap<&Profile, Condition> = BTreeMap::new();
    for run in evidence.varied.iter().filter(|run| !run.waits) {
        let profile = &run.record.profile;
        let axes = profile.axes();
        let condition = conditions.entry(profile).or_insert_with(|| Condition {
            profile: profile.clone(),
            runs: 0,
            failures: 0,
            unavailable: Vec::new(),
        });
        condition.runs += 1;
        condition.failures += u64::from(!run.completed() || !run.fails.is_empty());
        let lacking = run
            .record
            .gaps
            .iter()
            .filter(|gap| axis_of(gap).is_some_and(|axis| axes.contains(&axis)));
        condition.unavailable.extend(lacking.cloned());
        condition.unavailable.sort();
        condition.unavailable.dedup();
    }
    conditions.into_values().collect()
}

/// Tests that tried to reach the network after the gold patch, passing or not.
pub(super) fn network_tests(evidence: &Evidence<'_>) -> Vec<NetworkTest> {
    let mut tests: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for run in evidence.plain.iter().chain(&evidence.varied).chain(&evidence.chosen) {
        for (id, result) in &run.record.tests {
            let Some(tried) = result.network else { continue };
            let (packets, lookups) = tests.entry(id).or_default();
            *packets = tried.packets.max(*packets);
            *lookups = tried.lookups.max(*lookups);
        }
    }
    tests
        .into_iter()
        .filter(|(_, (packets, lookups))| packets + lookups > 0)
        .map(|(id, (packets, lookups))| NetworkTest { id: id.to_owned(), packets, lookups })
        .collect()
}
