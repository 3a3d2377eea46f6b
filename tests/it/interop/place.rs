//! A store with images and runs, the rows made of it, and a daemon that holds the images.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::{Dockerd, Full, INSTANCES, copy_store, shared_folder};

/// A patch that changes nothing that any test sees.
const NOTHING: &str = "diff --git a/nothing b/nothing\nnew file mode 100644\n--- /dev/null\n+++ b/nothing\n@@ -0,0 +1 @@\n+nothing\n";

/// A folder of one test's own. Removed when dropped.
pub(super) struct Place {
    folder: tempfile::TempDir,
    project: PathBuf,
    store: PathBuf,
    /// The split and options that all verbs are given.
    split: Vec<String>,
}

impl Place {
    /// The two instances that tests share, with all of their runs, on a copy of their store.
    pub(super) fn two() -> Option<Self> {
        let full = Full::get()?;
        // On the disk of the shared stores, whose files are linked.
        let folder =
            tempfile::Builder::new().prefix("interop-").tempdir_in(shared_folder()).unwrap();
        let store = folder.path().join("store");
        copy_store(&full.store(), &store);
        let split = ["quickstart", "-i", INSTANCES[0], "-i", INSTANCES[1], "--offline"];
        Some(Self {
            project: PathBuf::from(env!("CARGO_MANIFEST_DIR")),
            store,
            split: split.map(str::to_owned).into(),
            folder,
        })
    }

    /// A split of this repository over a store that is given.
    pub(super) fn over(store: &Path, split: &[&str]) -> Self {
        Self {
            folder: tempfile::Builder::new().prefix("interop-").tempdir().unwrap(),
            project: PathBuf::from(env!("CARGO_MANIFEST_DIR")),
            store: store.to_owned(),
            split: split.iter().map(|word| (*word).to_owned()).collect(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A name for a run of a client: containers are named by it, and a daemon may be shared.
    pub(super) fn run_name(&self, what: &str) -> String {
        format!("{}-{what}", self.path().file_name().unwrap().to_str().unwrap())
    }

    pub(super) fn store(&self) -> &Path {
        &self.store
    }

    /// Works on another project from now on.
    pub(super) fn set_project(&mut self, project: PathBuf) {
        self.project = project;
    }

    /// Runs the program: a verb, the split, more arguments. It must succeed.
    pub(super) fn hallmark(&self, verb: &[&str], more: &[&str]) -> Output {
        let output = self.try_hallmark(verb, more);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// The same; it may fail.
    pub(super) fn try_hallmark(&self, verb: &[&str], more: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_hallmark"))
            .args(verb)
            .args(&self.split)
            .args(more)
            .arg("--project")
            .arg(&self.project)
            .arg("--store")
            .arg(&self.store)
            .current_dir(self.path())
            .output()
            .unwrap()
    }

    /// A candidate for each row that does nothing, in `nothing.jsonl`.
    pub(super) fn write_nothing(&self, rows: &[Value]) {
        let line = |row: &Value| {
            let id = &row["instance_id"];
            let line = serde_json::json!({
                "instance_id": id, "model_name_or_path": "nothing", "model_patch": NOTHING,
            });
            format!("{line}\n")
        };
        let lines: String = rows.iter().map(line).collect();
        fs_err::write(self.path().join("nothing.jsonl"), lines).unwrap();
    }

    /// The rows for the harness, in `rows.jsonl`.
    pub(super) fn rows(&self, more: &[&str]) -> Vec<Value> {
        self.hallmark(&["export", "swebench"], &[&["rows.jsonl", "--all"], more].concat());
        let text = fs_err::read_to_string(self.path().join("rows.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Puts the images into the daemon, under the names that the rows have.
    pub(super) fn load(&self, docker: &Dockerd, more: &[&str]) {
        self.hallmark(&["load"], &[&["--docker-host", &docker.host()], more].concat());
    }

    /// The images that are built, by name: keys and digests.
    pub(super) fn build(&self) -> Value {
        let output = self.hallmark(&["build"], &["--json", "--locked"]);
        let lines = String::from_utf8(output.stdout).unwrap();
        let mut lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let digests = lines.find(|line| line["kind"] == "digests").unwrap();
        digests["value"]["images"].clone()
    }

    /// What our own runs of an image in plain conditions found, of a phase: outcomes by test, as the harness's parsers call them. What
    /// its pytest parsers do not read is left out: skipped tests, which have no line of their own, and unexpected passes.
    pub(super) fn outcomes(&self, image: &Value, phase: &str) -> BTreeMap<String, String> {
        let mut found = None;
        for entry in fs_err::read_dir(self.store.join("runs")).unwrap() {
            let path = entry.unwrap().path().join("record.json");
            let record: Value = serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap();
            let plain = record["profile"].as_array().is_some_and(Vec::is_empty);
            let completed = record["outcome"]["kind"] == "completed";
            if record["image"] == *image && record["phase"] == phase && plain && completed {
                found = Some(record);
            }
        }
        let found = found.unwrap_or_else(|| panic!("no run {phase} of {image}"));
        let word = |outcome: &Value| match outcome.as_str().unwrap() {
            "passed" => Some("PASSED"),
            "failed" => Some("FAILED"),
            "error" => Some("ERROR"),
            "xfailed" => Some("XFAIL"),
            _ => None,
        };
        let tests = found["tests"].as_object().unwrap().iter();
        tests
            .filter_map(|(id, result)| Some((id.clone(), word(&result["outcome"])?.to_owned())))
            .collect()
    }
}
