//! `hallmark verify`: gold runs and verdicts, without a manifest.

use super::args::Selection;
use super::gold::Gold;
use super::session::{Session, report_failures};
use super::settings::Settings;
use super::{exit, table};
use crate::pipeline::Locks;
use crate::verify::Status;

/// Run `pre` and `post` several times in fresh containers and judge each instance
///
/// Runs that are recorded already are not run again.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    gold: Gold,
}

pub(crate) fn run(args: &Args, settings: &Settings) -> anyhow::Result<u8> {
    let session = Session::open(settings)?;
    let board = session.board(&args.selection)?;
    let plan = args.gold.plan(&args.selection.split)?;
    let done = plan.execute(&session.pipeline(Locks::Demand), &board);
    let verdicts = board.verdicts(plan.policy())?;
    table::verdicts(settings.printer, &verdicts);
    report_failures(settings, done)?;
    let refused = verdicts.iter().any(|row| row.verdict.status == Status::Rejected);
    Ok(if refused { exit::CHECK_FAILED } else { exit::OK })
}
