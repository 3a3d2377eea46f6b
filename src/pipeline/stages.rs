//! One function a stage, each for one base, environment or instance of a [`Board`].

use std::path::Path;

use super::board::{Base, Board, Env, Item};
use super::{Error, Project};
use crate::base::files::write_atomic;
use crate::base::{Arch, Event};
use crate::bundle::history::History;
use crate::dataset::{Instance, Pair, Sdist, Source};
use crate::image::Image;
use crate::lock::{self, BaseLock, EnvLock, FileRef, Origin};
use crate::runtime::Workbench;
use crate::spec::Setup;
use crate::verify::conditions::Tools;
use crate::{build, bundle, net, resolve};

/// What all stages share.
#[derive(Clone, Copy)]
pub struct Pipeline<'a> {
    /// The user's folder.
    pub project: &'a Project,
    /// Store, runtime, progress, cancellation.
    pub bench: Workbench<'a>,
    /// The network.
    pub client: &'a net::Client,
    /// How many builds and runs go on at once.
    pub jobs: usize,
    /// Whether locks are written when missing or stale.
    pub locks: Locks,
    /// A folder of git repositories: `<owner>__<name>.git`, `<owner>__<name>` or `<owner>/<name>`.
    pub mirrors: Option<&'a Path>,
}

/// What to do about locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locks {
    /// Missing or stale locks are an error (`--locked`).
    Demand,
    /// Missing or stale locks are written.
    Write,
    /// All locks are written again.
    Refresh,
}

const SET_BEFORE: &str = "the graph runs a stage after those it depends on";

impl Pipeline<'_> {
    /// Whether this lock has to be resolved.
    pub(crate) fn must_lock<T>(&self, held: &Result<T, String>) -> bool {
        held.is_err() || self.locks == Locks::Refresh
    }

    pub(crate) fn lock_base(&self, base: &Base) -> Result<(), Error> {
        let lock = match &base.held {
            Ok(lock) if !self.must_lock(&base.held) => lock.clone(),
            _ => {
                let Workbench { reporter, cancel, .. } = self.bench;
                let lock = resolve::lock_base(
                    self.client,
                    &base.definition,
                    Arch::HOST,
                    reporter,
                    cancel,
                )?;
                let path = lock::paths::base_lock(
                    &self.project.lockfiles(),
                    &base.definition.name,
                    Arch::HOST,
                );
                write_atomic(&path, lock::write_base(&lock)?.as_bytes())?;
                lock
            }
        };
        base.lock.set(lock).expect("locked once");
        Ok(())
    }

    /// Locks what runs on this base use besides its image.
    pub(crate) fn lock_tools(&self, base: &Base) -> Result<(), Error> {
        let name = &base.definition.name;
        let lock = match &base.held_tools {
            // The base's lock may have changed since the check.
            Ok(lock)
                if !self.must_lock(&base.held_tools)
                    && lock::check_tools(name, base.lock(), lock).is_ok() =>
            {
                lock.clone()
            }
            _ => {
                let reporter = self.bench.reporter;
                let lock = resolve::debian::lock_tools(self.client, base.lock(), reporter)?;
                let path = lock::paths::tools_lock(&self.project.lockfiles(), name, Arch::HOST);
                write_atomic(&path, lock::write_tools(&lock)?.as_bytes())?;
                lock
            }
        };
        base.tools_lock.set(lock).expect("locked once");
        Ok(())
    }

    pub(crate) fn fetch_tools(&self, base: &Base) -> Result<(), Error> {
        self.fetch(&lock::tools_files(base.tools_lock.get().expect(SET_BEFORE)))
    }

    pub(crate) fn build_tools(&self, base: &Base) -> Result<(), Error> {
        let library = build::faketime(self.bench, base.tools_lock.get().expect(SET_BEFORE))?;
        base.tools.set(Tools { faketime: Some(library) }).expect("made once");
        Ok(())
    }

    pub(crate) fn fetch_base(&self, base: &Base) -> Result<(), Error> {
        let Workbench { store, reporter, cancel, .. } = self.bench;
        let registry = base.definition.registry.as_ref().map(|image| image.registry.as_str());
        let files = lock::base_files(base.lock());
        bundle::fetch_with(store, self.client, registry, &files, reporter, cancel)?;
        Ok(())
    }

    pub(crate) fn build_base(&self, base: &Base) -> Result<(), Error> {
        let image = build::base(self.bench, base.lock())?;
        if self.must_lock(&base.held) && base.lock().image.is_none() {
            // The closure of a new lock comes from a simple rule; apt has the last word, now that it can run.
            resolve::debian::check_closure(
                self.bench,
                self.client,
                &base.definition,
                &image,
                base.lock(),
            )?;
        }
        base.image.set(image).expect("built once");
        Ok(())
    }

    /// Fetches the source that the environment's metadata is read from.
    pub(crate) fn fetch_setup(&self, env: &Env) -> Result<(), Error> {
        match &env.spec.setup {
            Setup::Sdist { file, sha256, size } => self.fetch(&[FileRef {
                name: file.clone(),
                sha256: *sha256,
                size: *size,
                origin: Origin::Pypi { project: project_of(&env.spec.repo).to_owned() },
            }]),
            Setup::Commit { .. } => Ok(()),
        }
    }

    pub(crate) fn lock_env(&self, board: &Board, env: &Env) -> Result<(), Error> {
        let base = board.base_of(env);
        let lock = match &env.held {
            // The base's lock may have changed since the check.
            Ok(lock)
                if !self.must_lock(&env.held)
                    && lock::check_env(&env.spec, base.lock(), lock).is_ok() =>
            {
                lock.clone()
            }
            _ => self.resolve_env(base, env)?,
        };
        env.lock.set(lock).expect("locked once");
        Ok(())
    }

    fn resolve_env(&self, base: &Base, env: &Env) -> Result<EnvLock, Error> {
        let name = env.spec.name();
        let debs = resolve::debian::lock_packages(
            self.bench,
            self.client,
            base.image(),
            base.lock(),
            &env.spec.system_packages,
        )?;
        let system = self.system_image(base, &debs)?;
        let scratch = self.bench.store.scratch_dir("setup")?;
        let source = match &env.spec.setup {
            Setup::Sdist { file, sha256, .. } => {
                bundle::sdist::extract(self.bench.store, sha256, file, scratch.path())?
            }
            Setup::Commit { commit } => {
                let location = self.mirror(&env.spec.repo)?;
                bundle::checkout(&location, commit, scratch.path())?;
                scratch.path().to_owned()
            }
        };
        let python = resolve::python::lock(self.bench, self.client, &system, &env.spec, &source)?;
        for notice in &python.notices {
            self.bench
                .reporter
                .report(Event::Warned { message: format!("{name}: {notice}"), hint: None });
        }
        let lock = EnvLock {
            env_hash: env.spec.env_hash()?,
            arch: Arch::HOST,
            base: base.definition.name.clone(),
            base_lock: base.lock().digest()?,
            debs,
            packages: python.packages,
            build_environments: python.build_environments,
            built: Vec::new(),
        };
        self.write_env(&name, &lock)?;
        Ok(lock)
    }

    fn write_env(&self, name: &str, lock: &EnvLock) -> Result<(), Error> {
        let texts = lock::write_env(lock)?;
        let folder = self.project.lockfiles();
        write_atomic(&lock::paths::pylock(&folder, name), texts.pylock.as_bytes())?;
        write_atomic(&lock::paths::env_lock(&folder, name, Arch::HOST), texts.lock.as_bytes())?;
        Ok(())
    }

    pub(crate) fn fetch_env(&self, board: &Board, env: &Env) -> Result<(), Error> {
        self.fetch(&lock::env_files(env.lock(), board.base_of(env).lock()))
    }

    fn system_image(&self, base: &Base, debs: &[lock::Deb]) -> Result<Image, Error> {
        let files: Vec<FileRef> = lock::deb_files(debs, base.lock().as_of);
        self.fetch(&files)?;
        Ok(build::system_packages(self.bench, base.image(), base.lock(), debs)?)
    }

    pub(crate) fn build_env(&self, board: &Board, env: &Env) -> Result<(), Error> {
        let base = board.base_of(env);
        let lock = env.lock();
        let system = self.system_image(base, &lock.debs)?;
        let built = build::env(self.bench, &system, &env.spec, lock)?;
        if built.built != lock.built && self.locks != Locks::Demand {
            let lock = EnvLock { built: built.built, ..lock.clone() };
            self.write_env(&env.spec.name(), &lock)?;
        }
        env.system.set(system).expect("built once");
        env.image.set(built.image).expect("built once");
        Ok(())
    }

    pub(crate) fn fetch_item(&self, item: &Item) -> Result<(), Error> {
        match &item.instance.source {
            Source::Pair(pair) => self.fetch(&pair_files(pair)),
            Source::Git { .. } => self.history(&item.instance).map(|_| ()),
        }
    }

    pub(crate) fn build_item(&self, board: &Board, item: &Item) -> Result<(), Error> {
        let env = &board.envs[item.env];
        let base = board.base_of(env).image();
        let patches = build::patches(self.bench, base, &item.instance)?;
        let history = self.history(&item.instance)?;
        let image = build::instance(
            self.bench,
            base,
            env.image(),
            &env.spec,
            &item.instance,
            history.as_ref(),
        )?;
        let leaks = build::leaks(self.bench, &image, env.lock(), &item.instance, &patches)?;
        if let Some(leak) = leaks.first() {
            return Err(Error::Leak {
                instance: item.instance.id.to_string(),
                what: leak.to_string(),
            });
        }
        item.patches.set(patches).expect("derived once");
        item.image.set(image).expect("built once");
        Ok(())
    }

    /// Where the repository is: in the folder of mirrors.
    fn mirror(&self, repo: &str) -> Result<String, Error> {
        let flat = repo.replace('/', "__");
        let names = [format!("{flat}.git"), flat, format!("{repo}.git"), repo.to_owned()];
        self.mirrors
            .into_iter()
            .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
            .find(|path| path.is_dir())
            .map(|path| path.to_string_lossy().into_owned())
            .ok_or_else(|| Error::NoMirror { repo: repo.to_owned() })
    }

    /// The closure of an instance's base commit, taken once.
    pub(crate) fn history(&self, instance: &Instance) -> Result<Option<History>, Error> {
        let Source::Git { url, base_commit, .. } = &instance.source else { return Ok(None) };
        if let Some(history) = bundle::history::held(self.bench.store, base_commit)? {
            return Ok(Some(history));
        }
        let location = match url {
            Some(url) => url.clone(),
            None => self.mirror(&instance.repo)?,
        };
        let Workbench { store, cancel, .. } = self.bench;
        Ok(Some(bundle::history::take(store, &location, base_commit, cancel)?))
    }

    fn fetch(&self, files: &[FileRef]) -> Result<(), Error> {
        let Workbench { store, reporter, cancel, .. } = self.bench;
        bundle::fetch(store, self.client, files, reporter, cancel)?;
        Ok(())
    }
}

/// The part of `pypi/<package>` that PyPI knows.
fn project_of(repo: &str) -> &str {
    repo.rsplit('/').next().unwrap_or(repo)
}

/// The two sdists of a pair.
pub(crate) fn pair_files(pair: &Pair) -> Vec<FileRef> {
    let file = |sdist: &Sdist| FileRef {
        name: sdist.file.clone(),
        sha256: sdist.sha256,
        size: sdist.size,
        origin: Origin::Pypi { project: pair.package.clone() },
    };
    vec![file(&pair.base), file(&pair.fixed)]
}

impl Base {
    pub(crate) fn lock(&self) -> &BaseLock {
        self.lock.get().expect(SET_BEFORE)
    }

    pub(crate) fn image(&self) -> &Image {
        self.image.get().expect(SET_BEFORE)
    }
}

impl Env {
    pub(crate) fn lock(&self) -> &EnvLock {
        self.lock.get().expect(SET_BEFORE)
    }

    pub(crate) fn image(&self) -> &Image {
        self.image.get().expect(SET_BEFORE)
    }
}

impl Item {
    pub(crate) fn image(&self) -> &Image {
        self.image.get().expect(SET_BEFORE)
    }
}
