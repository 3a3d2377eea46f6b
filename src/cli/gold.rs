//! Which gold runs a verb makes and what they are judged by: options that several verbs have.

use super::printer::Printer;
use crate::base::counted;
use crate::pipeline::{Board, Done, Goal, Pipeline, Project, RunCounts, Verification};
use crate::verify::Policy;

/// What gold runs are made.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Gold {
    /// Admission policy: `quick`, `training`, `benchmark`, `release` or a TOML file with `[admission]` [default: `<split>.policy.toml` beside the
    /// rows, else `benchmark`]
    #[arg(long, value_name = "NAME|FILE")]
    policy: Option<String>,
    /// Make just N plain runs of each phase and no others: a first look
    #[arg(long, value_name = "N", conflicts_with = "policy", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
}

/// Says how many runs were made, and how many the store had. What another runtime made says nothing of this one.
pub(crate) fn print_counts(printer: Printer, counts: &RunCounts) {
    printer.record("runs", counts);
    if printer.json {
        return;
    }
    let others = counts.by_others.iter().map(|(name, number)| format!("{number} by {name}"));
    let others: Vec<String> = others.collect();
    let others =
        if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
    let RunCounts { made, found, .. } = counts;
    printer.note(&format!("{} made, {found} taken from the store{others}", counted(*made, "run")));
}

/// The options, checked.
pub(crate) struct Plan {
    pub(crate) verification: Verification,
    /// Whether the user named the policy.
    named: bool,
    runs: Option<u32>,
}

impl Gold {
    /// One of these options that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        match (&self.policy, self.runs) {
            (Some(_), _) => Some("--policy"),
            (None, Some(_)) => Some("--runs"),
            (None, None) => None,
        }
    }

    /// Reads the policy.
    pub(crate) fn plan(&self, project: &Project, split: &str) -> anyhow::Result<Plan> {
        let policy = project.policy(self.policy.as_deref(), split)?;
        let verification = Verification { policy, series: String::new() };
        Ok(Plan { verification, named: self.policy.is_some(), runs: self.runs })
    }
}

impl Plan {
    /// Everything up to the runs.
    pub(crate) fn execute(&self, pipeline: &Pipeline<'_>, board: &Board) -> Done {
        let goal = match self.runs {
            Some(runs) => Goal::Runs(runs),
            None => Goal::Verdicts(&self.verification),
        };
        pipeline.execute(board, goal)
    }

    /// A new series of runs, by the policy of before unless another was named.
    pub(crate) fn again(&mut self, series: String, policy: &Policy) {
        self.verification.series = series;
        if !self.named {
            self.verification.policy = policy.clone();
        }
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.verification.policy
    }
}
