//! `hallmark export`: images and manifest for others.

use std::path::PathBuf;

use super::args::Selection;
use super::gold::Gold;
use super::session::{Session, report_failures};
use super::settings::Settings;
use super::{archive, exit, swebench};
use crate::base::files::write_atomic;
use crate::manifest;
use crate::pipeline::{self, Locks};

/// Write the images of a split: as an OCI layout with the evaluation manifest beside it, or as one file
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    format: Option<Format>,
    #[command(flatten)]
    images: Option<Images>,
}

/// Other people's formats.
#[derive(Debug, clap::Subcommand)]
enum Format {
    Swebench(swebench::Args),
}

#[derive(Debug, clap::Args)]
// By itself the group would hold no argument, since others are flattened into it, and would never be there.
#[group(id = "images", args = ["output"])]
struct Images {
    #[command(flatten)]
    selection: Selection,
    /// Folder to write (`oci/`, the layout, and `manifest.json`), or a file `*.tar`
    output: PathBuf,
    #[command(flatten)]
    archive: archive::Options,
    #[command(flatten)]
    gold: Gold,
}

pub(crate) fn run(args: &Args, settings: &Settings) -> anyhow::Result<u8> {
    match (&args.format, &args.images) {
        (Some(Format::Swebench(args)), _) => swebench::run(args, settings),
        (None, Some(images)) => write_images(images, settings),
        (None, None) => unreachable!("clap asks for the one or the other"),
    }
}

fn write_images(args: &Images, settings: &Settings) -> anyhow::Result<u8> {
    if args.archive.is_archive(&args.output) {
        return args.archive.write(&args.selection, &args.output, settings);
    }
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
