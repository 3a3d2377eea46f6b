//! Which run: its inputs, its key, its command.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Error;
use super::apply::{Patch, REBUILD};
use super::conditions::Tools;
use super::ladder::wall_factor;
use super::patch::test_files;
use super::profile::{Axis, Profile, Setting, TestOrder};
use super::record::{LogRef, PatchName, Phase, RECORD_VERSION, RunOutcome, RunRecord};
use crate::base::{Digest, canon};
use crate::dataset::InstanceId;
use crate::image::Image;
use crate::results::{Options, Source, reversed_files, runner_digest, shuffled};
use crate::runtime::{EMBEDDED, Limits};
use crate::spec::{Spec, TestFiles};

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
    /// What conditions are made with besides the runtime.
    pub tools: &'a Tools,
    /// The test patch.
    pub test_patch: &'a [u8],
    /// The gold patch; applied in [`Phase::Post`] only.
    pub gold_patch: &'a [u8],
    /// How many runs the machine makes at once.
    pub slots: u32,
}

impl RunPlan<'_> {
    /// What people call it.
    pub(crate) fn name(&self) -> String {
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
    pub(crate) fn patches(&self) -> Vec<Patch> {
        let test = Patch::new(PatchName::Test, self.test_patch);
        match self.phase {
            Phase::Pre => vec![test],
            Phase::Collect | Phase::Post => {
                vec![Patch::new(PatchName::Gold, self.gold_patch), test]
            }
        }
    }

    /// The digests of the tools that the profile needs.
    fn used_tools(&self) -> Result<BTreeMap<String, Digest>, Error> {
        let Some(library) = &self.tools.faketime else { return Ok(BTreeMap::new()) };
        if self.profile.get(Axis::Clock).is_none() {
            return Ok(BTreeMap::new());
        }
        Ok([("libfaketime".to_owned(), Digest::of(fs_err::read(library)?))].into())
    }

    /// A limit of time in seconds under the run's conditions: with less processor, tests may take longer.
    pub(crate) fn patience(&self, seconds: f64) -> f64 {
        seconds * wall_factor(self.profile, self.spec.limits.cpus)
    }

    pub(crate) fn limits(&self) -> Limits {
        let limits = &self.spec.limits;
        Limits {
            cpus: Some(limits.cpus),
            memory: Some(limits.memory),
            pids: Some(limits.pids),
            shm: limits.shm,
            // What every Linux allows (its own default of the hard limit), so that it is the same on all.
            open_files: Some(4096),
            wall: Duration::try_from_secs_f64(self.patience(limits.timeout))
                .unwrap_or(Duration::MAX),
            ..Limits::default()
        }
    }

    /// The options that say in which order tests run.
    pub(crate) fn order(&self) -> Options {
        let Some(Setting::Order { order }) = self.profile.get(Axis::Order) else {
            return Options::default();
        };
        let (order, only) = match order {
            TestOrder::ReversedFiles => (reversed_files(self.collected), false),
            TestOrder::Shuffled { seed } => (shuffled(self.collected, *seed), false),
            TestOrder::ShuffledBackwards { seed } => {
                (shuffled(self.collected, *seed).into_iter().rev().collect(), false)
            }
            TestOrder::Only { tests } => (tests.clone(), true),
        };
        Options { order: Some(order), only, ..Options::default() }
    }

    /// The test command with its files, before instrumentation.
    pub(crate) fn command(&self) -> Result<Vec<String>, Error> {
        let files = file_arguments(self.spec, self.test_patch)
            .ok_or_else(|| Error::NoTestFiles { instance: self.instance.to_string() })?;
        Ok(self.spec.test.command.iter().cloned().chain(files).collect())
    }
}

/// The test files that a spec's command is given; `None` where the test patch leaves none.
pub fn file_arguments(spec: &Spec, test_patch: &[u8]) -> Option<Vec<String>> {
    let files = match &spec.test.files {
        TestFiles::All => return Some(Vec::new()),
        TestFiles::Listed { paths } => paths.clone(),
        TestFiles::TestPatch => test_files(test_patch),
    };
    // A file is never taken for an option.
    let file = |file: String| if file.starts_with('-') { format!("./{file}") } else { file };
    (!files.is_empty()).then(|| files.into_iter().map(file).collect())
}

/// The key of a run: the digest of all that it depends on.
pub fn run_key(image: &Image, plan: &RunPlan<'_>) -> Result<Digest, Error> {
    record_key(&blank(image, plan, Digest::of(b""))?, &plan.spec.commands.rebuild)
        .map_err(Error::from)
}

/// The key that a record must have by its own inputs and the rebuild commands of its spec.
pub fn record_key(record: &RunRecord, rebuild: &[String]) -> Result<Digest, crate::base::Error> {
    let patches: Vec<Digest> = record.patches.iter().map(|patch| patch.sha256).collect();
    if record.version == 1 {
        return canon::digest(&serde_json::json!({
            "step": "verify.run/1",
            "image": record.image,
            "phase": record.phase,
            "patches": patches,
            "rebuild": rebuild,
            "run-hash": record.run_hash,
            "runner": record.runner,
            "profile": "plain",
            "repeat": record.repeat,
        }));
    }
    // What is built again is part of what runs, so how it is built counts, too.
    let rebuild = match rebuild {
        [] => serde_json::json!([]),
        commands => serde_json::json!({ "step": REBUILD, "commands": commands }),
    };
    canon::digest(&serde_json::json!({
        "step": "verify.run/2",
        "instance": record.instance,
        "image": record.image,
        "phase": record.phase,
        "patches": patches,
        "rebuild": rebuild,
        "run-hash": record.run_hash,
        "runner": record.runner,
        "tools": record.tools,
        "profile": record.profile,
        "series": record.series,
        "repeat": record.repeat,
        "alone": record.alone,
    }))
}

/// A record with its inputs only.
pub(crate) fn blank(image: &Image, plan: &RunPlan<'_>, key: Digest) -> Result<RunRecord, Error> {
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
        tools: plan.used_tools()?,
        patches: plan.patches().into_iter().map(|patch| patch.reference).collect(),
        layers: Vec::new(),
        command: Vec::new(),
        outcome: RunOutcome::Completed,
        status: None,
        source: Source::Stream,
        disobeyed: Vec::new(),
        session_ended: false,
        collected: None,
        ids: Vec::new(),
        tests: BTreeMap::new(),
        collection_errors: BTreeMap::new(),
        collection_skips: BTreeMap::new(),
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
        runtime: EMBEDDED.to_owned(),
        slots: plan.slots,
    })
}
