//! Two instances of the quickstart, taken through everything once, by the command line.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{say_skipped, shared_folder, shared_lock};

/// Two small ones on bookworm.
pub(crate) const INSTANCES: [&str; 2] = ["pypi__pyflakes-3.1.0", "pypi__voluptuous-0.15.2"];

/// Where it all is.
pub(crate) struct Full {
    folder: PathBuf,
}

impl Full {
    /// `None`, and a word about it, where this host cannot run containers as root, or has nothing yet and no network.
    pub(crate) fn get() -> Option<&'static Self> {
        static FULL: OnceLock<Option<Full>> = OnceLock::new();
        FULL.get_or_init(Self::make).as_ref().or_else(|| {
            say_skipped("the shared store could not be filled: it needs root and, once, a network");
            None
        })
    }

    /// Everything: base, environments, instances, runs.
    pub(crate) fn store(&self) -> PathBuf {
        self.folder.join("store")
    }

    /// The packed bundle of the two instances.
    pub(crate) fn bundle(&self) -> PathBuf {
        self.folder.join("bundle-2")
    }

    /// The names of steps and layers that belong to the base image.
    pub(crate) fn base_parts(&self) -> Vec<PathBuf> {
        let text = fs_err::read_to_string(self.folder.join("base-parts")).unwrap();
        text.lines().map(PathBuf::from).collect()
    }

    /// The manifest of the undisturbed run.
    pub(crate) fn manifest(&self) -> PathBuf {
        self.folder.join("manifest.json")
    }

    fn make() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let _lock = shared_lock("full");
        let folder = shared_folder().join("full");
        let store = folder.join("store");
        let manifest = folder.join("manifest.json");
        let bundle = folder.join("bundle-2");
        let all: &[&str] = &["-i", INSTANCES[0], "-i", INSTANCES[1]];
        let call = |arguments: &[&str]| {
            let output = Command::new(env!("CARGO_BIN_EXE_hallmark"))
                .args(arguments)
                .args(all)
                .args(["--project", env!("CARGO_MANIFEST_DIR"), "--store"])
                .arg(&store)
                .current_dir(&folder)
                .output()
                .unwrap();
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        fs_err::create_dir_all(&folder).unwrap();
        if !bundle.exists() {
            let (code, said) = call(&["bundle", "pack", "quickstart", bundle.to_str().unwrap()]);
            if code != Some(0) {
                say_skipped(&said);
                return None;
            }
        }
        // Whatever was made by the same inputs before is found by its key.
        let (code, said) =
            call(&["run", "quickstart", "--offline", "--manifest", manifest.to_str().unwrap()]);
        assert_eq!(code, Some(0), "{said}");
        fs_err::write(folder.join("base-parts"), base_parts(&store, &manifest)).unwrap();
        Some(Self { folder })
    }
}

/// Steps and layers of the base: the steps whose result names no layer but the base's.
fn base_parts(store: &Path, manifest: &Path) -> String {
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs_err::read(manifest).unwrap()).unwrap();
    let base = &manifest["subject"]["bases"]["bookworm"]["image"]["image"];
    let key = base["key"].as_str().unwrap().trim_start_matches("sha256:").to_owned();
    let layer = base["layers"][0]["diff-id"].as_str().unwrap().trim_start_matches("sha256:");
    let step = format!("steps/{key}.json");
    assert!(store.join(&step).exists(), "{step}");
    format!("{step}\nlayers/{layer}\n")
}
