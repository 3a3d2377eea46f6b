//! One run: the test command in a fresh container, its results, its record.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use super::Error;
use super::apply::{Patch, Prepared, environment, prepare};
use super::patch::test_files;
use super::profile::Profile;
use super::reading::{REPORT_LIMIT, read_run, too_long};
use super::record::{LogRef, PatchName, Phase, RECORD_VERSION, RunOutcome, RunRecord};
use super::records::{load, store_record};
use crate::base::progress::Task;
use crate::base::{Digest, HashingReader, canon};
use crate::dataset::InstanceId;
use crate::image::{Image, Layer};
use crate::results::{
    NONCE_FILE, Options, Place, REPORT_FILE, REPORT_FOLDER, RUNNER_FOLDER, Report, instrument,
    runner_digest, runner_files,
};
use crate::runtime::{BLACK_HOLE_DEVICE, Limits, Mount, Network, Root, RunLog, RunSpec, Workbench};
use crate::spec::{Spec, TestFiles};

/// How often a container that could not be had is tried again.
const RETRIES: u32 = 2;

/// Which run.
#[derive(Debug, Clone, Copy)]
pub struct RunPlan<'a> {
    /// The instance.
    pub instance: &'a InstanceId,
    /// Its spec.
    pub spec: &'a Spec,
    /// Which patches are applied.
    pub phase: Phase,
    /// Which verification it belongs to; empty for the first.
    pub series: &'a str,
    /// Number of the run in its phase and profile, from 0.
    pub repeat: u32,
    /// Conditions.
    pub profile: &'a Profile,
    /// Whether nothing else runs on the machine.
    pub alone: bool,
    /// The ids that a run of [`Phase::Collect`] found, in their order: other orders are made from them.
    pub collected: &'a [String],
    /// The test patch.
    pub test_patch: &'a [u8],
    /// The gold patch; applied in [`Phase::Post`] only.
    pub gold_patch: &'a [u8],
    /// How many runs the machine makes at once.
    pub slots: u32,
}

impl RunPlan<'_> {
    /// What people call it.
    fn name(&self) -> String {
        let conditions = match self.profile.settings() {
            [] => String::new(),
            [_] | [_, _] => format!(" ({})", self.profile),
            many => format!(" ({} settings)", many.len()),
        };
        let alone = if self.alone { " alone" } else { "" };
        let (phase, number) = (self.phase.as_str(), self.repeat + 1);
        format!("{} {phase} {number}{conditions}{alone}", self.instance)
    }

    /// The patches in the order of application: the fix first, so that the test patch has the last word on tests.
    fn patches(&self) -> Vec<Patch> {
        let test = Patch::new(PatchName::Test, self.test_patch);
        match self.phase {
            Phase::Pre => vec![test],
            Phase::Collect | Phase::Post => {
                vec![Patch::new(PatchName::Gold, self.gold_patch), test]
            }
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        let limits = &self.spec.limits;
        Limits {
            cpus: Some(limits.cpus),
            memory: Some(limits.memory),
            pids: Some(limits.pids),
            shm: limits.shm,
            wall: Duration::try_from_secs_f64(limits.timeout).unwrap_or(Duration::MAX),
            ..Limits::default()
        }
    }

    /// The test command with its files, before instrumentation.
    fn command(&self) -> Result<Vec<String>, Error> {
        let mut command = self.spec.test.command.clone();
        let files = match &self.spec.test.files {
            TestFiles::All => Vec::new(),
            TestFiles::Listed { paths } => paths.clone(),
            TestFiles::TestPatch => {
                let files = test_files(self.test_patch);
                if files.is_empty() {
                    return Err(Error::NoTestFiles { instance: self.instance.to_string() });
                }
                files
            }
        };
        // A file is never taken for an option.
        command.extend(
            files.into_iter().map(
                |file| {
                    if file.starts_with('-') { format!("./{file}") } else { file }
                },
            ),
        );
        Ok(command)
    }
}

/// The key of a run: the digest of all that it depends on.
pub fn run_key(image: &Image, plan: &RunPlan<'_>) -> Result<Digest, Error> {
    record_key(&blank(image, plan, Digest::of(b""))?, &plan.spec.commands.rebuild)
        .map_err(Error::from)
}

/// The key that a record must have by its own inputs and the rebuild commands of its spec.
pub fn record_key(record: &RunRecord, rebuild: &[String]) -> Result<Digest, crate::base::Error> {
    let patches: Vec<Digest> = record.patches.iter().map(|patch| patch.sha256).collect();
    canon::digest(&serde_json::json!({
        "step": "verify.run/2",
        "instance": record.instance,
        "image": record.image,
        "phase": record.phase,
        "patches": patches,
        "rebuild": rebuild,
        "run-hash": record.run_hash,
        "runner": record.runner,
        "profile": record.profile,
        "series": record.series,
        "repeat": record.repeat,
        "alone": record.alone,
    }))
}

/// Makes a run, or finds its record. The record is stored with its logs before it is returned, unless the run
/// was hallmark's own failure: the next call then tries again.
pub fn execute(
    bench: Workbench<'_>,
    image: &Image,
    plan: &RunPlan<'_>,
) -> Result<RunRecord, Error> {
    let key = run_key(image, plan)?;
    let task = Task::start(bench.reporter, "run", plan.name(), None);
    if let Some(record) = load(bench.store, &key)? {
        task.cached();
        return Ok(record);
    }
    let _lock = bench.store.lock_step(&key, bench.cancel)?;
    if let Some(record) = load(bench.store, &key)? {
        task.cached();
        return Ok(record);
    }
    let mut tries = 0;
    let record = loop {
        bench.cancel.check()?;
        match attempt(bench, image, plan, key) {
            Ok(record) => break record,
            Err(error) if is_passing(&error) && tries < RETRIES => {
                tries += 1;
                tracing::warn!(instance = %plan.instance, %error, tries, "the run is tried again");
            }
            Err(error) if is_passing(&error) => {
                let mut record = blank(image, plan, key)?;
                record.outcome = RunOutcome::InfraError { reason: error.to_string() };
                break record;
            }
            Err(error) => return Err(error),
        }
    };
    task.done_with(record.outcome.explain());
    Ok(record)
}

/// Whether another try may help: the set-up of a container failed, not the host or the store.
fn is_passing(error: &Error) -> bool {
    matches!(
        error,
        Error::Runtime(
            crate::runtime::Error::System { .. } | crate::runtime::Error::Launcher { .. }
        )
    )
}

fn attempt(
    bench: Workbench<'_>,
    image: &Image,
    plan: &RunPlan<'_>,
    key: Digest,
) -> Result<RunRecord, Error> {
    let scratch = bench.store.scratch_dir("run")?;
    let output = scratch.path().join("output");
    fs_err::create_dir(&output)?;
    let empty = scratch.path().join("empty");
    fs_err::write(&empty, "")?;
    let mut record = blank(image, plan, key)?;
    let patches = plan.patches();
    for patch in &patches {
        // As they were applied: an audit hashes them again.
        bench.store.put_blob(&patch.bytes)?;
    }
    match prepare(bench, image, plan, &patches, &output)? {
        Prepared::Stopped(outcome, log) => {
            record.outcome = outcome;
            fill_log(&mut record, &log)?;
            store_record(bench.store, record, [&log.stdout, &log.stderr, &empty])
        }
        Prepared::Ready(layers) => {
            record.layers = layers;
            tests(bench, image, plan, record, scratch.path(), &output)
        }
    }
}

fn tests(
    bench: Workbench<'_>,
    image: &Image,
    plan: &RunPlan<'_>,
    mut record: RunRecord,
    scratch: &Path,
    output: &Path,
) -> Result<RunRecord, Error> {
    let options = Options {
        test_timeout: plan.spec.limits.test_timeout,
        continue_on_collection_errors: plan.spec.test.continue_on_collection_errors,
        black_hole: Some(BLACK_HOLE_DEVICE.to_owned()),
        ..Options::default()
    };
    let parser = plan.spec.test.parser;
    record.command = instrument(&plan.command()?, parser, &Place::default())?.argv;
    record.nonce = nonce()?;
    let (runner, exchange) = (scratch.join("runner"), scratch.join("report"));
    for folder in [&runner, &exchange] {
        fs_err::create_dir(folder)?;
    }
    for (name, bytes) in runner_files(&options) {
        fs_err::write(runner.join(name), bytes)?;
    }
    fs_err::write(exchange.join(NONCE_FILE), &record.nonce)?;
    let path = exchange.join(REPORT_FILE);
    fs_err::write(&path, "")?;
    // Held open: a run that puts another file in its place is not read.
    let held = fs_err::File::open(&path)?;

    let mut spec = RunSpec::new(record.command.clone(), output);
    spec.env = environment(image, &spec);
    "/testbed".clone_into(&mut spec.working_dir);
    spec.limits = plan.limits();
    spec.network = Network::None;
    spec.mounts = vec![
        Mount { source: runner, target: RUNNER_FOLDER.to_owned(), writable: false },
        Mount { source: exchange, target: REPORT_FOLDER.to_owned(), writable: true },
    ];
    let layers: Vec<Layer> = image.layers.iter().chain(&record.layers).copied().collect();
    let log = bench.runtime.run(Root::Layers(&layers), &spec, bench.cancel)?;

    let size = held.metadata()?.len();
    let mut stream = Vec::new();
    let stream_path = scratch.join("stream");
    let report = if size > REPORT_LIMIT {
        record.outcome = too_long(size);
        Report::default()
    } else {
        (&held).read_to_end(&mut stream)?;
        let (outcome, report) = read_run(&log, parser, &stream, &record.nonce)?;
        record.outcome = outcome;
        report
    };
    fs_err::write(&stream_path, &stream)?;
    record.report = LogRef { sha256: Digest::of(&stream), size: stream.len() as u64 };
    record.session_ended = report.process_exit.is_some();
    record.collected = report.collected.as_ref().map(|ids| ids.len() as u64);
    record.tests = report.tests;
    record.collection_errors = report.collection_errors;
    record.collection_skips = report.collection_skips;
    fill_log(&mut record, &log)?;
    store_record(bench.store, record, [&log.stdout, &log.stderr, &stream_path])
}

/// A record with its inputs only.
fn blank(image: &Image, plan: &RunPlan<'_>, key: Digest) -> Result<RunRecord, Error> {
    let nothing = LogRef { sha256: Digest::of(b""), size: 0 };
    Ok(RunRecord {
        version: RECORD_VERSION,
        key,
        instance: plan.instance.to_string(),
        phase: plan.phase,
        series: plan.series.to_owned(),
        repeat: plan.repeat,
        alone: plan.alone,
        profile: plan.profile.clone(),
        image: image.key,
        run_hash: plan.spec.run_hash()?,
        runner: runner_digest(),
        patches: plan.patches().into_iter().map(|patch| patch.reference).collect(),
        layers: Vec::new(),
        command: Vec::new(),
        outcome: RunOutcome::Completed,
        status: None,
        session_ended: false,
        collected: None,
        ids: Vec::new(),
        tests: std::collections::BTreeMap::new(),
        collection_errors: std::collections::BTreeMap::new(),
        collection_skips: std::collections::BTreeMap::new(),
        nonce: String::new(),
        stdout: nothing,
        stderr: nothing,
        report: nothing,
        wall: 0.0,
        cpu: None,
        peak_memory: None,
        oom_killed: false,
        network_attempts: None,
        gaps: Vec::new(),
        slots: plan.slots,
    })
}

fn fill_log(record: &mut RunRecord, log: &RunLog) -> Result<(), Error> {
    record.status = Some(log.status);
    record.stdout = log_ref(&log.stdout)?;
    record.stderr = log_ref(&log.stderr)?;
    record.wall = log.wall.as_secs_f64();
    record.cpu = log.cpu.map(|cpu| cpu.as_secs_f64());
    record.peak_memory = log.peak_memory;
    record.oom_killed = log.oom_killed;
    record.network_attempts = log.network_attempts;
    record.gaps.clone_from(&log.gaps);
    Ok(())
}

fn log_ref(path: &Path) -> Result<LogRef, Error> {
    let mut reader = HashingReader::new(fs_err::File::open(path)?);
    std::io::copy(&mut reader, &mut std::io::sink())?;
    let (_, sha256, size) = reader.finish();
    Ok(LogRef { sha256, size })
}

/// 32 hex digits that nobody can guess.
fn nonce() -> Result<String, Error> {
    let mut bytes = [0; 16];
    fs_err::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex::encode(bytes))
}
