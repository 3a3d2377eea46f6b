//! Merges the events of a stream into one outcome per test.

use std::collections::{BTreeMap, BTreeSet};

use super::report::{CollectOutcome, Event, Fault, Report};
use super::{NetworkUse, Outcome, TestResult};

/// Takes events in their order.
#[derive(Default)]
pub(crate) struct Merger {
    report: Report,
    open: BTreeMap<String, Attempt>,
    runs: BTreeMap<String, u64>,
    network: BTreeMap<String, NetworkUse>,
    descriptions: BTreeMap<String, String>,
}

/// A test between its begin and its end.
#[derive(Default)]
struct Attempt {
    worst: Option<(Outcome, Option<String>)>,
    /// Why a part of it was skipped, which is its result where it has no other.
    skipped_part: Option<String>,
    seconds: f64,
    reruns: u32,
    /// Whether its last phase was seen: all that pytest before 3.4 and xdist's crash reports say of an end.
    ended: bool,
}

impl Attempt {
    fn will_run_again(&self) -> bool {
        self.worst.is_none() && self.reruns > 0
    }

    fn add(&mut self, outcome: Outcome, reason: Option<String>) {
        let worse = match &self.worst {
            None => true,
            // A failed call stays failed whatever its tear-down does.
            Some((held, _)) => outcome > *held,
        };
        if worse {
            self.worst = Some((outcome, reason));
        }
    }
}

impl Merger {
    pub(crate) fn take(&mut self, event: Event) {
        match event {
            Event::Start { python, pytest, disobeyed, .. } => {
                self.report.python = Some(python);
                self.report.pytest = pytest;
                self.report.disobeyed = disobeyed;
            }
            Event::Collected { ids } => {
                self.report.collected.get_or_insert_default().extend(ids);
            }
            Event::Collect { id, outcome, reason, counted } => {
                let (map, word) = match outcome {
                    CollectOutcome::Error => (&mut self.report.collection_errors, "error"),
                    CollectOutcome::Skipped => (&mut self.report.collection_skips, "skipped"),
                };
                map.insert(id, reason.unwrap_or_default());
                if counted {
                    self.count(word);
                }
            }
            Event::Begin { id, description } => {
                self.count("run");
                if let Some(description) = description {
                    self.descriptions.insert(id.clone(), description);
                }
                // Old rerunfailures announces each attempt: nothing was settled yet.
                if self.open.get(&id).is_some_and(|attempt| attempt.worst.is_none()) {
                    return;
                }
                if let Some(attempt) = self.open.insert(id.clone(), Attempt::default()) {
                    self.close(id, attempt);
                }
            }
            Event::Phase { id, when, outcome, seconds, xfail, subtest, reason } => {
                self.phase(&id, &when, &outcome, seconds, xfail, subtest, reason);
            }
            Event::End { id, seconds } => {
                // Rerunfailures ends each attempt: another one follows what was not settled.
                if self.open.get(&id).is_some_and(Attempt::will_run_again) {
                    return;
                }
                if let Some(mut attempt) = self.open.remove(&id) {
                    // A runner that has no phases tells the whole.
                    attempt.seconds = seconds.unwrap_or(attempt.seconds);
                    self.close(id, attempt);
                }
            }
            Event::Network { id, used: (packets, lookups) } => {
                let used = match id {
                    Some(id) => self.network.entry(id).or_default(),
                    None => self.report.collection_network.get_or_insert_default(),
                };
                used.packets = used.packets.saturating_add(packets);
                used.lookups = used.lookups.saturating_add(lookups);
            }
            Event::Finish { exit, totals, printed } => {
                self.report.session_exit = Some(exit);
                self.report.printed = printed.or_else(|| totals.clone());
                self.report.totals = totals;
            }
            Event::Exit { exit } => self.report.process_exit = Some(exit),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one event")]
    fn phase(
        &mut self,
        id: &str,
        when: &str,
        outcome: &str,
        seconds: f64,
        xfail: bool,
        subtest: bool,
        reason: Option<String>,
    ) {
        let outside = matches!(when, "setup" | "teardown");
        if !matches!(when, "setup" | "call") {
            self.open.entry(id.to_owned()).or_default().ended = true;
        }
        let (merged, word) = match (outcome, xfail) {
            ("rerun", _) => {
                let attempt = self.open.entry(id.to_owned()).or_default();
                // What counts is what the runner settles on.
                *attempt = Attempt {
                    seconds: attempt.seconds + seconds,
                    reruns: attempt.reruns + 1,
                    ..Attempt::default()
                };
                return;
            }
            ("passed", true) if !outside => (Outcome::Xpassed, "xpassed"),
            ("passed", _) if outside => {
                self.open.entry(id.to_owned()).or_default().seconds += seconds;
                return;
            }
            ("passed", _) => (Outcome::Passed, "passed"),
            ("skipped", true) => (Outcome::Xfailed, "xfailed"),
            ("skipped", false) => (Outcome::Skipped, "skipped"),
            // Runners without phases tell an error from a failure by what was raised.
            ("error", _) => (Outcome::Error, "error"),
            (_, _) if outside => (Outcome::Error, "error"),
            (_, _) => (Outcome::Failed, "failed"),
        };
        let attempt = self.open.entry(id.to_owned()).or_default();
        if subtest {
            // A part decides only when it failed; the whole reports for itself.
            self.report.subtests = true;
            match merged {
                Outcome::Failed | Outcome::Error => attempt.add(merged, reason),
                // Where a part was skipped unittest does not call the whole passed.
                Outcome::Skipped => attempt.skipped_part = Some(reason.unwrap_or_default()),
                _ => {}
            }
            return;
        }
        attempt.seconds += seconds;
        attempt.add(merged, reason);
        self.count(word);
    }

    fn count(&mut self, word: &str) {
        *self.report.counted.entry(word.to_owned()).or_default() += 1;
    }

    /// Keeps the result of a test; of several, the worst.
    fn close(&mut self, id: String, attempt: Attempt) {
        let skipped = attempt.skipped_part.map(|reason| (Outcome::Skipped, Some(reason)));
        let Some((outcome, reason)) = attempt.worst.or(skipped) else {
            return;
        };
        *self.runs.entry(id.clone()).or_default() += 1;
        let result = TestResult {
            outcome,
            seconds: attempt.seconds,
            reason,
            reruns: attempt.reruns,
            network: None,
            description: None,
        };
        match self.report.tests.entry(id) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(result);
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => {
                if result.outcome > entry.get().outcome {
                    entry.insert(result);
                }
            }
        }
    }

    pub(crate) fn finish(mut self) -> Report {
        for (id, mut attempt) in std::mem::take(&mut self.open) {
            if !attempt.ended || attempt.will_run_again() {
                self.report.unfinished.push(id.clone());
                attempt.add(
                    Outcome::Failed,
                    Some("unfinished: the process ended while the test ran".to_owned()),
                );
            }
            self.close(id, attempt);
        }
        for (id, used) in std::mem::take(&mut self.network) {
            if let Some(result) = self.report.tests.get_mut(&id) {
                result.network = Some(used);
            }
        }
        for (id, description) in std::mem::take(&mut self.descriptions) {
            if let Some(result) = self.report.tests.get_mut(&id) {
                result.description = Some(description);
            }
        }
        if let Some(collected) = &self.report.collected {
            let mut times: BTreeMap<&str, u64> = BTreeMap::new();
            for id in collected {
                *times.entry(id).or_default() += 1;
            }
            let mut faults = BTreeSet::new();
            for (id, runs) in &self.runs {
                match times.get(id.as_str()) {
                    None => faults.insert((1, id)),
                    Some(collected) if runs > collected => faults.insert((0, id)),
                    Some(_) => false,
                };
            }
            self.report.faults.extend(faults.into_iter().map(|(kind, id)| match kind {
                0 => Fault::Duplicate { id: id.clone() },
                _ => Fault::NotCollected { id: id.clone() },
            }));
        }
        self.report
    }
}
