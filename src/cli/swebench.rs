//! `hallmark export swebench`: rows for the harness of SWE-bench.

use std::path::{Path, PathBuf};

use super::args::Selection;
use super::exit;
use super::gold::Gold;
use super::session::{Session, report_failures};
use super::settings::Settings;
use crate::base::counted;
use crate::base::files::write_output;
use crate::image::NameTemplate;
use crate::pipeline::{self, Locks};

/// Standard output by its other name.
const STDOUT: &str = "/dev/stdout";

/// Write the admitted instances of a split as rows that the harness of SWE-bench grades
///
/// The rows hold the name of the image, the script that runs the tests, the name of the parser of what they print, and the lists as
/// that parser names them; tests that are set aside are in no list. The images are put where the harness finds them by
/// `hallmark load` or `hallmark push` with the same --name.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// File to write: JSON lines; `-` is standard output
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
    let to_stdout = [STDOUT, "-"].iter().any(|name| args.output == Path::new(name));
    if to_stdout && settings.printer.json {
        return Err(pipeline::Error::NoEffect {
            option: "--json",
            why: "standard output is for the rows",
            instead: "write the rows to a file",
        }
        .into());
    }
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
        settings.printer.note(
            "nothing is written: give --all for rows whatever the verdict, or --policy with one that admits (benchmark, training, \
             release) for the runs that an admission takes",
        );
        return Ok(exit::CHECK_FAILED);
    }
    if to_stdout {
        settings.printer.lines(&made.text);
    } else {
        write_output(&output, made.text.as_bytes()).map_err(pipeline::Error::from)?;
    }
    settings.printer.note(&format!(
        "{} in {}",
        counted(made.rows, "row"),
        if to_stdout { "standard output".to_owned() } else { args.output.display().to_string() }
    ));
    Ok(exit::OK)
}
