//! What a text says.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Outcome;

/// How many of each outcome by the runner's own count: `passed`, `failed`, `error`, `skipped`, `xfailed`,
/// `xpassed`; pytest's `deselected`, `warning`, `rerun` and `subtests passed`; unittest has no `passed`, but `run`.
pub type Totals = BTreeMap<String, u64>;

/// What the text says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextReport {
    /// The last line of totals.
    pub totals: Option<Totals>,
    /// How many lines of totals there are: more than one says that tests print some, too.
    pub totals_lines: u64,
    /// Outcome per id; the worst where an id is named more than once.
    pub tests: BTreeMap<String, Outcome>,
    /// How many of each outcome the lines amount to, by the words of the totals.
    pub counted: Totals,
    /// Modules and fixtures of classes that failed or could not be collected.
    pub collection_errors: BTreeSet<String>,
    /// Ids whose result was not found: the output broke off, or other output was in between.
    pub unfinished: BTreeSet<String>,
    /// First line of the docstring, where the runner prints it.
    pub descriptions: BTreeMap<String, String>,
    /// Whether parts of tests were reported (subtests), which runners count in different ways.
    pub subtests: bool,
}

impl TextReport {
    /// Adds an outcome; of several the worst stays.
    pub(super) fn add(&mut self, id: &str, outcome: Outcome) {
        match self.tests.get_mut(id) {
            Some(held) => *held = outcome.max(*held),
            None => {
                self.tests.insert(id.to_owned(), outcome);
            }
        }
    }

    pub(super) fn count(&mut self, word: &str, by: u64) {
        let held = self.counted.entry(word.to_owned()).or_default();
        *held = held.saturating_add(by);
    }

    pub(super) fn set_totals(&mut self, totals: Totals) {
        self.totals = Some(totals);
        self.totals_lines += 1;
    }
}
