//! Instances that exist as a rule only: what each test does under which conditions. The schedule is followed with runs that
//! the rule answers.

use std::collections::BTreeMap;

use hallmark::base::Digest;
use hallmark::results::{Outcome, TestResult, reversed_files, shuffled};
use hallmark::verify::{
    Axis, Lists, Phase, Policy, Profile, RunOutcome, RunRecord, RunRequest, Setting, TestOrder,
    Verdict, judge, wanted,
};

use super::judging::record;

/// What a test does in a run: the run, the tests before it in it, and its repeat.
pub(crate) type Rule = Box<dyn Fn(&RunRequest, &[String]) -> Outcome>;

/// Changes a record before it is stored.
pub(crate) type Change = Box<dyn Fn(&RunRequest, &mut RunRecord)>;

/// An instance of tests `fix` (FAIL_TO_PASS) and others (PASS_TO_PASS), in their order.
pub(crate) struct World {
    pub(crate) tests: Vec<(String, Rule)>,
    pub(crate) records: Vec<RunRecord>,
    pub(crate) change: Change,
}

pub(crate) fn passed_if(passed: bool) -> Outcome {
    if passed { Outcome::Passed } else { Outcome::Failed }
}

impl World {
    /// One test that the gold patch mends, and so many that always pass.
    pub(crate) fn new(stable: usize) -> Self {
        let fix: Rule = Box::new(|run, _| passed_if(run.phase != Phase::Pre));
        let mut world = Self {
            tests: vec![("t/a.py::fix".to_owned(), fix)],
            records: Vec::new(),
            change: Box::new(|_, _| {}),
        };
        for number in 0..stable {
            world = world.with(&format!("t/b.py::stable{number:02}"), |_, _| Outcome::Passed);
        }
        world
    }

    pub(crate) fn with(
        mut self,
        id: &str,
        rule: impl Fn(&RunRequest, &[String]) -> Outcome + 'static,
    ) -> Self {
        self.tests.push((id.to_owned(), Box::new(rule)));
        self
    }

    /// One that fails where a profile has such a setting.
    pub(crate) fn sensitive(self, id: &str, minds: impl Fn(&Profile) -> bool + 'static) -> Self {
        self.with(id, move |run, _| passed_if(!minds(&run.profile)))
    }

    pub(crate) fn changed(
        mut self,
        change: impl Fn(&RunRequest, &mut RunRecord) + 'static,
    ) -> Self {
        self.change = Box::new(change);
        self
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.tests.iter().map(|(id, _)| id.clone()).collect()
    }

    pub(crate) fn lists(&self) -> Lists {
        let ids = self.ids();
        Lists { fail_to_pass: ids[..1].to_vec(), pass_to_pass: ids[1..].to_vec() }
    }

    fn order(&self, profile: &Profile) -> Vec<String> {
        let ids = self.ids();
        match profile.get(Axis::Order) {
            None => ids,
            Some(Setting::Order { order }) => match order {
                TestOrder::ReversedFiles => reversed_files(&ids),
                TestOrder::Shuffled { seed } => shuffled(&ids, *seed),
                TestOrder::ShuffledBackwards { seed } => {
                    shuffled(&ids, *seed).into_iter().rev().collect()
                }
                TestOrder::Only { tests } => tests.clone(),
            },
            Some(other) => panic!("{other}"),
        }
    }

    pub(crate) fn run(&self, request: &RunRequest) -> RunRecord {
        let mut made = record(request.phase, request.repeat, "");
        made.profile = request.profile.clone();
        made.alone = request.alone;
        made.key = Digest::of(format!("{request:?}"));
        if request.phase == Phase::Collect {
            made.ids = self.ids();
        } else {
            let order = self.order(&request.profile);
            let rules: BTreeMap<&str, &Rule> =
                self.tests.iter().map(|(id, rule)| (id.as_str(), rule)).collect();
            for (at, id) in order.iter().enumerate() {
                let outcome = rules[id.as_str()](request, &order[..at]);
                if outcome != Outcome::Missing {
                    let result = TestResult::new(outcome);
                    made.tests.insert(id.clone(), result);
                }
            }
        }
        (self.change)(request, &mut made);
        made
    }

    /// Follows the schedule to its end, one run at a time.
    pub(crate) fn climb(&mut self, policy: &Policy) -> Verdict {
        let lists = self.lists();
        while let Some(request) = wanted(policy, &lists, &self.records).into_iter().next() {
            assert!(!self.records.iter().any(|record| request.is(record)), "{request:?} again");
            self.records.push(self.run(&request));
            assert!(self.records.len() < 400, "no end: {request:?}");
        }
        self.judge(policy)
    }

    pub(crate) fn judge(&self, policy: &Policy) -> Verdict {
        judge(&self.lists(), &self.records, policy)
    }

    /// How many runs: collections, `pre`, plain `post`, others.
    pub(crate) fn cost(&self) -> [usize; 4] {
        let count = |of: &dyn Fn(&RunRecord) -> bool| {
            self.records.iter().filter(|record| of(record)).count()
        };
        [
            count(&|run| run.phase == Phase::Collect),
            count(&|run| run.phase == Phase::Pre),
            count(&|run| run.phase == Phase::Post && run.profile.is_plain()),
            count(&|run| run.phase == Phase::Post && !run.profile.is_plain()),
        ]
    }
}

/// A run that ran out of time.
pub(crate) fn time_out(record: &mut RunRecord) {
    record.outcome = RunOutcome::Timeout;
    record.session_ended = false;
    record.tests.clear();
}
