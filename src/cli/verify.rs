//! `hallmark verify`: gold runs and verdicts, without a manifest.

use super::args::Selection;
use super::session::{Session, report_failures};
use super::settings::Settings;
use super::{exit, table};
use crate::pipeline::{Goal, Locks};
use crate::verify::Status;

/// Run `pre` and `post` several times in fresh containers and judge each instance
///
/// Runs that are recorded already are not run again.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Runs of each phase
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
}

pub(crate) fn run(args: &Args, settings: &Settings) -> anyhow::Result<u8> {
    let session = Session::open(settings)?;
    let board = session.board(&args.selection)?;
    let done = session.pipeline(Locks::Demand).execute(&board, Goal::Runs(args.runs));
    let verdicts = board.verdicts()?;
    table::verdicts(settings.printer, &verdicts);
    report_failures(settings, done)?;
    let refused = verdicts.iter().any(|row| row.verdict.status == Status::Rejected);
    Ok(if refused { exit::CHECK_FAILED } else { exit::OK })
}
