//! What gc keeps and what it throws away.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, SystemTime};

use hallmark::base::{Cancel, Digest, Store};
use hallmark::bundle::{self, GcReport, Keep, Kind};
use serde_json::json;

use super::{blob_names, silent, store};

const DAY: Duration = Duration::from_hours(24);

#[expect(clippy::disallowed_methods, reason = "the test makes files look old")]
fn age(path: &Path, age: Duration) {
    let then = SystemTime::now() - age;
    let file = std::fs::File::open(path).unwrap();
    file.set_times(std::fs::FileTimes::new().set_accessed(then).set_modified(then)).unwrap();
}

fn gc(store: &Store, keep: &Keep, dry_run: bool) -> GcReport {
    bundle::gc(store, keep, dry_run, &silent(), &Cancel::new()).unwrap()
}

struct Filled {
    locked: Digest,
    old_step: Digest,
    layer: Digest,
    run: Digest,
}

/// A root blob; an old step that names a layer and a manifest, which names a blob; a run ten days old that names a log; and
/// three blobs that nobody names, one of them new.
fn fill(store: &Store) -> Filled {
    let locked = store.put_blob(b"locked").unwrap();
    let inner = store.put_blob(b"compressed layer").unwrap();
    let manifest = store.put_blob(format!("{{\"layers\":[\"{inner}\"]}}").as_bytes()).unwrap();
    let log = store.put_blob(b"log").unwrap();
    let stray = store.put_blob(b"stray").unwrap();
    let text = store.put_blob(format!("no JSON {inner}").as_bytes()).unwrap();
    store.put_blob(b"just fetched").unwrap();
    let layer = Digest::of(b"layer");
    fs_err::create_dir_all(store.layer_path(&layer).join("usr")).unwrap();
    fs_err::write(store.layer_path(&layer).join("usr/file"), [0; 100]).unwrap();
    let old_step = Digest::of(b"step");
    store.put_step(&old_step, &json!({ "diff-id": layer, "manifest": manifest })).unwrap();
    let run = Digest::of(b"run");
    fs_err::create_dir(store.run_path(&run)).unwrap();
    fs_err::write(store.run_path(&run).join("record.json"), format!("{{\"log\":\"{log}\"}}"))
        .unwrap();
    for digest in [locked, inner, manifest, log, stray, text] {
        age(&store.blob_path(&digest), 40 * DAY);
    }
    age(&store.layer_path(&layer), 40 * DAY);
    age(&store.root().join("steps").join(format!("{}.json", old_step.hex())), 40 * DAY);
    age(&store.run_path(&run), 10 * DAY);
    let dead = store.root().join("blobs/sha256/.tmp-dead");
    fs_err::write(&dead, b"half").unwrap();
    age(&dead, DAY);
    fs_err::write(store.root().join("blobs/sha256/.tmp-alive"), b"half").unwrap();
    Filled { locked, old_step, layer, run }
}

#[test]
fn everything_that_a_record_names_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let filled = fill(&store);
    let keep = Keep { roots: BTreeSet::from([filled.locked]), ..Keep::default() };
    let before = blob_names(&store);
    let planned = gc(&store, &keep, true);
    assert_eq!(blob_names(&store), before);
    let kinds: Vec<_> = planned.removed.iter().map(|removed| removed.kind).collect();
    assert_eq!(kinds, [Kind::Blob, Kind::Blob, Kind::Leftover]);
    assert_eq!(gc(&store, &keep, false), planned);
    assert_eq!(blob_names(&store).len(), before.len() - 3);
    assert!(store.root().join("blobs/sha256/.tmp-alive").exists());
    assert!(store.layer_path(&filled.layer).exists());
    assert_eq!(gc(&store, &keep, false).removed, []);
}

#[test]
fn what_is_old_goes_with_all_that_only_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let filled = fill(&store);
    let keep =
        Keep { roots: BTreeSet::from([filled.locked]), max_age: Some(30 * DAY), ..Keep::default() };
    gc(&store, &keep, false);
    assert!(store.has_blob(&filled.locked));
    assert!(store.run_path(&filled.run).exists());
    assert!(!store.layer_path(&filled.layer).exists());
    assert_eq!(store.step::<serde_json::Value>(&filled.old_step), None);
    // Locked, log, just fetched, and the one that is being written.
    assert_eq!(blob_names(&store).len(), 4);

    // A root keeps an old step and what hangs on it.
    let folder = tempfile::tempdir().unwrap();
    let store = super::store(&folder);
    let filled = fill(&store);
    let keep = Keep { roots: BTreeSet::from([filled.old_step]), ..keep };
    gc(&store, &keep, false);
    assert!(store.layer_path(&filled.layer).exists());
    assert!(!store.has_blob(&filled.locked));
}

#[test]
fn a_budget_lets_the_longest_unused_go_first() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let filled = fill(&store);
    let all = gc(&store, &Keep::default(), true).kept;
    let roots = BTreeSet::from([filled.locked]);
    let keep = Keep { roots: roots.clone(), max_bytes: Some(all * 10), ..Keep::default() };
    assert!(
        gc(&store, &keep, true).removed.iter().all(|r| !matches!(r.kind, Kind::Step | Kind::Run))
    );

    // Room for the run and its log, but not for the step, its layer and manifest.
    let keep = Keep { roots: roots.clone(), max_bytes: Some(150), ..Keep::default() };
    let report = gc(&store, &keep, true);
    assert!(report.kept <= 150, "{report:?}");
    let gone: BTreeSet<_> = report.removed.iter().map(|removed| removed.kind).collect();
    assert_eq!(gone, BTreeSet::from([Kind::Blob, Kind::Layer, Kind::Step, Kind::Leftover]));

    // Looking is no use: a second look finds the same.
    assert_eq!(gc(&store, &keep, true), report);

    // Roots stay, whatever the budget.
    let keep = Keep { roots, max_bytes: Some(0), ..Keep::default() };
    let report = gc(&store, &keep, false);
    assert_eq!(report.kept, 6);
    assert_eq!(store.step::<serde_json::Value>(&filled.old_step), None);
    assert!(store.has_blob(&filled.locked));
}
