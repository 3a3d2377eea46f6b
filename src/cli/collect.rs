//! `hallmark collect`: FAIL_TO_PASS and PASS_TO_PASS of release pairs, from runs.

use super::args::Selection;
use super::exit;
use super::session::{Session, report_failures};
use super::settings::Settings;
use crate::pipeline::{Goal, Locks};

/// Compute FAIL_TO_PASS and PASS_TO_PASS of a split's release pairs and write them into its rows
///
/// The patches are the difference of the two sdists; `pre` and `post` run several times; tests that do not agree in every run are
/// left out by name. A pair without FAIL_TO_PASS is refused with the reason.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Runs of each phase
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Print the rows instead of writing them back to the split's file
    #[arg(long)]
    stdout: bool,
}

pub(crate) fn run(args: &Args, settings: &Settings) -> anyhow::Result<u8> {
    let session = Session::open(settings)?;
    let board = session.board(&args.selection)?;
    let pipeline = session.pipeline(Locks::Write);
    report_failures(settings, pipeline.execute(&board, Goal::Runs(args.runs)))?;
    let collected = board.collect()?;
    for note in &collected.notes {
        settings.printer.note(note);
    }
    if args.stdout {
        settings.printer.line(collected.rows.trim_end());
    } else {
        let path = session.project.split_path(&args.selection.split);
        crate::base::files::write_atomic(&path, collected.rows.as_bytes())
            .map_err(crate::pipeline::Error::from)?;
        settings.printer.note(&format!("wrote {}", path.display()));
    }
    Ok(if collected.refused == 0 { exit::OK } else { exit::CHECK_FAILED })
}
