//! The scaffold over a daemon instead of the embedded runtime.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use hallmark::base::{Cancel, Store};
use hallmark::image::{Layer, commit_tree};
use hallmark::runtime::docker::{Docker, Endpoint, Engine};

use super::scaffold::{Scaffold, as_it_is, fill, layers_folder};
use crate::support::Dockerd;

/// A scaffold over the tests' own daemon, or `None` (and a word about it) where there is none.
pub(crate) fn docker_scaffold() -> Option<Scaffold> {
    Dockerd::shared().map(docker_scaffold_over)
}

/// The same over any daemon.
pub(crate) fn docker_scaffold_over(dockerd: &Dockerd) -> Scaffold {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (shared, layer) = packed_layer();
    let store = Store::open(&shared, &path.join("scratch")).unwrap();
    let runtime = Box::new(docker_runtime(dockerd, &store));
    Scaffold { folder, store, runtime, layers: vec![layer], packed: true, fake: None }
}

/// A runtime over a daemon of the tests.
pub(crate) fn docker_runtime(dockerd: &Dockerd, store: &Store) -> Docker {
    let (place, cancel) = (Endpoint::Unix(dockerd.socket()), Cancel::new());
    Docker::new(store, Engine::connect(&[place], &cancel).unwrap(), &cancel).unwrap()
}

/// The bottom layer by its real name, and the store that has it.
fn packed_layer() -> (PathBuf, Layer) {
    static MADE: std::sync::OnceLock<(PathBuf, Layer)> = std::sync::OnceLock::new();
    let make = || {
        let folder = layers_folder().join("scaffold-packed-1");
        let store = Store::open(&folder, &folder.join("scratch")).unwrap();
        let name = folder.join("layer.json");
        let layer = fs_err::read(&name).map_or_else(
            |_| {
                let fresh = tempfile::tempdir_in(store.scratch()).unwrap();
                let root = fresh.path().join("root");
                fill(&root);
                let layer = commit_tree(&store, root, &as_it_is(), &Cancel::new()).unwrap();
                fs_err::write(&name, serde_json::to_vec(&layer).unwrap()).unwrap();
                layer
            },
            |bytes| serde_json::from_slice(&bytes).unwrap(),
        );
        (folder, layer)
    };
    MADE.get_or_init(make).clone()
}
