//! Work with dependencies, done by a fixed number of threads.
//!
//! Nodes are added after what they depend on, so there are no cycles. Among ready nodes the one added first is taken
//! first, so that one instance is finished before the next is begun. When a node fails, whatever depends on it is
//! skipped and the rest goes on; every failure is returned. A cancelled graph starts nothing new.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex};

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

struct Entry<'a, E> {
    slot: Slot,
    work: Option<Work<'a, E>>,
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
        let index = self.entries.len();
        let after: BTreeSet<usize> = after.iter().map(|node| node.0).collect();
        for node in &after {
            self.entries[*node].dependents.push(index);
        }
        self.entries.push(Entry {
            slot,
            work: Some(Box::new(work)),
            waits_for: after.len(),
            dependents: Vec::new(),
            skipped: false,
        });
        Node(index)
    }

    /// Does everything with `cores` threads (and some for the network) and returns the failures, in the order of
    /// their nodes, and the nodes that were skipped because of them or of `cancel`.
    pub(crate) fn run(self, cores: usize, cancel: &Cancel) -> (Vec<(Node, E)>, Vec<Node>) {
        let mut ready = [BTreeSet::new(), BTreeSet::new()];
        for (index, entry) in self.entries.iter().enumerate() {
            if entry.waits_for == 0 {
                ready[entry.slot as usize].insert(index);
            }
        }
        let open = self.entries.len();
        let state = Mutex::new(State { entries: self.entries, ready, open, failures: Vec::new() });
        let changed = Condvar::new();
        let networked = state
            .lock()
            .expect("nobody panicked yet")
            .entries
            .iter()
            .any(|entry| entry.slot == Slot::Network);
        std::thread::scope(|scope| {
            for _ in 0..cores.max(1) {
                scope.spawn(|| worker(&state, &changed, Slot::Core, cancel));
            }
            for _ in 0..if networked { NETWORK_THREADS } else { 0 } {
                scope.spawn(|| worker(&state, &changed, Slot::Network, cancel));
            }
        });
        let mut state = state.into_inner().expect("workers that panic end the scope");
        state.failures.sort_by_key(|(node, _)| *node);
        let skipped = state
            .entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.skipped || entry.work.is_some())
            .map(|(index, _)| Node(index))
            .collect();
        (state.failures, skipped)
    }
}

fn worker<E: Send>(state: &Mutex<State<'_, E>>, changed: &Condvar, slot: Slot, cancel: &Cancel) {
    let mut guard = state.lock().expect("workers do not panic while holding the lock");
    loop {
        if guard.open == 0 || cancel.is_cancelled() {
            changed.notify_all();
            return;
        }
        let Some(index) = guard.ready[slot as usize].pop_first() else {
            // The time-out lets a cancelled graph end without a signal.
            guard = changed
                .wait_timeout(guard, std::time::Duration::from_millis(50))
                .expect("workers do not panic while holding the lock")
                .0;
            continue;
        };
        let work = guard.entries[index].work.take().expect("a node is ready once");
        drop(guard);
        let result = work();
        guard = state.lock().expect("workers do not panic while holding the lock");
        guard.open -= 1;
        match result {
            Ok(()) => {
                for dependent in guard.entries[index].dependents.clone() {
                    let entry = &mut guard.entries[dependent];
                    entry.waits_for -= 1;
                    if entry.waits_for == 0 && !entry.skipped {
                        let slot = entry.slot as usize;
                        guard.ready[slot].insert(dependent);
                    }
                }
            }
            Err(error) => {
                guard.failures.push((Node(index), error));
                skip_dependents(&mut guard, index);
            }
        }
        changed.notify_all();
    }
}

fn skip_dependents<E>(state: &mut State<'_, E>, index: usize) {
    let mut stack = state.entries[index].dependents.clone();
    while let Some(next) = stack.pop() {
        let entry = &mut state.entries[next];
        if !entry.skipped {
            entry.skipped = true;
            entry.work = None;
            stack.extend(entry.dependents.clone());
            state.open -= 1;
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
}
