//! `hallmark export SPLIT FILE.tar`: instance images as one file.

use std::path::Path;

use super::args::Selection;
use super::session::{Session, report_failures};
use super::settings::Settings;
use super::{exit, size};
use crate::image::{Compressor, NameTemplate};
use crate::pipeline::{self, Goal, Locks};

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Layout,
    Archive,
}

/// How layers are compressed.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Compress {
    Gzip,
    Zstd,
}

impl Compress {
    pub(crate) fn compressor(self) -> Compressor {
        match self {
            Self::Gzip => Compressor::Gzip { level: 6 },
            Self::Zstd => Compressor::default(),
        }
    }
}

/// Options of an archive.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Write a folder with an OCI layout of all images, or one file with the instance images, which `docker load` and OCI
    /// tools read [default: archive where OUTPUT ends in .tar, else layout]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// What images are called in an archive: `{id}`, `{id_1776}` (`_1776_` for `__`) and `{arch}` are replaced
    #[arg(long, value_name = "TEMPLATE", default_value = NameTemplate::LOCAL)]
    name: String,
    /// How layers of an archive are compressed; zstd is smaller and faster, but needs Docker 23, Podman 4 or containerd 1.5 to be
    /// read
    #[arg(long, value_enum, default_value_t = Compress::Gzip)]
    compress: Compress,
}

impl Options {
    /// Whether an archive is to be written.
    pub(crate) fn is_archive(&self, output: &Path) -> bool {
        match self.format {
            Some(format) => format == Format::Archive,
            None => output.extension().is_some_and(|extension| extension == "tar"),
        }
    }

    /// Builds what is not built, and writes the archive.
    pub(crate) fn write(
        &self,
        selection: &Selection,
        output: &Path,
        settings: &Settings,
    ) -> anyhow::Result<u8> {
        let template = NameTemplate::parse(&self.name).map_err(pipeline::Error::from)?;
        let compressor = self.compress.compressor();
        let session = Session::open(settings)?;
        let board = session.board(selection)?;
        let pipeline = session.pipeline(Locks::Demand);
        report_failures(settings, pipeline.execute(&board, Goal::Build))?;
        let file = settings.working_dir().join(output);
        let (images, bytes) = pipeline.export_archive(&board, &file, &template, compressor)?;
        settings.printer.record("export", &serde_json::json!({ "images": images, "bytes": bytes }));
        settings.printer.line(&format!(
            "{images} images in {} ({})",
            output.display(),
            size::format(bytes)
        ));
        Ok(exit::OK)
    }
}
