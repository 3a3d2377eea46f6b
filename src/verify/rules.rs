//! The rules of admission: what each says of an instance, given its runs and what is known of causes.

use std::collections::{BTreeMap, BTreeSet};

use super::ladder::{Evidence, FIRST_RUNS, Finding, Findings, Run};
use super::policy::{Policy, Remedy};
use super::profile::{Axis, Setting};
use super::record::RunOutcome;
use super::verdict::{Cause, Effect, ListName, Reason, Rule};
use super::why::why;
use crate::base::counted;
use crate::results::Outcome;

/// What is done about a test because of one cause.
pub(crate) fn remedy(policy: &Policy, list: ListName, finding: &Finding) -> Remedy {
    let of = |setting: &Setting| {
        policy.sensitive.get(&setting.axis()).copied().unwrap_or(Remedy::Quarantine)
    };
    // To hold one of the settings that act together is enough.
    let mildest = |settings: &[Setting]| settings.iter().map(of).min();
    let flaky = |remedy: Remedy| remedy.max(Remedy::Quarantine);
    let by_list = match list {
        ListName::FailToPass => flaky(policy.flaky_fail_to_pass),
        ListName::PassToPass => flaky(policy.flaky),
        ListName::Neither => return Remedy::Quarantine,
    };
    let fails_to_pass = list == ListName::FailToPass;
    match &finding.cause {
        Cause::Flaky | Cause::UnstableId => by_list,
        Cause::Sensitive { settings, .. } => match mildest(settings).unwrap_or(by_list) {
            Remedy::Pin => Remedy::Pin,
            remedy if fails_to_pass => remedy.max(by_list),
            remedy => remedy,
        },
        // What fails in plain conditions cannot stay.
        Cause::Needs { settings } if !fails_to_pass => match mildest(settings) {
            Some(Remedy::Quarantine) => Remedy::Quarantine,
            _ => Remedy::Reject,
        },
        Cause::Needs { .. } => Remedy::Reject,
        Cause::NotIsolated { .. } if finding.inverse && !finding.is_open => Remedy::Reject,
        Cause::NotIsolated { settings } => {
            let strictest = settings.iter().map(of).max().unwrap_or(by_list);
            let remedy = if fails_to_pass && strictest != Remedy::Pin {
                strictest.max(by_list)
            } else {
                strictest
            };
            if finding.is_open { remedy.min(Remedy::Quarantine) } else { remedy }
        }
    }
}

/// Whether the verdict is a rejection whatever other runs and causes would show.
pub(crate) fn certain(policy: &Policy, evidence: &Evidence<'_>, findings: &Findings) -> bool {
    let rejects = |reasons: Vec<Reason>| reasons.iter().any(|one| one.effect == Effect::Rejects);
    if rejects(before(evidence, &BTreeSet::new())) || rejects(broken(evidence)) {
        return true;
    }
    let plain = evidence.counted().count() as u64;
    if plain < u64::from(FIRST_RUNS.min(policy.runs)) {
        return false;
    }
    // Failures in plain conditions: the causes of others do not matter any more.
    let list = |test: usize| evidence.expected[test].list;
    let failed = |test: usize| evidence.counted().any(|run| run.failed(test));
    let in_plain: Vec<&Finding> = findings
        .found
        .iter()
        .filter(|one| matches!(one.cause, Cause::Flaky) && failed(one.test))
        .collect();
    if in_plain.iter().any(|one| remedy(policy, list(one.test), one) == Remedy::Reject) {
        return true;
    }
    let always = |test: usize| evidence.counted().all(|run| run.failed(test));
    if evidence.list(ListName::FailToPass).any(always) {
        return true;
    }
    let aside = in_plain.iter().map(|one| one.test).collect();
    rejects(set_aside(policy, evidence, &aside))
}

/// Every rule that decides something but the number of runs.
pub(crate) fn reasons(
    policy: &Policy,
    evidence: &Evidence<'_>,
    findings: &Findings,
) -> Vec<Reason> {
    let aside = quarantined(policy, evidence, findings);
    let mut reasons = before(evidence, &aside);
    let broken = broken(evidence);
    // Where runs broke off, their tests say nothing more.
    if !broken.is_empty() {
        reasons.extend(broken);
        return reasons;
    }
    reasons.extend(never(evidence, findings));
    reasons.extend(unstable(policy, evidence, findings));
    reasons.extend(set_aside(policy, evidence, &aside));
    reasons
}

/// Whether a rule rejects the instance.
pub(crate) fn rejected(policy: &Policy, evidence: &Evidence<'_>, findings: &Findings) -> bool {
    reasons(policy, evidence, findings).iter().any(|one| one.effect == Effect::Rejects)
}

/// The tests that are set aside, by index.
pub(crate) fn quarantined(
    policy: &Policy,
    evidence: &Evidence<'_>,
    findings: &Findings,
) -> BTreeSet<usize> {
    let mut worst: BTreeMap<usize, Remedy> = BTreeMap::new();
    for finding in findings.found.iter().filter(|finding| !finding.is_open) {
        let remedy = remedy(policy, evidence.expected[finding.test].list, finding);
        let held = worst.entry(finding.test).or_insert(remedy);
        *held = remedy.max(*held);
    }
    worst.retain(|_, remedy| *remedy == Remedy::Quarantine);
    worst.into_keys().collect()
}

fn reason(effect: Effect, rule: Rule, text: impl Into<String>, tests: Vec<String>) -> Reason {
    Reason { effect, rule, text: text.into(), tests }
}

fn ids(evidence: &Evidence<'_>, tests: impl IntoIterator<Item = usize>) -> Vec<String> {
    let mut ids: Vec<String> =
        tests.into_iter().map(|test| evidence.expected[test].id.to_owned()).collect();
    ids.sort();
    // An id may stand for several tests.
    ids.dedup();
    ids
}

/// `1 test`, `2 tests`.
fn tests_of(count: usize, list: &str) -> String {
    counted(count, &format!("{list} test"))
}

/// What must hold before the gold patch, without the tests that are set aside.
fn before(evidence: &Evidence<'_>, aside: &BTreeSet<usize>) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let fail_to_pass: Vec<usize> = evidence.list(ListName::FailToPass).collect();
    if fail_to_pass.is_empty() {
        reasons.push(reason(
            Effect::Rejects,
            Rule::FailToPassIsEmpty,
            "no test fails before the gold patch and passes after it: the instance has nothing to solve",
            Vec::new(),
        ));
    }
    let runs: Vec<&Run<'_>> = evidence.pre.iter().filter(|run| !run.waits).collect();
    let mut broken = BTreeSet::new();
    for run in &runs {
        let outcome = run.outcome();
        if matches!(outcome, RunOutcome::PatchError { .. } | RunOutcome::ParserError { .. }) {
            broken.insert(outcome.explain_with_advice());
        }
    }
    for text in broken {
        let text = format!("before the gold patch: {text}");
        reasons.push(reason(Effect::Rejects, Rule::BrokenBefore, text, Vec::new()));
    }
    let kept: Vec<usize> =
        fail_to_pass.iter().copied().filter(|test| !aside.contains(test)).collect();
    let passing = runs.iter().filter(|run| !kept.iter().any(|test| run.failed(*test))).count();
    if passing > 0 && !kept.is_empty() {
        let which = if kept.len() < fail_to_pass.len() { " that is not set aside" } else { "" };
        let text = format!(
            "every FAIL_TO_PASS test{which} passes before the gold patch in {passing} of {} runs: the test patch does not show the fault",
            runs.len()
        );
        let tests = ids(evidence, kept);
        reasons.push(reason(Effect::Rejects, Rule::NothingFailsBefore, text, tests));
    }
    reasons
}

/// Runs after the gold patch that did not complete.
fn broken(evidence: &Evidence<'_>) -> Vec<Reason> {
    let mut broken: BTreeMap<String, usize> = BTreeMap::new();
    let total = evidence.counted().count();
    for run in evidence.counted().filter(|run| !run.completed()) {
        *broken.entry(run.outcome().explain_with_advice()).or_default() += 1;
    }
    let mut reasons: Vec<Reason> = broken
        .into_iter()
        .map(|(text, runs)| {
            let text = format!("{runs} of {total} runs after the gold patch: {text}");
            reason(Effect::Rejects, Rule::BrokenAfter, text, Vec::new())
        })
        .collect();
    // Collection has both patches applied too; what breaks there breaks every run.
    let unbuilt: BTreeSet<String> = evidence
        .collect
        .iter()
        .map(Run::outcome)
        .filter(|outcome| {
            matches!(outcome, RunOutcome::PatchError { .. } | RunOutcome::BuildFailed { .. })
        })
        .map(RunOutcome::explain_with_advice)
        .collect();
    if reasons.is_empty() {
        reasons.extend(
            unbuilt
                .into_iter()
                .map(|text| reason(Effect::Rejects, Rule::BrokenAfter, text, Vec::new())),
        );
    }
    reasons
}

/// Tests that pass in no plain run after the gold patch, and under no other conditions.
fn never(evidence: &Evidence<'_>, findings: &Findings) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for (list, name, rule) in [
        (ListName::FailToPass, "FAIL_TO_PASS", Rule::FailToPassFailsAfter),
        (ListName::PassToPass, "PASS_TO_PASS", Rule::PassToPassFailsAfter),
    ] {
        let of_list = |test: &usize| evidence.expected[*test].list == list;
        let never: Vec<usize> = findings.never.iter().copied().filter(of_list).collect();
        if never.is_empty() {
            continue;
        }
        let mut outcomes: BTreeMap<Outcome, usize> = BTreeMap::new();
        let last = evidence.counted().next_back();
        for test in &never {
            let known_as = &evidence.expected[*test].known_as;
            let outcome = last.map_or(Outcome::Missing, |run| run.outcome_of(known_as));
            *outcomes.entry(outcome).or_default() += 1;
        }
        let advice = why(evidence, &never, &outcomes);
        let outcomes: Vec<String> =
            outcomes.iter().map(|(outcome, tests)| format!("{tests} {outcome}")).collect();
        let tests = ids(evidence, never);
        let text = format!(
            "{} in no run after the gold patch ({}): {advice}",
            match tests.len() {
                1 => format!("1 {name} test passes"),
                many => format!("{many} {name} tests pass"),
            },
            outcomes.join(", ")
        );
        reasons.push(reason(Effect::Rejects, rule, text, tests));
    }
    reasons
}

/// Tests that do not always pass.
fn unstable(policy: &Policy, evidence: &Evidence<'_>, findings: &Findings) -> Vec<Reason> {
    /// The tests, and the axes that they mind.
    type Decided = (BTreeSet<usize>, BTreeSet<Axis>);
    let mut decided: BTreeMap<(Effect, Rule, ListName), Decided> = BTreeMap::new();
    for finding in findings.found.iter().filter(|finding| !finding.is_open) {
        let list = evidence.expected[finding.test].list;
        let effect = match remedy(policy, list, finding) {
            Remedy::Pin => Effect::Pins,
            Remedy::Quarantine => Effect::Quarantines,
            Remedy::Reject => Effect::Rejects,
        };
        let fails_to_pass = list == ListName::FailToPass;
        let (rule, settings): (Rule, &[Setting]) = match &finding.cause {
            Cause::UnstableId => (Rule::IdIsUnstable, &[]),
            Cause::Flaky if fails_to_pass => (Rule::FailToPassIsFlaky, &[]),
            Cause::Flaky => (Rule::PassToPassIsFlaky, &[]),
            Cause::Sensitive { settings, .. }
            | Cause::Needs { settings }
            | Cause::NotIsolated { settings } => (
                if fails_to_pass {
                    Rule::FailToPassIsSensitive
                } else {
                    Rule::PassToPassIsSensitive
                },
                settings,
            ),
        };
        let (tests, axes) = decided.entry((effect, rule, list)).or_default();
        tests.insert(finding.test);
        axes.extend(settings.iter().map(Setting::axis));
    }
    let text = |effect: Effect, rule: Rule, list: ListName, tests: usize, axes: &BTreeSet<Axis>| {
        let name = if list == ListName::FailToPass { "FAIL_TO_PASS" } else { "PASS_TO_PASS" };
        let who = tests_of(tests, name);
        let what = match rule {
            Rule::IdIsUnstable => "of which two runs do not know the same ids".to_owned(),
            Rule::FailToPassIsFlaky | Rule::PassToPassIsFlaky => {
                "with a failure that the conditions do not explain".to_owned()
            }
            _ if axes.is_empty() => {
                "that fail in plain conditions and not in all, which was not followed".to_owned()
            }
            _ => {
                let axes: Vec<&str> = axes.iter().map(|axis| axis.as_str()).collect();
                format!("not stable under {}", axes.join(", "))
            }
        };
        let then = match effect {
            Effect::Pins => "that is held as it is in plain runs",
            Effect::Quarantines => "set aside",
            _ => "mend them, or take them out of the list",
        };
        format!("{who} {what}: {then}")
    };
    decided
        .into_iter()
        .map(|((effect, rule, list), (tests, axes))| {
            let text = text(effect, rule, list, tests.len(), &axes);
            reason(effect, rule, text, ids(evidence, tests))
        })
        .collect()
}

/// Whether enough is left without the tests that are set aside.
fn set_aside(policy: &Policy, evidence: &Evidence<'_>, aside: &BTreeSet<usize>) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let of_list = |list| -> (Vec<usize>, usize) {
        let all: Vec<usize> = evidence.list(list).collect();
        let total = all.len();
        (all.into_iter().filter(|test| aside.contains(test)).collect(), total)
    };
    let (aside_pass, pass) = of_list(ListName::PassToPass);
    let allowed = most_aside(policy.max_quarantined, pass);
    if aside_pass.len() > allowed {
        let text = format!(
            "{} of {pass} PASS_TO_PASS tests would be set aside, and the policy allows {allowed}: mend the environment, or raise `max-quarantined`",
            aside_pass.len()
        );
        let tests = ids(evidence, aside_pass);
        reasons.push(reason(Effect::Rejects, Rule::TooManyQuarantined, text, tests));
    }
    let (aside_fail, fail) = of_list(ListName::FailToPass);
    if fail > 0 && aside_fail.len() == fail {
        let text = "every FAIL_TO_PASS test is set aside: the instance has nothing stable to solve";
        let tests = ids(evidence, aside_fail);
        reasons.push(reason(Effect::Rejects, Rule::NothingLeft, text, tests));
    }
    reasons
}

/// How many of so many tests may be set aside: the share, and one where the policy allows any.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a number of tests"
)]
fn most_aside(share: f64, tests: usize) -> usize {
    if share <= 0.0 {
        return 0;
    }
    ((share * tests as f64 + 1e-9).floor() as usize).max(1)
}
