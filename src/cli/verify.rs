//! `hallmark verify`: gold runs and verdicts; of an old split again, with what changed.

use std::path::{Path, PathBuf};

use super::args::Selection;
use super::gold::{Gold, print_counts};
use super::session::{Session, report_failures};
use super::settings::Settings;
use super::{exit, table};
use crate::base::Digest;
use crate::base::files::write_output;
use crate::image::Compressor;
use crate::manifest::{self, Manifest};
use crate::pipeline::{self, InstanceVerdict, Locks, Sample, Series};
use crate::verify::Status;

/// Make the gold runs that the policy asks for, in fresh containers, and judge each instance
///
/// The ladder: tests are collected twice; three runs before and three after the gold patch; four runs under combined conditions (order, hash seed,
/// clock, zone, locale, processor, load, user, limits, folders, names, network); when something fails there, the cause is searched; then plain runs
/// up to the policy's number. Runs that are recorded already are not made again, so an interrupted verification goes on where it stopped.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    gold: Gold,
    /// Verify again: make new runs of this manifest's instances, by its policy if no other is named, and print what changed
    #[arg(long, value_name = "MANIFEST", conflicts_with = "runs")]
    since: Option<PathBuf>,
    /// Go on with the verification begun last with --since instead of beginning another
    #[arg(long, requires = "since")]
    resume: bool,
    /// Only so many instances (or a share such as 10%); with --since, others each time
    #[arg(long, value_name = "N|P%", conflicts_with = "instances")]
    sample: Option<Sample>,
    /// Write the evaluation manifest to this file
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, settings: &Settings) -> anyhow::Result<u8> {
    let output = args.manifest.as_ref().map(|path| settings.output_file(path)).transpose()?;
    let older = args.since.as_ref().map(|path| read(settings, path)).transpose()?;
    let session = Session::open(settings)?;
    let mut plan = args.gold.plan(&session.project, &args.selection.split)?;
    let mut selection = args.selection.clone();
    if let Some((digest, older)) = &older {
        let split = session.project.split(&selection.split)?;
        let held = older.evidence.instances.keys();
        let (here, gone): (Vec<&String>, Vec<&String>) =
            held.partition(|id| split.instances.iter().any(|one| one.id.as_str() == *id));
        if here.is_empty() {
            return Err(pipeline::Error::OtherSplit { split: selection.split }.into());
        }
        for id in gone {
            settings.printer.note(&format!("{id} is in the manifest and no longer in the split"));
        }
        if selection.instances.is_empty() {
            selection.instances = here.into_iter().cloned().collect();
        }
        let series = Series::begin(&session.store, *digest, args.resume, &settings.cancel)?;
        plan.again(series.name(), &older.subject.policy);
    }
    if let Some(sample) = args.sample {
        let split = session.project.split(&selection.split)?;
        let mut ids: Vec<String> =
            split.instances.iter().map(|instance| instance.id.to_string()).collect();
        if !selection.instances.is_empty() {
            ids = selection.instances;
        }
        let all = ids.len();
        selection.instances = sample.draw(ids, &plan.verification.series);
        settings.printer.note(&format!(
            "{} of {all} instances: {}",
            selection.instances.len(),
            selection.instances.join(", ")
        ));
    }
    let board = session.board(&selection)?;
    let pipeline = session.pipeline(Locks::Demand);
    let done = plan.execute(&pipeline, &board);
    // What was interrupted is no verdict.
    settings.cancel.check().map_err(pipeline::Error::from)?;
    let verdicts = board.verdicts(plan.policy())?;
    table::verdicts(settings.printer, &verdicts);
    print_counts(settings.printer, &pipeline.run_counts(&board));
    let changed = match &older {
        Some((_, older)) => print_changes(settings, older, &verdicts),
        None => 0,
    };
    if let (Some(path), Some(output)) = (&args.manifest, &output) {
        // Also when single instances failed: the others are judged, and the manifest names what it holds.
        let version = env!("CARGO_PKG_VERSION");
        let manifest =
            pipeline.manifest(&board, &verdicts, plan.policy(), Compressor::default(), version)?;
        let bytes = manifest::write(&manifest).map_err(pipeline::Error::from)?;
        write_output(output, &bytes).map_err(pipeline::Error::from)?;
        settings.printer.note(&format!(
            "wrote {}: {} of {} instances",
            path.display(),
            verdicts.len(),
            board.len()
        ));
    }
    report_failures(settings, done)?;
    let refused = verdicts.iter().any(|row| row.verdict.status == Status::Rejected);
    Ok(if refused || changed > 0 { exit::CHECK_FAILED } else { exit::OK })
}

/// A manifest and the digest of its file.
fn read(settings: &Settings, path: &Path) -> anyhow::Result<(Digest, Manifest)> {
    let bytes = fs_err::read(settings.input_file(path)?).map_err(pipeline::Error::from)?;
    let manifest = manifest::parse(&path.display().to_string(), &bytes);
    Ok((Digest::of(&bytes), manifest.map_err(pipeline::Error::from)?))
}

/// What changed of an instance, for programs.
#[derive(Debug, serde::Serialize)]
struct Change<'a> {
    instance: &'a str,
    changes: &'a [String],
}

/// Prints what is not as it was; returns of how many instances.
fn print_changes(settings: &Settings, older: &Manifest, verdicts: &[InstanceVerdict]) -> usize {
    let mut changed = 0;
    for row in verdicts {
        let changes = match older.evidence.instances.get(&row.instance) {
            Some(evidence) => row.verdict.changes(&evidence.verdict),
            None => vec!["the manifest does not have it".to_owned()],
        };
        if changes.is_empty() {
            continue;
        }
        changed += 1;
        settings.printer.record("change", &Change { instance: &row.instance, changes: &changes });
        for change in &changes {
            settings.printer.line(&format!("{}: {change}", row.instance));
        }
    }
    let same = verdicts.len() - changed;
    settings.printer.line(&format!("{changed} changed, {same} as they were"));
    changed
}
