//! `hallmark load`: instance images into a Docker daemon.

use super::args::Selection;
use super::session::{Session, report_failures};
use super::settings::Settings;
use super::{exit, size};
use crate::base::counted;
use crate::image::NameTemplate;
use crate::pipeline::{self, Goal, Locks};

/// Send the instance images of a split to a Docker daemon, or to Podman's compatible service
///
/// What is not built is built first. Images are streamed, without the layers that the daemon has, in requests of up to 512 MiB; each
/// image's id is checked afterwards. Of a load that was cut, the images of whole requests are in: the same command sends the others.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// What images are called: `{id}`, `{id_1776}` (`_1776_` for `__`) and `{arch}` are replaced
    #[arg(long, value_name = "TEMPLATE", default_value = NameTemplate::LOCAL)]
    name: String,
}

pub(crate) fn run(args: &Args, settings: &Settings) -> anyhow::Result<u8> {
    let template = NameTemplate::parse(&args.name).map_err(pipeline::Error::from)?;
    let session = Session::open(settings)?;
    let board = session.board(&args.selection)?;
    // Before the work: a daemon that is not there should be said soon.
    let engine = settings.engine()?;
    let pipeline = session.pipeline(Locks::Demand);
    report_failures(settings, pipeline.execute(&board, Goal::Build))?;
    let mut report = pipeline.load(&board, &engine, &template)?;
    for image in &report.images {
        let state = if image.was_there { "was there" } else { "loaded" };
        settings.printer.line(&format!("{} {} {state}", image.name, image.id));
    }
    settings.printer.record("load", &report);
    settings.printer.note(&format!(
        "in {} at {}: {} of {}; {} sent ({}), {} there before ({})",
        engine.daemon(),
        engine.endpoint(),
        report.images.len(),
        counted(board.len(), "image"),
        counted(report.layers_sent, "layer"),
        size::format(report.bytes_sent),
        report.layers_there,
        size::format(report.bytes_there),
    ));
    match report.failure.take() {
        Some(failure) => Err(pipeline::Error::from(failure).into()),
        None => Ok(exit::OK),
    }
}
