//! Rows of a verified split for the harness of SWE-bench.

use std::collections::BTreeMap;

use super::board::{Board, Item};
use super::{Error, InstanceVerdict, Pipeline};
use crate::build;
use crate::export::{self, Row, RowInput};
use crate::image::NameTemplate;
use crate::results::TestResult;
use crate::verify::{Phase, RunOutcome, Status};

/// Rows, and what is not in them.
#[derive(Debug, Default)]
pub struct SwebenchRows {
    /// JSON lines.
    pub text: String,
    /// How many.
    pub rows: usize,
    /// Instances that are left out, with the reason.
    pub left_out: BTreeMap<String, String>,
    /// What to know of rows that are in.
    pub notes: Vec<String>,
}

impl Pipeline<'_> {
    /// The rows of the admitted instances, or of `all` that were judged, in the split's order.
    pub fn swebench_rows(
        &self,
        board: &Board,
        verdicts: &[InstanceVerdict],
        names: &NameTemplate,
        all: bool,
    ) -> Result<SwebenchRows, Error> {
        let mut made = SwebenchRows::default();
        for item in &board.items {
            self.bench.cancel.check()?;
            let id = item.instance.id.to_string();
            let Some(judged) = verdicts.iter().find(|verdict| verdict.instance == id) else {
                made.left_out.insert(id, "it was not judged".to_owned());
                continue;
            };
            let status = judged.verdict.status;
            if !all && !matches!(status, Status::Admitted | Status::AdmittedWithQuarantine) {
                made.left_out.insert(id, judged.verdict.summary());
                continue;
            }
            match self.swebench_row(board, item, judged, names)? {
                Ok(row) => {
                    made.text.push_str(&row.line());
                    made.rows += 1;
                    made.notes.extend(row.left_out.iter().map(|(reason, tests)| {
                        format!("{id}: left out, {reason}: {}", tests.join(", "))
                    }));
                }
                Err(error) => {
                    made.left_out.insert(id, format!("{error}; {}", error.hint()));
                }
            }
        }
        Ok(made)
    }

    fn swebench_row(
        &self,
        board: &Board,
        item: &Item,
        judged: &InstanceVerdict,
        names: &NameTemplate,
    ) -> Result<Result<Row, export::Error>, Error> {
        let image = item.image();
        let patches = item.patches.get().expect("derived before runs");
        let (gold_patch, test_patch) = (
            self.bench.store.read_blob(&patches.gold)?,
            self.bench.store.read_blob(&patches.test)?,
        );
        Ok(export::row(&RowInput {
            instance: &item.instance,
            spec: &board.envs[item.env].spec,
            image,
            name: &names.name(item.instance.id.as_str(), image.arch)?,
            base_commit: &build::head_commit(self.bench, image)?,
            gold_patch: &gold_patch,
            test_patch: &test_patch,
            lists: &judged.lists,
            verdict: &judged.verdict,
            tests: &outcomes(item),
        }))
    }
}

/// The outcomes of the first run after the gold patch that completed.
fn outcomes(item: &Item) -> BTreeMap<String, TestResult> {
    item.records(Phase::Post)
        .into_iter()
        .find(|record| record.outcome == RunOutcome::Completed)
        .map(|record| record.tests)
        .unwrap_or_default()
}
