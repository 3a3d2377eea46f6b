//! What `hallmark export` writes images as, and one of the two: instance images as one file.

use std::path::Path;

use super::args::Selection;
use super::session::{Session, report_failures};
use super::settings::Settings;
use super::{exit, size};
use crate::base::counted;
use crate::image::{Compressor, NameTemplate};
use crate::pipeline::{Error, ExportedImage, Goal, Locks};

/// How a name ends that promises a tar file inside of something else.
const COMPRESSED: [&str; 5] = [".tgz", ".tar.gz", ".tar.zst", ".tar.xz", ".tar.bz2"];

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

/// What to write, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Write a folder with an OCI layout of all images, or one file with the instance images, which `docker load` and OCI
    /// tools read [default: archive where OUTPUT ends in .tar, else layout]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// What images are called in an archive: `{id}`, `{id_1776}` (`_1776_` for `__`) and `{arch}` are replaced
    /// [default: sweb.eval.{arch}.{id}:latest]
    #[arg(long, value_name = "TEMPLATE")]
    name: Option<String>,
    /// How layers are compressed: gzip is read by everything; zstd is smaller and faster, but needs Docker 23, Podman 4 or
    /// containerd 1.5, and umoci does not read it [default: gzip in an archive, zstd in a layout]
    #[arg(long, value_enum)]
    compress: Option<Compress>,
}

impl Options {
    /// Whether an archive is to be written.
    pub(crate) fn is_archive(&self, output: &Path) -> Result<bool, Error> {
        if self.format == Some(Format::Layout) {
            return Ok(false);
        }
        let name = output.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if COMPRESSED.iter().any(|end| name.ends_with(end)) {
            return Err(Error::CompressedName { path: output.to_owned() });
        }
        let is_tar = output.extension().is_some_and(|extension| extension == "tar");
        Ok(self.format == Some(Format::Archive) || is_tar)
    }

    /// The compressor of a layout.
    pub(crate) fn of_layout(&self) -> Result<Compressor, Error> {
        if self.name.is_some() {
            return Err(Error::NoEffect {
                option: "--name",
                why: "the names in a layout are fixed: instance/ID, env/SPEC, base/BASE",
                instead: "leave it out; images get names of your choice in an archive (OUTPUT is a file *.tar), by \
                          `hallmark load` and by `hallmark push`",
            });
        }
        Ok(self.compress.map_or_else(Compressor::default, Compress::compressor))
    }

    /// Builds what is not built, and writes the archive.
    pub(crate) fn write(
        &self,
        selection: &Selection,
        output: &Path,
        settings: &Settings,
    ) -> anyhow::Result<u8> {
        let template = self.name.as_deref().unwrap_or(NameTemplate::LOCAL);
        let template = NameTemplate::parse(template).map_err(Error::from)?;
        let compressor = self.compress.unwrap_or(Compress::Gzip).compressor();
        let file = settings.output_file(output)?;
        let session = Session::open(settings)?;
        let board = session.board(selection)?;
        let pipeline = session.pipeline(Locks::Demand);
        report_failures(settings, pipeline.execute(&board, Goal::Build))?;
        let (images, bytes) = pipeline.export_archive(&board, &file, &template, compressor)?;
        print(settings, &images);
        settings.printer.record("export", &serde_json::json!({ "images": images, "bytes": bytes }));
        settings.printer.note(&format!(
            "{} in {} ({})",
            counted(images.len(), "image"),
            output.display(),
            size::format(bytes)
        ));
        Ok(exit::OK)
    }
}

/// One line an image: name and id.
pub(crate) fn print(settings: &Settings, images: &[ExportedImage]) {
    for image in images {
        settings.printer.line(&format!("{} {}", image.name, image.id));
    }
}
