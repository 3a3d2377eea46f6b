//! From a manifest and a store to the report's values: an instance at a time, so that no more than one instance's records are in
//! memory, or as many as are read at once.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::excerpt::{self, Excerpt, Stream};
use super::model::{Facts, LayerSize, Part, ReportInput};
use super::runs::{RunLine, in_order};
use super::text::counted;
use super::{Error, InstanceReport, summarise};
use crate::base::progress::Task;
use crate::base::{Cancel, Digest, SharedReporter, Store};
use crate::image::Image;
use crate::manifest::{InstanceEvidence, Manifest, RunEntry};
use crate::verify::{self, LogKind, RunRecord, log_path};

/// How many runs of an instance are told with the end of their logs.
const EXCERPTS: usize = 6;
/// How many lines of a log.
const LINES: usize = 40;
/// Bytes of all excerpts of a report, spread over its instances ...
const ALL_BYTES: usize = 2_000_000;
/// ... of which each gets at least this much and at most that.
const SHARE: [usize; 2] = [2_000, 60_000];

/// How a report is gathered.
#[derive(Clone, Copy)]
pub struct Gathering<'a> {
    /// Where records and logs are.
    pub store: &'a Store,
    /// How many instances are read at once.
    pub jobs: usize,
    /// Who is told.
    pub reporter: &'a SharedReporter,
    /// Ends it.
    pub cancel: &'a Cancel,
}

/// Reads what the manifest names from the store. What is not there, or is not what the manifest means, is said in the report.
pub fn gather(gathering: Gathering<'_>, manifest: &Manifest) -> Result<ReportInput, Error> {
    let subject = &manifest.subject;
    let all: Vec<(&String, &InstanceEvidence)> = manifest.evidence.instances.iter().collect();
    let task = Task::start(gathering.reporter, "report", &subject.split.name, None);
    let next = AtomicUsize::new(0);
    // An instance a time and thread, put in its place: which was first does not show.
    let done: Vec<OnceLock<Result<Option<InstanceReport>, Error>>> =
        all.iter().map(|_| OnceLock::new()).collect();
    std::thread::scope(|scope| {
        for _ in 0..gathering.jobs.clamp(1, all.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let (Some((id, evidence)), Some(place)) = (all.get(at), done.get(at)) else {
                        return;
                    };
                    let taken = place.set(instance(gathering, manifest, id, evidence));
                    debug_assert!(taken.is_ok(), "each number is handed out once");
                }
            });
        }
    });
    let mut instances = Vec::with_capacity(all.len());
    for place in done {
        instances.extend(place.into_inner().expect("every place was taken by a thread")?);
    }
    let runs: usize = instances.iter().map(|instance| instance.runs.len()).sum();
    task.done_with(format!(
        "{}, {}",
        counted(instances.len(), "instance", "instances"),
        counted(runs, "run", "runs")
    ));
    Ok(ReportInput {
        split: subject.split.name.clone(),
        platform: subject.platform,
        hallmark: manifest.host.hallmark.clone(),
        digests: Some(manifest.digests),
        policy: subject.policy.clone(),
        slots: manifest.host.slots,
        gaps: manifest.host.gaps.clone(),
        instances,
    })
}

/// One instance; nothing where the manifest's subject does not know it.
fn instance(
    gathering: Gathering<'_>,
    manifest: &Manifest,
    id: &str,
    evidence: &InstanceEvidence,
) -> Result<Option<InstanceReport>, Error> {
    let Some(entry) = manifest.subject.instances.get(id) else { return Ok(None) };
    let count = manifest.evidence.instances.len().max(1);
    let share = (ALL_BYTES / count).clamp(SHARE[0], SHARE[1]);
    let mut records = Vec::new();
    let mut absent = Vec::new();
    for run in &evidence.runs {
        gathering.cancel.check()?;
        match record(gathering.store, run)? {
            Ok(record) => records.push(record),
            Err(why) => absent.push((run.key, why)),
        }
    }
    let facts = Facts {
        id: id.to_owned(),
        environment: entry.environment.clone(),
        lists: entry.lists.clone(),
        verdict: evidence.verdict.clone(),
        layers: layers(manifest, &entry.image.image, &entry.environment),
        absent,
    };
    let mut report = summarise(facts, &records, Vec::new());
    report.excerpts =
        excerpts(gathering.store, evidence, &report, &records, share, gathering.cancel)?;
    Ok(Some(report))
}

/// The record of a run, if the store has the one that the manifest means; else why not.
fn record(store: &Store, run: &RunEntry) -> Result<Result<RunRecord, String>, Error> {
    let path = store.run_path(&run.key).join("record.json");
    match fs_err::read(&path) {
        Ok(bytes) if Digest::of(&bytes) != run.record => {
            return Ok(Err("its record in this store is not the manifest's".to_owned()));
        }
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Err("its record is not in this store".to_owned()));
        }
        Err(error) => return Err(error.into()),
    }
    let held = verify::load(store, &run.key)?;
    Ok(held.ok_or_else(|| "its record in this store does not read".to_owned()))
}

/// The layers of an instance's image: the first are the base's, those up to the environment's length its own.
fn layers(manifest: &Manifest, image: &Image, environment: &str) -> Vec<LayerSize> {
    let environment = manifest.subject.environments.get(environment);
    let base = environment.and_then(|entry| manifest.subject.bases.get(&entry.base));
    let shared = |other: Option<&Image>| {
        other.map_or(0, |other| {
            let pairs = image.layers.iter().zip(&other.layers);
            pairs.take_while(|(a, b)| a.diff_id == b.diff_id).count()
        })
    };
    let below = shared(base.map(|entry| &entry.image.image));
    let within = shared(environment.map(|entry| &entry.image.image)).max(below);
    let blobs = manifest.evidence.images.get(&image.key).map(|digests| &digests.layers);
    image
        .layers
        .iter()
        .enumerate()
        .map(|(at, layer)| LayerSize {
            part: match at {
                at if at < below => Part::Base,
                at if at < within => Part::Environment,
                _ => Part::Instance,
            },
            diff_id: layer.diff_id,
            size: layer.size,
            compressed: blobs.and_then(|blobs| blobs.get(at)).map(|blob| blob.size),
        })
        .collect()
}

/// The ends of the logs of runs that say something against the instance: first those that the verdict points at.
fn excerpts(
    store: &Store,
    evidence: &InstanceEvidence,
    report: &InstanceReport,
    records: &[RunRecord],
    share: usize,
    cancel: &Cancel,
) -> Result<Vec<Excerpt>, Error> {
    let order = in_order(records);
    let pointed: Vec<Digest> = evidence
        .verdict
        .unstable
        .iter()
        .filter_map(|test| test.evidence.first().copied())
        .collect();
    let mut chosen: Vec<(usize, &RunLine)> =
        report.runs.iter().enumerate().filter(|(_, run)| run.is_telling()).collect();
    chosen.sort_by_key(|(at, run)| {
        (pointed.iter().position(|key| *key == run.key).unwrap_or(usize::MAX), *at)
    });
    chosen.truncate(EXCERPTS);
    chosen.sort_by_key(|(at, _)| *at);
    let mut left = share;
    let mut excerpts = Vec::new();
    for (at, run) in chosen {
        for (stream, kind) in [(Stream::Stdout, LogKind::Stdout), (Stream::Stderr, LogKind::Stderr)]
        {
            let log = kind.of(order[at]);
            // One run's flood leaves something for the others.
            let most = left.min(share / 2);
            if log.size == 0 || most == 0 {
                continue;
            }
            let path = log_path(store, &run.key, kind);
            let (text, cut) = excerpt::tail(&path, log, (LINES, most), cancel)?;
            left -= text.as_ref().map_or(0, String::len).min(left);
            excerpts.push(Excerpt { run: at + 1, stream, log, text, cut });
        }
    }
    Ok(excerpts)
}
