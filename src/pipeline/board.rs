//! What there is to do for a split and what is done already: bases, environments and instances, each once.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, OnceLock};

use super::{Error, Project};
use crate::base::Arch;
use crate::build::Patches;
use crate::dataset::{Instance, Split};
use crate::image::Image;
use crate::lock::{self, BaseLock, EnvLock, ToolsLock};
use crate::spec::{self, BaseDefinition, Spec};
use crate::verify::RunRecord;
use crate::verify::conditions::Tools;

/// A base image on its way.
pub(crate) struct Base {
    pub(crate) definition: BaseDefinition,
    /// The lock on disk, if it still answers the definition; else why not.
    pub(crate) held: Result<BaseLock, String>,
    pub(crate) lock: OnceLock<BaseLock>,
    /// The lock of its tools on disk, if it still answers the base's lock; else why not.
    pub(crate) held_tools: Result<ToolsLock, String>,
    pub(crate) tools_lock: OnceLock<ToolsLock>,
    pub(crate) tools: OnceLock<Tools>,
    pub(crate) image: OnceLock<Image>,
}

/// An environment on its way.
pub(crate) struct Env {
    pub(crate) spec: Spec,
    pub(crate) base: usize,
    /// The lock on disk, if it still answers the spec and the base's lock; else why not.
    pub(crate) held: Result<EnvLock, String>,
    pub(crate) lock: OnceLock<EnvLock>,
    /// The base with the spec's Debian packages.
    pub(crate) system: OnceLock<Image>,
    pub(crate) image: OnceLock<Image>,
}

/// An instance on its way.
pub(crate) struct Item {
    pub(crate) instance: Instance,
    pub(crate) env: usize,
    pub(crate) patches: OnceLock<Patches>,
    pub(crate) image: OnceLock<Image>,
    pub(crate) runs: Mutex<Vec<RunRecord>>,
    /// How many of them were made, not found.
    pub(crate) made: AtomicUsize,
    /// Set when its gold runs are begun: it is judged then, even if there is nothing to run.
    pub(crate) begun: OnceLock<()>,
}

/// Everything of a split.
pub struct Board {
    pub(crate) split: Split,
    pub(crate) bases: Vec<Base>,
    pub(crate) envs: Vec<Env>,
    pub(crate) items: Vec<Item>,
}

impl Board {
    /// Reads specs, base definitions and locks of the split's instances (only `selected` ones, if any).
    pub fn read(project: &Project, split: Split, selected: &[String]) -> Result<Self, Error> {
        for id in selected {
            if !split.instances.iter().any(|instance| instance.id.as_str() == id) {
                let known = split.instances.iter().map(|instance| instance.id.to_string());
                return Err(Error::NoInstance {
                    id: id.clone(),
                    split: split.name.clone(),
                    known: known.collect(),
                });
            }
        }
        let mut board = Self { split, bases: Vec::new(), envs: Vec::new(), items: Vec::new() };
        let mut env_of = BTreeMap::new();
        let mut base_of = BTreeMap::new();
        for instance in board.split.instances.clone() {
            if !selected.is_empty() && !selected.iter().any(|id| instance.id.as_str() == id) {
                continue;
            }
            let name = (instance.repo.clone(), instance.version.clone());
            let env = if let Some(env) = env_of.get(&name) {
                *env
            } else {
                let env = board.add_env(project, &instance, &mut base_of)?;
                env_of.insert(name, env);
                env
            };
            board.items.push(Item {
                instance,
                env,
                patches: OnceLock::new(),
                image: OnceLock::new(),
                runs: Mutex::default(),
                made: AtomicUsize::new(0),
                begun: OnceLock::new(),
            });
        }
        Ok(board)
    }

    fn add_env(
        &mut self,
        project: &Project,
        instance: &Instance,
        base_of: &mut BTreeMap<String, usize>,
    ) -> Result<usize, Error> {
        let spec = spec::load(&project.specs(), &instance.repo, &instance.version)?;
        let base = if let Some(base) = base_of.get(&spec.base) {
            *base
        } else {
            let definition = spec::load_base(&project.images(), &spec.base)?;
            let held = held_base(project, &definition)?;
            let held_tools = held_tools(project, &definition.name, &held)?;
            let base = Base {
                definition,
                held,
                lock: OnceLock::new(),
                held_tools,
                tools_lock: OnceLock::new(),
                tools: OnceLock::new(),
                image: OnceLock::new(),
            };
            self.bases.push(base);
            base_of.insert(spec.base.clone(), self.bases.len() - 1);
            self.bases.len() - 1
        };
        let held = held_env(project, &spec, &self.bases[base].held)?;
        self.envs.push(Env {
            spec,
            base,
            held,
            lock: OnceLock::new(),
            system: OnceLock::new(),
            image: OnceLock::new(),
        });
        Ok(self.envs.len() - 1)
    }

    pub(crate) fn base_of(&self, env: &Env) -> &Base {
        &self.bases[env.base]
    }
}

fn held_base(
    project: &Project,
    definition: &BaseDefinition,
) -> Result<Result<BaseLock, String>, Error> {
    let path = lock::paths::base_lock(&project.lockfiles(), &definition.name, Arch::HOST);
    if !path.exists() {
        return Ok(Err(format!("{} has no lock", definition.name)));
    }
    let lock = lock::parse_base(&path.display().to_string(), &fs_err::read_to_string(&path)?)?;
    Ok(match lock::check_base(definition, &lock, Arch::HOST) {
        Ok(()) => Ok(lock),
        Err(stale) => Err(stale.to_string()),
    })
}

fn held_tools(
    project: &Project,
    name: &str,
    base: &Result<BaseLock, String>,
) -> Result<Result<ToolsLock, String>, Error> {
    let path = lock::paths::tools_lock(&project.lockfiles(), name, Arch::HOST);
    if !path.exists() {
        return Ok(Err(format!("the tools of {name} have no lock")));
    }
    let lock = lock::parse_tools(&path.display().to_string(), &fs_err::read_to_string(&path)?)?;
    Ok(match base {
        Err(why) => Err(why.clone()),
        Ok(base) => match lock::check_tools(name, base, &lock) {
            Ok(()) => Ok(lock),
            Err(stale) => Err(stale.to_string()),
        },
    })
}

fn held_env(
    project: &Project,
    spec: &Spec,
    base: &Result<BaseLock, String>,
) -> Result<Result<EnvLock, String>, Error> {
    let name = spec.name();
    let path = lock::paths::env_lock(&project.lockfiles(), &name, Arch::HOST);
    if !path.exists() {
        return Ok(Err(format!("{name} has no lock")));
    }
    let pylock = fs_err::read_to_string(lock::paths::pylock(&project.lockfiles(), &name))?;
    let lock =
        lock::parse_env(&path.display().to_string(), &fs_err::read_to_string(&path)?, &pylock)?;
    Ok(match base {
        Err(why) => Err(why.clone()),
        Ok(base) => match lock::check_env(spec, base, &lock) {
            Ok(()) => Ok(lock),
            Err(stale) => Err(stale.to_string()),
        },
    })
}
