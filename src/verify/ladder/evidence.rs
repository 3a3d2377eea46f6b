//! Records, sorted and read against the expected tests. Whoever decides something decides it from this, so that the order
//! of the records cannot matter.

use std::collections::{BTreeMap, BTreeSet};

use crate::results::{Outcome, TestResult};
use crate::runtime::Gap;
use crate::verify::conditions::not_given;
use crate::verify::near::NearIndex;
use crate::verify::profile::{Axis, Profile, Setting, TestOrder};
use crate::verify::record::{Phase, RunOutcome, RunRecord};
use crate::verify::verdict::{ListName, Lists, MissingTest};

/// How the reason begins where the runner stopped a test for its time.
const OUT_OF_TIME: &str = "timeout:";
/// How the reason begins where a test was running when the process ended.
const UNFINISHED: &str = "unfinished:";

/// A test that the instance expects.
#[derive(Debug, Clone)]
pub(crate) struct Expected<'a> {
    pub(crate) id: &'a str,
    pub(crate) list: ListName,
    /// The id that runs know it by.
    pub(crate) known_as: String,
}

/// One run that counts, and how it was confirmed.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) record: &'a RunRecord,
    /// The same run with nothing else on the machine.
    alone: Option<&'a RunRecord>,
    /// It ran out of time and was not yet confirmed: it says nothing.
    pub(crate) waits: bool,
    /// What was excused before: that it passed alone excuses it no more.
    spent: Spent,
    /// Indices of the expected tests that did not pass, ascending.
    pub(crate) fails: Vec<usize>,
    /// Of a run of chosen tests: indices of the expected tests that it ran, ascending.
    chosen: Option<Vec<usize>>,
    /// What was varied, without what the host could not give.
    pub(crate) given: Profile,
}

impl<'a> Run<'a> {
    /// How the run ended; where it was confirmed, as it ended then.
    pub(crate) fn outcome(&self) -> &'a RunOutcome {
        match self.alone {
            Some(alone) if self.record.outcome == RunOutcome::Timeout && !self.spent.whole => {
                &alone.outcome
            }
            Some(alone) if self.record.outcome == RunOutcome::Completed => &alone.outcome,
            _ => &self.record.outcome,
        }
    }

    /// What the run says of a test. A failure that has nothing to do with time stays one, confirmed or not.
    fn result(&self, known_as: &str) -> Option<&'a TestResult> {
        let first = self.record.tests.get(known_as);
        let Some(alone) = self.alone else { return first };
        match first {
            Some(result)
                if !result.outcome.satisfies()
                    && (!out_of_time(self.record, result)
                        || self.spent.tests.contains(known_as)) =>
            {
                Some(result)
            }
            _ => alone.tests.get(known_as),
        }
    }

    pub(crate) fn outcome_of(&self, known_as: &str) -> Outcome {
        self.result(known_as).map_or(Outcome::Missing, |result| result.outcome)
    }

    pub(crate) fn failed(&self, test: usize) -> bool {
        self.fails.binary_search(&test).is_ok()
    }

    /// Whether the run was to run the test.
    pub(crate) fn ran(&self, test: usize) -> bool {
        self.chosen.as_ref().is_none_or(|chosen| chosen.binary_search(&test).is_ok())
    }

    pub(crate) fn completed(&self) -> bool {
        *self.outcome() == RunOutcome::Completed
    }

    /// Whether its results can be trusted.
    pub(crate) fn is_readable(&self) -> bool {
        !matches!(self.outcome(), RunOutcome::ParserError { .. })
    }

    /// Whether time ran out, and did not when the run was alone.
    fn was_slow(&self) -> bool {
        self.alone.is_some_and(|alone| {
            alone.outcome == RunOutcome::Completed && tests_out_of_time(alone).next().is_none()
        })
    }
}

/// Whose excuse is spent: a test that hangs at random passes alone nearly always.
#[derive(Debug, Clone, Default)]
struct Spent {
    /// Runs as a whole.
    whole: bool,
    tests: BTreeSet<String>,
}

fn out_of_time(record: &RunRecord, result: &TestResult) -> bool {
    let reason = result.reason.as_deref().unwrap_or_default();
    reason.starts_with(OUT_OF_TIME)
        || record.outcome == RunOutcome::Timeout && reason.starts_with(UNFINISHED)
}

fn tests_out_of_time(record: &RunRecord) -> impl Iterator<Item = &str> {
    record
        .tests
        .iter()
        .filter(|(_, result)| !result.outcome.satisfies() && out_of_time(record, result))
        .map(|(id, _)| id.as_str())
}

/// Everything that the records say, sorted.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    /// By the id that runs know them by.
    pub(crate) expected: Vec<Expected<'a>>,
    /// Expected ids that no run knows, by id.
    pub(crate) missing: Vec<MissingTest>,
    pub(crate) collect: Vec<Run<'a>>,
    pub(crate) pre: Vec<Run<'a>>,
    /// After the gold patch, in plain conditions, by repeat.
    pub(crate) plain: Vec<Run<'a>>,
    /// After the gold patch, under other conditions with all tests, by profile and repeat.
    pub(crate) varied: Vec<Run<'a>>,
    /// After the gold patch, with chosen tests.
    pub(crate) chosen: Vec<Run<'a>>,
    /// Runs that were hallmark's own failure.
    pub(crate) infra: u64,
    /// Every record there is, sorted.
    pub(crate) all: Vec<&'a RunRecord>,
}

impl<'a> Evidence<'a> {
    pub(crate) fn gather(lists: &'a Lists, records: &'a [RunRecord]) -> Self {
        let mut all: Vec<&RunRecord> = records.iter().collect();
        all.sort_by(|a, b| {
            (a.phase, !a.profile.is_plain(), &a.profile, a.repeat, a.alone, a.key).cmp(&(
                b.phase,
                !b.profile.is_plain(),
                &b.profile,
                b.repeat,
                b.alone,
                b.key,
            ))
        });
        let mut evidence = Self {
            expected: expected(lists),
            missing: Vec::new(),
            collect: Vec::new(),
            pre: Vec::new(),
            plain: Vec::new(),
            varied: Vec::new(),
            chosen: Vec::new(),
            infra: 0,
            all,
        };
        evidence.sort_in();
        evidence.mark_waiting();
        evidence.read_tests();
        evidence.match_ids();
        evidence
    }

    fn sort_in(&mut self) {
        let ours = |record: &&&RunRecord| matches!(record.outcome, RunOutcome::InfraError { .. });
        self.infra = self.all.iter().filter(ours).count() as u64;
        let counted: Vec<&'a RunRecord> =
            self.all.iter().copied().filter(|record| !ours(&record)).collect();
        let same = |a: &&RunRecord, b: &&RunRecord| {
            a.phase == b.phase && a.repeat == b.repeat && a.profile == b.profile
        };
        for records in counted.chunk_by(same) {
            // The one that was not alone comes first, if there is one.
            let first = records[0];
            let alone = records.iter().copied().find(|record| record.alone && !first.alone);
            let run = Run {
                record: first,
                alone,
                waits: false,
                spent: Spent::default(),
                fails: Vec::new(),
                chosen: None,
                given: given(first),
            };
            let runs = match first.phase {
                Phase::Collect => &mut self.collect,
                Phase::Pre => &mut self.pre,
                Phase::Post if first.profile.is_plain() => &mut self.plain,
                Phase::Post if chosen_tests(&first.profile).is_some() => &mut self.chosen,
                Phase::Post => &mut self.varied,
            };
            runs.push(run);
        }
        // Orders are made from the ids of a collection.
        if self.ids().is_empty() {
            for run in self.varied.iter_mut().chain(&mut self.chosen) {
                run.given = without_order(&run.given);
            }
        }
        let spent = spent(self.plain.iter().chain(&self.varied).chain(&self.chosen));
        if spent.whole || !spent.tests.is_empty() {
            for run in self.plain.iter_mut().chain(&mut self.varied).chain(&mut self.chosen) {
                run.spent = spent.clone();
            }
        }
    }

    /// Finds the runs that wait to be confirmed.
    fn mark_waiting(&mut self) {
        for runs in [&mut self.pre, &mut self.plain, &mut self.varied, &mut self.chosen] {
            for group in runs.chunk_by_mut(|a, b| a.record.profile == b.record.profile) {
                let waiting = waiting(group, &self.expected);
                for (run, waits) in group.iter_mut().zip(waiting) {
                    run.waits = waits;
                }
            }
        }
    }

    fn read_tests(&mut self) {
        let expected = &self.expected;
        for run in self.pre.iter_mut().chain(&mut self.plain).chain(&mut self.varied) {
            run.fails = fails(run, expected);
        }
        for run in &mut self.chosen {
            let tests: BTreeSet<&str> = chosen_tests(&run.record.profile)
                .into_iter()
                .flatten()
                .map(String::as_str)
                .collect();
            let chosen: Vec<usize> = (0..expected.len())
                .filter(|test| tests.contains(expected[*test].known_as.as_str()))
                .collect();
            run.fails = chosen
                .iter()
                .copied()
                .filter(|test| !run.outcome_of(&expected[*test].known_as).satisfies())
                .collect();
            run.chosen = Some(chosen);
        }
    }

    /// Finds the expected ids that no run after the gold patch knows, and what they may mean.
    fn match_ids(&mut self) {
        let runs = || self.plain.iter().chain(&self.varied);
        if runs().next().is_none() && self.collect.iter().all(|run| run.record.ids.is_empty()) {
            return;
        }
        let mut unknown: Vec<usize> = (0..self.expected.len())
            .filter(|test| {
                let id = &self.expected[*test].known_as;
                runs().all(|run| run.failed(*test) && run.result(id).is_none())
            })
            .collect();
        if unknown.is_empty() {
            return;
        }
        let collected = self.collect.iter().flat_map(|run| &run.record.ids).map(String::as_str);
        let ran = runs().flat_map(|run| run.record.tests.keys()).map(String::as_str);
        let known: BTreeSet<&str> = collected.chain(ran).collect();
        unknown.retain(|test| !known.contains(self.expected[*test].id));
        if known.is_empty() || unknown.is_empty() {
            return;
        }
        let listed: BTreeSet<&str> = self.expected.iter().map(|test| test.id).collect();
        let index = NearIndex::new(&known);
        let mut taken: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let mut near_misses = BTreeMap::new();
        for test in unknown {
            let (near, taken_for) = index.near(self.expected[test].id, &listed);
            taken.insert(test, taken_for);
            near_misses.insert(test, near);
        }
        // Two expected ids must not be taken for one test.
        let mut meant: BTreeMap<&str, u32> = BTreeMap::new();
        for id in taken.values().flatten() {
            *meant.entry(id.as_str()).or_default() += 1;
        }
        let twice: BTreeSet<String> = meant
            .into_iter()
            .filter(|(_, times)| *times > 1)
            .map(|(id, _)| id.to_owned())
            .collect();
        for (test, ids) in taken {
            let Expected { id, list, .. } = self.expected[test];
            let near = near_misses.remove(&test).unwrap_or_default();
            let missing =
                |taken_for| MissingTest { id: id.to_owned(), taken_for, near: near.clone() };
            if ids.is_empty() || ids.iter().any(|id| twice.contains(id)) {
                self.missing.push(missing(None));
                continue;
            }
            self.missing.extend(ids.iter().map(|known_as| missing(Some(known_as.clone()))));
            // One id that stands for several tests is expected of each.
            let mut ids = ids.into_iter();
            self.expected[test].known_as = ids.next().expect("there is one");
            self.expected.extend(ids.map(|known_as| Expected { id, list, known_as }));
        }
        self.missing.sort_by(|a, b| (&a.id, &a.taken_for).cmp(&(&b.id, &b.taken_for)));
        if self.missing.iter().all(|missing| missing.taken_for.is_none()) {
            return;
        }
        self.expected.sort_by(|a, b| a.known_as.cmp(&b.known_as));
        self.mark_waiting();
        self.read_tests();
    }

    /// The ids in the order of the first collection.
    pub(crate) fn ids(&self) -> &'a [String] {
        self.collect
            .iter()
            .find(|run| !run.record.ids.is_empty())
            .map_or(&[], |run| &run.record.ids)
    }

    /// Indices of the expected tests of a list.
    pub(crate) fn list(&self, list: ListName) -> impl Iterator<Item = usize> + '_ {
        (0..self.expected.len()).filter(move |test| self.expected[*test].list == list)
    }

    /// Plain runs after the gold patch that count.
    pub(crate) fn counted(&self) -> impl DoubleEndedIterator<Item = &Run<'a>> {
        self.plain.iter().filter(|run| !run.waits)
    }

    /// Every run that counts.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run<'a>> {
        let tests = self.pre.iter().chain(&self.plain).chain(&self.varied).chain(&self.chosen);
        self.collect.iter().chain(tests)
    }

    /// Wall time of all runs in seconds.
    pub(crate) fn wall(&self) -> f64 {
        self.all.iter().map(|record| record.wall).sum()
    }

    /// Runs that are to be confirmed alone.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Run<'a>> {
        self.runs().filter(|run| run.waits)
    }

    /// How many runs ran out of time, and did not when they were alone.
    pub(crate) fn slow_runs(&self) -> u64 {
        self.runs().filter(|run| run.was_slow()).count() as u64
    }

    /// Expected tests whose ids only one of two collections found, and such tests that nobody expects.
    pub(crate) fn unstable_ids(&self) -> BTreeSet<&'a str> {
        let mut collected = self
            .collect
            .iter()
            .filter(|run| run.completed() && !run.record.ids.is_empty())
            .map(|run| run.record.ids.iter().map(String::as_str).collect::<BTreeSet<_>>());
        let Some(first) = collected.next() else { return BTreeSet::new() };
        collected
            .flat_map(|ids| first.symmetric_difference(&ids).copied().collect::<Vec<_>>())
            .collect()
    }
}

fn expected(lists: &Lists) -> Vec<Expected<'_>> {
    let mut by_id: BTreeMap<&str, ListName> = BTreeMap::new();
    by_id.extend(lists.pass_to_pass.iter().map(|id| (id.as_str(), ListName::PassToPass)));
    by_id.extend(lists.fail_to_pass.iter().map(|id| (id.as_str(), ListName::FailToPass)));
    by_id.into_iter().map(|(id, list)| Expected { id, list, known_as: id.to_owned() }).collect()
}

/// Indices of the expected tests that did not pass: both sides are sorted by id.
fn fails(run: &Run<'_>, expected: &[Expected<'_>]) -> Vec<usize> {
    if run.alone.is_some() {
        let failed = |test: &usize| !run.outcome_of(&expected[*test].known_as).satisfies();
        return (0..expected.len()).filter(failed).collect();
    }
    let mut fails = Vec::new();
    let mut results = run.record.tests.iter().peekable();
    for (at, test) in expected.iter().enumerate() {
        while results.next_if(|(id, _)| id.as_str() < test.known_as.as_str()).is_some() {}
        let passed = results
            .peek()
            .is_some_and(|(id, result)| **id == test.known_as && result.outcome.satisfies());
        if !passed {
            fails.push(at);
        }
    }
    fails
}

/// What was excused in several runs after the gold patch: it ran out of time, and did not when it was alone.
fn spent<'e, 'a: 'e>(runs: impl Iterator<Item = &'e Run<'a>>) -> Spent {
    let mut whole = 0_u32;
    let mut tests: BTreeMap<&str, u32> = BTreeMap::new();
    for run in runs {
        let Some(alone) = run.alone else { continue };
        let was_late = run.record.outcome == RunOutcome::Timeout;
        whole += u32::from(was_late && alone.outcome != RunOutcome::Timeout);
        for id in tests_out_of_time(run.record).filter(|id| alone.outcome_of(id).satisfies()) {
            *tests.entry(id).or_default() += 1;
        }
    }
    tests.retain(|_, times| *times > 1);
    Spent { whole: whole > 1, tests: tests.into_keys().map(str::to_owned).collect() }
}

/// Which of the runs of one profile ran out of time and wait to be confirmed alone. What was confirmed once needs no
/// second time: a hang costs its whole limit again. Nor does what no confirmation excuses.
fn waiting(runs: &[Run<'_>], expected: &[Expected<'_>]) -> Vec<bool> {
    let mut whole = false;
    let mut tests = BTreeSet::new();
    for alone in runs.iter().filter_map(|run| run.alone.or(Some(run.record).filter(|r| r.alone))) {
        whole |= alone.outcome == RunOutcome::Timeout;
        tests.extend(tests_out_of_time(alone));
    }
    let matters =
        |id: &&str| expected.binary_search_by(|test| test.known_as.as_str().cmp(id)).is_ok();
    runs.iter()
        .map(|run| {
            if run.alone.is_some() || run.record.alone {
                return false;
            }
            let mut late = tests_out_of_time(run.record).filter(matters);
            match run.record.outcome {
                RunOutcome::Timeout => !whole && !run.spent.whole,
                RunOutcome::Completed => {
                    late.any(|id| !tests.contains(id) && !run.spent.tests.contains(id))
                }
                _ => false,
            }
        })
        .collect()
}

/// The tests that a profile chooses.
pub(crate) fn chosen_tests(profile: &Profile) -> Option<&[String]> {
    match profile.get(Axis::Order) {
        Some(Setting::Order { order: TestOrder::Only { tests } }) => Some(tests),
        _ => None,
    }
}

fn without_order(profile: &Profile) -> Profile {
    let mut axes = profile.axes();
    axes.remove(&Axis::Order);
    profile.only(&axes)
}

/// What of its profile the host and the runner gave a run.
fn given(record: &RunRecord) -> Profile {
    let mut missing = not_given(&record.profile, &record.gaps);
    if record.disobeyed.iter().any(|option| option == "order" || option == "only") {
        missing.insert(Axis::Order);
    }
    if missing.is_empty() {
        return record.profile.clone();
    }
    record.profile.only(&record.profile.axes().difference(&missing).copied().collect())
}

/// The axis that a host without this cannot vary.
pub(crate) fn axis_of(gap: &Gap) -> Option<Axis> {
    match gap {
        Gap::CpuLimit | Gap::Processors => Some(Axis::Cpu),
        Gap::User => Some(Axis::User),
        Gap::EntryOrder => Some(Axis::DirectoryOrder),
        Gap::Ipv4Only => Some(Axis::Network),
        Gap::Clock => Some(Axis::Clock),
        Gap::Load => Some(Axis::Load),
        Gap::MemoryLimit | Gap::PidsLimit | Gap::BlackHole | Gap::SingleId | Gap::Seccomp => None,
    }
}
