//! Work with dependencies, done by a fixed number of threads.
//!
//! Nodes are added after what they depend on, so there are no cycles. Among ready nodes the one added first is taken
//! first. When a node fails, whatever depends on it is skipped and the rest goes on; every failure is returned. A
//! cancelled graph starts nothing new.
//!
//! A node may be a [`Source`]: work in pieces, of which the next depends on what the others found. Sources are asked when
//! no other node is ready, the one with the most work left first, so that all cores are busy to the end.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, RwLock};

use crate::base::Cancel;

/// Names a node of one graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node(usize);

impl Node {
    /// Its place in the order in which nodes were added.
    pub(crate) fn index(self) -> usize {
        self.0
    }
}

/// What a node keeps busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A core.
    Core,
    /// The network; these run beside the cores.
    Network,
}

type Work<'a, E> = Box<dyn FnOnce() -> Result<(), E> + Send + 'a>;

/// One piece of a source's work.
pub(crate) struct Piece<'a, E> {
    /// Whether no other core may be busy meanwhile.
    pub(crate) alone: bool,
    /// What to do.
    pub(crate) work: Work<'a, E>,
}

/// What a source has to do.
pub(crate) enum Next<'a, E> {
    /// This.
    Piece(Piece<'a, E>),
    /// Nothing before a piece that was taken is done.
    Wait,
    /// Nothing more.
    Done,
}

/// Work in pieces, done on cores. Called while the graph is locked, so answers must be quick.
pub(crate) trait Source<'a, E>: Send {
    /// The next piece.
    fn next(&mut self) -> Next<'a, E>;

    /// An estimate of the seconds of work that are left.
    fn left(&self) -> f64;
}

/// What a node does.
enum Task<'a, E> {
    Once(Work<'a, E>),
    Pieces(Box<dyn Source<'a, E> + 'a>),
    /// Begun or skipped.
    Taken,
}

struct Entry<'a, E> {
    slot: Slot,
    task: Task<'a, E>,
    /// Pieces that are being done.
    flying: usize,
    waits_for: usize,
    dependents: Vec<usize>,
    skipped: bool,
}

/// Work that is not yet done.
pub(crate) struct Graph<'a, E> {
    entries: Vec<Entry<'a, E>>,
}

struct State<'a, E> {
    entries: Vec<Entry<'a, E>>,
    ready: [BTreeSet<usize>; 2],
    /// Sources that may be asked.
    sources: BTreeSet<usize>,
    open: usize,
    failures: Vec<(Node, E)>,
}

/// How many downloads of whole lists run at once; each list is itself fetched in parallel.
const NETWORK_THREADS: usize = 3;

impl<'a, E: Send> Graph<'a, E> {
    pub(crate) fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// Adds work that may start when all of `after` are done.
    pub(crate) fn add(
        &mut self,
        slot: Slot,
        after: &[Node],
        work: impl FnOnce() -> Result<(), E> + Send + 'a,
    ) -> Node {
        self.push(slot, after, Task::Once(Box::new(work)))
    }

    /// Adds a source that may be asked when all of `after` are done.
    pub(crate) fn add_source(&mut self, after: &[Node], source: impl Source<'a, E> + 'a) -> Node {
        self.push(Slot::Core, after, Task::Pieces(Box::new(source)))
    }

    fn push(&mut self, slot: Slot, after: &[Node], task: Task<'a, E>) -> Node {
        let index = self.entries.len();
        let after: BTreeSet<usize> = after.iter().map(|node| node.0).collect();
        for node in &after {
            self.entries[*node].dependents.push(index);
        }
        self.entries.push(Entry {
            slot,
            task,
            flying: 0,
            waits_for: after.len(),
            dependents: Vec::new(),
            skipped: false,
        });
        Node(index)
    }

    /// Does everything with `cores` threads (and some for the network) and returns the failures, in the order of
    /// their nodes, and the nodes that were skipped because of them or of `cancel`.
    pub(crate) fn run(self, cores: usize, cancel: &Cancel) -> (Vec<(Node, E)>, Vec<Node>) {
        let open = self.entries.len();
        let mut state = State {
            entries: self.entries,
            ready: [BTreeSet::new(), BTreeSet::new()],
            sources: BTreeSet::new(),
            open,
            failures: Vec::new(),
        };
        for index in 0..open {
            if state.entries[index].waits_for == 0 {
                state.make_ready(index);
            }
        }
        let networked = state.entries.iter().any(|entry| entry.slot == Slot::Network);
        let shared = Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            cores: RwLock::new(()),
            cancel,
        };
        std::thread::scope(|scope| {
            for _ in 0..cores.max(1) {
                scope.spawn(|| shared.work(Slot::Core));
            }
            for _ in 0..if networked { NETWORK_THREADS } else { 0 } {
                scope.spawn(|| shared.work(Slot::Network));
            }
        });
        let mut state = shared.state.into_inner().expect("workers that panic end the scope");
        state.failures.sort_by_key(|(node, _)| *node);
        let skipped = state
            .entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.skipped || !matches!(entry.task, Task::Taken))
            .map(|(index, _)| Node(index))
            .collect();
        (state.failures, skipped)
    }
}

/// A piece of work, taken by a worker.
struct Taken<'a, E> {
    index: usize,
    alone: bool,
    work: Work<'a, E>,
}

impl<'a, E> State<'a, E> {
    fn make_ready(&mut self, index: usize) {
        let entry = &self.entries[index];
        match entry.task {
            Task::Pieces(_) => self.sources.insert(index),
            _ => self.ready[entry.slot as usize].insert(index),
        };
    }

    /// Something to do, if there is anything now.
    fn take(&mut self, slot: Slot) -> Option<Taken<'a, E>> {
        if let Some(index) = self.ready[slot as usize].pop_first() {
            let Task::Once(work) = std::mem::replace(&mut self.entries[index].task, Task::Taken)
            else {
                unreachable!("a node is ready once, and sources have a set of their own");
            };
            self.entries[index].flying = 1;
            return Some(Taken { index, alone: false, work });
        }
        if slot == Slot::Network {
            return None;
        }
        let left = |index: &usize| match &self.entries[*index].task {
            Task::Pieces(source) => source.left(),
            _ => 0.0,
        };
        let mut sources: Vec<(usize, f64)> =
            self.sources.iter().map(|index| (*index, left(index))).collect();
        sources.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        for (index, _) in sources {
            let Task::Pieces(source) = &mut self.entries[index].task else { continue };
            match source.next() {
                Next::Piece(Piece { alone, work }) => {
                    self.entries[index].flying += 1;
                    return Some(Taken { index, alone, work });
                }
                Next::Wait => {}
                Next::Done => {
                    self.sources.remove(&index);
                    self.entries[index].task = Task::Taken;
                    if self.entries[index].flying == 0 {
                        self.finish(index);
                    }
                }
            }
        }
        None
    }

    /// Takes the result of a piece.
    fn settle(&mut self, index: usize, result: Result<(), E>) {
        self.entries[index].flying -= 1;
        if let Err(error) = result {
            self.failures.push((Node(index), error));
            if !self.entries[index].skipped {
                self.sources.remove(&index);
                self.entries[index].task = Task::Taken;
                self.skip_dependents(index);
                // Its other pieces end by themselves.
                self.entries[index].skipped = true;
            }
        }
        let entry = &self.entries[index];
        if entry.flying > 0 || !matches!(entry.task, Task::Taken) {
            return;
        }
        if entry.skipped {
            self.open = self.open.saturating_sub(1);
            // It was begun: it is not one of those that were skipped.
            self.entries[index].skipped = false;
        } else {
            self.finish(index);
        }
    }

    fn finish(&mut self, index: usize) {
        self.open = self.open.saturating_sub(1);
        for dependent in self.entries[index].dependents.clone() {
            let entry = &mut self.entries[dependent];
            entry.waits_for -= 1;
            if entry.waits_for == 0 && !entry.skipped {
                self.make_ready(dependent);
            }
        }
    }

    fn skip_dependents(&mut self, index: usize) {
        let mut stack = self.entries[index].dependents.clone();
        while let Some(next) = stack.pop() {
            let entry = &mut self.entries[next];
            if !entry.skipped {
                entry.skipped = true;
                entry.task = Task::Taken;
                stack.extend(entry.dependents.clone());
                self.open = self.open.saturating_sub(1);
            }
        }
    }
}

/// What workers share.
struct Shared<'a, 'c, E> {
    state: Mutex<State<'a, E>>,
    changed: Condvar,
    /// Read while a core is busy; written by a piece that wants to be alone.
    cores: RwLock<()>,
    cancel: &'c Cancel,
}

/// Ends the graph when a piece of work panics, so that the panic is seen instead of waited for.
struct EndOnPanic<'a, 's, 'c, E>(&'a Shared<'s, 'c, E>);

impl<E> Drop for EndOnPanic<'_, '_, '_, E> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            if let Ok(mut state) = self.0.state.lock() {
                state.open = 0;
            }
            self.0.changed.notify_all();
        }
    }
}

const NO_PANIC: &str = "workers do not panic while holding a lock";

impl<E: Send> Shared<'_, '_, E> {
    fn work(&self, slot: Slot) {
        let mut state = self.state.lock().expect(NO_PANIC);
        loop {
            if state.open == 0 || self.cancel.is_cancelled() {
                self.changed.notify_all();
                return;
            }
            let Some(Taken { index, alone, work }) = state.take(slot) else {
                // The time-out lets a cancelled graph end without a signal.
                state = self
                    .changed
                    .wait_timeout(state, std::time::Duration::from_millis(50))
                    .expect(NO_PANIC)
                    .0;
                continue;
            };
            drop(state);
            let guard = EndOnPanic(self);
            let result = match slot {
                Slot::Network => work(),
                Slot::Core if alone => {
                    let _alone = self.cores.write().expect(NO_PANIC);
                    work()
                }
                Slot::Core => {
                    let _busy = self.cores.read().expect(NO_PANIC);
                    work()
                }
            };
            drop(guard);
            state = self.state.lock().expect(NO_PANIC);
            state.settle(index, result);
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn dependents_wait_and_failures_skip_only_theirs() {
        let order = Mutex::new(Vec::new());
        let note = |name: &'static str| {
            order.lock().unwrap().push(name);
            Ok::<(), &'static str>(())
        };
        let mut graph = Graph::new();
        let a = graph.add(Slot::Network, &[], || note("a"));
        let bad = graph.add(Slot::Core, &[a], || Err("bad"));
        let after_bad = graph.add(Slot::Core, &[bad, a], || note("never"));
        let deeper = graph.add(Slot::Core, &[after_bad], || note("never"));
        let c = graph.add(Slot::Core, &[a, a], || note("c"));
        graph.add(Slot::Core, &[c], || note("d"));
        let (failures, skipped) = graph.run(2, &Cancel::new());
        assert_eq!(failures, [(bad, "bad")]);
        assert_eq!(skipped, [after_bad, deeper]);
        assert_eq!(*order.lock().unwrap(), ["a", "c", "d"]);
    }

    #[test]
    fn a_cancelled_graph_starts_nothing_new() {
        let cancel = Cancel::new();
        let done = AtomicUsize::new(0);
        let mut graph = Graph::<()>::new();
        let first = graph.add(Slot::Core, &[], || {
            cancel.cancel();
            Ok(())
        });
        let second = graph.add(Slot::Core, &[first], || {
            done.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        let (failures, skipped) = graph.run(1, &cancel);
        assert_eq!((failures, skipped, done.into_inner()), (Vec::new(), vec![second], 0));
    }

    /// Counts to `of`, at most `at_once` pieces in the air.
    struct Counter<'a> {
        begun: usize,
        of: usize,
        failing: Option<usize>,
        done: &'a AtomicUsize,
        busy: &'a AtomicUsize,
    }

    impl<'a> Source<'a, usize> for Counter<'a> {
        fn next(&mut self) -> Next<'a, usize> {
            if self.begun == self.of {
                return Next::Done;
            }
            let (number, done, busy) = (self.begun, self.done, self.busy);
            self.begun += 1;
            let fails = self.failing == Some(number);
            let alone = number % 3 == 0;
            Next::Piece(Piece {
                alone,
                work: Box::new(move || {
                    let others = busy.fetch_add(1, Ordering::SeqCst);
                    assert!(!alone || others == 0, "a piece that wants to be alone was not");
                    std::thread::sleep(std::time::Duration::from_millis(2));
                    busy.fetch_sub(1, Ordering::SeqCst);
                    done.fetch_add(1, Ordering::SeqCst);
                    if fails { Err(number) } else { Ok(()) }
                }),
            })
        }

        #[expect(clippy::cast_precision_loss, reason = "small")]
        fn left(&self) -> f64 {
            (self.of - self.begun) as f64
        }
    }

    #[test]
    fn sources_are_emptied_and_pieces_may_be_alone() {
        let (first, second, busy) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let order = Mutex::new(Vec::new());
        let mut graph = Graph::new();
        let source = |of, failing, done| Counter { begun: 0, of, failing, done, busy: &busy };
        let a = graph.add_source(&[], source(10, None, &first));
        let b = graph.add_source(&[], source(10, Some(4), &second));
        let after = graph.add(Slot::Core, &[a], || {
            order.lock().unwrap().push(first.load(Ordering::SeqCst));
            Ok(())
        });
        let never = graph.add(Slot::Core, &[b, after], || Ok(()));
        let (failures, skipped) = graph.run(3, &Cancel::new());
        assert_eq!((failures, skipped), (vec![(b, 4)], vec![never]));
        assert_eq!(*order.lock().unwrap(), [10]);
        assert!((5..10).contains(&second.into_inner()));
    }

    #[test]
    fn a_panic_ends_the_graph() {
        let panicked = std::panic::catch_unwind(|| {
            let mut graph = Graph::<()>::new();
            graph.add(Slot::Core, &[], || panic!("on purpose"));
            graph.add(Slot::Core, &[], || Ok(()));
            graph.run(2, &Cancel::new())
        });
        assert!(panicked.is_err());
    }
}
