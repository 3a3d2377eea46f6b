//! `hallmark push`: images to a registry.

use std::path::{Path, PathBuf};

use super::archive::Compress;
use super::args::Selection;
use super::session::{Session, report_failures};
use super::settings::Settings;
use super::{exit, size};
use crate::image::NameTemplate;
use crate::image::registry::{Attachment, Outcome, Placed, PushOptions};
use crate::manifest;
use crate::net::registry::Reference;
use crate::pipeline::{self, Goal, Locks};

/// The type of an evaluation manifest that is attached to an image.
const EVALUATION: &str = "application/vnd.hallmark.evaluation.v1+json";

/// Push the instance images of a split to a registry
///
/// What several images share is sent once and mounted elsewhere, what is there is left alone, and a name is written when all that
/// it stands for is there: the same command goes on where it stopped. Credentials are those of `docker login` and `podman login`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Name of each image, with its registry: `registry.example/team/{id_1776}:v1`
    ///
    /// `{id}` is the instance, `{id_1776}` the same with `_1776_` for `__`, `{arch}` the processor (`x86_64`, `arm64`).
    name: String,
    /// How layers are compressed; Docker Engine reads zstd from version 23 on
    #[arg(long, value_enum, default_value_t = Compress::Gzip)]
    compress: Compress,
    /// Attach this evaluation manifest to every image
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Let each name stand for an index of platforms, and keep those of other processors that are there
    #[arg(long)]
    index: bool,
    /// Speak plain HTTP to this registry, without any encryption (a registry on this machine is always spoken to so)
    #[arg(long)]
    plain_http: bool,
}

/// The evaluation manifest as a file to attach.
fn read_manifest(path: &Path, settings: &Settings) -> anyhow::Result<Attachment> {
    let bytes = fs_err::read(settings.input_file(path)?).map_err(pipeline::Error::from)?;
    manifest::parse(&path.display().to_string(), &bytes).map_err(pipeline::Error::from)?;
    Ok(Attachment { media_type: EVALUATION.to_owned(), name: "manifest.json".to_owned(), bytes })
}

pub(crate) fn run(args: &Args, settings: &Settings) -> anyhow::Result<u8> {
    let template = NameTemplate::parse(&args.name).map_err(pipeline::Error::from)?;
    let example = template.name("a", crate::base::Arch::HOST).map_err(pipeline::Error::from)?;
    let registry = Reference::parse(&example).map_err(pipeline::Error::from)?.registry;
    let attachment =
        args.manifest.as_deref().map(|path| read_manifest(path, settings)).transpose()?;
    let mut session = Session::open(settings)?;
    if args.plain_http {
        session.client = settings.client_with(|config| {
            config.registries.plain_http.insert(registry);
        })?;
    }
    let board = session.board(&args.selection)?;
    let pipeline = session.pipeline(Locks::Demand);
    report_failures(settings, pipeline.execute(&board, Goal::Build))?;
    let options = PushOptions {
        compressor: args.compress.compressor(),
        index: args.index,
        jobs: settings.jobs,
    };
    let report = pipeline.push(&board, &template, attachment.as_ref(), options)?;
    for image in &report.images {
        settings.printer.line(&format!("{}@{}", image.name, image.digest));
    }
    settings.printer.record("push", &report);
    let pushed = report.images.iter().filter(|image| image.outcome == Outcome::Pushed).count();
    let say = |placed: Placed| format!("{} blobs ({})", placed.blobs, size::format(placed.bytes));
    settings.printer.note(&format!(
        "{pushed} images pushed, {} were there; {} sent, {} mounted, {} were there",
        report.images.len() - pushed,
        say(report.sent),
        say(report.mounted),
        say(report.present),
    ));
    Ok(exit::OK)
}
