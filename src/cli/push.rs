//! `hallmark push`: images to a registry.

use std::path::{Path, PathBuf};

use super::archive::Compress;
use super::args::Selection;
use super::session::{Session, report_failures};
use super::settings::Settings;
use super::{exit, size};
use crate::base::counted;
use crate::image::NameTemplate;
use crate::image::registry::{Attachment, Outcome, Placed, PushOptions, PushReport};
use crate::manifest::{self, Manifest};
use crate::pipeline::{self, Goal, Locks};

/// The type of an evaluation manifest that is attached to an image.
const EVALUATION: &str = "application/vnd.hallmark.evaluation.v1+json";

/// Push the instance images of a split to a registry
///
/// What several images share is sent once and mounted elsewhere, what is there is left alone, and a name is written when all that
/// it stands for is there: the same command goes on where it stopped. Credentials are those of `docker login` and `podman login`.
///
/// Registries named in HALLMARK_REGISTRY_PLAIN_HTTP (`host:port`, parted by commas) are spoken to by plain HTTP. Mirrors of
/// HALLMARK_REGISTRY_MIRRORS are for pulls alone.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Name of each image, with its registry: `registry.example/team/{id_1776}:v1`, `docker.io/team/{id}`
    ///
    /// `{id}` is the instance, `{id_1776}` the same with `_1776_` for `__`, `{arch}` the processor (`x86_64`, `arm64`).
    name: String,
    /// How layers are compressed; Docker Engine reads zstd from version 23 on
    #[arg(long, value_enum, default_value_t = Compress::Gzip)]
    compress: Compress,
    /// Attach this evaluation manifest to every image; it must speak of all of them
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Let each name stand for an index of platforms, and keep those of other processors that are there
    #[arg(long)]
    index: bool,
    /// Speak plain HTTP to this registry, without any encryption (a registry on this machine is always spoken to so)
    #[arg(long)]
    plain_http: bool,
}

/// The evaluation manifest, and itself as a file to attach.
fn read_manifest(path: &Path, settings: &Settings) -> anyhow::Result<(Manifest, Attachment)> {
    let bytes = fs_err::read(settings.input_file(path)?).map_err(pipeline::Error::from)?;
    let manifest =
        manifest::parse(&path.display().to_string(), &bytes).map_err(pipeline::Error::from)?;
    let (media_type, name) = (EVALUATION.to_owned(), "manifest.json".to_owned());
    Ok((manifest, Attachment { media_type, name, bytes }))
}

pub(crate) fn run(args: &Args, settings: &Settings) -> anyhow::Result<u8> {
    let template = NameTemplate::parse(&args.name).map_err(pipeline::Error::from)?;
    let registry = pipeline::registry_of(&template)?;
    let evaluation =
        args.manifest.as_deref().map(|path| read_manifest(path, settings)).transpose()?;
    let mut session = Session::open(settings)?;
    if args.plain_http {
        session.client = settings.client_with(|config| {
            config.registries.plain_http.insert(registry);
        })?;
    }
    let board = session.board(&args.selection)?;
    let demand_known = || match (&args.manifest, &evaluation) {
        (Some(path), Some((manifest, _))) => {
            board.demand_known(&path.display().to_string(), manifest)
        }
        _ => Ok(()),
    };
    demand_known()?;
    let pipeline = session.pipeline(Locks::Demand);
    // Before the work: a registry that is not there should be said soon.
    pipeline.knock(&board, &template)?;
    report_failures(settings, pipeline.execute(&board, Goal::Build))?;
    demand_known()?;
    let options = PushOptions {
        compressor: args.compress.compressor(),
        index: args.index,
        jobs: settings.jobs,
    };
    let attachment = evaluation.as_ref().map(|(_, attachment)| attachment);
    let report = pipeline.push(&board, &template, attachment, options)?;
    for image in &report.images {
        let state = match image.outcome {
            Outcome::Pushed => "pushed",
            Outcome::Present => "present",
        };
        settings.printer.line(&format!("{} {} {state}", image.name, image.digest));
    }
    settings.printer.record("push", &report);
    settings.printer.note(&totals(&report));
    if attachment.is_some() {
        let attached = report.images.iter().filter(|image| image.attached).count();
        let before = report.images.len() - attached;
        settings.printer.note(&format!(
            "the manifest was attached to {}; {before} had it",
            counted(attached, "image")
        ));
    }
    Ok(exit::OK)
}

/// One line of what went over and what did not have to.
fn totals(report: &PushReport) -> String {
    let pushed = report.images.iter().filter(|image| image.outcome == Outcome::Pushed).count();
    let say =
        |placed: Placed, what| format!("{} {what} ({})", placed.blobs, size::format(placed.bytes));
    format!(
        "{}: {pushed} pushed, {} present; blobs: {}, {}, {}",
        counted(report.images.len(), "image"),
        report.images.len() - pushed,
        say(report.sent, "sent"),
        say(report.mounted, "mounted"),
        say(report.present, "present"),
    )
}
