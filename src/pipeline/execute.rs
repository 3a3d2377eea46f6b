//! From a split to images, runs and verdicts: one graph, gone through once.

use super::board::{Board, Item};
use super::climb::{Climb, Verification};
use super::graph::{Graph, Node, Slot};
use super::stages::{Locks, Pipeline};
use super::{Done, Error, Failure};
use crate::verify::{Phase, Profile, RunRequest};

/// How far to go.
#[derive(Debug, Clone, Copy)]
pub enum Goal<'a> {
    /// Locks are there and answer their specs.
    Lock,
    /// Every locked file is in the store.
    Fetch,
    /// Images are built.
    Build,
    /// `pre` and `post` ran this often each, in plain conditions.
    Runs(u32),
    /// Every run was made that the verdict asks for.
    Verdicts(&'a Verification),
}

impl Goal<'_> {
    fn fetches(self) -> bool {
        !matches!(self, Self::Lock)
    }

    /// Whether the locks of tools have to hold.
    fn locks_tools(self) -> bool {
        matches!(self, Self::Lock | Self::Fetch | Self::Verdicts(_))
    }

    fn builds(self) -> bool {
        self.fetches() && !matches!(self, Self::Fetch)
    }
}

/// The graph, with what each node is for.
struct Plan<'a> {
    graph: Graph<'a, Error>,
    subjects: Vec<String>,
}

impl<'a> Plan<'a> {
    fn add(
        &mut self,
        slot: Slot,
        subject: String,
        after: &[Node],
        work: impl FnOnce() -> Result<(), Error> + Send + 'a,
    ) -> Node {
        self.subjects.push(subject);
        self.graph.add(slot, after, work)
    }
}

impl Pipeline<'_> {
    /// Locks that must hold and do not: known before any work is done.
    fn refused_locks(&self, board: &Board, goal: Goal<'_>) -> Vec<Failure> {
        if self.locks != Locks::Demand {
            return Vec::new();
        }
        let refused = |subject: String, why: &str| Failure {
            subject,
            error: Error::NotLocked { why: why.to_owned() },
        };
        let bases = board.bases.iter().filter_map(|base| {
            let why = base.held.as_ref().err()?;
            Some(refused(format!("lock of base {}", base.definition.name), why))
        });
        let envs = board.envs.iter().filter_map(|env| {
            board.base_of(env).held.as_ref().ok()?;
            let why = env.held.as_ref().err()?;
            Some(refused(format!("lock of {}", env.spec.name()), why))
        });
        let tools = board.bases.iter().filter(|_| goal.locks_tools()).filter_map(|base| {
            base.held.as_ref().ok()?;
            let why = base.held_tools.as_ref().err()?;
            Some(refused(format!("lock of the tools of base {}", base.definition.name), why))
        });
        bases.chain(envs).chain(tools).collect()
    }

    /// Rows of which nothing can be expected: known before any work is done.
    fn refused_rows(board: &Board) -> Vec<Failure> {
        let refused = board.items.iter().filter(|item| item.lists().is_none()).map(|item| {
            let id = item.instance.id.to_string();
            Failure { subject: format!("row {id}"), error: Error::NotCollected { id } }
        });
        refused.collect()
    }

    /// So many plain runs of both phases.
    fn plan_repeats<'a>(
        &'a self,
        plan: &mut Plan<'a>,
        board: &'a Board,
        item: &'a Item,
        built: Node,
        repeats: u32,
    ) {
        let id = &item.instance.id;
        for phase in [Phase::Pre, Phase::Post] {
            // The first run of a phase applies the patches and rebuilds; the others find that done.
            let mut prepared = built;
            for repeat in 0..repeats {
                let request = RunRequest { phase, profile: Profile::plain(), repeat, alone: false };
                let node = plan.add(
                    Slot::Core,
                    format!("{} run {} of {id}", phase.as_str(), repeat + 1),
                    &[prepared],
                    move || self.run_item(board, item, &request, "", &[]).map(|_| ()),
                );
                if repeat == 0 {
                    prepared = node;
                }
            }
        }
    }

    /// Does everything up to `goal`. Failures are of single bases, environments and instances; whatever does not depend on
    /// them is done.
    pub fn execute(&self, board: &Board, goal: Goal<'_>) -> Done {
        let failures = self.refused_locks(board, goal);
        if !failures.is_empty() {
            return Done { failures, skipped: 0 };
        }
        if matches!(goal, Goal::Verdicts(_)) {
            let failures = Self::refused_rows(board);
            if !failures.is_empty() {
                return Done { failures, skipped: 0 };
            }
        }
        let mut plan = Plan { graph: Graph::new(), subjects: Vec::new() };
        let env_stale: Vec<bool> = board.envs.iter().map(|env| self.must_lock(&env.held)).collect();

        let mut base_locked = Vec::new();
        let mut base_built = Vec::new();
        let mut tools = Vec::new();
        for (index, base) in board.bases.iter().enumerate() {
            let name = &base.definition.name;
            let locked = plan.add(Slot::Network, format!("lock of base {name}"), &[], move || {
                self.lock_base(base)
            });
            let wanted = goal.builds()
                || board
                    .envs
                    .iter()
                    .zip(&env_stale)
                    .any(|(env, stale)| env.base == index && *stale);
            let mut last = locked;
            if wanted || goal.fetches() {
                last = plan.add(
                    Slot::Network,
                    format!("files of base {name}"),
                    &[locked],
                    move || self.fetch_base(base),
                );
            }
            if wanted {
                last = plan.add(Slot::Core, format!("base {name}"), &[last], move || {
                    self.build_base(base)
                });
            }
            base_locked.push(locked);
            base_built.push(last);
            if goal.locks_tools() {
                let locked = plan.add(
                    Slot::Network,
                    format!("tools of base {name}"),
                    &[locked],
                    move || self.lock_tools(base),
                );
                if goal.fetches() {
                    let fetched = plan.add(
                        Slot::Network,
                        format!("files of the tools of {name}"),
                        &[locked],
                        move || self.fetch_tools(base),
                    );
                    if goal.builds() {
                        tools.push(plan.add(
                            Slot::Core,
                            format!("tools of {name}"),
                            &[fetched],
                            move || self.build_tools(base),
                        ));
                    }
                }
            }
        }

        let mut env_built = Vec::new();
        for (env, stale) in board.envs.iter().zip(&env_stale) {
            let name = env.spec.name();
            let mut after = vec![base_locked[env.base]];
            if *stale {
                let setup = plan.add(Slot::Network, format!("source of {name}"), &[], move || {
                    self.fetch_setup(env)
                });
                after = vec![base_built[env.base], setup];
            }
            let locked = plan.add(Slot::Core, format!("lock of {name}"), &after, move || {
                self.lock_env(board, env)
            });
            let mut last = locked;
            if *stale || goal.fetches() {
                last = plan.add(Slot::Network, format!("files of {name}"), &[locked], move || {
                    self.fetch_env(board, env)
                });
            }
            // A new lock is whole only with the digests of the wheels made from its sdists.
            if *stale || goal.builds() {
                last = plan.add(
                    Slot::Core,
                    format!("env {name}"),
                    &[last, base_built[env.base]],
                    move || {
                        if !goal.builds() && env.lock().build_environments.is_empty() {
                            return Ok(());
                        }
                        self.build_env(board, env)
                    },
                );
            }
            env_built.push(last);
        }

        for item in &board.items {
            let id = &item.instance.id;
            if !goal.fetches() {
                break;
            }
            let fetched = plan
                .add(Slot::Network, format!("source of {id}"), &[], move || self.fetch_item(item));
            if !goal.builds() {
                continue;
            }
            let built = plan.add(
                Slot::Core,
                format!("instance {id}"),
                &[fetched, env_built[item.env]],
                move || self.build_item(board, item),
            );
            match goal {
                Goal::Runs(repeats) => self.plan_repeats(&mut plan, board, item, built, repeats),
                Goal::Verdicts(verification) => {
                    let lists = item.lists().expect("refused before");
                    let climb = Climb::new(self, board, item, lists, verification);
                    plan.subjects.push(format!("gold runs of {id}"));
                    let ready = tools[board.envs[item.env].base];
                    plan.graph.add_source(&[built, ready], climb);
                }
                _ => {}
            }
        }

        let Plan { graph, subjects } = plan;
        let (failures, skipped) = graph.run(self.jobs, self.bench.cancel);
        let failures = failures
            .into_iter()
            .map(|(node, error)| Failure { subject: subjects[node.index()].clone(), error })
            .collect();
        Done { failures, skipped: skipped.len() }
    }
}
