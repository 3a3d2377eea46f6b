//! What came of a split: verdicts from records, and rows with collected lists.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use super::board::{Base, Board, Env, Item};
use super::stages::Pipeline;
use super::{Error, Failure};
use crate::base::Store;
use crate::bundle::history;
use crate::dataset::{self, Instance, Split};
use crate::image::Compressor;
use crate::lock::{self, BaseLock, EnvLock, FileRef, ToolsLock};
use crate::manifest::{self, InstanceInput, Manifest, ManifestInput};
use crate::verify::{self, Lists, Phase, Policy, RunRecord, Verdict};

/// What a graph left.
#[derive(Debug)]
pub struct Done {
    /// What went wrong, in the order of the graph.
    pub failures: Vec<Failure>,
    /// How many nodes did not run, because of a failure or an interruption.
    pub skipped: usize,
}

/// The verdict on one instance.
#[derive(Debug, Clone, serde::Serialize)]
pub struct InstanceVerdict {
    /// The instance.
    pub instance: String,
    /// Its expected tests.
    pub lists: Lists,
    /// What its runs say.
    pub verdict: Verdict,
}

/// Where the runs of a split came from.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunCounts {
    /// Runs that were made now.
    pub made: usize,
    /// Runs that the store had.
    pub found: usize,
    /// How many of those another runtime than today's made, by its name.
    pub by_others: BTreeMap<String, usize>,
}

/// Rows with their lists.
#[derive(Debug)]
pub struct Collected {
    /// The whole split, as JSON lines.
    pub rows: String,
    /// What to know of single instances.
    pub notes: Vec<String>,
    /// How many instances have no FAIL_TO_PASS.
    pub refused: usize,
}

impl Pipeline<'_> {
    /// Where the runs so far came from.
    pub fn run_counts(&self, board: &Board) -> RunCounts {
        let mut counts = RunCounts::default();
        for item in &board.items {
            let runs = item.runs.lock().expect("no holder panics");
            let made = item.made.load(Ordering::Relaxed);
            counts.made += made;
            counts.found += runs.len().saturating_sub(made);
            for run in runs.iter().filter(|run| run.runtime != self.bench.runtime.name()) {
                *counts.by_others.entry(run.runtime.clone()).or_default() += 1;
            }
        }
        counts
    }

    /// The manifest of every judged instance, with the digests that its images have when `compressor` compresses them. `version` is
    /// hallmark's own; it is told with the host, not with the subject.
    pub fn manifest(
        &self,
        board: &Board,
        verdicts: &[InstanceVerdict],
        policy: &Policy,
        compressor: Compressor,
        version: &str,
    ) -> Result<Manifest, Error> {
        let parts: Vec<Parts> = board
            .items
            .iter()
            .filter_map(|item| {
                let row = verdicts.iter().find(|row| row.instance == item.instance.id.as_str())?;
                Some((item, &row.lists, item.all_records()))
            })
            .map(|(item, lists, runs)| {
                let files = source_files(self.bench.store, &item.instance)?;
                Ok(Parts { item, lists, runs, files })
            })
            .collect::<Result<_, Error>>()?;
        let instances: Vec<InstanceInput<'_>> = parts
            .iter()
            .map(|Parts { item, lists, runs, files }| {
                let env = &board.envs[item.env];
                let base = board.base_of(env);
                InstanceInput {
                    instance: &item.instance,
                    spec: &env.spec,
                    base_lock: base.lock(),
                    tools_lock: base.tools_lock.get(),
                    base: base.image(),
                    env_lock: env.lock(),
                    env: env.image(),
                    image: item.image(),
                    files,
                    lists,
                    runs,
                }
            })
            .collect();
        let input = ManifestInput {
            split: &board.split,
            instances: &instances,
            policy,
            compressor,
            version,
        };
        Ok(manifest::build(self.bench.store, &input, self.bench.cancel)?)
    }
}

/// The files that an instance's source is made from, as far as they are known here.
fn source_files(store: &Store, instance: &Instance) -> Result<Vec<FileRef>, Error> {
    Ok(match &instance.source {
        dataset::Source::Pair(pair) => super::stages::pair_files(pair),
        dataset::Source::Git { base_commit, .. } => history::held(store, base_commit)?
            .iter()
            .map(|held| history::file(&instance.repo, base_commit, held))
            .collect(),
    })
}

/// What of an instance's manifest entry is made on the way.
struct Parts<'a> {
    item: &'a Item,
    lists: &'a Lists,
    runs: Vec<RunRecord>,
    files: Vec<FileRef>,
}

impl Item {
    /// Every record, in an order that does not hang on which came first.
    pub(crate) fn all_records(&self) -> Vec<RunRecord> {
        let mut records = self.runs.lock().expect("no holder panics").clone();
        records.sort_by_cached_key(|record| {
            (record.phase, record.profile.clone(), record.repeat, record.alone)
        });
        records
    }

    /// The plain records of a phase, by repeat.
    pub(crate) fn records(&self, phase: Phase) -> Vec<RunRecord> {
        let runs = self.runs.lock().expect("no holder panics");
        let mut records: Vec<RunRecord> = runs
            .iter()
            .filter(|run| run.phase == phase && run.profile.is_plain())
            .cloned()
            .collect();
        records.sort_by_key(|record| record.repeat);
        records
    }

    pub(crate) fn lists(&self) -> Option<Lists> {
        Some(Lists {
            fail_to_pass: self.instance.fail_to_pass.clone()?,
            pass_to_pass: self.instance.pass_to_pass.clone()?,
        })
    }
}

impl Board {
    /// The split's name.
    pub fn split_name(&self) -> &str {
        &self.split.name
    }

    /// How many instances are worked on.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is nothing to work on.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Judges every instance whose gold runs were begun. Rows without lists are an error: nothing can be expected of them.
    pub fn verdicts(&self, policy: &Policy) -> Result<Vec<InstanceVerdict>, Error> {
        let mut verdicts = Vec::new();
        for item in &self.items {
            if item.begun.get().is_none() {
                continue;
            }
            let records = item.all_records();
            let lists = item
                .lists()
                .ok_or_else(|| Error::NotCollected { id: item.instance.id.to_string() })?;
            let verdict = verify::judge(&lists, &records, policy);
            verdicts.push(InstanceVerdict {
                instance: item.instance.id.to_string(),
                lists,
                verdict,
            });
        }
        Ok(verdicts)
    }

    /// The split's rows with the lists that the runs give.
    pub fn collect(&self) -> Result<Collected, Error> {
        let mut notes = Vec::new();
        let mut refused = 0;
        let mut instances: Vec<Instance> = self.split.instances.clone();
        for item in &self.items {
            let id = &item.instance.id;
            let derived =
                match verify::derive_lists(&item.records(Phase::Pre), &item.records(Phase::Post)) {
                    Ok(derived) => derived,
                    Err(why) => {
                        refused += 1;
                        notes.push(format!("{id}: refused: {why}"));
                        continue;
                    }
                };
            for (what, tests) in [
                ("unstable, in neither list", &derived.unstable),
                ("fails before and after", &derived.fail_both),
                ("passes before and fails after", &derived.pass_to_fail),
                ("skipped, coverage lost", &derived.skipped),
                ("gone after the gold patch", &derived.gone),
            ] {
                notes.extend(tests.iter().map(|test| format!("{id}: {what}: {test}")));
            }
            if derived.lists.pass_to_pass.is_empty() {
                notes.push(format!(
                    "{id}: every test is FAIL_TO_PASS: the suite may not import before the fix"
                ));
            }
            if let Some(row) = instances.iter_mut().find(|row| row.id == *id) {
                row.fail_to_pass = Some(derived.lists.fail_to_pass);
                row.pass_to_pass = Some(derived.lists.pass_to_pass);
            }
        }
        let split = Split { name: self.split.name.clone(), instances };
        Ok(Collected { rows: dataset::write(&split), notes, refused })
    }

    /// Every file that the locks of this run and the rows name, each once.
    pub fn files(&self, store: &Store) -> Result<Vec<FileRef>, Error> {
        self.files_of(
            store,
            |base| base.lock.get(),
            |env| env.lock.get(),
            |base| base.tools_lock.get(),
        )
    }

    /// Every file that the locks on disk and the rows name, each once.
    pub fn held_files(&self, store: &Store) -> Result<Vec<FileRef>, Error> {
        self.files_of(
            store,
            |base| base.held.as_ref().ok(),
            |env| env.held.as_ref().ok(),
            |base| base.held_tools.as_ref().ok(),
        )
    }

    fn files_of(
        &self,
        store: &Store,
        base_lock: impl Fn(&Base) -> Option<&BaseLock>,
        env_lock: impl Fn(&Env) -> Option<&EnvLock>,
        tools_lock: impl Fn(&Base) -> Option<&ToolsLock>,
    ) -> Result<Vec<FileRef>, Error> {
        let mut files: Vec<FileRef> = Vec::new();
        for base in &self.bases {
            files.extend(base_lock(base).map(lock::base_files).unwrap_or_default());
            files.extend(tools_lock(base).map(lock::tools_files).unwrap_or_default());
        }
        for env in &self.envs {
            if let (Some(lock), Some(base)) = (env_lock(env), base_lock(self.base_of(env))) {
                files.extend(lock::env_files(lock, base));
            }
        }
        for item in &self.items {
            files.extend(source_files(store, &item.instance)?);
        }
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// One line a lock: what it holds.
    pub fn lock_lines(&self) -> Vec<String> {
        let bases = self.bases.iter().filter_map(|base| {
            let lock = base.lock.get()?;
            Some(format!(
                "base {}: {} .debs as of {}",
                base.definition.name,
                lock.debs.len(),
                lock.as_of
            ))
        });
        let envs = self.envs.iter().filter_map(|env| {
            let lock = env.lock.get()?;
            Some(format!(
                "{}: {} packages, {} sdists, {} .debs",
                env.spec.name(),
                lock.packages.len(),
                lock.build_environments.len(),
                lock.debs.len()
            ))
        });
        bases.chain(envs).collect()
    }
}
