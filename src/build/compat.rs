//! The layer that makes an image answer to the paths and commands of SWE-bench's own images, without conda.
//!
//! ```text
//! /opt/miniconda3/
//!   bin/activate               sourced: defines `conda` and activates an environment
//!   bin/conda                  says that there is no conda
//!   etc/profile.d/conda.sh     sourced: defines `conda activate` and `conda deactivate`
//!   envs/testbed -> PREFIX     where the environment's interpreter and scripts are
//! ```

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;

use super::Error;
use super::distribution::EPOCH;
use super::step::cached_layer;
use crate::image::{Image, PackRules, commit_tree};
use crate::resolve::python::Scheme;
use crate::runtime::Workbench;

const STEP: &str = "compat-swebench/1";
const ROOT: &str = "opt/miniconda3";

/// Path, text, mode.
const FILES: [(&str, &str, u32); 3] = [
    ("bin/activate", include_str!("scripts/activate.sh"), 0o644),
    ("bin/conda", include_str!("scripts/no-conda.sh"), 0o755),
    ("etc/profile.d/conda.sh", include_str!("scripts/conda.sh"), 0o644),
];

/// The image with the layer on top. One prefix gives one layer, whatever lies below.
pub(super) fn swebench(
    bench: Workbench<'_>,
    image: &Image,
    scheme: &Scheme,
) -> Result<Image, Error> {
    let prefix = prefix(scheme)?;
    let inputs = json!({ "step": STEP, "prefix": prefix, "files": FILES });
    let layer = cached_layer(bench, "compat", "swebench", &inputs, |_| {
        let tree = bench.store.scratch_dir("compat")?.keep();
        write(&tree, prefix)?;
        Ok(commit_tree(bench.store, tree, &PackRules::root(EPOCH), bench.cancel)?)
    })?;
    Ok(image.with_layer(layer, &inputs)?)
}

/// The folder whose `bin` holds the environment's scripts and its `python`.
fn prefix(scheme: &Scheme) -> Result<&str, Error> {
    scheme.scripts.strip_suffix("/bin").filter(|prefix| prefix.starts_with('/')).ok_or_else(|| {
        Error::Invalid {
            what: "compat = \"swebench\"".to_owned(),
            problem: format!(
                "scripts are installed to {}, which is no `bin` of a prefix",
                scheme.scripts
            ),
            hint: Some(
                "remove the key: conda's layout has no place for such an environment".into(),
            ),
        }
    })
}

fn write(tree: &Path, prefix: &str) -> Result<(), Error> {
    let root = tree.join(ROOT);
    for (path, text, mode) in FILES {
        let path = root.join(path);
        fs_err::create_dir_all(path.parent().expect("a file in a folder"))?;
        fs_err::write(&path, text)?;
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
    }
    fs_err::create_dir(root.join("envs"))?;
    fs_err::os::unix::fs::symlink(prefix, root.join("envs/testbed"))?;
    for entry in walkdir::WalkDir::new(tree) {
        let entry = entry.map_err(std::io::Error::from)?;
        if entry.file_type().is_dir() {
            fs_err::set_permissions(entry.path(), std::fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}
