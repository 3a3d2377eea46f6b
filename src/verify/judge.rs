//! The verdict: a pure function of the expected tests, the records and the policy. Replaying the same records
//! gives the same bytes, whatever their order.

use std::collections::{BTreeMap, BTreeSet};

use super::bound::upper_bound;
use super::near::near_misses;
use super::policy::{Policy, Remedy};
use super::record::{Phase, RunOutcome, RunRecord};
use super::verdict::{
    Cause, Comparison, Cost, Count, Effect, ListName, Lists, MissingTest, Reason, Rule, Status,
    UnstableTest, VERDICT_VERSION, Verdict, Warning,
};
use crate::results::Outcome;
use crate::runtime::Gap;

/// Judges an instance. Runs that were hallmark's own failure count for nothing; any other run that did not
/// complete is evidence.
pub fn judge(lists: &Lists, records: &[RunRecord], policy: &Policy) -> Verdict {
    let pre = Runs::of(records, Phase::Pre);
    let post = Runs::of(records, Phase::Post);
    let mut judging = Judging::new(lists, &pre, &post, policy);
    judging.before();
    judging.after();
    judging.finish()
}

/// Runs of one phase that count, in their order.
struct Runs<'a> {
    counted: Vec<&'a RunRecord>,
    infra: u64,
}

impl<'a> Runs<'a> {
    fn of(records: &'a [RunRecord], phase: Phase) -> Self {
        let of_phase = |record: &&RunRecord| record.phase == phase && record.profile.is_plain();
        let mut all: Vec<&RunRecord> = records.iter().filter(of_phase).collect();
        all.sort_by_key(|record| (record.repeat, record.key));
        let total = all.len();
        all.retain(|record| !matches!(record.outcome, RunOutcome::InfraError { .. }));
        Self { infra: (total - all.len()) as u64, counted: all }
    }

    fn known_ids(&self) -> BTreeSet<&'a str> {
        self.counted.iter().flat_map(|run| run.tests.keys().map(String::as_str)).collect()
    }
}

struct Judging<'a> {
    policy: &'a Policy,
    pre: &'a Runs<'a>,
    post: &'a Runs<'a>,
    fail_to_pass: Vec<&'a str>,
    pass_to_pass: Vec<&'a str>,
    /// Expected id to the id that runs know it by.
    taken: BTreeMap<&'a str, String>,
    reasons: Vec<Reason>,
    warnings: Vec<Warning>,
    unstable: Vec<UnstableTest>,
    missing: Vec<MissingTest>,
    quarantined: Vec<String>,
}

fn sorted(ids: &[String]) -> Vec<&str> {
    let unique: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    unique.into_iter().collect()
}

fn owned(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

impl<'a> Judging<'a> {
    fn new(lists: &'a Lists, pre: &'a Runs<'a>, post: &'a Runs<'a>, policy: &'a Policy) -> Self {
        let mut judging = Self {
            policy,
            pre,
            post,
            fail_to_pass: sorted(&lists.fail_to_pass),
            pass_to_pass: sorted(&lists.pass_to_pass),
            taken: BTreeMap::new(),
            reasons: Vec::new(),
            warnings: Vec::new(),
            unstable: Vec::new(),
            missing: Vec::new(),
            quarantined: Vec::new(),
        };
        judging.match_ids();
        judging
    }

    fn expected(&self) -> Vec<&'a str> {
        self.fail_to_pass.iter().chain(&self.pass_to_pass).copied().collect()
    }

    /// Finds the expected ids that no run after the gold patch knows, and what they may mean.
    fn match_ids(&mut self) {
        let known = self.post.known_ids();
        if known.is_empty() {
            return;
        }
        let expected = self.expected();
        let listed: BTreeSet<&str> = expected.iter().copied().collect();
        for id in listed.iter().copied().filter(|id| !known.contains(id)) {
            let (near, taken_for) = near_misses(id, &known, &listed);
            if let Some(taken_for) = &taken_for {
                self.taken.insert(id, taken_for.clone());
            }
            self.missing.push(MissingTest { id: id.to_owned(), taken_for, near });
        }
    }

    fn outcome(&self, run: &RunRecord, id: &str) -> Outcome {
        run.outcome_of(self.taken.get(id).map_or(id, String::as_str))
    }

    fn outcomes(&self, runs: &Runs<'_>, id: &str) -> BTreeMap<Outcome, u64> {
        let mut seen = BTreeMap::new();
        for run in &runs.counted {
            *seen.entry(self.outcome(run, id)).or_default() += 1;
        }
        seen
    }

    fn decide(&mut self, effect: Effect, rule: Rule, text: impl Into<String>, tests: &[&str]) {
        self.reasons.push(Reason { effect, rule, text: text.into(), tests: owned(tests) });
    }

    fn note_unstable(&mut self, runs: &Runs<'_>) {
        for id in self.expected() {
            let outcomes = self.outcomes(runs, id);
            if outcomes.len() > 1 {
                let failing: Vec<&&RunRecord> =
                    runs.counted.iter().filter(|run| !self.outcome(run, id).satisfies()).collect();
                let (all, failures) = (runs.counted.len() as u64, failing.len() as u64);
                self.unstable.push(UnstableTest {
                    id: id.to_owned(),
                    list: if self.fail_to_pass.contains(&id) {
                        ListName::FailToPass
                    } else {
                        ListName::PassToPass
                    },
                    cause: Cause::Flaky,
                    remedy: self.policy.flaky,
                    plain: Count {
                        runs: all,
                        failures,
                        bound: upper_bound(all, failures, self.policy.confidence),
                    },
                    outcomes,
                    evidence: failing.iter().map(|run| run.key).collect(),
                });
            }
        }
    }

    fn before(&mut self) {
        let pre = self.pre;
        if self.fail_to_pass.is_empty() {
            self.decide(
                Effect::Rejects,
                Rule::FailToPassIsEmpty,
                "no test fails before the gold patch and passes after it",
                &[],
            );
        }
        let mut broken = BTreeSet::new();
        for run in &pre.counted {
            if matches!(run.outcome, RunOutcome::PatchError { .. } | RunOutcome::ParserError { .. })
            {
                broken.insert(run.outcome.explain());
            }
        }
        for text in broken {
            let text = format!("before the gold patch: {text}");
            self.decide(Effect::Rejects, Rule::BrokenBefore, text, &[]);
        }
        let all_pass =
            |run: &&RunRecord| self.fail_to_pass.iter().all(|id| self.outcome(run, id).satisfies());
        let passing = pre.counted.iter().copied().filter(|run| all_pass(run)).count();
        if passing > 0 && !self.fail_to_pass.is_empty() {
            let text = format!(
                "every FAIL_TO_PASS test passes before the gold patch in {passing} of {} runs",
                pre.counted.len()
            );
            let tests = self.fail_to_pass.clone();
            self.decide(Effect::Rejects, Rule::NothingFailsBefore, text, &tests);
        } else if !pre.counted.is_empty() {
            let passes =
                |id: &&&str| pre.counted.iter().all(|run| self.outcome(run, id).satisfies());
            let tests: Vec<&str> = self.fail_to_pass.iter().filter(passes).copied().collect();
            if !tests.is_empty() {
                self.warnings.push(Warning::PassesBefore { tests: owned(&tests) });
            }
        }
        let cut = pre.counted.iter().filter(|run| run.outcome != RunOutcome::Completed).count();
        if cut > 0 {
            self.warnings.push(Warning::CutBefore { runs: cut as u64 });
        }
    }

    fn after(&mut self) {
        let post = self.post;
        let mut broken: BTreeMap<String, usize> = BTreeMap::new();
        for run in post.counted.iter().filter(|run| run.outcome != RunOutcome::Completed) {
            *broken.entry(run.outcome.explain()).or_default() += 1;
        }
        for (text, runs) in &broken {
            let text = format!("{runs} of {} runs after: {text}", post.counted.len());
            self.decide(Effect::Rejects, Rule::BrokenAfter, text, &[]);
        }
        self.note_unstable(post);
        // Where runs broke off, their tests say nothing more.
        if post.counted.is_empty() || !broken.is_empty() {
            return;
        }
        let runs = post.counted.len() as u64;
        let passed = |id: &str| -> u64 {
            let held = post.counted.iter().filter(|run| self.outcome(run, id).satisfies());
            held.count() as u64
        };
        let split = |ids: &[&'a str]| -> (Vec<&'a str>, Vec<&'a str>) {
            let never = ids.iter().copied().filter(|id| passed(id) == 0).collect();
            let some = |id: &&str| (1..runs).contains(&passed(id));
            (never, ids.iter().copied().filter(some).collect())
        };
        let (f2p_never, f2p_some) = split(&self.fail_to_pass);
        let (p2p_never, p2p_some) = split(&self.pass_to_pass);
        if !f2p_never.is_empty() {
            let text = self.never_text("FAIL_TO_PASS", &f2p_never);
            self.decide(Effect::Rejects, Rule::FailToPassFailsAfter, text, &f2p_never);
        }
        if !f2p_some.is_empty() {
            let text = format!("{} FAIL_TO_PASS tests change between runs", f2p_some.len());
            self.decide(Effect::Rejects, Rule::FailToPassIsFlaky, text, &f2p_some);
        }
        if !p2p_never.is_empty() {
            let text = self.never_text("PASS_TO_PASS", &p2p_never);
            self.decide(Effect::Rejects, Rule::PassToPassFailsAfter, text, &p2p_never);
        }
        if !p2p_some.is_empty() {
            let text = format!("{} PASS_TO_PASS tests change between runs", p2p_some.len());
            if self.policy.flaky == Remedy::Quarantine {
                self.quarantined = owned(&p2p_some);
                self.decide(Effect::Quarantines, Rule::PassToPassIsFlaky, text, &p2p_some);
            } else {
                self.decide(Effect::Rejects, Rule::PassToPassIsFlaky, text, &p2p_some);
            }
        }
    }

    fn never_text(&self, list: &str, tests: &[&str]) -> String {
        let missing = tests
            .iter()
            .filter(|id| self.missing.iter().any(|one| one.id == **id && one.taken_for.is_none()))
            .count();
        format!(
            "{} {list} tests pass in no run after the gold patch, {missing} of them are in no result",
            tests.len()
        )
    }

    /// The runs that count: after a quarantine, those since a test that is set aside last failed.
    fn counted_runs(&self) -> (u64, u64) {
        let kept: Vec<&str> = self
            .expected()
            .into_iter()
            .filter(|id| !self.quarantined.iter().any(|one| one == id))
            .collect();
        let fails = |run: &RunRecord| {
            run.outcome != RunOutcome::Completed
                || kept.iter().any(|id| !self.outcome(run, id).satisfies())
        };
        let set_aside =
            |run: &RunRecord| self.quarantined.iter().any(|id| !self.outcome(run, id).satisfies());
        let start = self.post.counted.iter().rposition(|run| set_aside(run)).map_or(0, |at| at + 1);
        let counted = &self.post.counted[start..];
        let failures = counted.iter().filter(|run| fails(run)).count();
        (counted.len() as u64, failures as u64)
    }

    fn finish(mut self) -> Verdict {
        let (runs, failures) = self.counted_runs();
        let pre_runs = self.pre.counted.len() as u64;
        let wanted = u64::from(self.policy.runs);
        if runs < wanted || pre_runs < u64::from(self.policy.pre_runs) {
            let text = format!(
                "{runs} of the {wanted} runs and {pre_runs} of the {} runs before the patch that the policy `{}` asks for",
                self.policy.pre_runs, self.policy.name
            );
            self.decide(Effect::HoldsBack, Rule::TooFewRuns, text, &[]);
        }
        let unlimited = self
            .pre
            .counted
            .iter()
            .chain(&self.post.counted)
            .filter(|run| run.gaps.contains(&Gap::MemoryLimit))
            .count();
        if unlimited > 0 && self.policy.require_memory_limit {
            let text = format!("the host gave {unlimited} runs no memory limit");
            self.decide(Effect::HoldsBack, Rule::NoMemoryLimit, text, &[]);
        }
        self.warn();
        let has = |effect: Effect| self.reasons.iter().any(|reason| reason.effect == effect);
        let status = if has(Effect::Rejects) {
            Status::Rejected
        } else if has(Effect::HoldsBack) {
            Status::Provisional
        } else if has(Effect::Quarantines) {
            Status::AdmittedWithQuarantine
        } else {
            Status::Admitted
        };
        if matches!(status, Status::Admitted | Status::AdmittedWithQuarantine) {
            let text = format!("{runs} clean runs, as the policy `{}` asks for", self.policy.name);
            self.decide(Effect::Admits, Rule::EnoughCleanRuns, text, &[]);
        }
        self.reasons.sort_by(|a, b| (a.effect, a.rule, &a.text).cmp(&(b.effect, b.rule, &b.text)));
        Verdict {
            version: VERDICT_VERSION,
            status,
            reasons: self.reasons,
            policy: self.policy.clone(),
            pre_runs,
            runs,
            failures,
            bound: upper_bound(runs, failures, self.policy.confidence),
            quarantined: self.quarantined,
            unstable: self.unstable,
            conditions: Vec::new(),
            groups: Vec::new(),
            network: Vec::new(),
            comparison: Comparison::default(),
            proposed_timeout: None,
            cost: Cost::default(),
            missing: self.missing,
            warnings: self.warnings,
        }
    }

    fn warn(&mut self) {
        if self.pass_to_pass.is_empty() && !self.fail_to_pass.is_empty() {
            self.warnings.push(Warning::FailToPassIsEverything);
        }
        let skipped: Vec<&str> = self
            .expected()
            .into_iter()
            .filter(|id| {
                let seen = self.outcomes(self.post, id);
                seen.len() == 1 && seen.contains_key(&Outcome::Skipped)
            })
            .collect();
        if !skipped.is_empty() {
            self.warnings.push(Warning::Skipped { tests: owned(&skipped) });
        }
        let infra = self.pre.infra + self.post.infra;
        if infra > 0 {
            self.warnings.push(Warning::InfraErrors { runs: infra });
        }
        let network = self
            .pre
            .counted
            .iter()
            .chain(&self.post.counted)
            .filter(|run| {
                run.network_attempts.is_some_and(|tries| tries.packets + tries.lookups > 0)
            })
            .count();
        if network > 0 {
            self.warnings.push(Warning::Network { runs: network as u64 });
        }
    }
}
