//! `hallmark run`: all stages on a split.

use std::path::PathBuf;

use super::args::Selection;
use super::gold::{Gold, print_counts};
use super::session::{Session, report_failures};
use super::settings::Settings;
use super::{exit, table};
use crate::base::files::write_output;
use crate::image::Compressor;
use crate::manifest;
use crate::pipeline::{self, Locks};
use crate::verify::Status;

/// Do everything for a split: locks, bundle, images, gold runs, verdicts, manifest
///
/// Ends with a table of verdicts and the evaluation manifest. Whatever is in the store already is not done again, so the same command
/// goes on where it was interrupted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) selection: Selection,
    #[command(flatten)]
    pub(crate) gold: Gold,
    /// Fail where a lock is missing or stale, or a digest is not the committed one
    #[arg(long)]
    pub(crate) locked: bool,
    /// Where the manifest is written [default: `<split>.manifest.json` in the working folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, settings: &Settings) -> anyhow::Result<u8> {
    let session = Session::open(settings)?;
    let board = session.board(&args.selection)?;
    let path = args
        .manifest
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{}.manifest.json", board.split_name())));
    let output = settings.output_file(&path)?;
    let pipeline = session.pipeline(if args.locked { Locks::Demand } else { Locks::Write });
    let plan = args.gold.plan(&session.project, &args.selection.split)?;
    let done = plan.execute(&pipeline, &board);
    // What was interrupted is no verdict.
    settings.cancel.check().map_err(pipeline::Error::from)?;
    let verdicts = board.verdicts(plan.policy())?;
    table::verdicts(settings.printer, &verdicts);
    print_counts(settings.printer, &pipeline.run_counts(&board));
    let refused = verdicts.iter().any(|row| row.verdict.status == Status::Rejected);
    if verdicts.is_empty() {
        report_failures(settings, done)?;
        return Ok(exit::OK);
    }
    // Also when single instances failed: the others are judged, and the manifest names what it holds.
    let version = env!("CARGO_PKG_VERSION");
    let manifest =
        pipeline.manifest(&board, &verdicts, plan.policy(), Compressor::default(), version)?;
    let bytes = manifest::write(&manifest).map_err(pipeline::Error::from)?;
    write_output(&output, &bytes).map_err(pipeline::Error::from)?;
    settings.printer.record("manifest", &manifest.digests);
    settings.printer.note(&format!(
        "wrote {}: {} of {} instances, subject {}",
        path.display(),
        verdicts.len(),
        board.len(),
        manifest.digests.subject
    ));
    report_failures(settings, done)?;

    let digests = pipeline.digests(&board)?;
    let differences = pipeline.compare_digests(&board, &digests)?;
    for difference in &differences {
        settings.printer.note(&format!("digest: {difference}"));
    }
    Ok(if refused || (args.locked && !differences.is_empty()) {
        exit::CHECK_FAILED
    } else {
        exit::OK
    })
}
