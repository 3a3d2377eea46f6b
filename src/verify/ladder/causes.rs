//! Why tests of an instance are unstable, as far as its runs tell, and the runs that would tell more.
//!
//! - A test that failed in some plain runs and not in all is flaky.
//! - One that passed in all plain runs and failed under other conditions is followed there ([`super::search`]): when it does not
//!   fail again under the same conditions, it is flaky; else it is sensitive.
//! - One that failed in all plain runs is followed the other way round: what makes it pass?
//!
//! Tests that did the same in every run are searched for as one.

use std::collections::{BTreeMap, BTreeSet};

use super::array::combined_runs;
use super::evidence::{Evidence, Run, chosen_tests};
use super::order::{Culprits, OrderGroup, OrderRun, in_order, order_search};
use super::schedule::{FIRST_RUNS, RunRequest, is_climbed, requests};
use super::search::{Search, Tally, Trials, best_probe, search};
use crate::results::Outcome;
use crate::verify::policy::Policy;
use crate::verify::profile::{Axis, Profile, Setting, TestOrder};
use crate::verify::record::Phase;
use crate::verify::verdict::{Cause, ListName, OrderCause};

/// What makes one test unstable; a test may have several.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    /// Index among the expected tests.
    pub(crate) test: usize,
    pub(crate) cause: Cause,
    /// Whether it fails in plain conditions and what is sought is what makes it pass.
    pub(crate) inverse: bool,
    /// Whether the search for the cause goes on: it decides nothing yet.
    pub(crate) is_open: bool,
}

/// What is known of causes.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// By test.
    pub(crate) found: Vec<Finding>,
    /// Tests that fail in every plain run and pass under no other conditions.
    pub(crate) never: Vec<usize>,
    /// Runs that would tell more, within the policy's bound.
    pub(crate) asks: Vec<RunRequest>,
    /// Whether the policy's bound cut them.
    pub(crate) is_cut: bool,
    /// Runs that were made to find causes.
    pub(crate) probes: u64,
}

/// Tests that did the same in every run.
struct Group {
    tests: Vec<usize>,
    /// Whether a hit is a pass: they fail in plain conditions.
    inverse: bool,
    tallies: Vec<Tally>,
}

/// Reads the causes out of the runs.
pub(crate) fn find(policy: &Policy, evidence: &Evidence<'_>) -> Findings {
    let mut finder = Finder { policy, evidence, findings: Findings::default(), asks: Vec::new() };
    finder.findings.probes = probes(policy, evidence);
    let groups = finder.sort_out();
    if !groups.is_empty() {
        finder.follow(&groups);
    }
    let mut findings = finder.findings;
    findings.found.sort_by_key(|finding| finding.test);
    let budget = u64::from(policy.max_probes).saturating_sub(findings.probes);
    let budget = usize::try_from(budget).unwrap_or(usize::MAX);
    let mut seen = BTreeSet::new();
    finder.asks.retain(|ask| seen.insert(ask.clone()) && !unreadable(evidence, &ask.profile));
    findings.is_cut = finder.asks.len() > budget;
    finder.asks.truncate(budget);
    findings.asks = finder.asks;
    if !findings.asks.is_empty() || !is_climbed(policy, evidence) {
        for finding in &mut findings.found {
            // A FAIL_TO_PASS test that fails in every plain run is refused whatever makes it pass.
            let refused =
                finding.inverse && evidence.expected[finding.test].list == ListName::FailToPass;
            finding.is_open = matches!(finding.cause, Cause::NotIsolated { .. }) && !refused;
        }
    }
    findings
}

/// Whether the results under a profile cannot be read, run after run.
fn unreadable(evidence: &Evidence<'_>, profile: &Profile) -> bool {
    let runs = evidence.varied.iter().filter(|run| run.record.profile == *profile);
    runs.filter(|run| !run.is_readable()).count() > 1
}

/// Runs beyond the ladder's own.
fn probes(policy: &Policy, evidence: &Evidence<'_>) -> u64 {
    let combined = combined_runs(&policy.axes);
    let planned: BTreeSet<&Profile> = evidence
        .varied
        .iter()
        .map(|run| &run.record.profile)
        .filter(|profile| combined.contains(profile))
        .collect();
    (evidence.varied.len() + evidence.chosen.len() - planned.len()) as u64
}

struct Finder<'e, 'a> {
    policy: &'e Policy,
    evidence: &'e Evidence<'a>,
    findings: Findings,
    asks: Vec<RunRequest>,
}

impl<'e, 'a> Finder<'e, 'a> {
    /// Runs under other conditions that say something.
    fn trials(&self) -> impl Iterator<Item = &'e Run<'a>> + use<'e, 'a> {
        self.evidence
            .varied
            .iter()
            .filter(|run| !run.waits && run.is_readable() && !run.given.is_plain())
    }

    fn found(&mut self, test: usize, cause: Cause) {
        self.findings.found.push(Finding { test, cause, inverse: false, is_open: false });
    }

    /// Settles what plain runs and collections settle; the rest in groups.
    fn sort_out(&mut self) -> Vec<Group> {
        let evidence = self.evidence;
        let plain: Vec<&Run<'_>> = evidence.counted().collect();
        let first_runs = FIRST_RUNS.min(self.policy.runs).max(1) as usize;
        let unstable_ids = evidence.unstable_ids();
        let mut suspects: BTreeSet<usize> =
            plain.iter().flat_map(|run| &run.fails).copied().collect();
        suspects.extend(self.trials().flat_map(|run| &run.fails));
        if !unstable_ids.is_empty() {
            let known =
                |test: &usize| unstable_ids.contains(evidence.expected[*test].known_as.as_str());
            suspects.extend((0..evidence.expected.len()).filter(known));
        }
        let profiles = self.profiles();
        let mut groups: BTreeMap<(bool, Vec<Tally>), Vec<usize>> = BTreeMap::new();
        for test in suspects {
            let known_as = evidence.expected[test].known_as.as_str();
            let failed: Vec<&&Run<'_>> = plain.iter().filter(|run| run.failed(test)).collect();
            if unstable_ids.contains(known_as) {
                self.found(test, Cause::UnstableId);
            } else if !failed.is_empty() && failed.len() < plain.len() {
                // A session that came to its end did not know it: it went by another name.
                let renamed = failed.iter().all(|run| {
                    run.completed()
                        && run.record.session_ended
                        && run.outcome_of(known_as) == Outcome::Missing
                });
                self.found(test, if renamed { Cause::UnstableId } else { Cause::Flaky });
            } else if failed.is_empty() || plain.len() >= first_runs {
                let inverse = !failed.is_empty();
                let tallies = self.tallies(&profiles, test, inverse);
                groups.entry((inverse, tallies)).or_default().push(test);
            } else {
                self.findings.never.push(test);
            }
        }
        groups
            .into_iter()
            .map(|((inverse, tallies), tests)| Group { tests, inverse, tallies })
            .collect()
    }

    /// The conditions that runs were made under, sorted.
    fn profiles(&self) -> Vec<&'e Profile> {
        let profiles: BTreeSet<&Profile> = self.trials().map(|run| &run.given).collect();
        profiles.into_iter().collect()
    }

    fn tallies(&self, profiles: &[&Profile], test: usize, inverse: bool) -> Vec<Tally> {
        let mut tallies = vec![Tally::default(); profiles.len()];
        for run in self.trials() {
            let at = profiles.binary_search(&&run.given).expect("they are those of the trials");
            if run.failed(test) == inverse {
                tallies[at].misses += 1;
            } else {
                tallies[at].hits += 1;
            }
        }
        tallies
    }

    fn follow(&mut self, groups: &[Group]) {
        let profiles = self.profiles();
        let mut suspects = Vec::new();
        let mut masks = BTreeSet::new();
        let mut orders = Vec::new();
        for group in groups {
            let mut trials: Trials<'_> =
                profiles.iter().copied().zip(group.tallies.iter().copied()).collect();
            if group.inverse && trials.values().all(|tally| tally.hits == 0) {
                self.findings.never.extend(&group.tests);
                continue;
            }
            if group.inverse && self.ask_whether_always() {
                let settings = Vec::new();
                self.found_all(group, &Cause::NotIsolated { settings });
                continue;
            }
            loop {
                let (next, within) = search(&trials);
                match next {
                    Search::Nothing => break,
                    Search::Chance => {
                        self.found_all(group, &Cause::Flaky);
                        break;
                    }
                    Search::Found(settings) => {
                        if 2 * group.tests.len() > self.evidence.expected.len() {
                            masks.extend(settings.iter().map(Setting::axis));
                        }
                        match settings.as_slice() {
                            [Setting::Order { order }] if !group.inverse => {
                                orders.push((group, settings.clone(), order.clone()));
                            }
                            _ => self.found_settings(group, &settings),
                        }
                        // There may be another cause, in runs that this one does not explain.
                        trials.retain(|profile, _| !explains(&settings, profile));
                    }
                    Search::Try(profile) => {
                        self.ask(profile);
                        self.found_all(group, &Cause::NotIsolated { settings: within });
                        break;
                    }
                    Search::Suspects(weighed) => {
                        let harmless = trials
                            .iter()
                            .filter(|(_, tally)| tally.hits == 0)
                            .flat_map(|(profile, _)| profile.settings().to_vec());
                        suspects.push((weighed, harmless.collect()));
                        self.found_all(group, &Cause::NotIsolated { settings: within });
                        break;
                    }
                }
            }
        }
        if let Some(profile) = best_probe(&suspects) {
            self.ask(profile);
        }
        if !orders.is_empty() {
            self.find_orders(&orders);
        }
        self.unmask(&masks);
        self.findings.never.sort_unstable();
    }

    /// A test that mostly fails looks like one that always does: before what makes it pass is sought, it has to fail
    /// in as many plain runs again. True while these are lacking.
    fn ask_whether_always(&mut self) -> bool {
        let plain = Profile::plain();
        let runs = 2 * FIRST_RUNS;
        let lacking = requests(self.evidence, Phase::Post, &plain, 0, runs);
        let open = !lacking.is_empty();
        self.asks.extend(lacking);
        open
    }

    fn found_all(&mut self, group: &Group, cause: &Cause) {
        let finding = |test: &usize| Finding {
            test: *test,
            cause: cause.clone(),
            inverse: group.inverse,
            is_open: false,
        };
        self.findings.found.extend(group.tests.iter().map(finding));
    }

    fn ask(&mut self, profile: Profile) {
        self.asks.push(RunRequest::next(self.evidence, Phase::Post, profile));
    }

    fn found_settings(&mut self, group: &Group, settings: &[Setting]) {
        let settings = settings.to_vec();
        if group.inverse {
            self.found_all(group, &Cause::Needs { settings });
        } else {
            self.found_all(group, &Cause::Sensitive { settings, order: None });
        }
    }

    /// Looks for what all tests depend on that depend on the order.
    fn find_orders(&mut self, found: &[(&Group, Vec<Setting>, TestOrder)]) {
        let evidence = self.evidence;
        let ids = evidence.ids();
        let places: BTreeMap<&str, usize> =
            ids.iter().enumerate().map(|(place, id)| (id.as_str(), place)).collect();
        let expected: Vec<Option<usize>> = evidence
            .expected
            .iter()
            .map(|test| places.get(test.known_as.as_str()).copied())
            .collect();
        let placed = |tests: &[String]| -> Vec<usize> {
            tests.iter().filter_map(|id| places.get(id.as_str()).copied()).collect()
        };
        let in_order = |order: &TestOrder| placed(&in_order(ids, order));
        let run = |run: &Run<'_>| {
            if let Some(chosen) = chosen_tests(&run.record.profile) {
                let tests = placed(chosen);
                // One that broke off, or ran something else, is not asked for again: it shows no test that passes.
                let whole = run.completed() && chosen_tests(&run.given).is_some();
                let failed = if whole {
                    run.fails.iter().filter_map(|test| expected[*test]).collect()
                } else {
                    tests.iter().copied().collect()
                };
                return OrderRun { tests, failed, chosen: true, whole };
            }
            let tests = match run.given.get(Axis::Order) {
                Some(Setting::Order { order }) => in_order(order),
                _ => (0..ids.len()).collect(),
            };
            let failed = run.fails.iter().filter_map(|test| expected[*test]).collect();
            OrderRun { tests, failed, chosen: false, whole: true }
        };
        // All plain runs have the same order, and none of these tests failed in one.
        let runs: Vec<OrderRun> = evidence
            .counted()
            .take(1)
            .chain(self.trials())
            .filter(|run| run.completed())
            .chain(evidence.chosen.iter().filter(|run| !run.waits))
            .map(run)
            .collect();
        let groups: Vec<OrderGroup> = found
            .iter()
            .map(|(group, _, order)| OrderGroup {
                tests: group.tests.iter().filter_map(|test| expected[*test]).collect(),
                failing: in_order(order),
            })
            .filter(|group| !group.tests.is_empty())
            .collect();
        let search = order_search(&groups, ids.len(), &runs);
        let named = |tests: &[usize]| -> Vec<String> {
            tests.iter().map(|place| ids[*place].clone()).collect()
        };
        for ask in &search.asks {
            let order = TestOrder::Only { tests: named(ask) };
            self.ask(Profile::of([Setting::Order { order }]));
        }
        for (group, settings, _) in found {
            for test in &group.tests {
                let culprits = expected[*test].and_then(|place| search.known.get(&place));
                let order = Some(match culprits {
                    Some(Culprits::Polluter(tests)) => OrderCause::Polluter { tests: named(tests) },
                    Some(Culprits::Setter(tests)) => {
                        OrderCause::MissingSetter { tests: named(tests) }
                    }
                    Some(Culprits::NotFound) | None => OrderCause::NotFound,
                });
                self.found(*test, Cause::Sensitive { settings: settings.clone(), order });
            }
        }
    }

    /// A condition under which most tests fail hides what else its combined runs would have shown: they are made again
    /// without it.
    fn unmask(&mut self, masks: &BTreeSet<Axis>) {
        if masks.is_empty() {
            return;
        }
        for combined in combined_runs(&self.policy.axes) {
            let axes = combined.axes();
            let left = combined.only(&axes.difference(masks).copied().collect());
            let made = |run: &Run<'_>| run.record.profile == left;
            if axes.is_disjoint(masks) || left.is_plain() || self.evidence.varied.iter().any(made) {
                continue;
            }
            self.ask(left);
        }
    }
}

/// Whether a cause that was found explains hits under a profile: it has all the settings, or a single one's axis.
fn explains(settings: &[Setting], profile: &Profile) -> bool {
    match settings {
        [only] => profile.get(only.axis()).is_some(),
        _ => settings.iter().all(|setting| profile.settings().contains(setting)),
    }
}
