//! The same split through a daemon gives the same subject and the same outcomes.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::flaky::corpus::{Tree, stable_files};
use crate::flaky::land::{Instance, Land};
use crate::rows;
use crate::support::{Dockerd, Full, INSTANCES, copy_store, say, shared_folder};

/// A split, and a store that has its files.
struct Split {
    project: PathBuf,
    store: PathBuf,
    /// The split and which of its instances.
    words: Vec<String>,
}

impl Split {
    /// Of this repository.
    fn own(store: &Path, words: &[&str]) -> Self {
        let project = env!("CARGO_MANIFEST_DIR").into();
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Self { project, store: store.to_owned(), words }
    }

    /// Takes it to its manifest over a store.
    fn run(&self, store: &Path, folder: &Path, how: &[&str]) -> Value {
        let made = folder.join("manifest.json");
        let output = Command::new(env!("CARGO_BIN_EXE_hallmark"))
            .arg("run")
            .args(&self.words)
            .args(["--locked", "--policy", "quick", "--manifest"])
            .arg(&made)
            .args(how)
            .arg("--project")
            .arg(&self.project)
            .arg("--store")
            .arg(store)
            .current_dir(folder)
            .env_remove("HALLMARK_SCRATCH")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        serde_json::from_slice(&fs_err::read(&made).unwrap()).unwrap()
    }

    /// Compares what both runtimes make of it. Instances, and runs that were compared.
    fn is_the_same(&self, dockerd: &Dockerd) -> (usize, usize) {
        // On the disk of the shared stores, whose files are linked.
        let folder = tempfile::tempdir_in(shared_folder()).unwrap();
        let embedded = self.run(&self.store, folder.path(), &["--runtime", "embedded"]);
        let store = folder.path().join("store");
        copy_store(&self.store, &store);
        fs_err::remove_dir_all(store.join("runs")).unwrap();
        let applied = embedded["evidence"]["run-layers"].as_array().unwrap();
        assert!(!applied.is_empty());
        for entry in applied {
            // The patches are applied, and what is built again is built, too.
            let name = entry["layer"]["diff-id"].as_str().unwrap();
            let name = name.strip_prefix("sha256:").unwrap();
            fs_err::remove_dir_all(store.join("layers").join(name)).unwrap();
        }
        let host = dockerd.host();
        let how = ["--offline", "--runtime", "docker", "--docker-host", &host];
        let docker = self.run(&store, folder.path(), &how);
        assert_eq!(docker["evidence"]["run-layers"], embedded["evidence"]["run-layers"]);
        let runs = outcomes(&docker);
        assert_eq!(runs, outcomes(&embedded));
        assert_eq!(docker["digests"]["subject"], embedded["digests"]["subject"]);
        assert!(embedded["host"].get("runtimes").is_none(), "{}", embedded["host"]);
        assert!(docker["host"]["runtimes"][0].as_str().unwrap().starts_with("Docker "));
        let instances = docker["evidence"]["instances"].as_object().unwrap().len();
        // Three runs of each phase, four under other conditions, two collections.
        assert!(runs.len() >= 10 * instances, "{} runs of {instances}", runs.len());
        (instances, runs.len())
    }
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

fn told((instances, runs): (usize, usize)) {
    say(&format!("{instances} instances, {runs} runs alike through both"));
}

#[test]
fn a_daemon_gives_the_same_verdicts_as_the_embedded_runtime() {
    let (Some(dockerd), Some(full)) = (Dockerd::shared(), Full::get()) else { return };
    let words = ["quickstart", "-i", INSTANCES[0], "-i", INSTANCES[1]];
    let (instances, _) = Split::own(&full.store(), &words).is_the_same(dockerd);
    assert_eq!(instances, 2);
}

#[test]
#[ignore = "takes long: see docs/testing.md"]
fn long_the_quickstart_is_the_same() {
    let Some(dockerd) = Dockerd::shared() else { return };
    let store = shared_folder().join("interop/quickstart");
    fs_err::create_dir_all(&store).unwrap();
    told(Split::own(&store, &["quickstart"]).is_the_same(dockerd));
}

#[test]
#[ignore = "takes long: see docs/testing.md"]
fn long_the_stable_part_of_the_corpus_is_the_same() {
    let (Some(dockerd), Some(land)) = (Dockerd::shared(), Land::new()) else { return };
    let all = stable_files();
    let instance =
        |(name, files): (&str, &[String])| Instance::new(name, Tree::land().with_stable(files));
    let (half, rest) = all.split_at(all.len() / 2);
    let instances = [("all", &all[..]), ("half", half), ("rest", rest)].map(instance);
    land.settle(&instances, "");
    let split =
        Split { project: land.project(), store: land.store(), words: vec!["flaky".to_owned()] };
    let output = land.call(&["build", "flaky", "--quiet"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    told(split.is_the_same(dockerd));
}

#[test]
#[ignore = "takes long: see docs/testing.md"]
fn long_real_rows_are_the_same() {
    let Some(dockerd) = Dockerd::shared() else { return };
    let Some((corpus, store)) = rows::filled_store() else { return };
    let words = rows::ALL.iter().flat_map(|row| ["-i", row]);
    let words: Vec<&str> = [corpus.to_str().unwrap()].into_iter().chain(words).collect();
    told(Split::own(&store, &words).is_the_same(dockerd));
}
