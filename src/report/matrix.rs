//! Tests by runs. A cell is one letter, pytest's where it has one; tests with equal letters in all runs are one row, so
//! that a long suite is a few lines and tests that fail together stand together.

use std::collections::{BTreeMap, BTreeSet};

use super::runs::{in_order, selected};
use crate::results::Outcome;
use crate::verify::{ListName, Lists, Phase, RunOutcome, RunRecord, Verdict};

/// The test was not asked to run, or the run says nothing of tests.
pub(super) const NOT_ASKED: u8 = b'-';

/// Runs side by side: of one phase, all plain or all not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Which patches.
    pub phase: Phase,
    /// Whether the runs are in plain conditions.
    pub plain: bool,
    /// Which verification they belong to; empty for the first.
    pub series: String,
    /// The number of its first run.
    pub first: usize,
    /// How many runs.
    pub runs: usize,
}

/// Tests with equal outcomes in all runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Which list they are in.
    pub list: ListName,
    /// Whether the verdict calls them unstable.
    pub unstable: bool,
    /// Whether they are set aside.
    pub quarantined: bool,
    /// The tests, sorted.
    pub tests: Vec<String>,
    /// A string of letters a column, one a run.
    pub cells: Vec<String>,
    /// In how many runs after the gold patch they did not pass.
    pub failures: usize,
    /// In how many runs after the gold patch they were asked to run.
    pub runs: usize,
}

/// The letter of an outcome.
pub(super) fn letter(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Passed => b'.',
        Outcome::Failed => b'F',
        Outcome::Error => b'E',
        Outcome::Skipped => b's',
        Outcome::Xfailed => b'x',
        Outcome::Xpassed => b'X',
        Outcome::Missing => b'?',
    }
}

/// Whether a test with this letter passed.
fn satisfies(letter: u8) -> bool {
    matches!(letter, b'.' | b'x' | b'X')
}

/// The ids of expected tests as runs know them, with their list.
pub(super) fn expected<'a>(lists: &'a Lists, verdict: &'a Verdict) -> BTreeMap<&'a str, ListName> {
    let mut known_as: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for test in &verdict.missing {
        known_as.entry(&test.id).or_default().extend(test.taken_for.as_deref());
    }
    let named = |ids: &'a [String], list| {
        let known_as = &known_as;
        ids.iter().flat_map(move |id| {
            let taken = known_as.get(id.as_str()).filter(|taken| !taken.is_empty());
            let ids = taken.cloned().unwrap_or_else(|| vec![id.as_str()]);
            ids.into_iter().map(move |id| (id, list))
        })
    };
    // A test in both lists is one that must change.
    named(&lists.pass_to_pass, ListName::PassToPass)
        .chain(named(&lists.fail_to_pass, ListName::FailToPass))
        .collect()
}

/// The columns and rows over the runs of `records`, numbered as [`in_order`] does.
pub(super) fn matrix(
    lists: &Lists,
    verdict: &Verdict,
    records: &[RunRecord],
) -> (Vec<Column>, Vec<Row>) {
    let order = in_order(records);
    let shown: Vec<(usize, &RunRecord)> = (1..)
        .zip(order.iter().copied())
        .filter(|(_, record)| record.phase != Phase::Collect)
        .collect();
    let columns = columns(&shown);
    let listed = expected(lists, verdict);
    let unstable: BTreeSet<&str> = verdict.unstable.iter().map(|test| test.id.as_str()).collect();
    let aside: BTreeSet<&str> = verdict.quarantined.iter().map(String::as_str).collect();

    let ids: BTreeSet<&str> = shown
        .iter()
        .flat_map(|(_, record)| record.tests.keys().map(String::as_str))
        .chain(listed.keys().copied())
        .chain(unstable.iter().copied())
        .collect();
    let places: BTreeMap<&str, usize> = ids.into_iter().zip(0..).collect();
    let letters = letters(&shown, &places);

    let after: Vec<bool> = shown.iter().map(|(_, record)| record.phase == Phase::Post).collect();
    let mut groups: BTreeMap<(ListName, bool, bool, &[u8]), Vec<String>> = BTreeMap::new();
    for (id, place) in &places {
        let list = listed.get(id).copied().unwrap_or(ListName::Neither);
        let key = (list, unstable.contains(id), aside.contains(id), letters[*place].as_slice());
        groups.entry(key).or_default().push((*id).to_owned());
    }
    let mut rows: Vec<Row> = groups
        .into_iter()
        .map(|((list, unstable, quarantined, letters), tests)| {
            let asked = || {
                letters
                    .iter()
                    .zip(&after)
                    .filter(|(letter, after)| **after && **letter != NOT_ASKED)
            };
            let failures = asked().filter(|(letter, _)| !satisfies(**letter)).count();
            let runs = asked().count();
            Row {
                list,
                unstable,
                quarantined,
                tests,
                cells: cut(letters, &columns),
                failures,
                runs,
            }
        })
        .collect();
    rows.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.tests.cmp(&b.tests)));
    (columns, rows)
}

/// Unstable tests first, then expected ones that fail, then the rest; more failures first.
fn rank(row: &Row) -> (bool, bool, bool, std::cmp::Reverse<usize>, ListName) {
    let listed = row.list != ListName::Neither;
    let failing = std::cmp::Reverse(row.failures);
    (!row.unstable, !listed, row.failures == 0, failing, row.list)
}

fn columns(shown: &[(usize, &RunRecord)]) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for (number, record) in shown {
        let (phase, plain) = (record.phase, record.profile.is_plain());
        match columns.last_mut() {
            Some(last)
                if (last.phase, last.plain, &last.series) == (phase, plain, &record.series) =>
            {
                last.runs += 1;
            }
            _ => columns.push(Column {
                phase,
                plain,
                series: record.series.clone(),
                first: *number,
                runs: 1,
            }),
        }
    }
    columns
}

/// The letters of every test, one a run.
fn letters(shown: &[(usize, &RunRecord)], places: &BTreeMap<&str, usize>) -> Vec<Vec<u8>> {
    let mut letters = vec![Vec::with_capacity(shown.len()); places.len()];
    for (_, record) in shown {
        let only = selected(record);
        let silent = matches!(record.outcome, RunOutcome::InfraError { .. });
        let unsaid = if only.is_some() || silent { NOT_ASKED } else { letter(Outcome::Missing) };
        for row in &mut letters {
            row.push(unsaid);
        }
        let at = letters.first().map_or(0, |row: &Vec<u8>| row.len() - 1);
        let mut set = |id: &str, letter| {
            if let Some(place) = places.get(id) {
                letters[*place][at] = letter;
            }
        };
        if !silent {
            for id in only.unwrap_or_default() {
                set(id, letter(Outcome::Missing));
            }
        }
        for (id, result) in &record.tests {
            set(id, letter(result.outcome));
        }
    }
    letters
}

/// The letters of all runs, cut into columns.
fn cut(mut letters: &[u8], columns: &[Column]) -> Vec<String> {
    columns
        .iter()
        .map(|column| {
            let (these, rest) = letters.split_at(column.runs);
            letters = rest;
            these.iter().map(|letter| char::from(*letter)).collect()
        })
        .collect()
}
