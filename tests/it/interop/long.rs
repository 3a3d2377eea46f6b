//! The whole quickstart, and real rows of SWE-bench: minutes, so these are asked for by name (docs/testing.md).

use hallmark::cli::exit;

use super::harness::{Compared, agrees, grade};
use super::place::Place;
use crate::rows;
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

/// Real rows with their runs, of these repositories (all where none are named). `None`, and a word about it, where the rows or the
/// mirrors of their repositories are not given.
fn real_rows(repositories: &[&str]) -> Option<Place> {
    let (corpus, store) = rows::filled_store()?;
    let chosen = |id: &&&str| {
        repositories.is_empty() || repositories.iter().any(|name| id.starts_with(name))
    };
    let options = rows::ALL.iter().filter(chosen).flat_map(|id| ["-i", id]);
    let split: Vec<&str> = [corpus.to_str().unwrap()].into_iter().chain(options).collect();
    let place = Place::over(&store, &split);
    place.hallmark(&["verify"], &["--policy", "quick"]);
    Some(place)
}

#[test]
#[ignore = "takes long: see docs/testing.md"]
fn long_real_rows_in_the_harness() {
    let Some(harness) = Venv::get("swebench-5.0.2") else { return };
    let Some(docker) = Dockerd::swallowing() else { return };
    let Some(place) = real_rows(&[]) else { return };
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
    let Some(place) = real_rows(&["psf__requests", "sympy__sympy"]) else { return };
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
