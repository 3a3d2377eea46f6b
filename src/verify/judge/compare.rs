//! The dataset's lists beside those that the plain runs give.

use std::collections::BTreeSet;

use crate::results::Outcome;
use crate::verify::derive::{ListKind, list_kind};
use crate::verify::ladder::{Evidence, Run};
use crate::verify::verdict::{Comparison, Difference, ListName};

/// Compares; nothing where a run after the gold patch broke off, or where there are none.
pub(super) fn compare(evidence: &Evidence<'_>) -> Comparison {
    let pre: Vec<&Run<'_>> = evidence.pre.iter().filter(|run| !run.waits).collect();
    let post: Vec<&Run<'_>> = evidence.counted().collect();
    if pre.is_empty() || post.is_empty() || post.iter().any(|run| !run.completed()) {
        return Comparison::default();
    }
    let ids: BTreeSet<&str> =
        post.iter().flat_map(|run| run.record.tests.keys()).map(String::as_str).collect();
    let (mut fail_to_pass, mut pass_to_pass) = (BTreeSet::new(), BTreeSet::new());
    // What may stay in a dataset's list: a test that is expected to fail, and does, is none that we would list.
    let (mut mended, mut kept) = (BTreeSet::new(), BTreeSet::new());
    for id in ids {
        let passes = |run: &&Run<'_>| run.outcome_of(id).satisfies();
        if post.iter().all(passes) {
            if pre.iter().all(passes) {
                kept.insert(id);
            } else if !pre.iter().any(passes) {
                mended.insert(id);
            }
        }
        let (Some(before), Some(after)) = (settled(&pre, id), settled(&post, id)) else { continue };
        match list_kind(before, after) {
            ListKind::FailToPass => fail_to_pass.insert(id),
            ListKind::PassToPass => pass_to_pass.insert(id),
            _ => false,
        };
    }
    Comparison {
        fail_to_pass: difference(evidence, ListName::FailToPass, &fail_to_pass, &mended),
        pass_to_pass: difference(evidence, ListName::PassToPass, &pass_to_pass, &kept),
    }
}

/// The outcome of a test in all runs, if it is the same.
fn settled(runs: &[&Run<'_>], id: &str) -> Option<Outcome> {
    let mut outcomes = runs.iter().map(|run| run.outcome_of(id));
    let first = outcomes.next()?;
    outcomes.all(|outcome| outcome == first).then_some(first)
}

fn difference(
    evidence: &Evidence<'_>,
    list: ListName,
    ours: &BTreeSet<&str>,
    may_stay: &BTreeSet<&str>,
) -> Difference {
    let theirs: Vec<_> = evidence.list(list).map(|test| &evidence.expected[test]).collect();
    let known: BTreeSet<&str> = theirs.iter().map(|test| test.known_as.as_str()).collect();
    let mut missing: Vec<String> = theirs
        .iter()
        .filter(|test| !may_stay.contains(test.known_as.as_str()))
        .map(|test| test.id.to_owned())
        .collect();
    missing.sort();
    missing.dedup();
    let unexpected = ours.iter().filter(|id| !known.contains(*id)).map(|id| (*id).to_owned());
    Difference { missing, unexpected: unexpected.collect() }
}
