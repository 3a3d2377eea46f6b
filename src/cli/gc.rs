//! `hallmark gc`: free disk space.

use std::collections::BTreeSet;
use std::time::Duration;

use super::settings::Settings;
use super::{exit, size};
use crate::base::counted;
use crate::bundle::{self, Keep};
use crate::pipeline::{self, Board};
use crate::runtime;
use crate::runtime::docker::remove_run_images;

/// Remove from the store what was not used for long
///
/// Locked files of the project's splits are always kept, with what was built from them lately. Waits until no other hallmark uses the
/// store. With `--runtime docker`, the images that runs left in the daemon go, too, whatever their age; the next run there loads what it
/// needs again.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Keep what was used within this many days
    #[arg(long, default_value_t = 30, value_name = "DAYS")]
    max_age: u64,
    /// Remove the longest unused until the store is no larger, e.g. `20G`
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    max_size: Option<u64>,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &Args, settings: &Settings) -> anyhow::Result<u8> {
    let store = settings.open_store()?;
    // Before the work: a daemon that is not there should be said soon.
    let daemon = settings.wants_daemon().then(|| settings.engine()).transpose()?;
    let mut roots = BTreeSet::new();
    // Outside a project there is just nothing to be kept for its sake.
    if let Ok(project) = settings.project() {
        for name in project.known_splits() {
            let board = Board::read(&project, project.split(&name)?, &[])?;
            roots.extend(board.held_files(&store)?.into_iter().map(|file| file.sha256));
        }
    }
    let keep = Keep {
        roots,
        max_age: Some(Duration::from_hours(24 * args.max_age)),
        max_bytes: args.max_size,
    };
    let report = bundle::gc(&store, &keep, args.dry_run, &settings.reporter, &settings.cancel)
        .map_err(pipeline::Error::from)?;
    for removed in &report.removed {
        settings.printer.record("removed", &removed.path);
        settings.printer.line(&format!(
            "{:>10}  {}",
            size::format(removed.bytes),
            removed.path.display()
        ));
    }
    settings
        .printer
        .record("gc", &serde_json::json!({ "freed": report.freed, "kept": report.kept }));
    let verb = if args.dry_run { "would free" } else { "freed" };
    settings.printer.line(&format!(
        "{verb} {}, {} are kept",
        size::format(report.freed),
        size::format(report.kept)
    ));
    if let Some(daemon) = daemon {
        let images = remove_run_images(&daemon, args.dry_run, &settings.cancel)
            .map_err(|error| pipeline::Error::from(runtime::Error::from(error)))?;
        for name in &images {
            settings.printer.record("removed-image", name);
            settings.printer.line(&format!("     image  {name}"));
        }
        let verb = if args.dry_run { "would remove" } else { "removed" };
        let images = counted(images.len(), "image");
        settings.printer.line(&format!("{verb} {images} from {}", daemon.daemon()));
    }
    Ok(exit::OK)
}
