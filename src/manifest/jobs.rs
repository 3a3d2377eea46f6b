//! The single checks of an audit.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::finding::{Finding, Problem, Unchecked};
use super::model::{EnvironmentEntry, ImageEntry, InstanceEntry, RunEntry, outcomes_digest};
use crate::base::{Cancel, Digest, HashingReader, Store, canon};
use crate::image::{self, ImageDigests, Layer};
use crate::results::text::text_report;
use crate::results::{Source, read_report};
use crate::spec::Parser;
use crate::verify::{LogKind, LogRef, RunOutcome, RunRecord, disagreements, log_path, record_key};

/// One check.
pub(crate) enum Job<'a> {
    /// A blob has its digest, and its length where that is known.
    Blob { place: String, digest: Digest, size: Option<u64> },
    /// A compressed layer unpacks to its diff ID.
    Layer { place: String, blob: Digest, layer: Layer },
    /// An image's documents are what its values make.
    Image { place: String, entry: &'a ImageEntry, digests: &'a ImageDigests },
    /// A run's record and logs have their digests and agree with each other.
    Run {
        place: String,
        id: &'a str,
        entry: &'a RunEntry,
        instance: &'a InstanceEntry,
        environment: &'a EnvironmentEntry,
        runner: Digest,
    },
}

/// What one check says.
#[derive(Default)]
pub(crate) struct Answer {
    pub(crate) checks: u64,
    pub(crate) bytes: u64,
    pub(crate) findings: Vec<Finding>,
    pub(crate) unchecked: Vec<Unchecked>,
    /// The record of a run that was read.
    pub(crate) record: Option<RunRecord>,
}

impl Answer {
    pub(crate) fn found(&mut self, place: &str, problem: Problem) {
        self.findings.push(Finding { place: place.to_owned(), problem });
    }

    fn not_checked(&mut self, place: &str, reason: impl std::fmt::Display) {
        self.unchecked.push(Unchecked { place: place.to_owned(), reason: reason.to_string() });
    }

    /// A computed value must be the stated one.
    pub(crate) fn computed(
        &mut self,
        place: &str,
        what: &str,
        expected: Digest,
        actual: Result<Digest, impl std::fmt::Display>,
    ) {
        self.checks += 1;
        match actual {
            Ok(actual) if actual == expected => {}
            Ok(actual) => {
                let what = what.to_owned();
                self.found(place, Problem::Computed { what, expected, actual });
            }
            Err(error) => self.not_checked(place, error),
        }
    }

    /// Hashes a file; whether it is the stated one.
    fn file(&mut self, place: &str, path: &Path, expected: Digest, size: Option<u64>) -> bool {
        self.checks += 1;
        let hashed = fs_err::File::open(path).and_then(|file| {
            let mut reader = HashingReader::new(file);
            io::copy(&mut reader, &mut io::sink())?;
            let (_, digest, count) = reader.finish();
            Ok((digest, count))
        });
        let (actual, count) = match hashed {
            Ok(hashed) => hashed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.not_checked(place, "not in the store");
                return false;
            }
            Err(error) => {
                self.not_checked(place, error);
                return false;
            }
        };
        self.bytes += count;
        if let Some(size) = size
            && size != count
        {
            self.found(place, Problem::Size { expected: size, actual: count });
            return false;
        }
        if actual != expected {
            self.found(place, Problem::Bytes { expected, actual });
            return false;
        }
        true
    }
}

impl Job<'_> {
    /// Makes the check.
    pub(crate) fn run(&self, store: &Store, cancel: &Cancel) -> Result<Answer, crate::base::Error> {
        cancel.check()?;
        let mut answer = Answer::default();
        match self {
            Self::Blob { place, digest, size } => {
                answer.file(place, &store.blob_path(digest), *digest, *size);
            }
            Self::Layer { place, blob, layer } => {
                check_layer(&mut answer, place, store, blob, layer);
            }
            Self::Image { place, entry, digests } => {
                check_image(&mut answer, place, store, entry, digests);
            }
            Self::Run { place, id, entry, instance, environment, runner } => {
                check_run(&mut answer, place, store, entry, environment.parser);
                check_record(&mut answer, place, id, entry, instance, environment, *runner);
            }
        }
        Ok(answer)
    }
}

/// Unpacks a blob once: its own digest and the diff ID in one pass.
fn check_layer(answer: &mut Answer, place: &str, store: &Store, blob: &Digest, layer: &Layer) {
    answer.checks += 2;
    let file = match fs_err::File::open(store.blob_path(blob)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return answer.not_checked(place, "not in the store");
        }
        Err(error) => return answer.not_checked(place, error),
    };
    let mut raw = HashingReader::new(file);
    let unpacked = diff_id(&mut raw);
    // What follows the archive, and all of it where it did not read.
    let rest = io::copy(&mut raw, &mut io::sink());
    let (_, actual, count) = raw.finish();
    answer.bytes += count;
    if let Err(error) = rest {
        return answer.not_checked(place, error);
    }
    if actual != *blob {
        return answer.found(place, Problem::Bytes { expected: *blob, actual });
    }
    match unpacked {
        Ok((actual, size)) if actual != layer.diff_id || size != layer.size => {
            answer.found(place, Problem::Layer { expected: layer.diff_id, actual });
        }
        Ok((_, size)) => answer.bytes += size,
        Err(error) => answer.found(place, Problem::Unreadable { reason: error.to_string() }),
    }
}

/// Digest and length of what a compressed archive unpacks to.
fn diff_id(raw: &mut dyn Read) -> io::Result<(Digest, u64)> {
    let mut magic = [0; 4];
    let mut held = 0;
    while held < magic.len() {
        match raw.read(&mut magic[held..])? {
            0 => break,
            read => held += read,
        }
    }
    let start = io::Cursor::new(magic[..held].to_vec());
    let all = start.chain(raw);
    let reader: Box<dyn Read + '_> = match magic {
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(zstd::Decoder::new(all)?),
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(all)),
        _ => Box::new(all),
    };
    let mut reader = HashingReader::new(reader);
    io::copy(&mut reader, &mut io::sink())?;
    let (_, digest, size) = reader.finish();
    Ok((digest, size))
}

fn check_image(
    answer: &mut Answer,
    place: &str,
    store: &Store,
    entry: &ImageEntry,
    digests: &ImageDigests,
) {
    let config = image::config_json(&entry.image);
    let manifest = config
        .as_ref()
        .map_err(ToString::to_string)
        .and_then(|config| {
            image::manifest_json(config, &digests.layers).map_err(|error| error.to_string())
        })
        .map(Digest::of);
    answer.computed(place, "OCI config", entry.config, config.map(Digest::of));
    answer.computed(place, "OCI manifest", digests.manifest, manifest);
    if digests.config != entry.config {
        let what = "the evidence names another OCI config than the subject".to_owned();
        answer.found(place, Problem::Contradiction { what });
    }
    if digests.layers.len() != entry.image.layers.len() {
        let what = format!(
            "{} layers, but {} compressed layers",
            entry.image.layers.len(),
            digests.layers.len()
        );
        answer.found(place, Problem::Contradiction { what });
    }
    answer.file(&format!("{place}/config"), &store.blob_path(&entry.config), entry.config, None);
    answer.file(
        &format!("{place}/manifest"),
        &store.blob_path(&digests.manifest),
        digests.manifest,
        Some(digests.manifest_size),
    );
}

/// The files of a run; the record is kept when all of them are whole.
fn check_run(answer: &mut Answer, place: &str, store: &Store, entry: &RunEntry, parser: Parser) {
    let path = store.run_path(&entry.key).join("record.json");
    let whole = answer.file(&format!("{place}/record"), &path, entry.record, None);
    let mut report = None;
    let mut printed = Vec::new();
    for kind in LogKind::ALL {
        let LogRef { sha256, size } = match kind {
            LogKind::Stdout => entry.stdout,
            LogKind::Stderr => entry.stderr,
            LogKind::Report => entry.report,
        };
        let path = log_path(store, &entry.key, kind);
        let name = format!("{place}/{}", kind.file_name());
        if answer.file(&name, &path, sha256, Some(size)) {
            if kind == LogKind::Report {
                report = fs_err::read(path).ok();
            } else {
                printed.push(path);
            }
        }
    }
    if !whole {
        return;
    }
    let record = fs_err::read(path).map_err(|error| error.to_string()).and_then(|bytes| {
        serde_json::from_slice::<RunRecord>(&bytes).map_err(|error| error.to_string())
    });
    match record {
        Ok(record) => {
            answer.record = Some(record);
            if let Some(report) = report {
                check_report(answer, place, parser, &report, &printed);
            }
        }
        Err(reason) => answer.found(&format!("{place}/record"), Problem::Unreadable { reason }),
    }
}

/// Reads the runner's stream again: it must say what the record says, and hold against what was printed (where both
/// logs are whole).
fn check_report(
    answer: &mut Answer,
    place: &str,
    parser: Parser,
    stream: &[u8],
    printed: &[PathBuf],
) {
    let Some(record) = &answer.record else { return };
    answer.checks += 1;
    let place = format!("{place}/report");
    let report = match record.source {
        Source::Stream => read_report(stream, record.nonce.as_bytes()),
        Source::Text => Ok(text_report(parser, stream)),
    };
    match report {
        Ok(report) => {
            let same = report.tests.len() == record.tests.len()
                && report.tests.iter().all(|(id, one)| record.outcome_of(id) == one.outcome);
            if !same {
                let what = "read again, the runner's stream gives other outcomes".to_owned();
                answer.found(&place, Problem::Contradiction { what });
                return;
            }
            let (RunOutcome::Completed, Some(status)) = (&record.outcome, record.status) else {
                return;
            };
            let problem = match printed {
                [stdout, stderr] => {
                    match disagreements(&report, parser, [stdout, stderr], status) {
                        Ok(problems) => problems.first().map(ToString::to_string),
                        Err(error) => return answer.not_checked(&place, error),
                    }
                }
                _ => report.faults.first().map(ToString::to_string),
            };
            if let Some(problem) = problem {
                let what = format!("the record says completed, but read again, {problem}");
                answer.found(&place, Problem::Contradiction { what });
            }
        }
        Err(error) => {
            answer.found(&place, Problem::Unreadable { reason: error.to_string() });
        }
    }
}

/// The record says what the manifest says, and its key is that of its inputs.
fn check_record(
    answer: &mut Answer,
    place: &str,
    id: &str,
    entry: &RunEntry,
    instance: &InstanceEntry,
    environment: &EnvironmentEntry,
    runner: Digest,
) {
    let Some(record) = answer.record.take() else { return };
    let rebuild: Vec<String> = environment
        .spec
        .pointer("/commands/rebuild")
        .and_then(|commands| serde_json::from_value(commands.clone()).ok())
        .unwrap_or_default();
    answer.computed(place, "run key", entry.key, record_key(&record, &rebuild));
    answer.computed(place, "outcomes", entry.outcomes, outcomes_digest(&record));
    let logs = [record.stdout, record.stderr, record.report];
    for (what, same) in [
        ("instance", record.instance == id),
        ("image", record.image == instance.image.image.key),
        ("run-hash", record.run_hash == environment.run_hash),
        ("runner", record.runner == runner),
        ("phase", record.phase == entry.phase),
        ("series", record.series == entry.series),
        ("repeat", (record.repeat, record.alone) == (entry.repeat, entry.alone)),
        ("profile", record.profile == entry.profile),
        ("outcome", record.outcome.as_str() == entry.outcome),
        ("logs", logs == [entry.stdout, entry.stderr, entry.report]),
        ("patches", record.patches.iter().all(|patch| instance.patches.contains(patch))),
    ] {
        answer.checks += 1;
        if !same {
            let what = format!("the record and the manifest name another {what}");
            answer.found(place, Problem::Contradiction { what });
        }
    }
    answer.record = Some(record);
}

/// Digest of the canonical form of the parts of a spec, as [`crate::spec::Spec`] makes it.
pub(crate) fn spec_digest(
    spec: &serde_json::Value,
    fields: &[&str],
) -> Result<Digest, crate::base::Error> {
    let parts: serde_json::Map<String, serde_json::Value> = fields
        .iter()
        .map(|field| ((*field).to_owned(), spec.get(*field).cloned().unwrap_or_default()))
        .collect();
    canon::digest(&parts)
}
