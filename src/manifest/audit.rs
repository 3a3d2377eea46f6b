//! Checks a manifest against a store, offline: everything is hashed and computed again, on all cores.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::finding::{AuditReport, Problem, Unchecked};
use super::jobs::{Answer, Job, spec_digest};
use super::model::{BundleFile, Digests, ImageEntry, Manifest};
use crate::base::{Cancel, Digest, Store};
use crate::results::runner_digest;
use crate::verify::{RunRecord, VERDICT_VERSION, judge};

/// The parts of a spec that make its env-hash and its run-hash.
const ENV_FIELDS: [&str; 9] = [
    "repo",
    "version",
    "setup",
    "base",
    "python",
    "system-packages",
    "dependencies",
    "commands",
    "env",
];
const RUN_FIELDS: [&str; 2] = ["test", "limits"];

/// Re-verifies everything that the manifest names: blobs rehashed, layers unpacked to their diff IDs, image
/// documents, keys and digests computed again, records and logs rehashed, streams read again and verdicts judged
/// again from the records. The answer names all that was found; only an interruption is an error.
pub fn audit(
    store: &Store,
    manifest: &Manifest,
    cancel: &Cancel,
) -> Result<AuditReport, crate::base::Error> {
    let mut total = Answer::default();
    check_values(&mut total, manifest);
    let jobs = jobs(&mut total, manifest);
    let mut records: BTreeMap<Digest, RunRecord> = BTreeMap::new();
    for answer in run_all(&jobs, store, cancel)? {
        total.checks += answer.checks;
        total.bytes += answer.bytes;
        total.findings.extend(answer.findings);
        total.unchecked.extend(answer.unchecked);
        if let Some(record) = answer.record {
            records.insert(record.key, record);
        }
    }
    check_verdicts(&mut total, manifest, &records);
    total.findings.sort();
    total.findings.dedup();
    total.unchecked.sort();
    total.unchecked.dedup();
    Ok(AuditReport {
        checks: total.checks,
        bytes: total.bytes,
        findings: total.findings,
        unchecked: total.unchecked,
    })
}

/// What needs no file.
fn check_values(total: &mut Answer, manifest: &Manifest) {
    let digests = Digests::of(&manifest.subject, &manifest.evidence, &manifest.host);
    let part = |of: fn(&Digests) -> Digest| digests.as_ref().map(of);
    total.computed("subject", "digest", manifest.digests.subject, part(|all| all.subject));
    total.computed("evidence", "digest", manifest.digests.evidence, part(|all| all.evidence));
    total.computed("host", "digest", manifest.digests.host, part(|all| all.host));
    for (name, environment) in &manifest.subject.environments {
        let place = format!("environments/{name}");
        let env_hash = spec_digest(&environment.spec, &ENV_FIELDS);
        total.computed(&place, "env-hash", environment.env_hash, env_hash);
        let run_hash = spec_digest(&environment.spec, &RUN_FIELDS);
        total.computed(&place, "run-hash", environment.run_hash, run_hash);
        if !manifest.subject.bases.contains_key(&environment.base) {
            let what = format!("the base {} is not in the manifest", environment.base);
            total.found(&place, Problem::Contradiction { what });
        }
    }
}

/// Every check that reads the store; each blob once.
fn jobs<'a>(total: &mut Answer, manifest: &'a Manifest) -> Vec<Job<'a>> {
    let subject = &manifest.subject;
    let mut blobs: BTreeMap<Digest, (String, Option<u64>)> = BTreeMap::new();
    let mut blob = |digest: Digest, place: String, size: Option<u64>| {
        blobs.entry(digest).or_insert((place, size));
    };
    let files =
        |place: &str, files: &[BundleFile], blob: &mut dyn FnMut(Digest, String, Option<u64>)| {
            for file in files {
                blob(file.sha256, format!("{place}/files/{}", file.name), Some(file.size));
            }
        };
    let mut images: BTreeMap<Digest, (String, &ImageEntry)> = BTreeMap::new();
    blob(subject.split.hash, "split".to_owned(), None);
    for (name, base) in &subject.bases {
        let place = format!("bases/{name}");
        blob(base.lock, format!("{place}/lock"), None);
        files(&place, &base.files, &mut blob);
        files(&place, &base.tools, &mut blob);
        images.entry(base.image.image.key).or_insert((format!("{place}/image"), &base.image));
    }
    for (name, environment) in &subject.environments {
        let place = format!("environments/{name}");
        blob(environment.lock, format!("{place}/lock"), None);
        files(&place, &environment.files, &mut blob);
        images
            .entry(environment.image.image.key)
            .or_insert((format!("{place}/image"), &environment.image));
    }
    for (id, instance) in &subject.instances {
        let place = format!("instances/{id}");
        files(&place, &instance.files, &mut blob);
        for patch in &instance.patches {
            let name = patch.name.as_str();
            blob(patch.sha256, format!("{place}/patches/{name}"), Some(patch.size));
        }
        images
            .entry(instance.image.image.key)
            .or_insert((format!("{place}/image"), &instance.image));
    }
    let mut jobs = Vec::new();
    let mut layers = BTreeMap::new();
    for (key, (place, entry)) in images {
        let Some(digests) = manifest.evidence.images.get(&key) else {
            let reason = "the evidence does not name its compressed layers".to_owned();
            total.unchecked.push(Unchecked { place, reason });
            continue;
        };
        for (number, (layer, blob)) in entry.image.layers.iter().zip(&digests.layers).enumerate() {
            layers
                .entry((blob.digest, *layer))
                .or_insert_with(|| format!("{place}/layers/{number}"));
        }
        jobs.push(Job::Image { place, entry, digests });
    }
    for (number, one) in manifest.evidence.run_layers.iter().enumerate() {
        layers
            .entry((one.blob.digest, one.layer))
            .or_insert_with(|| format!("run-layers/{number}"));
    }
    let layers = layers.into_iter().map(|((blob, layer), place)| Job::Layer { place, blob, layer });
    jobs.extend(layers);
    let blobs = blobs.into_iter().map(|(digest, (place, size))| Job::Blob { place, digest, size });
    jobs.extend(blobs);
    for (id, evidence) in &manifest.evidence.instances {
        let place = format!("instances/{id}");
        let found = subject.instances.get(id).and_then(|instance| {
            Some((instance, subject.environments.get(&instance.environment)?))
        });
        let Some((instance, environment)) = found else {
            let what = "the subject does not name the instance or its environment".to_owned();
            total.found(&place, Problem::Contradiction { what });
            continue;
        };
        jobs.extend(evidence.runs.iter().map(|entry| Job::Run {
            place: format!("{place}/runs/{}-{}", entry.phase.as_str(), entry.repeat),
            id,
            entry,
            instance,
            environment,
            runner: subject.runner,
        }));
    }
    jobs
}

/// All checks, on all cores; answers in the order of the checks.
fn run_all(
    jobs: &[Job<'_>],
    store: &Store,
    cancel: &Cancel,
) -> Result<Vec<Answer>, crate::base::Error> {
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(jobs.len()) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(number) else { break };
                    let answer = job.run(store, cancel);
                    let stop = answer.is_err();
                    answers.lock().expect("no holder panics").push((number, answer));
                    if stop {
                        break;
                    }
                }
            });
        }
    });
    let mut answers = answers.into_inner().expect("no holder panics");
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Judges again from the records; a verdict whose records are not all whole cannot be checked.
fn check_verdicts(total: &mut Answer, manifest: &Manifest, records: &BTreeMap<Digest, RunRecord>) {
    let subject = &manifest.subject;
    for (id, evidence) in &manifest.evidence.instances {
        let place = format!("instances/{id}/verdict");
        let not_checked =
            |reason: &str| Unchecked { place: place.clone(), reason: reason.to_owned() };
        let Some(instance) = subject.instances.get(id) else { continue };
        if subject.rules != VERDICT_VERSION {
            total.unchecked.push(not_checked("it was judged by rules of another version"));
            continue;
        }
        let held = evidence.runs.iter().map(|run| records.get(&run.key).cloned());
        let Some(held) = held.collect::<Option<Vec<RunRecord>>>() else {
            total.unchecked.push(not_checked("not all of its records are whole"));
            continue;
        };
        let verdict = judge(&instance.lists, &held, &subject.policy);
        let digests = [&evidence.verdict, &verdict].map(crate::base::canon::digest);
        match digests {
            [Ok(expected), actual] => total.computed(&place, "verdict", expected, actual),
            [Err(error), _] => total.unchecked.push(not_checked(&error.to_string())),
        }
    }
    if subject.runner != runner_digest() {
        // Streams of another runner are read by the version they carry; nothing to say here.
        tracing::debug!(runner = %subject.runner, "the manifest was made with another runner");
    }
}
