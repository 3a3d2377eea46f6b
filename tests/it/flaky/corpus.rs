//! What the corpus holds, and trees of files made of it.
//!
//! ```text
//! tests/fixtures/flaky/
//!   expected.toml        what a verdict must say, by kind
//!   land/                the package that all instances share
//!   gold.patch test.patch
//!   kinds/<kind>/        deterministic: test files, and folders beside them
//!   random/              one template a kind, with @SEED@ and @PERCENT@
//!   stable/ stable.ids   200 tests that nothing is wrong with
//!   bad/                 tests that attack whoever runs them
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::{Timestamp, ToSpan as _};
use serde::Deserialize;

/// The only FAIL_TO_PASS test of every instance.
pub(crate) const FAIL_TO_PASS: &str = "tests/test_ledger.py::test_total";
/// A PASS_TO_PASS test that the test patch brings.
pub(crate) const LEDGER: &str = "tests/test_ledger.py::test_parse";

/// What a verdict must say of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Expected {
    /// Fails under some conditions and passes in plain ones.
    Sensitive,
    /// Its id is another one in the next collection.
    UnstableId,
    /// Fails in plain conditions and passes under others.
    Fails,
    /// Passes, and tries the network.
    Network,
    /// Accused of nothing.
    Stable,
}

/// One test of a deterministic kind.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) cause: Expected,
    /// The fewest axes that make it fail.
    #[serde(default)]
    pub(crate) axes: Vec<String>,
    /// Tests that it fails after.
    #[serde(default)]
    pub(crate) polluter: Vec<String>,
    /// Tests that it fails without.
    #[serde(default)]
    pub(crate) setter: Vec<String>,
}

/// The kinds whose outcome is drawn anew in each run.
pub(crate) const RANDOM: [Random; 6] = [
    Random { name: "coin-5", file: "test_coin.py", test: "Coin::test_luck_", percent: 5 },
    Random { name: "coin-10", file: "test_coin.py", test: "Coin::test_luck_", percent: 10 },
    Random { name: "coin-30", file: "test_coin.py", test: "Coin::test_luck_", percent: 30 },
    Random {
        name: "thread-race",
        file: "test_thread_race.py",
        test: "Reader::test_answer_is_read_",
        percent: 0,
    },
    Random {
        name: "port-clash",
        file: "test_port_clash.py",
        test: "test_three_servers_",
        percent: 0,
    },
    Random {
        name: "slow-cpu",
        file: "test_slow_cpu.py",
        test: "test_worker_is_quick_",
        percent: 0,
    },
];

/// A kind whose outcome is drawn anew in each run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Random {
    pub(crate) name: &'static str,
    file: &'static str,
    test: &'static str,
    percent: u32,
}

impl Random {
    /// The unstable test of one seed.
    pub(crate) fn id(self, seed: u32) -> String {
        format!("tests/{}::{}{seed}", self.file, self.test)
    }
}

/// The folder of the corpus.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/flaky")
}

fn read(path: &str) -> String {
    fs_err::read_to_string(folder().join(path)).unwrap()
}

/// The deterministic kinds with their tests.
pub(crate) fn expected() -> BTreeMap<String, Vec<Case>> {
    toml::from_str(&read("expected.toml")).unwrap()
}

/// The ids of the stable tests.
pub(crate) fn stable_ids() -> Vec<String> {
    read("stable.ids").lines().map(str::to_owned).collect()
}

/// The file names of the stable tests.
pub(crate) fn stable_files() -> Vec<String> {
    let mut files: Vec<String> = stable_ids()
        .iter()
        .map(|id| id.split("::").next().unwrap().trim_start_matches("tests/").to_owned())
        .collect();
    files.dedup();
    files
}

pub(crate) fn gold_patch() -> String {
    read("gold.patch")
}

pub(crate) fn test_patch() -> String {
    read("test.patch")
}

/// The work tree of an instance's base commit, and what is expected of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree {
    /// Contents by path.
    pub(crate) files: BTreeMap<String, String>,
    /// PASS_TO_PASS.
    pub(crate) pass_to_pass: Vec<String>,
}

impl Tree {
    /// The package and nothing else.
    pub(crate) fn land() -> Self {
        let mut tree = Self { files: BTreeMap::new(), pass_to_pass: vec![LEDGER.to_owned()] };
        tree.add_folder(&folder().join("land"), "");
        tree
    }

    fn add_folder(&mut self, from: &Path, below: &str) {
        for entry in walkdir::WalkDir::new(from).sort_by_file_name() {
            let entry = entry.unwrap();
            let relative = entry.path().strip_prefix(from).unwrap().display().to_string();
            if entry.file_type().is_file() && !relative.contains("__pycache__") {
                let text = fs_err::read_to_string(entry.path()).unwrap();
                self.files.insert(format!("{below}{relative}"), text);
            }
        }
    }

    /// With a deterministic kind. `scratch` is on the disk of the store.
    #[must_use]
    pub(crate) fn with_kind(mut self, kind: &str, scratch: &Path) -> Self {
        let from = folder().join("kinds").join(kind);
        let mut part = Self::default();
        part.add_folder(&from, "");
        for (path, text) in part.files {
            let path = if path.contains('/') { path } else { format!("tests/{path}") };
            let text = filled(&text, &from, scratch);
            assert!(self.files.insert(path, text).is_none(), "{kind}: a file twice");
        }
        self.pass_to_pass.extend(expected()[kind].iter().map(|case| case.id.clone()));
        self
    }

    /// With one draw of a random kind.
    #[must_use]
    pub(crate) fn with_random(mut self, kind: Random, seed: u32) -> Self {
        let text = read(&format!("random/{}", kind.file))
            .replace("@SEED@", &seed.to_string())
            .replace("@PERCENT@", &kind.percent.to_string());
        self.files.insert(format!("tests/{}", kind.file), text);
        self.pass_to_pass.push(kind.id(seed));
        self
    }

    /// With the stable tests of these files.
    #[must_use]
    pub(crate) fn with_stable(mut self, files: &[impl AsRef<str>]) -> Self {
        for file in files.iter().map(AsRef::as_ref) {
            let path = format!("tests/{file}");
            self.files.insert(path.clone(), read(&format!("stable/{file}")));
            let of_file = format!("{path}::");
            self.pass_to_pass
                .extend(stable_ids().into_iter().filter(|id| id.starts_with(&of_file)));
        }
        self
    }

    /// With a test file of one's own.
    #[must_use]
    pub(crate) fn with_file(mut self, path: &str, text: &str, ids: &[&str]) -> Self {
        self.files.insert(path.to_owned(), text.to_owned());
        self.pass_to_pass.extend(ids.iter().map(|id| (*id).to_owned()));
        self
    }
}

/// Puts in what cannot be written down for good: days around today, and the order in which this disk lists a folder.
fn filled(text: &str, kind: &Path, scratch: &Path) -> String {
    let day = |days: i64| {
        let time = Timestamp::now() + (24 * days).hours();
        time.strftime("%Y-%m-%d").to_string()
    };
    let mut text = text.replace("@DAY+200@", &day(200)).replace("@DAY-180@", &day(-180));
    if text.contains("@LISTED@") {
        text = text.replace("@LISTED@", &listed(&kind.join("plugins"), scratch).join(" "));
    }
    text
}

/// The names of a folder as this disk lists them when they are made from A to Z.
fn listed(folder: &Path, scratch: &Path) -> Vec<String> {
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs_err::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let copy = tempfile::tempdir_in(scratch).unwrap();
    let mut sorted = names(folder);
    sorted.sort();
    for name in sorted {
        fs_err::write(copy.path().join(name), "").unwrap();
    }
    names(copy.path())
}

/// A test file that attacks whoever runs it.
pub(crate) fn bad(name: &str) -> String {
    read(&format!("bad/{name}.py"))
}
