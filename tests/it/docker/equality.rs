//! The same split through a daemon gives the same subject and the same outcomes.

use std::process::Command;

use serde_json::Value;

use crate::support::{Dockerd, Full, INSTANCES, copy_store};

fn read(path: &std::path::Path) -> Value {
    serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap()
}

/// Of each run: what it was, and the digest of its outcomes.
fn outcomes(manifest: &Value) -> Vec<String> {
    let instances = manifest["evidence"]["instances"].as_object().unwrap();
    let mut all: Vec<String> = instances
        .iter()
        .flat_map(|(name, instance)| {
            instance["runs"].as_array().unwrap().iter().map(move |run| {
                format!(
                    "{name} {} {} {} {}",
                    run["phase"], run["profile"], run["repeat"], run["outcomes"]
                )
            })
        })
        .collect();
    all.sort();
    all
}

#[test]
fn a_daemon_gives_the_same_verdicts_as_the_embedded_runtime() {
    let (Some(dockerd), Some(full)) = (Dockerd::shared(), Full::get()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    copy_store(&full.store(), &store);
    fs_err::remove_dir_all(store.join("runs")).unwrap();
    let embedded = read(&full.manifest());
    let applied = embedded["evidence"]["run-layers"].as_array().unwrap();
    assert!(!applied.is_empty());
    for entry in applied {
        // The patches are applied again too.
        let name = entry["layer"]["diff-id"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        fs_err::remove_dir_all(store.join("layers").join(name)).unwrap();
    }
    let made = folder.path().join("manifest.json");
    let output = Command::new(env!("CARGO_BIN_EXE_hallmark"))
        .args(["run", "quickstart", "--offline", "--runtime", "docker", "--manifest"])
        .arg(&made)
        .args(["-i", INSTANCES[0], "-i", INSTANCES[1]])
        .args(["--project", env!("CARGO_MANIFEST_DIR"), "--store"])
        .arg(&store)
        .env("DOCKER_HOST", dockerd.host())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let docker = read(&made);
    assert_eq!(docker["evidence"]["run-layers"], embedded["evidence"]["run-layers"]);
    assert_eq!(outcomes(&docker), outcomes(&embedded));
    assert!(outcomes(&docker).len() > 10, "{docker:#}");
    assert_eq!(docker["digests"]["subject"], embedded["digests"]["subject"]);
    assert!(embedded["host"].get("runtimes").is_none(), "{}", embedded["host"]);
    assert!(docker["host"]["runtimes"][0].as_str().unwrap().starts_with("Docker "));
}
