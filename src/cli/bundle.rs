//! `hallmark bundle`: locked files, fetched, packed, unpacked.

use std::path::PathBuf;

use super::args::Selection;
use super::session::{Session, report_failures};
use super::settings::Settings;
use super::{exit, size};
use crate::bundle;
use crate::pipeline::{self, Goal, Locks};

/// Fetch every locked file, or move the files to a machine without a network
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Bundle {
    /// Fetch every file that the split's locks and rows name
    ///
    /// Layers of images in registries come from the mirrors in HALLMARK_REGISTRY_MIRRORS (`registry=mirror/prefix`, parted by
    /// commas) first; registries named in HALLMARK_REGISTRY_PLAIN_HTTP (`host:port`) are spoken to by plain HTTP.
    Fetch {
        #[command(flatten)]
        selection: Selection,
    },
    /// Fetch what is missing and write everything to one file
    Pack {
        #[command(flatten)]
        selection: Selection,
        /// File to write
        output: PathBuf,
    },
    /// Take the files of a packed bundle into the store
    Unpack {
        /// File that `bundle pack` wrote
        input: PathBuf,
    },
    /// Write pylock.toml beside its wheels and sdists, for any PEP 751 installer
    Export {
        #[command(flatten)]
        selection: Selection,
        /// Folder to write to: one folder a spec
        output: PathBuf,
    },
}

pub(crate) fn run(command: &Bundle, settings: &Settings) -> anyhow::Result<u8> {
    match command {
        Bundle::Fetch { selection } => {
            fetched(settings, selection)?;
        }
        Bundle::Pack { selection, output } => {
            let path = settings.output_file(output)?;
            let (session, files) = fetched(settings, selection)?;
            let Settings { reporter, cancel, .. } = settings;
            bundle::pack(&session.store, &files, &path, reporter, cancel)
                .map_err(pipeline::Error::from)?;
            settings.printer.line(&format!("{} files in {}", files.len(), output.display()));
        }
        Bundle::Unpack { input } => {
            let path = settings.input_file(input)?;
            let store = settings.open_store()?;
            let _in_use = store.lock_shared(&settings.cancel).map_err(pipeline::Error::from)?;
            let Settings { reporter, cancel, .. } = settings;
            let report =
                bundle::unpack(&store, &path, reporter, cancel).map_err(pipeline::Error::from)?;
            settings.printer.record("bundle", &serde_json::json!({ "files": report.files.len() }));
            settings.printer.line(&format!(
                "{} files from {}",
                report.files.len(),
                input.display()
            ));
        }
        Bundle::Export { selection, output } => {
            let session = Session::open(settings)?;
            let board = session.board(selection)?;
            let pipeline = session.pipeline(Locks::Demand);
            report_failures(settings, pipeline.execute(&board, Goal::Fetch))?;
            pipeline.export_wheels(&board, output)?;
        }
    }
    Ok(exit::OK)
}

fn fetched<'a>(
    settings: &'a Settings,
    selection: &Selection,
) -> anyhow::Result<(Session<'a>, Vec<crate::lock::FileRef>)> {
    let session = Session::open(settings)?;
    let board = session.board(selection)?;
    let done = session.pipeline(Locks::Demand).execute(&board, Goal::Fetch);
    report_failures(settings, done)?;
    let files = board.files(&session.store)?;
    let bytes: u64 = files.iter().map(|file| file.size).sum();
    settings.printer.record("bundle", &serde_json::json!({ "files": files.len(), "bytes": bytes }));
    settings.printer.line(&format!("{} files, {} in the store", files.len(), size::format(bytes)));
    Ok((session, files))
}
