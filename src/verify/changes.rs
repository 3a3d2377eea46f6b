//! What is not as an older verdict on the same instance has it.

use std::collections::{BTreeMap, BTreeSet};

use super::profile::Setting;
use super::verdict::{Cause, UnstableTest, Verdict};

/// The axes of settings, in words.
fn axes(settings: &[Setting]) -> String {
    let axes: BTreeSet<&str> = settings.iter().map(|setting| setting.axis().as_str()).collect();
    axes.into_iter().collect::<Vec<_>>().join(" and ")
}

/// In a few words.
fn word(cause: &Cause) -> String {
    match cause {
        Cause::Flaky => "flaky".to_owned(),
        Cause::Sensitive { settings, .. } => format!("sensitive to {}", axes(settings)),
        Cause::Needs { settings } => format!("failing without another {}", axes(settings)),
        Cause::NotIsolated { .. } => "unstable for an unknown cause".to_owned(),
        Cause::UnstableId => "of an unstable id".to_owned(),
    }
}

/// All causes of each test.
fn by_id(tests: &[UnstableTest]) -> BTreeMap<&str, String> {
    let mut causes: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for test in tests {
        causes.entry(&test.id).or_default().insert(word(&test.cause));
    }
    let joined = |causes: BTreeSet<String>| causes.into_iter().collect::<Vec<_>>().join(", ");
    causes.into_iter().map(|(id, causes)| (id, joined(causes))).collect()
}

fn ids(ids: &[String]) -> BTreeSet<&str> {
    ids.iter().map(String::as_str).collect()
}

impl Verdict {
    /// One line a change since `older`: of the word, of unstable tests and their causes, of tests set aside, and of
    /// ids that are no longer found. Numbers of runs, and bounds with them, hang on the policy and are
    /// no change; neither is a verdict that is provisional only because fewer runs were asked for.
    pub fn changes(&self, older: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        let same_policy = self.policy == older.policy;
        let both_stand = !self.status.is_rejection() && !older.status.is_rejection();
        if self.status != older.status && (same_policy || !both_stand) {
            let why = self.reasons.first().map(|reason| reason.text.as_str()).unwrap_or_default();
            let (was, is) = (older.status.as_str(), self.status.as_str());
            changes.push(format!("was {was}, is {is}: {why}"));
        }
        let (before, now) = (by_id(&older.unstable), by_id(&self.unstable));
        for (id, cause) in &now {
            match before.get(id) {
                None => changes.push(format!("{id} is {cause}")),
                Some(was) if was != cause => changes.push(format!("{id} was {was}, is {cause}")),
                Some(_) => {}
            }
        }
        for (id, cause) in before.iter().filter(|(id, _)| !now.contains_key(*id)) {
            changes.push(format!("{id} was {cause}, and failed in no run now"));
        }
        let (before, now) = (ids(&older.quarantined), ids(&self.quarantined));
        changes.extend(now.difference(&before).map(|id| format!("{id} is set aside")));
        changes.extend(before.difference(&now).map(|id| format!("{id} is no longer set aside")));
        let missing = |verdict: &Self| -> BTreeSet<String> {
            verdict.missing.iter().map(|test| test.id.clone()).collect()
        };
        let (before, now) = (missing(older), missing(self));
        changes.extend(now.difference(&before).map(|id| format!("{id} is found in no run")));
        changes.extend(before.difference(&now).map(|id| format!("{id} is found again")));
        changes
    }
}
