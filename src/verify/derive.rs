//! FAIL_TO_PASS and PASS_TO_PASS from runs: what `hallmark collect` writes for a pair of releases.

use std::collections::BTreeSet;

use super::record::{RunOutcome, RunRecord};
use super::verdict::Lists;
use crate::results::Outcome;

/// Lists made from runs, and the tests that are in neither, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Derived {
    /// The lists.
    pub lists: Lists,
    /// Tests whose outcome changed between runs of one phase, or that were not seen in every run of it.
    pub unstable: Vec<String>,
    /// Tests that fail after the gold patch as before.
    pub fail_both: Vec<String>,
    /// Tests that pass before and not after.
    pub pass_to_fail: Vec<String>,
    /// Tests that are skipped (or expected to fail) before or after: coverage that is lost.
    pub skipped: Vec<String>,
    /// Tests that exist before only.
    pub gone: Vec<String>,
}

/// Why runs make no instance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeriveError {
    /// There are no runs of a phase.
    #[error("there is no run {phase} the gold patch")]
    NoRuns {
        /// `before` or `after`.
        phase: &'static str,
    },
    /// A run cannot be used.
    #[error("run {repeat} {phase} the gold patch: {reason}")]
    Broken {
        /// `before` or `after`.
        phase: &'static str,
        /// Which run.
        repeat: u32,
        /// What happened.
        reason: String,
    },
    /// No test fails before and passes after.
    #[error(
        "no test fails before the gold patch and passes after it: {passed} pass before and after, {failed} fail after, {skipped} are skipped, {unstable} are unstable"
    )]
    NoFailToPass {
        /// Tests that pass before and after.
        passed: usize,
        /// Tests that fail after.
        failed: usize,
        /// Tests that are skipped before or after.
        skipped: usize,
        /// Tests that are unstable.
        unstable: usize,
    },
}

/// FAIL_TO_PASS: failed, in error or missing in every `pre` run and passed in every `post` run. PASS_TO_PASS:
/// passed in all. A test that is not the same in every run of a phase is in neither.
///
/// A `pre` run may have broken off (an import error, no memory): what it lacks is missing. What it did not reach for the
/// time is in neither list, unless nothing else was on the machine: load makes any test late.
pub fn derive_lists(pre: &[RunRecord], post: &[RunRecord]) -> Result<Derived, DeriveError> {
    for (runs, phase) in [(pre, "before"), (post, "after")] {
        if runs.is_empty() {
            return Err(DeriveError::NoRuns { phase });
        }
        for run in runs {
            let usable = match run.outcome {
                RunOutcome::Completed => true,
                RunOutcome::Timeout
                | RunOutcome::Oom
                | RunOutcome::BuildFailed { .. }
                | RunOutcome::EnvError { .. } => phase == "before",
                _ => false,
            };
            if !usable {
                let reason = run.outcome.explain();
                return Err(DeriveError::Broken { phase, repeat: run.repeat, reason });
            }
        }
    }
    let ids: BTreeSet<&str> =
        pre.iter().chain(post).flat_map(|run| run.tests.keys().map(String::as_str)).collect();
    let mut derived = Derived::default();
    let mut failed = 0;
    for id in ids {
        let before = if unreached(pre, id) { None } else { settled(pre, id) };
        let list = match (before, settled(post, id)) {
            (Some(before), Some(after)) => match list_kind(before, after) {
                ListKind::FailToPass => &mut derived.lists.fail_to_pass,
                ListKind::PassToPass => &mut derived.lists.pass_to_pass,
                ListKind::Gone => &mut derived.gone,
                ListKind::PassToFail => {
                    failed += 1;
                    &mut derived.pass_to_fail
                }
                ListKind::FailBoth => {
                    failed += 1;
                    &mut derived.fail_both
                }
                ListKind::Skipped => &mut derived.skipped,
            },
            _ => &mut derived.unstable,
        };
        list.push(id.to_owned());
    }
    if derived.lists.fail_to_pass.is_empty() {
        return Err(DeriveError::NoFailToPass {
            passed: derived.lists.pass_to_pass.len(),
            failed,
            skipped: derived.skipped.len(),
            unstable: derived.unstable.len(),
        });
    }
    Ok(derived)
}

/// What a test is by its outcomes before and after the gold patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind {
    FailToPass,
    PassToPass,
    PassToFail,
    FailBoth,
    Skipped,
    Gone,
}

pub(crate) fn list_kind(before: Outcome, after: Outcome) -> ListKind {
    match (before, after) {
        (Outcome::Failed | Outcome::Error | Outcome::Missing, Outcome::Passed) => {
            ListKind::FailToPass
        }
        (Outcome::Passed, Outcome::Passed) => ListKind::PassToPass,
        (_, Outcome::Missing) => ListKind::Gone,
        (Outcome::Passed, Outcome::Failed | Outcome::Error) => ListKind::PassToFail,
        (_, Outcome::Failed | Outcome::Error) => ListKind::FailBoth,
        _ => ListKind::Skipped,
    }
}

/// Whether a run that had to share the machine ran out of time before the test.
fn unreached(runs: &[RunRecord], id: &str) -> bool {
    let cut = |run: &&RunRecord| run.outcome == RunOutcome::Timeout && !run.alone;
    runs.iter().filter(cut).any(|run| !run.tests.contains_key(id))
}

/// The outcome of a test in all runs, if it is the same.
fn settled(runs: &[RunRecord], id: &str) -> Option<Outcome> {
    let mut outcomes = runs.iter().map(|run| run.outcome_of(id));
    let first = outcomes.next()?;
    outcomes.all(|outcome| outcome == first).then_some(first)
}
