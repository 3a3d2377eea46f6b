//! `hallmark lock`: specs to locks.

use super::args::Selection;
use super::exit;
use super::session::{Session, report_failures};
use super::settings::Settings;
use crate::pipeline::{Goal, Locks};

/// Resolve the specs of a split into locks, with the network on
///
/// Locks that still answer their specs are left alone. Base images are built where a lock is resolved, since apt and
/// uv run in them.
///
/// Images of registries come from the mirrors in HALLMARK_REGISTRY_MIRRORS (`registry=mirror/prefix`, parted by commas) first;
/// registries named in HALLMARK_REGISTRY_PLAIN_HTTP (`host:port`) are spoken to by plain HTTP.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Resolve again even where the lock still answers the spec
    #[arg(long, conflicts_with = "locked")]
    refresh: bool,
    /// Write nothing: fail where a lock is missing or stale
    #[arg(long)]
    locked: bool,
}

pub(crate) fn run(args: &Args, settings: &Settings) -> anyhow::Result<u8> {
    let session = Session::open(settings)?;
    let locks = match (args.refresh, args.locked) {
        (true, _) => Locks::Refresh,
        (_, true) => Locks::Demand,
        _ => Locks::Write,
    };
    let board = session.board(&args.selection)?;
    let done = session.pipeline(locks).execute(&board, Goal::Lock);
    report_failures(settings, done)?;
    for line in board.lock_lines() {
        settings.printer.record("lock", &line);
        settings.printer.line(&line);
    }
    Ok(exit::OK)
}
