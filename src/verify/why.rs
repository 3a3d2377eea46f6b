//! Why tests pass in no run after the gold patch, in one clause: what people look for first.

use std::collections::BTreeMap;

use super::ladder::{Evidence, Run};
use super::record::{PatchName, RunOutcome, RunRecord};
use crate::results::Outcome;
use crate::runtime::ExitStatus;

/// How reasons begin where the process ended while the test ran.
const ENDED: [&str; 2] = ["unfinished:", "timeout: the test hung"];

/// The clause, for tests that had these outcomes in the last run.
pub(crate) fn why(
    evidence: &Evidence<'_>,
    tests: &[usize],
    outcomes: &BTreeMap<Outcome, usize>,
) -> String {
    let runs: Vec<&Run<'_>> = evidence.counted().collect();
    if runs.iter().any(|run| is_without_gold(run.record)) {
        return "the gold patch is empty: compare the row with its source".to_owned();
    }
    if let Some(ended) = runs.iter().find_map(|run| early_end(run.record)) {
        return ended;
    }
    if outcomes.contains_key(&Outcome::Missing) {
        return "compare the missing ids with those that are near".to_owned();
    }
    if outcomes.contains_key(&Outcome::Skipped) {
        return "a skipped test proves nothing, see the reasons of the skips".to_owned();
    }
    let told = tests.iter().find_map(|test| {
        let known_as = &evidence.expected[*test].known_as;
        let reason = runs.iter().find_map(|run| run.record.tests.get(known_as)?.reason.as_deref());
        Some(format!("see the log of {known_as}: {}", reason?))
    });
    told.unwrap_or_else(|| "see why in the log".to_owned())
}

fn is_without_gold(record: &RunRecord) -> bool {
    record.patches.iter().any(|patch| patch.name == PatchName::Gold && patch.size == 0)
}

/// A runner that ended in the middle of a test took all later ones along.
fn early_end(record: &RunRecord) -> Option<String> {
    if record.outcome != RunOutcome::Completed || record.session_ended {
        return None;
    }
    let (id, reason) = record.tests.iter().find_map(|(id, result)| {
        let reason = result.reason.as_deref()?;
        ENDED.iter().any(|start| reason.starts_with(start)).then_some((id, reason))
    })?;
    let how = match record.status? {
        ExitStatus::Exited(code) => format!("with exit code {code}"),
        ExitStatus::Signaled(signal) => format!("by signal {signal}"),
    };
    Some(format!(
        "the runner ended {how} in {id} ({reason}): mend it, or take its file out of `test.files`"
    ))
}
