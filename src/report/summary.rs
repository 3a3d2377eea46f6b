//! An instance's records reduced to its part of the report.

use std::collections::BTreeSet;

use super::excerpt::Excerpt;
use super::matrix::{expected, matrix};
use super::model::{Facts, InstanceReport};
use super::runs::{in_order, line, slowest};
use crate::verify::RunRecord;

/// Reduces an instance to what is shown of it. The records can be dropped afterwards. `excerpts` say by number to which run
/// they belong.
pub fn summarise(facts: Facts, records: &[RunRecord], excerpts: Vec<Excerpt>) -> InstanceReport {
    let (columns, rows) = matrix(&facts.lists, &facts.verdict, records);
    let listed = expected(&facts.lists, &facts.verdict);
    let ids: BTreeSet<&str> = listed.keys().copied().collect();
    let runs =
        in_order(records).into_iter().map(|record| line(record, &ids, &facts.verdict)).collect();
    InstanceReport { runs, columns, rows, slowest: slowest(records), excerpts, facts }
}
