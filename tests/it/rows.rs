//! Rows of the field's own data set. Their texts are no part of this repository: what needs them takes them from the corpus
//! (`HALLMARK_CORPUS`), and the histories from a folder of mirrors (`HALLMARK_MIRRORS`).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hallmark::base::Arch;
use hallmark::base::clock::Stopwatch;
use hallmark::{lock, spec};
use serde_json::Value;

use crate::support::{copy_store, is_real_root, say, say_skipped, shared_folder, shared_lock};

/// The rows that `docs/interop.md` tells of.
pub(crate) const ALL: [&str; 20] = [
    "pallets__flask-4045",
    "pallets__flask-4992",
    "pallets__flask-5063",
    "psf__requests-3362",
    "psf__requests-6028",
    "pydata__xarray-3677",
    "pydata__xarray-4629",
    "pydata__xarray-7393",
    "pytest-dev__pytest-10051",
    "pytest-dev__pytest-10356",
    "pytest-dev__pytest-7205",
    "pytest-dev__pytest-7432",
    "sphinx-doc__sphinx-10323",
    "sphinx-doc__sphinx-10466",
    "sphinx-doc__sphinx-9281",
    "sphinx-doc__sphinx-9320",
    "sympy__sympy-13480",
    "sympy__sympy-13647",
    "sympy__sympy-24066",
    "sympy__sympy-24213",
];

/// A small one: no sdist to build, a short history. It has tests that a network without a black hole fails.
const SMALL: &str = "psf__requests-3362";

/// An instance of the quickstart on the same base, which the shared store is filled with.
const NEIGHBOUR: &str = "pypi__tabulate-0.8.9";

#[test]
fn every_committed_lock_answers_its_spec() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lockfiles = root.join("lockfiles");
    let read = |path: PathBuf| fs_err::read_to_string(path).unwrap();
    let specs = spec::load_all(&root.join("specs")).unwrap();
    assert!(specs.len() > 20);
    for spec in specs {
        let name = spec.name();
        let base = read(lock::paths::base_lock(&lockfiles, &spec.base, Arch::Amd64));
        let base = lock::parse_base(&spec.base, &base).unwrap();
        let env = lock::parse_env(
            &name,
            &read(lock::paths::env_lock(&lockfiles, &name, Arch::Amd64)),
            &read(lock::paths::pylock(&lockfiles, &name)),
        )
        .unwrap();
        lock::check_env(&spec, &base, &env).unwrap_or_else(|stale| panic!("{stale}"));
        // Built sdists are part of a lock that was used.
        let sdists = env.build_environments.len();
        assert_eq!(env.built.len(), sdists, "{name}");
    }
}

/// The corpus and the mirrors; `None`, and a word about it, where one is missing.
#[expect(clippy::disallowed_methods, reason = "settings of whoever runs the tests")]
fn given() -> Option<(PathBuf, PathBuf)> {
    let named = |name: &str| {
        let folder = std::env::var_os(name).map(PathBuf::from);
        if folder.is_none() {
            say_skipped(&format!("{name} does not name a folder"));
        }
        folder
    };
    let corpus = named("HALLMARK_CORPUS")?.join("swebench-rows.jsonl");
    let mirrors = named("HALLMARK_MIRRORS")?;
    if !is_real_root() {
        say_skipped("needs root");
        return None;
    }
    Some((corpus, mirrors))
}

fn hallmark(store: &Path, mirrors: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hallmark"))
        .args(arguments)
        .args(["--project", env!("CARGO_MANIFEST_DIR"), "--store"])
        .arg(store)
        .arg("--mirrors")
        .arg(mirrors)
        .current_dir(store)
        .env_remove("HALLMARK_SCRATCH")
        .output()
        .unwrap()
}

/// Fills the shared store with the base and the locked files of `rows`; `None`, and a word about it, without a network.
fn shared_store(corpus: &str, mirrors: &Path, rows: &[&str]) -> Option<PathBuf> {
    let store = shared_folder().join("rows/store");
    fs_err::create_dir_all(&store).unwrap();
    let _lock = shared_lock("rows");
    let mut fetch = vec!["bundle", "fetch", corpus];
    fetch.extend(rows.iter().flat_map(|row| ["-i", row]));
    for arguments in [&["build", "quickstart", "--locked", "-i", NEIGHBOUR][..], &fetch] {
        let output = hallmark(&store, mirrors, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(i32::from(hallmark::cli::exit::FETCH_FAILED)) {
            say_skipped(&said);
            return None;
        }
        assert!(output.status.success(), "{said}");
    }
    Some(store)
}

/// Builds and verifies `rows` by the preset `quick`, offline; the verdicts.
fn verify(store: &Path, corpus: &str, mirrors: &Path, rows: &[&str]) -> Vec<Value> {
    let mut arguments = vec!["verify", corpus, "--policy", "quick", "--offline", "--json"];
    arguments.extend(rows.iter().flat_map(|row| ["-i", row]));
    let output = hallmark(store, mirrors, &arguments);
    let verdicts: Vec<Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["kind"] == "verdict")
        .map(|line| line["value"].clone())
        .collect();
    assert_eq!(verdicts.len(), rows.len(), "{}", String::from_utf8_lossy(&output.stderr));
    verdicts
}

/// Nothing but the preset holds it back: all expected tests passed in all plain runs after the gold patch, FAIL_TO_PASS tests
/// failed before it, and nothing was set aside.
fn is_stable(value: &Value) {
    let (id, verdict) = (&value["instance"], &value["verdict"]);
    assert_eq!(verdict["status"], "provisional", "{id}: {}", verdict["reasons"]);
    let rules: Vec<&Value> =
        verdict["reasons"].as_array().unwrap().iter().map(|reason| &reason["rule"]).collect();
    assert_eq!(rules, ["policy-is-provisional"], "{id}");
    assert_eq!((&verdict["runs"], &verdict["failures"]), (&3.into(), &0.into()), "{id}");
    assert_eq!(verdict["quarantined"], Value::Array(Vec::new()), "{id}");
    let missing = &verdict["comparison"];
    for list in ["fail-to-pass", "pass-to-pass"] {
        assert_eq!(missing[list]["missing"], Value::Array(Vec::new()), "{id}");
    }
}

/// The data set's rows, and the shared store with the files of all that are told of above; what is made of them there stays.
pub(crate) fn filled_store() -> Option<(PathBuf, PathBuf)> {
    let (corpus, mirrors) = given()?;
    let store = shared_store(corpus.to_str().unwrap(), &mirrors, &ALL)?;
    Some((corpus, store))
}

#[test]
fn online_a_small_row_is_built_and_verified() {
    let Some((corpus, mirrors)) = given() else { return };
    let corpus = corpus.to_str().unwrap();
    let Some(shared) = shared_store(corpus, &mirrors, &[SMALL]) else { return };
    let folder = tempfile::tempdir_in(shared_folder()).unwrap();
    let store = folder.path().join("store");
    copy_store(&shared, &store);
    let stopwatch = Stopwatch::start();
    let verdicts = verify(&store, corpus, &mirrors, &[SMALL]);
    say(&format!("{SMALL}: built and verified in {:.0} s", stopwatch.elapsed().as_secs_f64()));
    is_stable(&verdicts[0]);
}

#[test]
#[ignore = "two histories take minutes each; docs/testing.md has the command"]
fn all_rows_are_built_and_verified() {
    let Some((corpus, mirrors)) = given() else { return };
    let corpus = corpus.to_str().unwrap();
    let Some((_, store)) = filled_store() else { return };
    for verdict in verify(&store, corpus, &mirrors, &ALL) {
        is_stable(&verdict);
    }
}
