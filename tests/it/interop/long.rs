//! The whole quickstart, and real rows of SWE-bench: minutes, so these are asked for by name (docs/testing.md).

use std::path::{Path, PathBuf};

use hallmark::cli::exit;
use serde_json::Value;

use super::harness::{Compared, agrees, grade};
use super::place::Place;
use crate::support::{Dockerd, Venv, say, say_skipped, shared_folder};

#[test]
#[ignore = "takes long: see docs/testing.md"]
fn long_the_quickstart_in_the_harness() {
    let Some(harness) = Venv::get("swebench-5.0.2") else { return };
    let Some(docker) = Dockerd::shared() else { return };
    let store = shared_folder().join("interop/quickstart");
    fs_err::create_dir_all(&store).unwrap();
    let place = Place::over(&store, &["quickstart"]);
    let code = place.try_hallmark(&["verify"], &[]).status.code();
    if code == Some(i32::from(exit::FETCH_FAILED)) {
        say_skipped("the quickstart's files are not here, and there is no network");
        return;
    }
    let rows = place.rows(&[]);
    assert_eq!(rows.len(), 13);
    place.load(docker, &[]);
    agrees(&place, &harness, docker, &rows, Compared::Everything);
}

/// The split of real rows whose specs are in this repository, as options; `None`, and a word about it, where the rows or the mirrors of
/// their repositories are not given.
#[expect(clippy::disallowed_methods, reason = "the setting of whoever runs the tests")]
fn real_rows(only: &[&str]) -> Option<Vec<String>> {
    let given = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (Some(corpus), Some(_)) = (given("HALLMARK_CORPUS"), given("HALLMARK_MIRRORS")) else {
        say_skipped("HALLMARK_CORPUS or HALLMARK_MIRRORS is not set");
        return None;
    };
    let path = corpus.join("swebench-rows.jsonl");
    let rows = fs_err::read_to_string(&path).unwrap();
    let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("specs");
    let mut split = vec![path.display().to_string()];
    for row in rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        let repo = text("repo").replace('/', "__");
        let spec = specs.join(&repo).join(format!("{}.toml", text("version")));
        if spec.exists() && (only.is_empty() || only.contains(&repo.as_str())) {
            split.extend(["-i".to_owned(), text("instance_id")]);
        }
    }
    Some(split)
}

fn real_place(only: &[&str]) -> Option<Place> {
    let split = real_rows(only)?;
    let store = shared_folder().join("interop/rows");
    fs_err::create_dir_all(&store).unwrap();
    let words: Vec<&str> = split.iter().map(String::as_str).collect();
    let place = Place::over(&store, &words);
    place.hallmark(&["verify"], &["--policy", "quick"]);
    Some(place)
}

#[test]
#[ignore = "takes long: see docs/testing.md"]
fn long_real_rows_in_the_harness() {
    let Some(harness) = Venv::get("swebench-5.0.2") else { return };
    let Some(docker) = Dockerd::swallowing() else { return };
    let Some(place) = real_place(&[]) else { return };
    let rows = place.rows(&["--policy", "quick"]);
    say(&format!("{} real rows", rows.len()));
    place.load(&docker, &[]);
    agrees(&place, &harness, &docker, &rows, Compared::Expected);
}

/// The older harness makes its script of its own tables; only where those name no file to fetch, it works without a network.
#[test]
#[ignore = "takes long: see docs/testing.md"]
fn long_real_rows_in_the_older_harness() {
    const NAME: [&str; 2] = ["--name", "local/sweb.eval.{arch}.{id_1776}:latest"];
    let Some(harness) = Venv::get("swebench-4.1.0") else { return };
    let Some(docker) = Dockerd::swallowing() else { return };
    let Some(place) = real_place(&["psf__requests", "sympy__sympy"]) else { return };
    let rows = place.rows(&[&["--policy", "quick"], &NAME[..]].concat());
    place.load(&docker, &NAME);
    let options = ["-n", "local", "--cache_level", "instance"];
    place.write_nothing(&rows);
    for (what, predictions, resolved) in
        [("gold", "gold", true), ("nothing", "nothing.jsonl", false)]
    {
        let run = place.run_name(what);
        let reports = grade(&place, &harness, &docker, &run, predictions, &options);
        assert_eq!(reports.len(), rows.len());
        for report in reports.into_values() {
            assert_eq!(report["resolved"], resolved, "{report:#}");
        }
    }
}
