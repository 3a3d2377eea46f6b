//! The gold runs of one instance, as work in pieces: what is wanted next hangs on the records so far
//! ([`verify::wanted`]), and many instances climb at once.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use super::Error;
use super::board::{Board, Item};
use super::graph::{Next, Piece, Source};
use super::stages::Pipeline;
use crate::base::Digest;
use crate::verify::conditions::Tools;
use crate::verify::{
    self, Lists, Phase, Policy, Profile, RunOutcome, RunPlan, RunRecord, RunRequest,
};

/// What is asked of the runs of a split.
#[derive(Debug, Clone)]
pub struct Verification {
    /// What an admission asks for.
    pub policy: Policy,
    /// Which verification; empty for the first. Runs of another series are not taken for its own.
    pub series: String,
}

/// What pieces leave for the source.
#[derive(Default)]
struct Found {
    records: Vec<RunRecord>,
    /// Runs that hallmark could not make, however often it tried: they are not asked for again.
    given_up: Vec<RunRequest>,
    flying: Vec<RunRequest>,
    /// Whether something came in since the requests were computed.
    changed: bool,
    /// Whether runs of before were looked for.
    recalled: bool,
}

/// An instance on its way up the ladder.
pub(crate) struct Climb<'a> {
    pipeline: &'a Pipeline<'a>,
    board: &'a Board,
    item: &'a Item,
    verification: &'a Verification,
    lists: Lists,
    found: Arc<Mutex<Found>>,
    queue: Vec<RunRequest>,
    /// How far the search for runs of before has come.
    recall: Recall,
}

/// Runs that were made before are evidence, also those that are not asked for now.
#[derive(PartialEq, Eq)]
enum Recall {
    ToDo,
    Begun,
}

/// Where runs are plain.
const NO_TOOLS: Tools = Tools { faketime: None };

const NO_PANIC: &str = "nobody panics with the lock held";

impl<'a> Climb<'a> {
    pub(crate) fn new(
        pipeline: &'a Pipeline<'a>,
        board: &'a Board,
        item: &'a Item,
        lists: Lists,
        verification: &'a Verification,
    ) -> Self {
        let found = Arc::new(Mutex::new(Found { changed: true, ..Found::default() }));
        Self {
            pipeline,
            board,
            item,
            verification,
            lists,
            found,
            queue: Vec::new(),
            recall: Recall::ToDo,
        }
    }

    /// The piece that looks for runs of before.
    fn remember(&self) -> Next<'a, Error> {
        let (shared, pipeline, board, item) =
            (Arc::clone(&self.found), self.pipeline, self.board, self.item);
        let verification = self.verification;
        Next::Piece(Piece {
            alone: false,
            work: Box::new(move || {
                let records = pipeline.made_before(board, item, verification)?;
                let mut found = shared.lock().expect(NO_PANIC);
                found.records = records;
                (found.changed, found.recalled) = (true, true);
                Ok(())
            }),
        })
    }

    /// Seconds that one more run will take, by those so far.
    fn expected(found: &Found) -> f64 {
        let walls = found.records.iter().filter(|run| run.phase == Phase::Post).map(|run| run.wall);
        walls.fold(1.0, f64::max)
    }
}

/// Patches are applied and projects rebuilt once for all runs that have the same: the first of them does it.
fn patched(request: &RunRequest) -> bool {
    request.phase == Phase::Pre
}

impl<'a> Source<'a, Error> for Climb<'a> {
    fn next(&mut self) -> Next<'a, Error> {
        if self.recall == Recall::ToDo {
            self.recall = Recall::Begun;
            self.item.begun.get_or_init(|| ());
            return self.remember();
        }
        let mut found = self.found.lock().expect(NO_PANIC);
        if !found.recalled {
            return Next::Wait;
        }
        if found.changed {
            found.changed = false;
            self.queue = verify::wanted(&self.verification.policy, &self.lists, &found.records);
            self.queue.retain(|request| {
                !found.flying.contains(request) && !found.given_up.contains(request)
            });
        }
        if self.queue.is_empty() {
            return if found.flying.is_empty() { Next::Done } else { Next::Wait };
        }
        let ready: BTreeSet<bool> =
            found.records.iter().map(|record| record.phase == Phase::Pre).collect();
        let begun: BTreeSet<bool> = found.flying.iter().map(patched).collect();
        let free = |request: &RunRequest| {
            let patches = patched(request);
            ready.contains(&patches) || !begun.contains(&patches)
        };
        let Some(at) = self.queue.iter().position(free) else { return Next::Wait };
        let request = self.queue.remove(at);
        found.flying.push(request.clone());
        let (shared, pipeline, board, item) =
            (Arc::clone(&self.found), self.pipeline, self.board, self.item);
        let series = &self.verification.series;
        Next::Piece(Piece {
            alone: request.alone,
            work: Box::new(move || {
                let collected = collected(&shared.lock().expect(NO_PANIC).records);
                let result = pipeline.run_item(board, item, &request, series, &collected);
                let mut found = shared.lock().expect(NO_PANIC);
                found.flying.retain(|one| *one != request);
                found.changed = true;
                let record = result?;
                if matches!(record.outcome, RunOutcome::InfraError { .. }) {
                    found.given_up.push(request);
                }
                found.records.push(record);
                Ok(())
            }),
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers of runs are small")]
    fn left(&self) -> f64 {
        let found = self.found.lock().expect(NO_PANIC);
        let plain = |run: &&RunRecord| run.phase == Phase::Post && run.profile.is_plain();
        let made = found.records.iter().filter(plain).count();
        let plain_left = (self.verification.policy.runs as usize).saturating_sub(made);
        let others = self.queue.iter().filter(|request| !request.profile.is_plain()).count();
        (plain_left + others) as f64 * Self::expected(&found)
    }
}

/// The ids in the order in which the first collection found them.
pub(crate) fn collected(records: &[RunRecord]) -> Vec<String> {
    let first = records
        .iter()
        .filter(|record| record.phase == Phase::Collect && !record.ids.is_empty())
        .min_by_key(|record| (!record.profile.is_plain(), record.repeat));
    first.map(|record| record.ids.clone()).unwrap_or_default()
}

impl Pipeline<'_> {
    /// One run of an instance; its record is kept on the board.
    pub(crate) fn run_item(
        &self,
        board: &Board,
        item: &Item,
        request: &RunRequest,
        series: &str,
        collected: &[String],
    ) -> Result<RunRecord, Error> {
        item.begun.get_or_init(|| ());
        let record = self.with_plan(board, item, request, series, collected, |plan| {
            let key = verify::run_key(item.image(), plan)?;
            let held = self.bench.store.run_path(&key).exists();
            let record = verify::execute(self.bench, item.image(), plan)?;
            if !held {
                item.made.fetch_add(1, Ordering::Relaxed);
            }
            Ok(record)
        })?;
        item.runs.lock().expect(NO_PANIC).push(record.clone());
        Ok(record)
    }

    /// The stored runs of a series, under plain and combined conditions; they are kept on the board.
    fn made_before(
        &self,
        board: &Board,
        item: &Item,
        verification: &Verification,
    ) -> Result<Vec<RunRecord>, Error> {
        let plain =
            [Phase::Collect, Phase::Pre, Phase::Post].map(|phase| (phase, Profile::plain()));
        let combined = verify::combined_runs(&verification.policy.axes);
        let all = plain.into_iter().chain(combined.into_iter().map(|one| (Phase::Post, one)));
        let mut records = Vec::new();
        for (phase, profile) in all {
            let request = RunRequest { phase, profile, repeat: 0, alone: false };
            records.extend(self.with_plan(
                board,
                item,
                &request,
                &verification.series,
                &[],
                |plan| Ok(verify::made_before(self.bench.store, item.image(), plan)?),
            )?);
        }
        item.runs.lock().expect(NO_PANIC).extend(records.iter().cloned());
        Ok(records)
    }

    fn with_plan<T>(
        &self,
        board: &Board,
        item: &Item,
        request: &RunRequest,
        series: &str,
        collected: &[String],
        work: impl FnOnce(&RunPlan<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let patches = item.patches.get().expect("derived before runs");
        let read = |blob: &Digest| self.bench.store.read_blob(blob);
        let (test_patch, gold_patch) = (read(&patches.test)?, read(&patches.gold)?);
        let env = &board.envs[item.env];
        work(&RunPlan {
            instance: &item.instance.id,
            spec: &env.spec,
            phase: request.phase,
            series,
            repeat: request.repeat,
            profile: &request.profile,
            alone: request.alone,
            collected,
            tools: board.base_of(env).tools.get().unwrap_or(&NO_TOOLS),
            test_patch: &test_patch,
            gold_patch: &gold_patch,
            slots: u32::try_from(self.jobs).unwrap_or(u32::MAX),
        })
    }
}
