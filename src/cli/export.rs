//! `hallmark export`: images and manifest for others.

use std::path::PathBuf;

use super::args::Selection;
use super::exit;
use super::session::{Session, report_failures};
use super::settings::Settings;
use crate::base::files::write_atomic;
use crate::manifest;
use crate::pipeline::{self, Goal, Locks};

/// Write the images of a split as an OCI layout, and its evaluation manifest beside it
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Folder to write: `oci/` (the layout) and `manifest.json`
    output: PathBuf,
    /// Runs of each phase that the manifest holds
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
}

pub(crate) fn run(args: &Args, settings: &Settings) -> anyhow::Result<u8> {
    let session = Session::open(settings)?;
    let board = session.board(&args.selection)?;
    let pipeline = session.pipeline(Locks::Demand);
    report_failures(settings, pipeline.execute(&board, Goal::Runs(args.runs)))?;
    let output = settings.working_dir().join(&args.output);
    let images = pipeline.export_layout(&board, &output.join("oci"))?;
    let manifest = pipeline.manifest(&board, &board.verdicts()?, env!("CARGO_PKG_VERSION"))?;
    let bytes = manifest::write(&manifest).map_err(pipeline::Error::from)?;
    write_atomic(&output.join("manifest.json"), &bytes).map_err(pipeline::Error::from)?;
    settings.printer.record("export", &serde_json::json!({ "images": images }));
    settings
        .printer
        .line(&format!("{images} images and manifest.json in {}", args.output.display()));
    Ok(exit::OK)
}
