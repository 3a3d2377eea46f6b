//! On which other tests a test depends that depends on the order.
//!
//! Each such test is run alone. What differs then from a run of others before it is the work of one of those. As long as one
//! test is enough to explain all runs, a run of some others and then of all tests in question halves the suspects of each of them at once;
//! the last suspect is confirmed in a run of two. Where no single test explains the runs, the others are reduced by delta debugging.
//!
//! Tests are numbers here: their places in plain order.

use std::collections::{BTreeMap, BTreeSet};

use super::minimize::{Step, minimize};
use crate::results::{reversed_files, shuffled};
use crate::verify::profile::TestOrder;

/// Tests that fail in the same runs are looked at one by one up to here; of more, one stands for all.
const FEW: usize = 8;

/// A run of all tests or of some, in its order.
#[derive(Debug, Clone)]
pub(crate) struct OrderRun {
    pub(crate) tests: Vec<usize>,
    pub(crate) failed: BTreeSet<usize>,
    /// Whether just these were asked for, in this order.
    pub(crate) chosen: bool,
    /// Whether it came to its end; otherwise all its tests count as failed, and it clears and accuses no other test.
    pub(crate) whole: bool,
}

/// Tests that did the same in every run of all tests.
#[derive(Debug, Clone)]
pub(crate) struct OrderGroup {
    pub(crate) tests: Vec<usize>,
    /// An order in which they fail.
    pub(crate) failing: Vec<usize>,
}

/// What a test depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Culprits {
    /// It fails after these, and alone it passes.
    Polluter(Vec<usize>),
    /// It fails alone, and passes after these.
    Setter(Vec<usize>),
    /// No run shows it.
    NotFound,
}

/// What is known of the tests, and which runs would tell more.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OrderSearch {
    pub(crate) known: BTreeMap<usize, Culprits>,
    pub(crate) asks: Vec<Vec<usize>>,
}

/// All tests in an order.
pub(crate) fn in_order(ids: &[String], order: &TestOrder) -> Vec<String> {
    match order {
        TestOrder::ReversedFiles => reversed_files(ids),
        TestOrder::Shuffled { seed } => shuffled(ids, *seed),
        TestOrder::ShuffledBackwards { seed } => {
            let mut ids = shuffled(ids, *seed);
            ids.reverse();
            ids
        }
        TestOrder::Only { tests } => tests.clone(),
    }
}

/// Goes on with what the runs so far say. `all` is how many tests there are.
pub(crate) fn order_search(groups: &[OrderGroup], all: usize, runs: &[OrderRun]) -> OrderSearch {
    let mut searcher = Searcher {
        all,
        runs,
        by_tests: runs
            .iter()
            .filter(|run| run.chosen)
            .map(|run| (run.tests.as_slice(), run))
            .collect(),
        search: OrderSearch::default(),
    };
    let mut victims: BTreeMap<usize, &[usize]> = BTreeMap::new();
    for group in groups {
        let some = if group.tests.len() > FEW { 1 } else { group.tests.len() };
        victims.extend(group.tests[..some].iter().map(|test| (*test, group.failing.as_slice())));
    }
    searcher.together(&victims);
    for group in groups.iter().filter(|group| group.tests.len() > FEW) {
        searcher.rest(group);
    }
    searcher.search
}

struct Searcher<'r> {
    all: usize,
    runs: &'r [OrderRun],
    by_tests: BTreeMap<&'r [usize], &'r OrderRun>,
    search: OrderSearch,
}

impl Searcher<'_> {
    /// Whether a test passed in the run of just these, as far as it was made.
    fn passed(&self, tests: &[usize], test: usize) -> Option<bool> {
        self.by_tests.get(tests).map(|run| !run.failed.contains(&test))
    }

    /// Looks for the culprits of several tests in the same runs.
    fn together(&mut self, victims: &BTreeMap<usize, &[usize]>) {
        for victim in victims.keys() {
            if self.passed(&[*victim], *victim).is_none() {
                self.search.asks.push(vec![*victim]);
            }
        }
        if !self.search.asks.is_empty() {
            return;
        }
        let mut open: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut hard: BTreeSet<usize> = BTreeSet::new();
        for victim in victims.keys().copied() {
            let suspects = self.suspects(victim);
            match suspects.as_slice() {
                [] => {
                    hard.insert(victim);
                }
                [only] => match self.shows(&[*only], victim) {
                    None => self.search.asks.push(vec![*only, victim]),
                    Some(true) => self.settle(victim, vec![*only]),
                    Some(false) => {
                        hard.insert(victim);
                    }
                },
                _ => {
                    open.insert(victim, suspects);
                }
            }
        }
        if !open.is_empty() {
            let probe = halves(&open);
            if self.by_tests.contains_key(probe.as_slice()) {
                hard.extend(open.keys());
            } else {
                self.search.asks.push(probe);
            }
        }
        for victim in hard {
            match self.one_test(victim, victims[&victim]) {
                Ok(Some(culprits)) => self.settle(victim, culprits),
                Ok(None) => {
                    self.search.known.insert(victim, Culprits::NotFound);
                }
                Err(ask) => self.search.asks.push(ask),
            }
        }
    }

    fn passes_alone(&self, victim: usize) -> bool {
        self.passed(&[victim], victim).unwrap_or_default()
    }

    fn settle(&mut self, victim: usize, culprits: Vec<usize>) {
        let found = if self.passes_alone(victim) {
            Culprits::Polluter(culprits)
        } else {
            Culprits::Setter(culprits)
        };
        self.search.known.insert(victim, found);
    }

    /// Whether a test does otherwise after these than alone, as far as it was run.
    fn shows(&self, before: &[usize], victim: usize) -> Option<bool> {
        let tests: Vec<usize> = before.iter().copied().chain([victim]).collect();
        self.passed(&tests, victim).map(|passed| passed != self.passes_alone(victim))
    }

    /// Those that ran before the test in every run in which it did otherwise than alone, and in no other.
    fn suspects(&self, victim: usize) -> Vec<usize> {
        let alone = self.passes_alone(victim);
        let mut shown = vec![0_u32; self.all];
        let mut shows = 0;
        let mut cleared = vec![false; self.all];
        for run in self.runs.iter().filter(|run| run.whole) {
            let Some(at) = run.tests.iter().position(|test| *test == victim) else { continue };
            if run.failed.contains(&victim) == alone {
                shows += 1;
                run.tests[..at].iter().for_each(|test| shown[*test] += 1);
            } else {
                run.tests[..at].iter().for_each(|test| cleared[*test] = true);
            }
        }
        (0..self.all).filter(|test| shows > 0 && shown[*test] == shows && !cleared[*test]).collect()
    }

    /// The fewest tests that show it together; `None` when none do, `Err` with the tests to run next.
    fn one_test(&self, victim: usize, failing: &[usize]) -> Result<Option<Vec<usize>>, Vec<usize>> {
        // Alone it fails: something before it in plain order makes it pass. Alone it passes: something before it in the
        // failing order breaks it.
        let candidates: Vec<usize> = if self.passes_alone(victim) {
            failing.iter().copied().take_while(|test| *test != victim).collect()
        } else {
            (0..victim).collect()
        };
        let ask = |part: &[usize]| -> Vec<usize> { part.iter().copied().chain([victim]).collect() };
        if candidates.is_empty() {
            return Ok(None);
        }
        match self.shows(&candidates, victim) {
            None => return Err(ask(&candidates)),
            Some(false) => return Ok(None),
            Some(true) => {}
        }
        match minimize(&candidates, |part| self.shows(part, victim)) {
            Step::Ask(part) => Err(ask(&part)),
            Step::Done(tests) => Ok(Some(tests)),
        }
    }

    /// Takes the culprits of the first of many for the others too, where two runs of all of them agree.
    fn rest(&mut self, group: &OrderGroup) {
        let Some(found) = self.search.known.get(&group.tests[0]).cloned() else { return };
        let (culprits, pollutes) = match &found {
            Culprits::Polluter(tests) => (tests.clone(), true),
            Culprits::Setter(tests) => (tests.clone(), false),
            Culprits::NotFound => {
                let rest = group.tests.iter().map(|test| (*test, Culprits::NotFound));
                self.search.known.extend(rest);
                return;
            }
        };
        let rest: Vec<usize> =
            group.tests[1..].iter().copied().filter(|test| !culprits.contains(test)).collect();
        let after: Vec<usize> = culprits.iter().chain(&rest).copied().collect();
        let mut lacking = Vec::new();
        for run in [&rest, &after] {
            if !self.by_tests.contains_key(run.as_slice()) {
                lacking.push(run.clone());
            }
        }
        if !lacking.is_empty() {
            self.search.asks.extend(lacking);
            return;
        }
        let agrees = |test: usize| {
            self.passed(&rest, test) == Some(pollutes)
                && self.passed(&after, test) == Some(!pollutes)
        };
        let (same, others): (Vec<usize>, Vec<usize>) =
            rest.iter().copied().partition(|test| agrees(*test));
        self.search.known.extend(same.into_iter().map(|test| (test, found.clone())));
        let others: Vec<usize> = group.tests[1..]
            .iter()
            .copied()
            .filter(|test| others.contains(test) || culprits.contains(test))
            .collect();
        if others.len() > FEW {
            let unknown = others.into_iter().map(|test| (test, Culprits::NotFound));
            self.search.known.extend(unknown);
        } else if !others.is_empty() {
            let failing = group.failing.as_slice();
            self.together(&others.into_iter().map(|test| (test, failing)).collect());
        }
    }
}

/// Half of the suspects of each test, as far as one set can be that, and then the tests.
fn halves(open: &BTreeMap<usize, Vec<usize>>) -> Vec<usize> {
    let mut chosen: BTreeMap<usize, bool> = BTreeMap::new();
    for suspects in open.values() {
        let mut inside = suspects.iter().filter(|test| chosen.get(test) == Some(&true)).count();
        for test in suspects.iter().filter(|test| !open.contains_key(test)) {
            chosen.entry(*test).or_insert_with(|| {
                let more = inside < suspects.len() / 2;
                inside += usize::from(more);
                more
            });
        }
    }
    let chosen = chosen.into_iter().filter(|(_, chosen)| *chosen).map(|(test, _)| test);
    chosen.chain(open.keys().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows the search where `fails` says which tests of a run fail, from its order.
    fn follow(
        all: usize,
        victims: &[usize],
        fails: impl Fn(usize, &[usize]) -> bool,
    ) -> (BTreeMap<usize, Culprits>, usize) {
        let run = |tests: Vec<usize>, chosen: bool| {
            let failed = (0..tests.len())
                .filter(|at| fails(tests[*at], &tests[..*at]))
                .map(|at| tests[at])
                .collect();
            OrderRun { tests, failed, chosen, whole: true }
        };
        let plain: Vec<usize> = (0..all).collect();
        let backwards: Vec<usize> = plain.iter().rev().copied().collect();
        let mut runs = vec![run(plain, false), run(backwards.clone(), false)];
        assert!(runs[0].failed.is_empty());
        let group = OrderGroup { tests: victims.to_vec(), failing: backwards };
        assert!(victims.iter().all(|victim| runs[1].failed.contains(victim)));
        for round in 0..100 {
            let search = order_search(std::slice::from_ref(&group), all, &runs);
            if search.asks.is_empty() {
                assert_eq!(search.known.len(), victims.len());
                return (search.known, runs.len() - 2);
            }
            assert!(round < 99, "{search:?}");
            runs.extend(search.asks.into_iter().map(|ask| run(ask, true)));
        }
        unreachable!("the last round ends")
    }

    #[test]
    fn many_tests_are_explained_in_the_same_runs() {
        // Polluters 150, 160, 170 of 10, 11, 12; setters 1, 2, 3 of 100, 101, 102.
        let fails = |test: usize, before: &[usize]| match test {
            10..=12 => before.contains(&(150 + 10 * (test - 10))),
            100..=102 => !before.contains(&(test - 99)),
            _ => false,
        };
        let (known, runs) = follow(200, &[10, 11, 12, 100, 101, 102], fails);
        for test in 0..3 {
            assert_eq!(known[&(10 + test)], Culprits::Polluter(vec![150 + 10 * test]));
            assert_eq!(known[&(100 + test)], Culprits::Setter(vec![1 + test]));
        }
        // Six alone, six pairs, and eight or nine halvings.
        assert!(runs <= 22, "{runs}");
    }

    #[test]
    fn one_stands_for_many() {
        let victims: Vec<usize> = (20..60).collect();
        let fails = |test: usize, before: &[usize]| victims.contains(&test) && before.contains(&90);
        let (known, runs) = follow(100, &victims, fails);
        assert!(known.values().all(|one| *one == Culprits::Polluter(vec![90])), "{known:?}");
        assert!(runs <= 12, "{runs}");
        // One of them has a cause of its own.
        let fails = |test: usize, before: &[usize]| match test {
            33 => !before.contains(&5),
            _ => victims.contains(&test) && before.contains(&90),
        };
        let (known, _) = follow(100, &victims, fails);
        assert_eq!(known[&33], Culprits::Setter(vec![5]));
        assert_eq!(known[&34], Culprits::Polluter(vec![90]));
    }

    #[test]
    fn several_culprits_are_reduced() {
        let both = |before: &[usize]| before.contains(&40) && before.contains(&77);
        let (known, _) = follow(90, &[7], |test, before| test == 7 && both(before));
        assert_eq!(known[&7], Culprits::Polluter(vec![77, 40]));
        // Any of two.
        let either = |before: &[usize]| before.contains(&40) || before.contains(&77);
        let (known, _) = follow(90, &[7], |test, before| test == 7 && either(before));
        assert!(
            [Culprits::Polluter(vec![40]), Culprits::Polluter(vec![77])].contains(&known[&7]),
            "{known:?}"
        );
    }
}
