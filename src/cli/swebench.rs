//! `hallmark export swebench`: rows for the harness of SWE-bench.

use std::path::PathBuf;

use super::args::Selection;
use super::gold::Gold;
use super::session::{Session, report_failures};
use super::settings::Settings;
use super::{exit, size};
use crate::base::files::write_atomic;
use crate::image::NameTemplate;
use crate::pipeline::{self, Locks};

/// Write the admitted instances of a split as rows that the harness of SWE-bench grades
///
/// The rows hold the name of the image, the script that runs the tests, the name of the parser of what they print, and the lists as
/// that parser names them; tests that are set aside are in no list. The images are put where the harness finds them by
/// `hallmark load` or `hallmark push` with the same --name.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// File to write: JSON lines
    output: PathBuf,
    /// Pattern of image names: {id}, {id_1776} (with `_1776_` for `__`), {arch}
    #[arg(long, value_name = "TEMPLATE", default_value = NameTemplate::LOCAL)]
    name: String,
    /// Write rows of instances that are not admitted, too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    gold: Gold,
}

pub(crate) fn run(args: &Args, settings: &Settings) -> anyhow::Result<u8> {
    let template = NameTemplate::parse(&args.name).map_err(pipeline::Error::from)?;
    let output = settings.output_file(&args.output)?;
    let session = Session::open(settings)?;
    let board = session.board(&args.selection)?;
    let pipeline = session.pipeline(Locks::Demand);
    let plan = args.gold.plan(&session.project, &args.selection.split)?;
    report_failures(settings, plan.execute(&pipeline, &board))?;
    let verdicts = board.verdicts(plan.policy())?;
    let made = pipeline.swebench_rows(&board, &verdicts, &template, args.all)?;
    for (id, why) in &made.left_out {
        settings.printer.note(&format!("{id}: no row: {why}"));
    }
    for note in &made.notes {
        settings.printer.note(note);
    }
    settings.printer.record(
        "export-swebench",
        &serde_json::json!({ "rows": made.rows, "left-out": made.left_out, "notes": made.notes }),
    );
    if made.rows == 0 {
        settings.printer.note("nothing is written; --all writes rows whatever the verdict");
        return Ok(exit::CHECK_FAILED);
    }
    write_atomic(&output, made.text.as_bytes()).map_err(pipeline::Error::from)?;
    settings.printer.line(&format!(
        "{} in {}",
        size::counted(made.rows, "row"),
        args.output.display()
    ));
    Ok(exit::OK)
}
