//! On which other tests a test depends that depends on the order: it is run alone, then after fewer and fewer of the tests
//! before it.

use std::collections::{BTreeMap, BTreeSet};

use super::minimize::{Step, minimize};
use crate::results::{reversed_files, shuffled};
use crate::verify::profile::TestOrder;
use crate::verify::verdict::OrderCause;

/// What is known of the tests of a group, and which runs of chosen tests would tell more.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OrderSearch {
    pub(crate) known: BTreeMap<String, OrderCause>,
    pub(crate) asks: Vec<Vec<String>>,
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

/// Tests that fail in the same runs, all of them in `failing` order and not in `plain` order. `passed` says whether a
/// test passed in the run of just these tests, as far as it was made.
pub(crate) fn order_search(
    group: &[String],
    plain: &[String],
    failing: &[String],
    passed: impl Fn(&[String], &str) -> Option<bool>,
) -> OrderSearch {
    let mut search = OrderSearch::default();
    let mut left: Vec<String> = group.to_vec();
    // Each round settles at least its first test.
    while let Some(first) = left.first().cloned() {
        let cause = match one_test(&first, plain, failing, &passed) {
            Ok(cause) => cause,
            Err(ask) => {
                search.asks.push(ask);
                return search;
            }
        };
        left.remove(0);
        let culprits: &[String] = match &cause {
            OrderCause::Polluter { tests } | OrderCause::MissingSetter { tests } => tests,
            OrderCause::NotFound => &[],
        };
        search.known.insert(first, cause.clone());
        if culprits.is_empty() {
            // What one run cannot show of the first, it cannot show of the others.
            search.known.extend(left.drain(..).map(|test| (test, OrderCause::NotFound)));
            return search;
        }
        // The same cause is taken for the others where two runs of all of them agree.
        let rest: Vec<String> =
            left.iter().filter(|test| !culprits.contains(test)).cloned().collect();
        if rest.is_empty() {
            continue;
        }
        let after: Vec<String> = culprits.iter().chain(&rest).cloned().collect();
        let fails_after = matches!(cause, OrderCause::Polluter { .. });
        let mut open = false;
        for run in [&rest, &after] {
            if passed(run, &rest[0]).is_none() {
                search.asks.push(run.clone());
                open = true;
            }
        }
        if open {
            return search;
        }
        let agrees = |test: &String| {
            passed(&rest, test) == Some(fails_after) && passed(&after, test) == Some(!fails_after)
        };
        for test in rest.iter().filter(|test| agrees(test)) {
            search.known.insert(test.clone(), cause.clone());
        }
        left.retain(|test| !search.known.contains_key(test));
    }
    search
}

/// The cause of one test, or the tests to run next.
fn one_test(
    test: &str,
    plain: &[String],
    failing: &[String],
    passed: &impl Fn(&[String], &str) -> Option<bool>,
) -> Result<OrderCause, Vec<String>> {
    let (Some(before), Some(before_failing)) = (before(plain, test), before(failing, test)) else {
        return Ok(OrderCause::NotFound);
    };
    let alone = [test.to_owned()];
    let passes_alone = passed(&alone, test).ok_or(alone.to_vec())?;
    // Alone it fails: something before it in plain order makes it pass. Alone it passes: something before it in the
    // failing order breaks it.
    let (candidates, others) =
        if passes_alone { (before_failing, before) } else { (before, before_failing) };
    let with_test = |part: &[String]| -> Vec<String> {
        part.iter().cloned().chain([test.to_owned()]).collect()
    };
    let shows =
        |part: &[String]| passed(&with_test(part), test).map(|passed| passed != passes_alone);
    // Most likely it is one of those that are before it in one order only.
    let others: BTreeSet<&String> = others.iter().collect();
    let likely: Vec<String> =
        candidates.iter().filter(|one| !others.contains(one)).cloned().collect();
    let mut universe = candidates;
    if !likely.is_empty() && likely.len() < candidates.len() {
        match shows(&likely) {
            None => return Err(with_test(&likely)),
            Some(true) => universe = &likely,
            Some(false) => {}
        }
    }
    if universe.is_empty() {
        return Ok(OrderCause::NotFound);
    }
    match shows(universe) {
        None => return Err(with_test(universe)),
        Some(false) => return Ok(OrderCause::NotFound),
        Some(true) => {}
    }
    match minimize(universe, shows) {
        Step::Ask(part) => Err(with_test(&part)),
        Step::Done(tests) if passes_alone => Ok(OrderCause::Polluter { tests }),
        Step::Done(tests) => Ok(OrderCause::MissingSetter { tests }),
    }
}

/// The tests before one, if it is there.
fn before<'a>(ids: &'a [String], test: &str) -> Option<&'a [String]> {
    ids.iter().position(|id| id == test).map(|at| &ids[..at])
}
