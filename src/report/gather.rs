//! From a manifest and a store to the report's values: an instance at a time, so that no more than one instance's records are in
//! memory.

use super::excerpt::{self, Excerpt, Stream};
use super::model::{Facts, LayerSize, Part, ReportInput};
use super::runs::{RunLine, in_order};
use super::{Error, InstanceReport, summarise};
use crate::base::{Cancel, Digest, Store};
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

/// Reads what the manifest names from the store. What is not there, or is not what the manifest means, is said in the report.
pub fn gather(store: &Store, manifest: &Manifest, cancel: &Cancel) -> Result<ReportInput, Error> {
    let subject = &manifest.subject;
    let count = manifest.evidence.instances.len().max(1);
    let share = (ALL_BYTES / count).clamp(SHARE[0], SHARE[1]);
    let mut instances = Vec::new();
    for (id, evidence) in &manifest.evidence.instances {
        cancel.check()?;
        let Some(entry) = subject.instances.get(id) else { continue };
        let mut records = Vec::new();
        let mut absent = Vec::new();
        for run in &evidence.runs {
            match record(store, run)? {
                Ok(record) => records.push(record),
                Err(why) => absent.push((run.key, why)),
            }
        }
        let facts = Facts {
            id: id.clone(),
            environment: entry.environment.clone(),
            lists: entry.lists.clone(),
            verdict: evidence.verdict.clone(),
            layers: layers(manifest, &entry.image.image, &entry.environment),
            absent,
        };
        let mut report = summarise(facts, &records, Vec::new());
        report.excerpts = excerpts(store, evidence, &report, &records, share, cancel)?;
        instances.push(report);
    }
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
