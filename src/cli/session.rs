//! What verbs that work on a split share: the opened store, the runtime, the client and the pipeline.

use super::args::Selection;
use super::diagnostics;
use super::printer::Printer;
use super::settings::Settings;
use crate::base::Store;
use crate::base::flock::FileLock;
use crate::net::Client;
use crate::pipeline::{self, Done, Locks, Pipeline, Project};
use crate::runtime::{Runtime, Workbench};

/// Everything open.
pub(crate) struct Session<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) project: Project,
    pub(crate) store: Store,
    pub(crate) runtime: Box<dyn Runtime>,
    pub(crate) client: Client,
    _in_use: FileLock,
}

impl<'a> Session<'a> {
    /// Opens everything; `gc` waits until the session ends.
    pub(crate) fn open(settings: &'a Settings) -> anyhow::Result<Self> {
        let project = settings.project()?;
        let store = settings.open_store()?;
        let in_use = store.lock_shared(&settings.cancel).map_err(pipeline::Error::from)?;
        let runtime = settings.runtime(&store)?;
        let client = settings.client()?;
        Ok(Self { settings, project, store, runtime, client, _in_use: in_use })
    }

    /// The pipeline over this session.
    pub(crate) fn pipeline(&self, locks: Locks) -> Pipeline<'_> {
        Pipeline {
            project: &self.project,
            bench: Workbench {
                store: &self.store,
                runtime: &*self.runtime,
                reporter: &self.settings.reporter,
                cancel: &self.settings.cancel,
            },
            client: &self.client,
            jobs: self.settings.jobs,
            locks,
            mirrors: self.settings.mirrors.as_deref(),
        }
    }

    /// Reads the selected part of a split.
    pub(crate) fn board(&self, selection: &Selection) -> anyhow::Result<crate::pipeline::Board> {
        let split = self.project.split(&selection.split)?;
        Ok(crate::pipeline::Board::read(&self.project, split, &selection.instances)?)
    }
}

/// Prints what failed; `Err` with the first failure, if there is any.
pub(crate) fn report_failures(settings: &Settings, done: Done) -> anyhow::Result<()> {
    settings.cancel.check().map_err(pipeline::Error::from)?;
    let mut failures = done.failures.into_iter();
    let Some(first) = failures.next() else { return Ok(()) };
    for failure in failures {
        let error = anyhow::Error::new(failure.error).context(failure.subject);
        Printer::error(&diagnostics::render(&error));
    }
    if done.skipped > 0 {
        settings.printer.note(&format!("{} later steps were not begun", done.skipped));
    }
    Err(anyhow::Error::new(first.error).context(first.subject))
}
