//! `hallmark push`: images to a registry.

use super::args::Selection;
use super::session::{Session, report_failures};
use super::settings::Settings;
use super::{exit, size};
use crate::image::registry::{Outcome, Placed, PushOptions};
use crate::image::{Compressor, NameTemplate};
use crate::net::registry::Reference;
use crate::pipeline::{self, Goal, Locks};

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
    /// Let each name stand for an index of platforms, and keep those of other processors that are there
    #[arg(long)]
    index: bool,
    /// Speak plain HTTP to this registry, without any encryption (a registry on this machine is always spoken to so)
    #[arg(long)]
    plain_http: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Compress {
    Gzip,
    Zstd,
}

impl Compress {
    fn compressor(self) -> Compressor {
        match self {
            Self::Gzip => Compressor::Gzip { level: 6 },
            Self::Zstd => Compressor::default(),
        }
    }
}

pub(crate) fn run(args: &Args, settings: &Settings) -> anyhow::Result<u8> {
    let template = NameTemplate::parse(&args.name).map_err(pipeline::Error::from)?;
    let example = template.name("a", crate::base::Arch::HOST).map_err(pipeline::Error::from)?;
    let registry = Reference::parse(&example).map_err(pipeline::Error::from)?.registry;
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
    let report = pipeline.push(&board, &template, options)?;
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
