//! `hallmark export`: images and manifest for others.

use std::path::PathBuf;

use super::args::Selection;
use super::gold::Gold;
use super::session::{Session, report_failures};
use super::settings::Settings;
use super::{archive, exit, swebench};
use crate::base::counted;
use crate::base::files::write_output;
use crate::pipeline::{self, Locks};
use crate::{image, manifest};

/// Write the images of a split: as an OCI layout with the evaluation manifest beside it, or as one file
///
/// Into a folder go all images (bases, environments, instances) as an OCI layout, and the evaluation manifest: the gold runs of the policy
/// are made for it, but for those that the store has. Into a file `*.tar` go the instance images alone, and nothing is run.
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
    if args.archive.is_archive(&args.output)? {
        if let Some(option) = args.gold.given() {
            return Err(pipeline::Error::NoEffect {
                option,
                why: "an archive holds images alone, and no gold runs are made for it",
                instead: "leave it out, or export to a folder, which has the manifest, too",
            }
            .into());
        }
        return args.archive.write(&args.selection, &args.output, settings);
    }
    let compressor = args.archive.of_layout()?;
    let output = settings.output_folder(&args.output)?;
    let layout = output.join("oci");
    image::layout::check_folder(&layout).map_err(pipeline::Error::from)?;
    let session = Session::open(settings)?;
    let board = session.board(&args.selection)?;
    let pipeline = session.pipeline(Locks::Demand);
    let plan = args.gold.plan(&session.project, &args.selection.split)?;
    report_failures(settings, plan.execute(&pipeline, &board))?;
    let images = pipeline.export_layout(&board, &layout, compressor)?;
    let verdicts = board.verdicts(plan.policy())?;
    let version = env!("CARGO_PKG_VERSION");
    let manifest = pipeline.manifest(&board, &verdicts, plan.policy(), compressor, version)?;
    let bytes = manifest::write(&manifest).map_err(pipeline::Error::from)?;
    write_output(&output.join("manifest.json"), &bytes).map_err(pipeline::Error::from)?;
    archive::print(settings, &images);
    settings.printer.record("export", &serde_json::json!({ "images": images }));
    settings.printer.note(&format!(
        "{} and manifest.json in {}",
        counted(images.len(), "image"),
        args.output.display()
    ));
    Ok(exit::OK)
}
