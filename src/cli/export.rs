//! `hallmark export`: images and manifest for others.

use std::path::PathBuf;

use super::args::Selection;
use super::exit;
use super::gold::Gold;
use super::session::{Session, report_failures};
use super::settings::Settings;
use crate::base::files::write_atomic;
use crate::manifest;
use crate::pipeline::{self, Locks};

/// Write the images of a split as an OCI layout, and its evaluation manifest beside it
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Folder to write: `oci/` (the layout) and `manifest.json`
    output: PathBuf,
    #[command(flatten)]
    gold: Gold,
}

pub(crate) fn run(args: &Args, settings: &Settings) -> anyhow::Result<u8> {
    let session = Session::open(settings)?;
    let board = session.board(&args.selection)?;
    let pipeline = session.pipeline(Locks::Demand);
    let plan = args.gold.plan(&session.project, &args.selection.split)?;
    report_failures(settings, plan.execute(&pipeline, &board))?;
    let output = settings.working_dir().join(&args.output);
    let images = pipeline.export_layout(&board, &output.join("oci"))?;
    let verdicts = board.verdicts(plan.policy())?;
    let version = env!("CARGO_PKG_VERSION");
    let manifest = pipeline.manifest(&board, &verdicts, plan.policy(), version)?;
    let bytes = manifest::write(&manifest).map_err(pipeline::Error::from)?;
    write_atomic(&output.join("manifest.json"), &bytes).map_err(pipeline::Error::from)?;
    settings.printer.record("export", &serde_json::json!({ "images": images }));
    settings
        .printer
        .line(&format!("{images} images and manifest.json in {}", args.output.display()));
    Ok(exit::OK)
}
