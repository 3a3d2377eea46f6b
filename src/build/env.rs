//! Env images: a base image with the locked Python distributions on top.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::distribution::{Distribution, EPOCH, trees};
use super::plan::LayerPlan;
use super::step::cached_layer;
use super::{Error, labels, pyc, sdist, union};
use crate::base::canon;
use crate::image::{Image, ImageConfig, Layer, PackRules, commit_tree};
use crate::lock::{BuiltWheel, EnvLock};
use crate::resolve::python::{Interpreter, Scheme};
use crate::runtime::Workbench;
use crate::spec::Spec;

/// Environment variables of every env image, under those of the spec. The field's evaluation scripts call
/// `pip install` again, and runs are offline:
/// - build backends are in the environment, so builds need no isolation (`0` is how pip's variable says so);
/// - without an index, pip fails at once with the name of what is missing, where it would retry for minutes otherwise;
/// - pip does not look for a newer pip, nor warn of root, nor refuse the suite's own prefix.
const ENVIRONMENT: [(&str, &str); 5] = [
    ("PIP_BREAK_SYSTEM_PACKAGES", "1"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("PIP_NO_BUILD_ISOLATION", "0"),
    ("PIP_NO_INDEX", "1"),
    ("PIP_ROOT_USER_ACTION", "ignore"),
];

/// An env image and the wheels that were made for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvBuild {
    /// The image.
    pub image: Image,
    /// The wheels made from the sdists of the lock, sorted by sdist: what `[built]` of the lock holds.
    pub built: Vec<BuiltWheel>,
}

/// Builds the env image of `spec` on `base`, which has the spec's system packages already; one layer.
pub fn env(
    bench: Workbench<'_>,
    base: &Image,
    spec: &Spec,
    lock: &EnvLock,
) -> Result<EnvBuild, Error> {
    env_with_plan(bench, base, spec, lock, &LayerPlan::default())
}

/// The same, cut into layers by `plan`.
pub fn env_with_plan(
    bench: Workbench<'_>,
    base: &Image,
    spec: &Spec,
    lock: &EnvLock,
    plan: &LayerPlan,
) -> Result<EnvBuild, Error> {
    let interpreter = Interpreter::of(bench, base)?;
    let mut distributions = Vec::new();
    let mut built = Vec::new();
    for package in &lock.packages {
        let (wheel, sha256) = if package.file.is_wheel() {
            (package.file.name.clone(), package.file.sha256)
        } else {
            let wheel = sdist::wheel_of(bench, base, &interpreter, lock, &package.file)?;
            let file = (wheel.wheel.clone(), wheel.sha256);
            built.push(wheel);
            file
        };
        distributions.push(Distribution { name: package.name.clone(), wheel, sha256 });
    }
    built.sort();

    let mut image = base.clone();
    image.layers.extend(layers(bench, base, &interpreter, &distributions, plan, &spec.name())?);
    let own = ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned()));
    image.config.env.extend(own);
    image.config.env.extend(spec.env.clone());
    // Not made of the layers: how they are cut is the plan's business.
    distributions.sort();
    let compiler = pyc::Compiler::of(&interpreter);
    // Labels say what is in the key already, and no step hangs on the rest.
    let config = ImageConfig {
        env: image.config.env.clone(),
        working_dir: image.config.working_dir.clone(),
        ..ImageConfig::default()
    };
    let inputs = (&interpreter.scheme, compiler, &distributions, &config);
    image.key = canon::digest(&("env", 1, base.key, inputs))?;
    let lock = EnvLock { built: built.clone(), ..lock.clone() };
    labels::add_env(&mut image.config.labels, spec, &lock)?;
    Ok(EnvBuild { image, built })
}

/// Everything that a layer of distributions is made from.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct LayerInputs<'a> {
    step: &'static str,
    version: u32,
    scheme: &'a Scheme,
    compiler: pyc::Compiler<'a>,
    distributions: Vec<Distribution>,
    /// Paths of these distributions that another one gives.
    left_out: Vec<String>,
}

/// The layers of `distributions`, each cached by what is in it; `image` has the interpreter.
pub(super) fn layers(
    bench: Workbench<'_>,
    image: &Image,
    interpreter: &Interpreter,
    distributions: &[Distribution],
    plan: &LayerPlan,
    name: &str,
) -> Result<Vec<Layer>, Error> {
    let mut found: Option<BTreeMap<String, PathBuf>> = None;
    let mut all_trees = || -> Result<BTreeMap<String, PathBuf>, Error> {
        if let Some(found) = &found {
            return Ok(found.clone());
        }
        let trees = trees(bench, image, interpreter, distributions)?;
        found = Some(trees.clone());
        Ok(trees)
    };
    let mut sorted = distributions.to_vec();
    sorted.sort();
    let compiler = || pyc::Compiler::of(interpreter);
    let key = canon::digest(&("python-union", 1, &interpreter.scheme, compiler(), &sorted))?;
    let shared = if let Some(shared) = bench.store.step::<union::Shared>(&key) {
        shared
    } else {
        let shared = union::judge(&all_trees()?)?;
        bench.store.put_step(&key, &shared)?;
        shared
    };

    let by_name =
        sorted.iter().map(|distribution| (distribution.name.clone(), distribution.clone()));
    let mut made = Vec::new();
    for group in plan.split(by_name) {
        let names: Vec<&str> =
            group.iter().map(|distribution| distribution.name.as_str()).collect();
        let left_out = shared
            .iter()
            .filter(|(_, owner)| !names.contains(&owner.as_str()))
            .map(|(path, _)| path.clone())
            .collect();
        let inputs = LayerInputs {
            step: "python-layer",
            version: 1,
            scheme: &interpreter.scheme,
            compiler: compiler(),
            distributions: group.clone(),
            left_out,
        };
        let layer = cached_layer(bench, "env", name, &inputs, |_| {
            let trees = all_trees()?;
            let own = names.iter().map(|name| (*name, trees[*name].clone())).collect();
            let target = bench.store.scratch_dir("env")?.keep();
            union::link(&own, &shared, &target)?;
            Ok(commit_tree(bench.store, target, &PackRules::root(EPOCH), bench.cancel)?)
        })?;
        made.push(layer);
    }
    Ok(made)
}
