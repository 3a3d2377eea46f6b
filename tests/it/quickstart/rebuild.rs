//! The quickstart, rebuilt in an empty store: the same digests as committed, whoever builds it and where.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::Output;

use hallmark::pipeline::{ImageEntry, SplitDigests};

use super::place::{
    copy_project, hallmark, hallmark_as, is_root, own_project, provide, records, say_skipped, text,
    user,
};

/// Two instances of one suite.
const PART: [&str; 2] = ["pypi__tomlkit-0.11.7", "pypi__pyflakes-3.1.0"];

fn verb<'a>(verb: &'a str, instances: &[&'a str], options: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec![verb, "quickstart", "--offline", "--json"];
    arguments.extend(instances.iter().flat_map(|id| ["-i", id]));
    arguments.extend(options);
    arguments
}

fn committed() -> Option<SplitDigests> {
    let path = own_project().join("images/quickstart.digests.json");
    let digests = SplitDigests::read(&path).unwrap().unwrap();
    if digests.arch != hallmark::base::Arch::HOST {
        say_skipped("the committed digests are of another architecture");
        return None;
    }
    Some(digests)
}

/// Asserts that what was built is what is committed, and returns the images' names.
fn assert_committed(output: &Output, committed: &SplitDigests) -> Vec<String> {
    assert!(output.status.success(), "{}", text(output));
    let [built] = &records(output, "digests")[..] else { panic!("{}", text(output)) };
    let built: SplitDigests = serde_json::from_value(built.clone()).unwrap();
    assert_eq!(built.compressor, committed.compressor);
    assert_eq!(built.split, committed.split);
    for (name, entry) in &built.images {
        let expected: &ImageEntry = &committed.images[name];
        assert_eq!(entry, expected, "{name}");
    }
    built.images.into_keys().collect()
}

#[test]
fn online_a_part_meets_the_committed_digests_and_its_manifest_passes() {
    let Some(committed) = committed() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (project, store) = (own_project(), folder.path());
    if !provide(project, "quickstart", &PART, store) {
        return;
    }
    let run = verb("run", &PART, &["--locked", "--runs", "1", "--manifest", "m.json"]);
    let first = hallmark(project, store, &run);
    if first.status.code() == Some(i32::from(hallmark::cli::exit::HOST)) {
        return say_skipped(&text(&first));
    }
    assert!(first.status.success(), "{}", text(&first));
    let verdicts = records(&first, "verdict");
    assert_eq!(verdicts.len(), PART.len());
    for verdict in &verdicts {
        assert_eq!(verdict["verdict"]["status"], "provisional", "{verdict}");
        assert_eq!(verdict["verdict"]["failures"], 0, "{verdict}");
    }

    // The same again: no step runs, and the manifest is the same.
    let manifest = fs_err::read(store.join("m.json")).unwrap();
    let second = hallmark(project, store, &run);
    assert!(second.status.success(), "{}", text(&second));
    let ends: Vec<_> = records(&second, "progress")
        .into_iter()
        .filter(|event| event["event"] == "finished")
        .collect();
    assert!(ends.len() >= 10 && ends.iter().all(|end| end["outcome"] == "cached"), "{ends:?}");
    assert_eq!(fs_err::read(store.join("m.json")).unwrap(), manifest);

    let build = hallmark(project, store, &verb("build", &PART, &["--locked"]));
    let names = assert_committed(&build, &committed);
    assert_eq!(names.len(), 1 + 2 * PART.len(), "{names:?}");

    let audit = hallmark(project, store, &["audit", "m.json", "--offline"]);
    assert!(audit.status.success(), "{}", text(&audit));
    assert!(text(&audit).contains(": 0 wrong, 0 could not be made"), "{}", text(&audit));
}

#[test]
fn online_a_user_builds_the_committed_digests_elsewhere_with_one_job() {
    let Some(committed) = committed() else { return };
    let Some(user) = user().filter(|_| is_root()) else {
        return say_skipped("needs root and a user `hallmark` with subordinate ids");
    };
    let folder = tempfile::tempdir().unwrap();
    if !provide(own_project(), "quickstart", &PART[..1], &folder.path().join("a/longer/store")) {
        return;
    }
    let output = build_as(user, folder.path(), &PART[..1]);
    assert_committed(&output, &committed);
}

/// Builds as a user, in another checkout, with one job.
fn build_as((user, uid): (&str, u32), folder: &Path, instances: &[&str]) -> Output {
    fs_err::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let store = folder.join("a/longer/store");
    let project = copy_project(folder);
    let program = folder.join("hallmark");
    fs_err::copy(env!("CARGO_BIN_EXE_hallmark"), &program).unwrap();
    // The blobs themselves are shared with other tests and stay root's.
    for path in [&store, &store.join("blobs"), &store.join("blobs/sha256")] {
        chown(path, Some(uid), Some(uid)).unwrap();
    }
    let build = verb("build", instances, &["--locked", "-j", "1"]);
    hallmark_as(user, &program, &project, &store, &build)
}

/// Everything, three times; see docs/reproducibility.md.
#[test]
#[ignore = "builds the whole split three times: minutes"]
fn online_the_whole_split_is_the_same_everywhere() {
    let Some(committed) = committed() else { return };
    let folder = tempfile::tempdir().unwrap();
    let all: Vec<&str> =
        committed.images.keys().filter_map(|name| name.strip_prefix("instance/")).collect();
    let whole = |output: &Output| {
        let names = assert_committed(output, &committed);
        assert_eq!(names, committed.images.keys().cloned().collect::<Vec<_>>());
    };
    let first = folder.path().join("first");
    assert!(provide(own_project(), "quickstart", &[], &first), "needs the network");
    whole(&hallmark(own_project(), &first, &verb("build", &all, &["--locked", "-j", "2"])));
    let second = folder.path().join("second/below");
    assert!(provide(own_project(), "quickstart", &[], &second));
    let checkout = copy_project(folder.path());
    whole(&hallmark(&checkout, &second, &verb("build", &all, &["--locked", "-j", "1"])));
    let third = tempfile::tempdir().unwrap();
    let Some(user) = user().filter(|_| is_root()) else {
        return say_skipped("the third time needs root and a user `hallmark` with subordinate ids");
    };
    assert!(provide(own_project(), "quickstart", &[], &third.path().join("a/longer/store")));
    whole(&build_as(user, third.path(), &all));
}
