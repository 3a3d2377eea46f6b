//! `compat = "swebench"`: what scripts that were written for SWE-bench's images find in ours.

use std::process::Command;

use hallmark::base::{Cancel, Digest, Store};
use hallmark::image::Layer;
use hallmark::runtime::embedded::Embedded;
use hallmark::runtime::{Network, Root, RunSpec, Runtime as _};
use serde_json::Value;

use super::place::Place;
use crate::support::shared_folder;

/// The first lines of the field's evaluation scripts, and what they expect of them. `set -e` on top: nothing may even complain.
const PREAMBLE: &str = r#"
set -euxo pipefail
before=$PATH
source /opt/miniconda3/bin/activate
conda activate testbed
cd /testbed
test "$CONDA_DEFAULT_ENV" = testbed
test "$CONDA_PREFIX" = /opt/miniconda3/envs/testbed
test "$(command -v python)" = /opt/miniconda3/envs/testbed/bin/python
python -c 'import pytest, sys; sys.exit(not sys.version.startswith("3.11"))'
pytest --version
python -m pip --version
source /opt/miniconda3/bin/activate
conda activate testbed
git -C /testbed status --porcelain
conda deactivate
test "$PATH" = "$before"
. /opt/miniconda3/etc/profile.d/conda.sh
conda activate /opt/miniconda3/envs/testbed
/opt/miniconda3/envs/testbed/bin/python -m pytest --version
set +e
conda activate other; test $? = 1 || exit 1
conda install numpy; test $? = 1 || exit 1
"#;

fn layers(images: &Value, name: &str) -> Vec<String> {
    let ids = images[name]["diff-ids"].as_array().unwrap();
    ids.iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

/// Works on a copy of this project whose specs all ask for the layer.
fn ask_for_it(place: &mut Place) {
    let project = place.path().join("project");
    fs_err::create_dir(&project).unwrap();
    for part in ["specs", "lockfiles", "images"] {
        let from = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(part);
        assert!(Command::new("cp").arg("-r").arg(from).arg(&project).status().unwrap().success());
    }
    let defaults = project.join("specs/_defaults.toml");
    let text = fs_err::read_to_string(&defaults).unwrap();
    fs_err::write(&defaults, format!("compat = \"swebench\"\n{text}")).unwrap();
    // Other images than the committed ones are what is asked for.
    fs_err::remove_file(project.join("images/quickstart.digests.json")).unwrap();
    place.set_project(project);
}

/// Some hold distributions that change what the interpreter says of itself (setuptools, before Python 3.10).
#[test]
#[ignore = "takes long: see docs/testing.md"]
fn long_every_environment_takes_the_compatible_layer() {
    let store = shared_folder().join("interop/quickstart");
    fs_err::create_dir_all(&store).unwrap();
    let mut place = Place::over(&store, &["quickstart"]);
    ask_for_it(&mut place);
    let images = place.build();
    let images = images.as_object().unwrap();
    assert_eq!(images.keys().filter(|name| name.starts_with("instance/")).count(), 13);
}

#[test]
fn scripts_for_conda_work_in_the_compatible_image() {
    let Some(mut place) = Place::two() else { return };
    let name = format!("instance/{}", crate::support::INSTANCES[0]);
    let plain = place.build();
    ask_for_it(&mut place);
    // --locked: the locks still answer the specs.
    let images = place.build();
    let (below, all) = (layers(&plain, &name), layers(&images, &name));
    assert_eq!(all[..all.len() - 1], below, "one layer on top of the same");
    assert_ne!(images[&name]["key"], plain[&name]["key"]);
    let other = format!("instance/{}", crate::support::INSTANCES[1]);
    assert_eq!(layers(&images, &other).last(), all.last(), "one layer for all");
    assert_eq!(images["env/pypi__pyflakes/3.0.1"], plain["env/pypi__pyflakes/3.0.1"]);

    let store = Store::open(place.store(), &place.path().join("scratch")).unwrap();
    let runtime = Embedded::new(&store, env!("CARGO_BIN_EXE_hallmark").into()).unwrap();
    let layers: Vec<Layer> =
        all.iter().map(|id| Layer { diff_id: id.parse::<Digest>().unwrap(), size: 0 }).collect();
    let output = place.path().join("output");
    fs_err::create_dir(&output).unwrap();
    let mut spec = RunSpec::new(["/bin/bash", "-c", PREAMBLE], &output);
    spec.network = Network::Unreachable;
    let log = runtime.run(Root::Layers(&layers), &spec, &Cancel::new()).unwrap();
    let said = fs_err::read_to_string(&log.stderr).unwrap();
    assert!(log.success(), "{said}");
    assert!(said.contains("Could not find conda environment: other"), "{said}");
    assert!(said.contains("conda install numpy: this image has no conda"), "{said}");
}
