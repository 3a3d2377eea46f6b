//! Puts a verdict together.

use std::collections::BTreeSet;

use super::compare::compare;
use super::unstable::{groups, unstable_tests};
use super::warnings::{conditions, network_tests, warnings};
use crate::runtime::Gap;
use crate::verify::bound::upper_bound;
use crate::verify::ladder::{
    Evidence, Findings, MOST_INFRA_ERRORS, Run, combined_runs, counted_from, find, is_climbed,
    is_spent,
};
use crate::verify::policy::Policy;
use crate::verify::profile::Profile;
use crate::verify::record::RunRecord;
use crate::verify::rules;
use crate::verify::verdict::{Cost, Effect, Lists, Reason, Rule, Status, VERDICT_VERSION, Verdict};

/// How much longer than the slowest gold run a wall limit is.
const TIMEOUT_FACTOR: f64 = 3.0;

/// Judges an instance. Runs that were hallmark's own failure count for nothing; a run that ran out of time counts once that
/// was confirmed; any other run that did not complete is evidence.
pub fn judge(lists: &Lists, records: &[RunRecord], policy: &Policy) -> Verdict {
    let evidence = Evidence::gather(lists, records);
    let findings = find(policy, &evidence);
    let mut reasons = rules::reasons(policy, &evidence, &findings);
    let aside = rules::quarantined(policy, &evidence, &findings);
    let (runs, failures) = counted_runs(policy, &evidence, &findings, &aside);
    let pre_runs = evidence.pre.iter().filter(|run| !run.waits).count() as u64;
    // What was not run decides nothing where what was run rejects.
    if !reasons.iter().any(|reason| reason.effect == Effect::Rejects) {
        reasons.extend(held_back(policy, &evidence, &findings, runs, pre_runs));
    }
    let status = status(&reasons);
    if matches!(status, Status::Admitted | Status::AdmittedWithQuarantine) {
        let text = format!("{runs} clean runs, as the policy `{}` asks for", policy.name);
        let rule = Rule::EnoughCleanRuns;
        reasons.push(Reason { effect: Effect::Admits, rule, text, tests: Vec::new() });
    }
    reasons.sort_by(|a, b| (a.effect, a.rule, &a.text).cmp(&(b.effect, b.rule, &b.text)));
    let mut quarantined: Vec<String> =
        aside.iter().map(|test| evidence.expected[*test].id.to_owned()).collect();
    quarantined.sort();
    quarantined.dedup();
    let unstable = unstable_tests(policy, &evidence, &findings);
    Verdict {
        version: VERDICT_VERSION,
        status,
        reasons,
        policy: policy.clone(),
        pre_runs,
        runs,
        failures,
        bound: upper_bound(runs, failures, policy.confidence),
        conditions: conditions(&evidence),
        quarantined,
        groups: groups(&evidence, &findings),
        unstable,
        network: network_tests(&evidence),
        comparison: compare(&evidence),
        proposed_timeout: proposed_timeout(&evidence),
        cost: Cost { runs: evidence.all.len() as u64, wall: evidence.wall() },
        warnings: warnings(policy, &evidence, &findings),
        missing: evidence.missing,
    }
}

/// The runs that count, after the last quarantine, and how many of them failed a test that is not set aside.
fn counted_runs(
    policy: &Policy,
    evidence: &Evidence<'_>,
    findings: &Findings,
    aside: &BTreeSet<usize>,
) -> (u64, u64) {
    let start = counted_from(policy, evidence, &findings.found);
    let counted: Vec<&Run<'_>> =
        evidence.counted().filter(|run| run.record.repeat >= start).collect();
    let fails =
        |run: &&&Run<'_>| !run.completed() || run.fails.iter().any(|test| !aside.contains(test));
    let failures = counted.iter().filter(fails).count();
    (counted.len() as u64, failures as u64)
}

/// Why the verdict cannot be better than provisional.
fn held_back(
    policy: &Policy,
    evidence: &Evidence<'_>,
    findings: &Findings,
    runs: u64,
    pre_runs: u64,
) -> Vec<Reason> {
    let mut reasons = not_run(policy, evidence, findings, runs, pre_runs);
    let mut hold = |rule: Rule, text: String| reasons.push(held(rule, text, Vec::new()));
    let unlimited =
        evidence.runs().filter(|run| run.record.gaps.contains(&Gap::MemoryLimit)).count();
    if unlimited > 0 && policy.require_memory_limit {
        hold(Rule::NoMemoryLimit, format!("the host gave {unlimited} runs no memory limit"));
    }
    if evidence.infra >= MOST_INFRA_ERRORS {
        let text = format!(
            "hallmark failed to make {} runs: run `hallmark doctor`, then verify again",
            evidence.infra
        );
        hold(Rule::TooManyInfraErrors, text);
    }
    if policy.provisional {
        let text = format!("the policy `{}` is a first look and admits nothing", policy.name);
        hold(Rule::PolicyIsProvisional, text);
    }
    reasons
}

fn held(rule: Rule, text: String, tests: Vec<String>) -> Reason {
    Reason { effect: Effect::HoldsBack, rule, text, tests }
}

/// What the policy asks for and is lacking.
fn not_run(
    policy: &Policy,
    evidence: &Evidence<'_>,
    findings: &Findings,
    runs: u64,
    pre_runs: u64,
) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let mut hold = |rule: Rule, text: String| reasons.push(held(rule, text, Vec::new()));
    if runs < u64::from(policy.runs) || pre_runs < u64::from(policy.pre_runs) {
        let text = format!(
            "{runs} of the {} runs and {pre_runs} of the {} runs before the patch that the policy `{}` asks for",
            policy.runs, policy.pre_runs, policy.name
        );
        hold(Rule::TooFewRuns, text);
    }
    let late = evidence.waiting().count();
    if late > 0 {
        let text = format!("{late} runs ran out of time, which was not confirmed alone");
        hold(Rule::TimeoutIsUnconfirmed, text);
    }
    let is_climbed = is_climbed(policy, evidence);
    if !is_climbed {
        let text = format!(
            "not all collections and runs under other conditions that the policy `{}` asks for were made",
            policy.name
        );
        hold(Rule::TooFewConditions, text);
    }
    let mut open: Vec<String> = findings
        .found
        .iter()
        .filter(|finding| finding.is_open)
        .map(|finding| evidence.expected[finding.test].id.to_owned())
        .collect();
    open.sort();
    open.dedup();
    if !open.is_empty() || is_climbed && !findings.asks.is_empty() {
        let text = "the search for causes has not come to its end".to_owned();
        reasons.push(held(Rule::CauseIsOpen, text, open));
    }
    if let Some(budget) = policy.time_budget
        && !reasons.is_empty()
        && is_spent(policy, evidence)
    {
        let text = format!(
            "the runs took {:.0} s, and the policy's `time-budget` is {budget:.0} s: raise it",
            evidence.wall()
        );
        reasons.push(held(Rule::TimeBudgetIsSpent, text, Vec::new()));
    }
    let unread: BTreeSet<&Profile> = evidence
        .varied
        .iter()
        .filter(|run| !run.is_readable())
        .map(|run| &run.record.profile)
        .collect();
    let unread = combined_runs(&policy.axes).iter().filter(|run| unread.contains(run)).count();
    if unread > 0 {
        let text = format!(
            "the results of {unread} of the combined runs cannot be trusted: nothing is known of their conditions"
        );
        reasons.push(held(Rule::TooFewConditions, text, Vec::new()));
    }
    reasons
}

fn status(reasons: &[Reason]) -> Status {
    let has = |effect: Effect| reasons.iter().any(|reason| reason.effect == effect);
    if has(Effect::Rejects) {
        Status::Rejected
    } else if has(Effect::HoldsBack) {
        Status::Provisional
    } else if has(Effect::Quarantines) {
        Status::AdmittedWithQuarantine
    } else {
        Status::Admitted
    }
}

/// A wall limit by the slowest plain run with all slots busy, in whole seconds.
fn proposed_timeout(evidence: &Evidence<'_>) -> Option<f64> {
    let walls = evidence.counted().filter(|run| run.completed()).map(|run| run.record.wall);
    walls.reduce(f64::max).map(|slowest| (TIMEOUT_FACTOR * slowest).ceil())
}
