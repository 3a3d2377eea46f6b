//! 100,000 instances with known flake rates, climbed with the real schedule and judge: the promised error rates hold, stable
//! instances are never accused, and runs cost what they should.

use std::collections::BTreeMap;
use std::sync::Arc;

use hallmark::results::Outcome;
use hallmark::verify::{Lists, Phase, Policy, RunRecord, RunRequest, Status, judge, wanted};

use super::judging::record;

/// Instances of a kind with at most one flaky test; there are three of each policy.
const INSTANCES: u32 = 10_834;
/// Instances of the kind with several, of which fewer have the same runs.
const MIXED: u32 = 832;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn hits(&mut self, rate: f64) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "a random number in 0..1")]
        let drawn = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        drawn < rate
    }
}

/// What one instance came to.
#[derive(Debug, Clone)]
struct End {
    status: Status,
    unstable: bool,
    quarantined: Vec<String>,
    runs: u64,
}

/// What the schedule says after some runs.
#[derive(Clone)]
enum Step {
    Run(Arc<Vec<RunRequest>>),
    End(End),
}

/// Instances of one kind: test 0 is FAIL_TO_PASS, the others are PASS_TO_PASS, each with its rate of failures after the gold patch.
struct Kind<'a> {
    policy: &'a Policy,
    rates: &'a [f64],
    lists: Lists,
    templates: [RunRecord; 3],
    /// By the failed tests of each run so far. Schedule and judge are pure functions: what was computed once for the same runs
    /// is true for all instances that come by.
    steps: BTreeMap<Vec<u32>, Step>,
}

impl<'a> Kind<'a> {
    fn new(policy: &'a Policy, rates: &'a [f64]) -> Self {
        let ids: Vec<String> = (0..rates.len()).map(|number| format!("t{number:02}")).collect();
        let line = |first: &str| -> String {
            let rest = ids[1..].iter().map(|id| format!(",{id}=p"));
            format!("{}={first}{}", ids[0], rest.collect::<String>())
        };
        let mut collect = record(Phase::Collect, 0, "");
        collect.ids.clone_from(&ids);
        let templates =
            [collect, record(Phase::Pre, 0, &line("f")), record(Phase::Post, 0, &line("p"))];
        let lists = Lists { fail_to_pass: ids[..1].to_vec(), pass_to_pass: ids[1..].to_vec() };
        Self { policy, rates, lists, templates, steps: BTreeMap::new() }
    }

    fn record(&self, request: &RunRequest, failed: u32) -> RunRecord {
        let template = match request.phase {
            Phase::Collect => &self.templates[0],
            Phase::Pre => &self.templates[1],
            Phase::Post => &self.templates[2],
        };
        let mut made = template.clone();
        made.repeat = request.repeat;
        made.profile = request.profile.clone();
        for (number, result) in made.tests.values_mut().enumerate() {
            if failed >> number & 1 == 1 {
                result.outcome = Outcome::Failed;
            }
        }
        made
    }

    /// Follows the schedule as the pipeline does: what is wanted at once is made until something unclean comes in.
    fn climb(&mut self, random: &mut Random) -> End {
        let mut made: Vec<(Arc<Vec<RunRequest>>, usize)> = Vec::new();
        let mut failed: Vec<u32> = Vec::new();
        // What a test that both failed and passed in plain runs does later changes nothing any more (`climbing` shows
        // that): it counts as passed, so that more instances have the same runs.
        let (mut seen_failed, mut seen_passed) = (0_u32, 0_u32);
        loop {
            let requests = match self.step(&made, &failed) {
                Step::End(end) => return end,
                Step::Run(requests) => requests,
            };
            for (at, request) in requests.iter().enumerate() {
                let mut fails = 0;
                if request.phase == Phase::Post {
                    for (number, rate) in self.rates.iter().enumerate() {
                        fails |= u32::from(*rate > 0.0 && random.hits(*rate)) << number;
                    }
                }
                fails &= !(seen_failed & seen_passed);
                if request.phase == Phase::Post && request.profile.is_plain() {
                    seen_failed |= fails;
                    seen_passed |= !fails;
                }
                made.push((Arc::clone(&requests), at));
                failed.push(fails);
                if fails != 0 {
                    break;
                }
            }
        }
    }

    fn step(&mut self, made: &[(Arc<Vec<RunRequest>>, usize)], failed: &[u32]) -> Step {
        if let Some(step) = self.steps.get(failed) {
            return step.clone();
        }
        let records: Vec<RunRecord> = made
            .iter()
            .zip(failed)
            .map(|((requests, at), failed)| self.record(&requests[*at], *failed))
            .collect();
        let requests = wanted(self.policy, &self.lists, &records);
        let step = if requests.is_empty() {
            let verdict = judge(&self.lists, &records, self.policy);
            Step::End(End {
                status: verdict.status,
                unstable: !verdict.unstable.is_empty(),
                quarantined: verdict.quarantined,
                runs: records.len() as u64,
            })
        } else {
            Step::Run(Arc::new(requests))
        };
        self.steps.insert(failed.to_vec(), step.clone());
        step
    }
}

/// What came of many instances.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    admitted: u32,
    /// Admitted although what is kept fails at the rate or above.
    wrong: u32,
    rejected: u32,
    /// With any unstable test.
    accused: u32,
    runs: u64,
    most_runs: u64,
}

fn simulate(policy: &Policy, rates: &[f64], limit: f64, instances: u32) -> Tally {
    let mut kind = Kind::new(policy, rates);
    let mut tally = Tally::default();
    let seed = u64::from(policy.runs) << 8 | rates.len() as u64;
    for number in 0..instances {
        let mut random = Random(seed ^ (u64::from(number) << 20));
        let end = kind.climb(&mut random);
        let admitted = matches!(end.status, Status::Admitted | Status::AdmittedWithQuarantine);
        let ids = kind.lists.fail_to_pass.iter().chain(&kind.lists.pass_to_pass);
        let kept = ids.zip(rates).filter(|(id, _)| !end.quarantined.contains(id));
        let clean: f64 = kept.map(|(_, rate)| 1.0 - rate).product();
        tally.admitted += u32::from(admitted);
        tally.wrong += u32::from(admitted && 1.0 - clean >= limit - 1e-9);
        tally.rejected += u32::from(end.status == Status::Rejected);
        tally.accused += u32::from(end.unstable);
        tally.runs += end.runs;
        tally.most_runs = tally.most_runs.max(end.runs);
    }
    tally
}

/// Whether a count is one that a rate explains: within four standard deviations.
fn explains(rate: f64, count: u32, instances: u32) -> bool {
    let instances = f64::from(instances);
    (f64::from(count) - instances * rate).abs() <= 4.0 * (instances * rate * (1.0 - rate)).sqrt()
}

/// Whether a rate of at most five in a hundred explains a count.
fn at_most_five_percent(count: u32, instances: u32) -> bool {
    f64::from(count) <= f64::from(instances) * 0.05 || explains(0.05, count, instances)
}

fn promised(policy: &Policy, limit: f64) {
    let runs = f64::from(policy.runs);
    // Nothing is unstable.
    let tally = simulate(policy, &[0.0; 6], limit, INSTANCES);
    let cost = u64::from(policy.runs) + 2 + 3 + 4;
    assert_eq!((tally.admitted, tally.rejected, tally.accused), (INSTANCES, 0, 0), "{tally:?}");
    assert_eq!((tally.runs, tally.most_runs), (u64::from(INSTANCES) * cost, cost));
    // The mended test is flaky. The four combined runs see it too.
    let mut rates = [0.0; 6];
    rates[0] = limit;
    let tally = simulate(policy, &rates, limit, INSTANCES);
    assert!(at_most_five_percent(tally.wrong, INSTANCES), "{tally:?}");
    assert!(explains((1.0 - limit).powf(runs + 4.0), tally.wrong, INSTANCES), "{tally:?}");
    assert_eq!(tally.admitted + tally.rejected, INSTANCES);
    // Another is flaky: it is set aside, or it was not seen.
    let mut rates = [0.0; 7];
    rates[5] = limit;
    let tally = simulate(policy, &rates, limit, INSTANCES);
    assert!(at_most_five_percent(tally.wrong, INSTANCES), "{tally:?}");
    assert!(explains((1.0 - limit).powf(runs + 4.0), tally.wrong, INSTANCES), "{tally:?}");
    // Two are, each less than the limit and together above it: what is kept has to be below it.
    let mut rates = [0.0; 8];
    (rates[3], rates[5]) = (limit * 0.7, limit * 0.6);
    let lax = Policy { max_quarantined: 1.0, ..policy.clone() };
    let tally = simulate(&lax, &rates, limit, MIXED);
    assert!(at_most_five_percent(tally.wrong, MIXED), "{tally:?}");
    assert_eq!(tally.rejected, 0, "{tally:?}");
}

#[test]
fn training_bounds_at_twenty_percent() {
    promised(&Policy::training(), 0.2);
}

#[test]
fn benchmark_bounds_at_ten_percent() {
    promised(&Policy::benchmark(), 0.1);
}

#[test]
fn release_bounds_at_five_percent() {
    promised(&Policy::release(), 0.05);
}
