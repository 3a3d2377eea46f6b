//! `hallmark build`: locks to images.

use super::args::Selection;
use super::exit;
use super::session::{Session, report_failures};
use super::settings::Settings;
use crate::pipeline::{Goal, Locks};

/// Build the base, env and instance images of a split
///
/// Every step that ran before with the same inputs is taken from the store. The digests are compared with
/// `images/<split>.digests.json` where that file exists.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Fail where a lock is stale or a digest is not the committed one
    #[arg(long)]
    locked: bool,
    /// Build again in an empty store and name the cause of each difference
    #[arg(long)]
    check: bool,
    /// Write the digests to `images/<split>.digests.json`
    #[arg(long, conflicts_with = "locked")]
    write_digests: bool,
}

pub(crate) fn run(args: &Args, settings: &Settings) -> anyhow::Result<u8> {
    let session = Session::open(settings)?;
    let locks = if args.locked { Locks::Demand } else { Locks::Write };
    let board = session.board(&args.selection)?;
    let pipeline = session.pipeline(locks);
    let done = pipeline.execute(&board, Goal::Build);
    report_failures(settings, done)?;
    let digests = pipeline.digests(&board)?;
    for (name, image) in &digests.images {
        settings.printer.line(&format!("{name} {}", image.manifest));
    }
    settings.printer.record("digests", &digests);
    if args.write_digests {
        let path = session.project.digests_path(board.split_name());
        digests.write(&path)?;
        settings.printer.note(&format!("wrote {}", path.display()));
    }
    let differences = pipeline.compare_digests(&board, &digests)?;
    for difference in &differences {
        settings.printer.note(&format!("digest: {difference}"));
    }
    if args.check {
        let folder = session.store.scratch_dir("check")?;
        let (findings, done) = pipeline.rebuild_and_compare(
            &board,
            &args.selection.instances,
            folder.path(),
            |store| settings.runtime(store),
        )?;
        report_failures(settings, done)?;
        for finding in &findings {
            settings.printer.line(finding);
        }
        return Ok(if findings.is_empty() { exit::OK } else { exit::CHECK_FAILED });
    }
    Ok(if args.locked && !differences.is_empty() { exit::CHECK_FAILED } else { exit::OK })
}
