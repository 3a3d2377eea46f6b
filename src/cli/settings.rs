//! Raw arguments and the environment, checked once, before any work.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use etcetera::BaseStrategy as _;

use super::args::Global;
use super::printer::{Printer, Screen};
use super::progress::{Bars, JsonLines, Lines};
use super::runtime::Choice;
use crate::base::{Cancel, SharedReporter, Store, progress};
use crate::net;
use crate::pipeline::{self, Project};
use crate::runtime::docker::{Endpoint, Engine};
use crate::runtime::{self, Runtime};

/// What every verb starts from.
pub(crate) struct Settings {
    pub(crate) printer: Printer,
    pub(crate) reporter: SharedReporter,
    pub(crate) cancel: Cancel,
    pub(crate) jobs: usize,
    pub(crate) mirrors: Option<PathBuf>,
    store: PathBuf,
    scratch: PathBuf,
    project: Option<PathBuf>,
    docker_host: Option<String>,
    working_dir: PathBuf,
    environment: BTreeMap<String, String>,
    offline: bool,
    runtime: Choice,
}

impl Settings {
    #[expect(
        clippy::disallowed_methods,
        reason = "the environment and the working folder are read here, once"
    )]
    pub(crate) fn new(global: &Global, cancel: Cancel) -> anyhow::Result<Self> {
        let environment: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let screen = Screen::of_stdout(&environment);
        let printer = Printer { json: global.json, quiet: global.quiet, screen };
        let reporter: SharedReporter = if global.json {
            Arc::new(JsonLines(printer))
        } else if global.quiet {
            Arc::new(progress::Silent)
        } else if std::io::stderr().is_terminal() {
            Arc::new(Bars::new())
        } else {
            Arc::new(Lines::new(printer))
        };
        let working_dir = std::env::current_dir().context("cannot find the working folder")?;
        let store = match &global.store {
            Some(store) => working_dir.join(store),
            None => etcetera::base_strategy::Xdg::new()
                .context("cannot find a cache folder: name one with --store")?
                .cache_dir()
                .join("hallmark"),
        };
        let scratch = global
            .scratch
            .as_ref()
            .map_or_else(|| store.join("scratch"), |path| working_dir.join(path));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            printer,
            reporter,
            cancel,
            jobs: global.jobs.map_or(cores, usize::from),
            mirrors: global.mirrors.as_ref().map(|path| working_dir.join(path)),
            store,
            scratch,
            project: global.project.clone(),
            docker_host: global.docker_host.clone(),
            working_dir,
            environment,
            offline: global.offline,
            runtime: global.runtime,
        })
    }

    pub(crate) fn working_dir(&self) -> &Path {
        &self.working_dir
    }

    /// The path of a file that must be there.
    pub(crate) fn input_file(&self, path: &Path) -> anyhow::Result<PathBuf> {
        let path = self.working_dir.join(path);
        if path.is_file() { Ok(path) } else { Err(pipeline::Error::NoFile { path }.into()) }
    }

    /// The path of a file to write. Looked at before any work, which may take hours.
    pub(crate) fn output_file(&self, path: &Path) -> anyhow::Result<PathBuf> {
        let path = self.working_dir.join(path);
        if path.is_dir() {
            return Err(pipeline::Error::IsFolder { path }.into());
        }
        match path.parent() {
            Some(folder) if !folder.is_dir() => {
                let folder = folder.to_owned();
                Err(pipeline::Error::NoFolder { path, folder }.into())
            }
            _ => Ok(path),
        }
    }

    /// The path of a folder to write into, which is made where it is missing.
    pub(crate) fn output_folder(&self, path: &Path) -> anyhow::Result<PathBuf> {
        let path = self.working_dir.join(path);
        if path.exists() && !path.is_dir() {
            return Err(pipeline::Error::IsNoFolder { path }.into());
        }
        Ok(path)
    }

    pub(crate) fn open_store(&self) -> anyhow::Result<Store> {
        let store = self.output_folder(&self.store)?;
        let scratch = self.output_folder(&self.scratch)?;
        Ok(Store::open(&store, &scratch).map_err(pipeline::Error::from)?)
    }

    pub(crate) fn project(&self) -> anyhow::Result<Project> {
        let start = self
            .project
            .as_ref()
            .map_or_else(|| self.working_dir.clone(), |path| self.working_dir.join(path));
        Ok(Project::discover(&start)?)
    }

    pub(crate) fn client(&self) -> anyhow::Result<net::Client> {
        self.client_with(|_| {})
    }

    /// A client of this host, but for what `change` changes.
    pub(crate) fn client_with(
        &self,
        change: impl FnOnce(&mut net::Config),
    ) -> anyhow::Result<net::Client> {
        let home = self.environment.get("HOME").map(PathBuf::from);
        let mut config = net::Config::from_host(&self.environment, home.as_deref())
            .map_err(pipeline::Error::from)?;
        config.offline |= self.offline;
        change(&mut config);
        Ok(net::Client::new(config, &self.cancel).map_err(pipeline::Error::from)?)
    }

    /// Connects to the Docker daemon.
    pub(crate) fn engine(&self) -> Result<Engine, pipeline::Error> {
        let connect = || {
            let named = self.docker_host.as_deref();
            let candidates = Endpoint::candidates(named, &self.environment)?;
            Engine::connect(&candidates, &self.cancel)
        };
        Ok(connect().map_err(runtime::Error::from)?)
    }

    /// What makes containers over this store.
    pub(crate) fn runtime(&self, store: &Store) -> Result<Box<dyn Runtime>, pipeline::Error> {
        self.runtime.open(store, || self.engine(), &self.cancel)
    }

    /// Whether a daemon was asked for.
    pub(crate) fn wants_daemon(&self) -> bool {
        self.runtime == Choice::Docker
    }
}
