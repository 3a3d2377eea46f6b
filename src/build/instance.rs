//! The instance image: the repository at its base commit, installed offline, its tree clean.

use super::repository::{repository, testbed_rules};
use super::step::cached_layer;
use super::sweep::{remove, sweep};
use super::{Error, command, compat, labels, offline};
use crate::bundle::history::History;
use crate::dataset::Instance;
use crate::image::{self, Image};
use crate::resolve::python::Interpreter;
use crate::runtime::{Root, Workbench};
use crate::spec::{Compat, Spec};

const STEP: &str = "install/2";

/// The image of `instance` over the image of its environment, which stands on `base`.
///
/// `history` is the base commit's closure, for instances that come from a git repository.
pub fn instance(
    bench: Workbench<'_>,
    base: &Image,
    env: &Image,
    spec: &Spec,
    instance: &Instance,
    history: Option<&History>,
) -> Result<Image, Error> {
    let mut image = repository(bench, base, env, instance, history)?;
    image.config.working_dir = "/testbed".to_owned();
    labels::add_instance(&mut image.config.labels, instance)?;
    let commands: Vec<&String> =
        spec.commands.pre_install.iter().chain(&spec.commands.install).collect();
    if !commands.is_empty() {
        let inputs = serde_json::json!({
            "step": STEP, "repository": image.key, "commands": commands, "env": image.config.env,
        });
        let layer = cached_layer(bench, "install", instance.id.as_str(), &inputs, |_| {
            install(bench, &image, instance, &commands)
        })?;
        image = image.with_layer(layer, &inputs)?;
    }
    match spec.compat {
        Compat::None => Ok(image),
        // On top, so that asking for it builds nothing else again.
        Compat::Swebench => {
            // As the environment asked it: distributions on top may change what the interpreter says.
            let interpreter = Interpreter::of(bench, base)?;
            compat::swebench(bench, &image, &interpreter.scheme)
        }
    }
}

fn install(
    bench: Workbench<'_>,
    image: &Image,
    instance: &Instance,
    commands: &[&String],
) -> Result<image::Layer, Error> {
    let date = commit_date(bench, image)?;
    let scratch = bench.store.scratch_dir("install")?;
    let logs = scratch.path().join("logs");
    fs_err::create_dir(&logs)?;
    let script: String =
        commands.iter().map(|command| format!("({command}\n) || exit $?\n")).collect();
    let mut run = offline::shell(&format!("umask 022\n{script}{CLEAN_CHECK}"), date, &logs);
    run.env.extend(image.config.env.clone());
    run.working_dir = "/testbed".to_owned();
    let log = command::run(
        bench,
        &format!("install of {}", instance.id),
        Root::Layers(&image.layers),
        &run,
    )?;
    let upper = log.upper.expect("asked for");
    sweep(&upper)?;
    // Where setuptools and its like build; the tree was found clean, so nothing of it is the repository's.
    remove(&upper, "testbed/build")?;
    Ok(image::commit_tree(bench.store, upper, &testbed_rules(date), bench.cancel)?)
}

/// Runs after the install: patches must find the tree that they were made for.
const CLEAN_CHECK: &str = r#"
left=$(/usr/bin/git -C /testbed status --porcelain --untracked-files=all) || exit 1
if [ -n "$left" ]; then
  echo "the install left changes in the work tree:"
  echo "$left"
  echo "make it write elsewhere, or undo the changes at the end of the install commands"
  exit 1
fi
"#;

/// The base commit's date, as the work tree's files carry it.
fn commit_date(bench: Workbench<'_>, image: &Image) -> Result<i64, Error> {
    use std::os::unix::fs::MetadataExt as _;
    let repository = image.layers.last().expect("the repository's layer is on top");
    let folder = bench.store.layer_path(&repository.diff_id);
    Ok(fs_err::symlink_metadata(folder.join("testbed"))?.mtime())
}
