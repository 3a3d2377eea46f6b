//! One run: the test command in a fresh container, its results, its record.

use std::io::Read as _;
use std::path::Path;

use super::Error;
use super::apply::{Prepared, environment, prepare};
use super::conditions;
use super::load::with_load;
use super::plan::{RunPlan, blank, record_key, run_key};
use super::profile::{Axis, Setting};
use super::reading::{REPORT_LIMIT, printed, read_run, too_long};
use super::record::{LogRef, Phase, RunOutcome, RunRecord};
use super::records::{load, store_record};
use crate::base::progress::Task;
use crate::base::{Digest, HashingReader, Store, nonce};
use crate::image::{Image, Layer};
use crate::results::{
    JUNIT_FILE, NONCE_FILE, Options, Place, REPORT_FILE, REPORT_FOLDER, RUNNER_FOLDER, Report,
    Source, instrument, runner_files,
};
use crate::runtime::{BLACK_HOLE_DEVICE, Mount, Network, Root, RunLog, RunSpec, Workbench};

/// How often a container that could not be had is tried again.
const RETRIES: u32 = 2;

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
                bench.runtime.name().clone_into(&mut record.runtime);
                record.outcome = RunOutcome::InfraError { reason: error.to_string() };
                break record;
            }
            Err(error) => return Err(error),
        }
    };
    task.done_with(record.outcome.explain());
    Ok(record)
}

/// After so many repeats without a record, no later one is looked for: single ones are lacking where a container could not
/// be had.
const LONGEST_GAP: u32 = 8;

/// The stored runs of a plan's phase, profile and series, whatever its repeat.
pub fn made_before(
    store: &Store,
    image: &Image,
    plan: &RunPlan<'_>,
) -> Result<Vec<RunRecord>, Error> {
    let mut record = blank(image, plan, Digest::of(b""))?;
    let mut found = Vec::new();
    let mut gap = 0;
    for repeat in 0.. {
        record.repeat = repeat;
        let before = found.len();
        for alone in [false, true] {
            record.alone = alone;
            let key = record_key(&record, &plan.spec.commands.rebuild)?;
            found.extend(load(store, &key)?);
        }
        gap = if found.len() > before { 0 } else { gap + 1 };
        if gap == LONGEST_GAP {
            break;
        }
    }
    Ok(found)
}

/// Whether another try may help: the set-up of a container failed, or a daemon did, not the host or the store.
fn is_passing(error: &Error) -> bool {
    use crate::runtime::Error as Runtime;
    matches!(
        error,
        Error::Runtime(Runtime::Daemon(_) | Runtime::System { .. } | Runtime::Launcher { .. })
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
    bench.runtime.name().clone_into(&mut record.runtime);
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
        test_timeout: plan.patience(plan.spec.limits.test_timeout),
        continue_on_collection_errors: plan.spec.test.continue_on_collection_errors,
        black_hole: Some(BLACK_HOLE_DEVICE.to_owned()),
        collect_only: plan.phase == Phase::Collect,
        ..plan.order()
    };
    let parser = plan.spec.test.parser;
    let instrumented = instrument(&plan.command()?, parser, &Place::default())?;
    record.command = instrumented.argv;
    record.source = instrumented.source;
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
        Mount { source: exchange.clone(), target: REPORT_FOLDER.to_owned(), writable: true },
    ];
    let layers: Vec<Layer> = image.layers.iter().chain(&record.layers).copied().collect();
    let without = conditions::apply(plan.profile, &mut spec, plan.tools);
    let copies = match plan.profile.get(Axis::Load) {
        Some(Setting::Load { copies }) => *copies,
        _ => 1,
    };
    let mut log = with_load(bench, Root::Layers(&layers), &spec, copies)?;
    log.gaps.extend(without);
    log.gaps.sort();

    let stream_path = scratch.join("stream");
    let junit = exchange.join(JUNIT_FILE);
    let size = held.metadata()?.len();
    let (stream, report) = if size > REPORT_LIMIT {
        record.outcome = too_long(size);
        (Vec::new(), Report::default())
    } else {
        let bytes = match record.source {
            Source::Stream => {
                let mut stream = Vec::new();
                (&held).read_to_end(&mut stream)?;
                stream
            }
            Source::Text => printed(&log, parser, &junit)?,
        };
        let (outcome, report) = read_run(&log, plan, record.source, &bytes, &record.nonce)?;
        record.outcome = outcome;
        (bytes, report)
    };
    fs_err::write(&stream_path, &stream)?;
    record.report = LogRef { sha256: Digest::of(&stream), size: stream.len() as u64 };
    record.session_ended = report.process_exit.is_some();
    record.collected = report.collected.as_ref().map(|ids| ids.len() as u64);
    if plan.phase == Phase::Collect {
        record.ids = match report.source {
            Source::Stream => report.collected.unwrap_or_default(),
            // It cannot collect without running: what ran is what is known.
            Source::Text => report.tests.keys().cloned().collect(),
        };
    }
    record.disobeyed = match report.source {
        Source::Stream => report.disobeyed,
        Source::Text => options.asked().into_iter().map(str::to_owned).collect(),
    };
    record.tests = report.tests;
    record.collection_errors = report.collection_errors;
    record.collection_skips = report.collection_skips;
    fill_log(&mut record, &log)?;
    correct_network(&mut record);
    store_record(bench.store, record, [&log.stdout, &log.stderr, &stream_path])
}

/// Between two readings of counters in the container the kernel may send packets of its own; the count from outside leaves
/// those out, so no test sent more.
fn correct_network(record: &mut RunRecord) {
    let Some(tries) = record.network_attempts else { return };
    for result in record.tests.values_mut() {
        let Some(used) = &mut result.network else { continue };
        used.packets = used.packets.min(tries.packets);
        used.lookups = used.lookups.min(tries.lookups);
        if used.packets + used.lookups == 0 {
            result.network = None;
        }
    }
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
