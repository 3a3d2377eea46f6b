//! Makes a manifest from what a pipeline holds at its end. Everything that an audit will want is put in the
//! store: rows, locks, image documents and compressed layers.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::Error;
use super::model::{
    BaseEntry, BundleFile, Digests, EnvironmentEntry, Evidence, Host, ImageEntry, InstanceEntry,
    InstanceEvidence, LayerBlob, MANIFEST_VERSION, Manifest, RunEntry, SplitEntry, Subject,
    outcomes_digest,
};
use crate::base::{Arch, Cancel, Digest, Store, canon};
use crate::dataset::{Instance, Split};
use crate::image::{self, Compressor, Image, Layer};
use crate::lock::{self, BaseLock, EnvLock, FileRef, ToolsLock};
use crate::results::runner_digest;
use crate::runtime::{EMBEDDED, Gap, Network};
use crate::spec::Spec;
use crate::verify::{Lists, Policy, RunOutcome, RunRecord, VERDICT_VERSION, judge};

/// A split and what was made of it.
#[derive(Debug, Clone, Copy)]
pub struct ManifestInput<'a> {
    /// The split, with its lists.
    pub split: &'a Split,
    /// The instances that were verified.
    pub instances: &'a [InstanceInput<'a>],
    /// The policy that judges.
    pub policy: &'a Policy,
    /// How layers are compressed.
    pub compressor: Compressor,
    /// Version of hallmark.
    pub version: &'a str,
}

/// An instance and what was made of it.
#[derive(Debug, Clone, Copy)]
pub struct InstanceInput<'a> {
    /// The row.
    pub instance: &'a Instance,
    /// Its spec.
    pub spec: &'a Spec,
    /// The lock of the spec's base image.
    pub base_lock: &'a BaseLock,
    /// The lock of what runs on the base use besides its image, where they used any.
    pub tools_lock: Option<&'a ToolsLock>,
    /// The base image.
    pub base: &'a Image,
    /// The lock of the environment.
    pub env_lock: &'a EnvLock,
    /// The environment's image.
    pub env: &'a Image,
    /// The instance's image.
    pub image: &'a Image,
    /// The files that its source was made from: a pair's sdists, a pack.
    pub files: &'a [FileRef],
    /// The expected tests.
    pub lists: &'a Lists,
    /// Its runs, of both phases, in any order.
    pub runs: &'a [RunRecord],
}

/// Makes the manifest. Two calls with the same values give the same bytes. Runs that were hallmark's own failure have
/// no stored record and are left out.
pub fn build(store: &Store, input: &ManifestInput<'_>, cancel: &Cancel) -> Result<Manifest, Error> {
    let mut making = Making {
        store,
        input,
        cancel,
        images: BTreeMap::new(),
        run_layers: BTreeSet::new(),
        gaps: BTreeSet::new(),
        runtimes: BTreeSet::new(),
        slots: 0,
    };
    let mut bases = BTreeMap::new();
    let mut environments = BTreeMap::new();
    let mut instances = BTreeMap::new();
    let mut evidence = BTreeMap::new();
    for one in input.instances {
        cancel.check()?;
        let base = one.spec.base.clone();
        if let Entry::Vacant(entry) = bases.entry(base) {
            entry.insert(making.base(one)?);
        }
        let name = one.spec.name();
        if let Entry::Vacant(entry) = environments.entry(name) {
            entry.insert(making.environment(one)?);
        }
        let id = one.instance.id.to_string();
        instances.insert(id.clone(), making.instance(one)?);
        evidence.insert(id, making.evidence(one)?);
    }
    let subject = Subject {
        split: making.split()?,
        platform: input.instances.first().map_or(Arch::HOST, |one| one.image.arch),
        network: Network::None,
        runner: runner_digest(),
        rules: VERDICT_VERSION,
        policy: input.policy.clone(),
        bases,
        environments,
        instances,
    };
    let run_layers = making.run_layers()?;
    let evidence = Evidence { images: making.images, run_layers, instances: evidence };
    let host = Host {
        hallmark: input.version.to_owned(),
        arch: Arch::HOST,
        slots: making.slots,
        gaps: making.gaps.into_iter().collect(),
        runtimes: if making.runtimes.iter().all(|name| name == EMBEDDED) {
            Vec::new()
        } else {
            making.runtimes.into_iter().collect()
        },
    };
    let digests = Digests::of(&subject, &evidence, &host)?;
    Ok(Manifest { version: MANIFEST_VERSION, digests, subject, evidence, host })
}

struct Making<'a> {
    store: &'a Store,
    input: &'a ManifestInput<'a>,
    cancel: &'a Cancel,
    images: BTreeMap<Digest, image::ImageDigests>,
    run_layers: BTreeSet<Layer>,
    gaps: BTreeSet<Gap>,
    runtimes: BTreeSet<String>,
    slots: u32,
}

impl Making<'_> {
    /// The split, its canonical rows put in the store.
    fn split(&self) -> Result<SplitEntry, Error> {
        let split = self.input.split;
        let mut rows: Vec<&Instance> = split.instances.iter().collect();
        rows.sort_by(|a, b| a.id.cmp(&b.id));
        let held = self.store.put_blob(&canon::to_vec(&rows)?)?;
        let hash = split.hash()?;
        debug_assert_eq!(held, hash, "the rows that are kept are those that are hashed");
        Ok(SplitEntry { name: split.name.clone(), hash })
    }

    fn image(&mut self, image: &Image) -> Result<ImageEntry, Error> {
        if !self.images.contains_key(&image.key) {
            let digests = image::manifest(self.store, image, self.input.compressor, self.cancel)?;
            self.images.insert(image.key, digests);
        }
        let config = self.images[&image.key].config;
        Ok(ImageEntry { image: image.clone(), config })
    }

    fn base(&mut self, one: &InstanceInput<'_>) -> Result<BaseEntry, Error> {
        let mut values = one.base_lock.clone();
        values.debs.sort();
        Ok(BaseEntry {
            lock: self.store.put_blob(&canon::to_vec(&values)?)?,
            files: bundle_files(&lock::base_files(one.base_lock)),
            tools: bundle_files(&one.tools_lock.map(lock::tools_files).unwrap_or_default()),
            image: self.image(one.base)?,
        })
    }

    fn environment(&mut self, one: &InstanceInput<'_>) -> Result<EnvironmentEntry, Error> {
        let spec = one.spec;
        let values = sorted(one.env_lock);
        let canonical = canon::to_vec(spec)?;
        let value = serde_json::from_slice(&canonical).map_err(crate::base::Error::Canon)?;
        Ok(EnvironmentEntry {
            spec: value,
            env_hash: spec.env_hash()?,
            run_hash: spec.run_hash()?,
            parser: spec.test.parser,
            base: spec.base.clone(),
            lock: self.store.put_blob(&canon::to_vec(&values)?)?,
            files: bundle_files(&lock::env_files(one.env_lock, one.base_lock)),
            image: self.image(one.env)?,
        })
    }

    fn instance(&mut self, one: &InstanceInput<'_>) -> Result<InstanceEntry, Error> {
        // Runs after the gold patch have both patches; those before, one.
        let patches = one
            .runs
            .iter()
            .map(|run| &run.patches)
            .max_by_key(|patches| patches.len())
            .cloned()
            .unwrap_or_default();
        Ok(InstanceEntry {
            environment: one.spec.name(),
            files: bundle_files(one.files),
            patches,
            lists: one.lists.clone(),
            image: self.image(one.image)?,
        })
    }

    fn evidence(&mut self, one: &InstanceInput<'_>) -> Result<InstanceEvidence, Error> {
        let mut runs: Vec<&RunRecord> = one
            .runs
            .iter()
            .filter(|run| !matches!(run.outcome, RunOutcome::InfraError { .. }))
            .collect();
        runs.sort_by_cached_key(|run| (run.phase, run.profile.clone(), run.repeat, run.key));
        let mut entries = Vec::new();
        for run in &runs {
            self.run_layers.extend(run.layers.iter().copied());
            self.gaps.extend(run.gaps.iter().cloned());
            self.runtimes.insert(run.runtime.clone());
            self.slots = self.slots.max(run.slots);
            entries.push(self.run(one, run)?);
        }
        let records: Vec<RunRecord> = runs.into_iter().cloned().collect();
        let verdict = judge(one.lists, &records, self.input.policy);
        Ok(InstanceEvidence { runs: entries, verdict })
    }

    fn run(&self, one: &InstanceInput<'_>, run: &RunRecord) -> Result<RunEntry, Error> {
        // The digest of what is stored, not of what is in memory.
        let path = self.store.run_path(&run.key).join("record.json");
        let missing = || Error::NoRecord { instance: one.instance.id.to_string(), key: run.key };
        let bytes = fs_err::read(path).map_err(|_| missing())?;
        Ok(RunEntry {
            key: run.key,
            phase: run.phase,
            series: run.series.clone(),
            repeat: run.repeat,
            alone: run.alone,
            profile: run.profile.clone(),
            outcome: run.outcome.as_str().to_owned(),
            outcomes: outcomes_digest(run)?,
            record: Digest::of(bytes),
            stdout: run.stdout,
            stderr: run.stderr,
            report: run.report,
        })
    }

    fn run_layers(&self) -> Result<Vec<LayerBlob>, Error> {
        let blob = |layer: &Layer| -> Result<LayerBlob, Error> {
            let blob = image::compress(self.store, layer, self.input.compressor, self.cancel)?;
            Ok(LayerBlob { layer: *layer, blob })
        };
        self.run_layers.iter().map(blob).collect()
    }
}

fn bundle_files(files: &[FileRef]) -> Vec<BundleFile> {
    let unique: BTreeSet<BundleFile> = files
        .iter()
        .map(|file| BundleFile { name: file.name.clone(), sha256: file.sha256, size: file.size })
        .collect();
    unique.into_iter().collect()
}

/// The lock in the order in which its digest is taken.
fn sorted(lock: &EnvLock) -> EnvLock {
    let mut lock = lock.clone();
    lock.debs.sort();
    lock.packages.sort();
    lock.build_environments.sort();
    for environment in &mut lock.build_environments {
        environment.packages.sort();
    }
    lock.built.sort();
    lock
}
