//! Typed progress events. The library emits them to a [`Reporter`]; bars, lines and JSON are made
//! from them in `cli`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// Names one piece of work from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TaskId(u64);

impl TaskId {
    /// An id that no other task of this process has.
    pub fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Event {
    /// A piece of work began.
    Started {
        /// Which.
        task: TaskId,
        /// What kind of work, one word: `fetch`, `base`, `env`, `instance`, `run` ...
        stage: &'static str,
        /// What is worked on: a file name, a spec, an instance id.
        name: String,
        /// How much there is to do, in bytes or items, where known.
        total: Option<u64>,
    },
    /// A piece of work went on.
    Advanced {
        /// Which.
        task: TaskId,
        /// How much more is done, in the unit of `total`.
        by: u64,
    },
    /// A piece of work ended.
    Finished {
        /// Which.
        task: TaskId,
        /// How.
        outcome: Outcome,
        /// One line for people, where there is more to say.
        note: Option<String>,
    },
    /// Something that people should know but that stops nothing.
    Warned {
        /// The message, a lower-case fragment.
        message: String,
        /// The way out, where there is one.
        hint: Option<String>,
    },
}

/// How a piece of work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Done now.
    Done,
    /// Found in the store; nothing ran.
    Cached,
    /// It failed; the error is returned by the call itself.
    Failed,
}

/// Takes events from any thread, quickly, and never fails.
pub trait Reporter: Send + Sync {
    /// Takes one event.
    fn report(&self, event: Event);
}

/// A reporter that rooms keep and share.
pub type SharedReporter = Arc<dyn Reporter>;

/// Drops every event.
#[derive(Debug, Default, Clone, Copy)]
pub struct Silent;

impl Reporter for Silent {
    fn report(&self, _: Event) {}
}

/// Keeps every event, for tests.
#[derive(Debug, Default)]
pub struct Recording(std::sync::Mutex<Vec<Event>>);

impl Recording {
    /// What was reported so far.
    pub fn events(&self) -> Vec<Event> {
        self.0.lock().expect("no holder panics").clone()
    }
}

impl Reporter for Recording {
    fn report(&self, event: Event) {
        self.0.lock().expect("no holder panics").push(event);
    }
}

/// A started task that reports its own end: [`Outcome::Failed`] when dropped unfinished.
pub struct Task {
    id: TaskId,
    reporter: SharedReporter,
    ended: bool,
}

impl Task {
    /// Reports the start.
    pub fn start(
        reporter: &SharedReporter,
        stage: &'static str,
        name: impl Into<String>,
        total: Option<u64>,
    ) -> Self {
        let id = TaskId::next();
        reporter.report(Event::Started { task: id, stage, name: name.into(), total });
        Self { id, reporter: Arc::clone(reporter), ended: false }
    }

    /// Reports progress.
    pub fn advance(&self, by: u64) {
        self.reporter.report(Event::Advanced { task: self.id, by });
    }

    /// Reports a good end.
    pub fn done(self) {
        self.end(Outcome::Done, None);
    }

    /// Reports an end with a line for people.
    pub fn done_with(self, note: impl Into<String>) {
        self.end(Outcome::Done, Some(note.into()));
    }

    /// Reports that nothing had to run.
    pub fn cached(self) {
        self.end(Outcome::Cached, None);
    }

    fn end(mut self, outcome: Outcome, note: Option<String>) {
        self.ended = true;
        self.reporter.report(Event::Finished { task: self.id, outcome, note });
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if !self.ended {
            self.reporter.report(Event::Finished {
                task: self.id,
                outcome: Outcome::Failed,
                note: None,
            });
        }
    }
}
