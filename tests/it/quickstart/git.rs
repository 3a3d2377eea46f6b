//! A split whose rows come from a git repository: what history the images hold, that they are the same when built again,
//! that a planted difference is named, and that a planted solution is found.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use hallmark::base::progress::Silent;
use hallmark::base::{Arch, Cancel, SharedReporter, Store};
use hallmark::build::{self, Leak};
use hallmark::dataset;
use hallmark::image::{self, Image, PackRules};
use hallmark::lock::{self, EnvLock};
use hallmark::net::{Client, Config};
use hallmark::pipeline::{Board, Goal, Locks, Pipeline, Project};
use hallmark::runtime::embedded::Embedded;
use hallmark::runtime::{Runtime, Workbench};
use hallmark::spec;

use super::place::{copy, is_root, own_project, provide, say_skipped};

const OLD: &str = "def size(widget):\n    return len(widget) - 1\n";
const NEW: &str = "def size(widget):\n    return len(widget)\n";
const GOLD: &str = "diff --git a/widget.py b/widget.py\n--- a/widget.py\n+++ b/widget.py\n@@ -1,2 +1,2 @@\n def size(widget):\n-    return len(widget) - 1\n+    return len(widget)\n";
const TESTS: &str = "diff --git a/test_widget.py b/test_widget.py\nnew file mode 100644\n--- /dev/null\n+++ b/test_widget.py\n@@ -0,0 +1 @@\n+def test(): pass\n";

/// 2021-06-01T00:00:00Z, the base commit's date.
const DATE: i64 = 1_622_505_600;

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "safe.directory=*", "-c", "user.name=x", "-c", "user.email=x@example.invalid"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_DATE", format!("@{DATE} +0000"))
        .env("GIT_COMMITTER_DATE", format!("@{DATE} +0000"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// A repository, and the ids of its three commits and of a loose blob; the second commit is the base.
fn upstream(folder: &Path) -> (PathBuf, [String; 3], String) {
    let path = folder.join("upstream");
    fs_err::create_dir(&path).unwrap();
    git(&path, &["init", "-q", "--initial-branch=trunk"]);
    let commit = |files: &[(&str, &str)], message: &str| {
        for (name, text) in files {
            fs_err::write(path.join(name), text).unwrap();
        }
        git(&path, &["add", "-A"]);
        git(&path, &["commit", "-q", "-m", message]);
        git(&path, &["rev-parse", "HEAD"])
    };
    let first = commit(&[("widget.py", "def size(): pass\n"), (".gitignore", "/cache/\n")], "one");
    git(&path, &["tag", "v1"]);
    let second = commit(&[("widget.py", OLD)], "two");
    git(&path, &["tag", "-a", "-m", "two", "v2"]);
    git(&path, &["tag", "-a", "-m", "two again", "v2-again", "v2"]);
    let third = commit(&[("widget.py", NEW)], "three");
    git(&path, &["tag", "v3"]);
    git(&path, &["branch", "topic", &first]);
    fs_err::write(path.join("loose"), "a loose secret\n").unwrap();
    let loose = git(&path, &["hash-object", "-w", "loose"]);
    (path, [first, second, third], loose)
}

/// A project with three specs of one repository: nothing to install, a stamp, a copy of the solution.
fn project(folder: &Path, upstream: &Path, commit: &str) -> Project {
    let root = folder.join("project");
    let arch = Arch::HOST;
    let images = root.join("images");
    fs_err::create_dir_all(&images).unwrap();
    fs_err::create_dir_all(root.join("specs/acme__widget")).unwrap();
    let own = own_project();
    fs_err::copy(own.join("images/bookworm.toml"), images.join("bookworm.toml")).unwrap();
    let base = lock::paths::base_lock(&own.join("lockfiles"), "bookworm", arch);
    let relative = base.strip_prefix(own).unwrap().parent().unwrap();
    copy(&own.join(relative), &root.join(relative));
    let base_text = fs_err::read_to_string(&base).unwrap();
    let base_lock = lock::parse_base("bookworm", &base_text).unwrap();

    let stamp = "date +%s.%N > /usr/local/lib/stamp";
    let planted = "mkdir /testbed/cache && printf 'def size(widget):\\\\n    return len(widget)\\\\n' > /testbed/cache/w";
    let mut rows = String::new();
    for (version, install) in [("1", ""), ("2", stamp), ("3", planted)] {
        let install = if install.is_empty() { String::new() } else { format!("\"{install}\"") };
        let text = format!(
            "repo = \"acme/widget\"\nversion = \"{version}\"\nbase = \"bookworm\"\npython = \"3.11\"\n\
             [setup]\ncommit = \"{commit}\"\n\
             [dependencies]\nproject = false\nexclude-newer = \"2024-01-01T00:00:00Z\"\n\
             [commands]\ninstall = [{install}]\n[test]\ncommand = [\"true\"]\n"
        );
        let file = format!("specs/acme__widget/{version}.toml");
        fs_err::write(root.join(file), text).unwrap();
        let spec = spec::load(&root.join("specs"), "acme/widget", version).unwrap();
        let lock = EnvLock {
            env_hash: spec.env_hash().unwrap(),
            arch,
            base: "bookworm".to_owned(),
            base_lock: base_lock.digest().unwrap(),
            debs: Vec::new(),
            packages: Vec::new(),
            build_environments: Vec::new(),
            built: Vec::new(),
        };
        let texts = lock::write_env(&lock).unwrap();
        let lockfiles = root.join("lockfiles");
        let path = lock::paths::env_lock(&lockfiles, &spec.name(), arch);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, texts.lock).unwrap();
        fs_err::write(lock::paths::pylock(&lockfiles, &spec.name()), texts.pylock).unwrap();
        let row = serde_json::json!({
            "instance_id": format!("acme__widget-{version}"), "repo": "acme/widget", "version": version,
            "repo_url": upstream, "base_commit": commit, "patch": GOLD, "test_patch": TESTS,
        });
        rows.push_str(&format!("{row}\n"));
    }
    fs_err::write(images.join("widgets.rows.jsonl"), rows).unwrap();
    Project::discover(&root).unwrap()
}

/// `/testbed` of the image's top layer, copied with its times.
fn testbed(store: &Store, image: &Image, to: &Path) -> PathBuf {
    let layer = store.layer_path(&image.layers.last().unwrap().diff_id);
    let output = Command::new("cp").arg("-a").arg(layer.join("testbed")).arg(to).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    to.join("testbed")
}

fn history_is_the_base_commits(testbed: &Path, commits: &[String; 3], loose: &str) {
    let [first, second, third] = commits;
    assert_eq!(git(testbed, &["rev-list", "--all"]), format!("{second}\n{first}"));
    assert_eq!(
        git(testbed, &["for-each-ref", "--format=%(refname) %(objecttype)"]),
        "refs/heads/main commit\nrefs/tags/v1 commit\nrefs/tags/v2 tag\nrefs/tags/v2-again tag"
    );
    assert_eq!(git(testbed, &["describe"]), "v2");
    let held = git(testbed, &["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
    for absent in [third.as_str(), loose] {
        assert!(!held.contains(absent));
    }
    // Two commits, two tags, two trees, three blobs.
    assert_eq!(held.lines().count(), 9, "{held}");
    let counts = git(testbed, &["count-objects", "-v"]);
    assert!(counts.starts_with("count: 0\n") && counts.contains("\npacks: 1\n"), "{counts}");
    assert_eq!(git(testbed, &["remote"]), "");
    let mut left: Vec<String> = fs_err::read_dir(testbed.join(".git"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["HEAD", "config", "index", "info", "objects", "packed-refs", "refs"]);
    assert_eq!(git(testbed, &["fsck", "--strict", "--unreachable"]), "");
}

/// git status is clean and trusts the index: contents that changed under the same size and time are not read.
fn status_reads_no_contents(testbed: &Path) {
    let status = || git(testbed, &["status", "--porcelain", "--ignored"]);
    assert_eq!(status(), "");
    let file = testbed.join("widget.py");
    let time = filetime(&file);
    fs_err::write(&file, OLD.replace('1', "2")).unwrap();
    fs_err::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .into_file()
        .set_modified(time)
        .unwrap();
    assert_eq!(status(), "");
    fs_err::write(&file, OLD).unwrap();
    assert_eq!(status(), "");
    let patch = testbed.join("../gold.patch");
    fs_err::write(&patch, GOLD).unwrap();
    git(testbed, &["apply", "--index", "../gold.patch"]);
    assert_eq!(fs_err::read_to_string(&file).unwrap(), NEW);
    assert_eq!(status(), "M  widget.py");
    git(testbed, &["reset", "-q", "--hard"]);
}

fn filetime(path: &Path) -> std::time::SystemTime {
    let time = fs_err::metadata(path).unwrap().modified().unwrap();
    let since = time.duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!((since.as_secs(), since.subsec_nanos()), (DATE.unsigned_abs(), 0));
    time
}

#[test]
fn online_a_split_from_git_is_built_twice_and_searched() {
    if !is_root() {
        return say_skipped("needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    let (path, commits, loose) = upstream(folder.path());
    let project = project(folder.path(), &path, &commits[1]);
    let root = folder.path().join("store");
    if !provide(project.root(), "widgets", &[], &root) {
        return;
    }
    let store = Store::open(&root, &root.join("scratch")).unwrap();
    let launcher = || PathBuf::from(env!("CARGO_BIN_EXE_hallmark"));
    let runtime = Embedded::new(&store, launcher()).unwrap();
    let reporter: SharedReporter = Arc::new(Silent);
    let cancel = Cancel::new();
    let mut config = Config::from_host(&std::collections::BTreeMap::new(), None).unwrap();
    config.offline = true;
    let client = Client::new(config, &cancel).unwrap();
    let bench =
        Workbench { store: &store, runtime: &runtime, reporter: &reporter, cancel: &cancel };
    let pipeline = Pipeline {
        project: &project,
        bench,
        client: &client,
        jobs: 2,
        locks: Locks::Demand,
        mirrors: None,
    };
    let split = dataset::load(&project.split_path("widgets")).unwrap();

    // A solution that the install leaves in an ignored file stops the instance.
    let board = Board::read(&project, split.clone(), &[]).unwrap();
    let done = pipeline.execute(&board, Goal::Build);
    let failures: Vec<String> =
        done.failures.iter().map(|failure| failure.error.to_string()).collect();
    assert_eq!(
        failures,
        [
            "acme__widget-3: the image holds widget.py as the gold patch makes it, at /testbed/cache/w"
        ]
    );

    let selected = ["acme__widget-1".to_owned(), "acme__widget-2".to_owned()];
    let board = Board::read(&project, split.clone(), &selected).unwrap();
    let done = pipeline.execute(&board, Goal::Build);
    assert!(done.failures.is_empty(), "{:?}", done.failures);
    let images = board.images();
    let image = |name: &str| images.iter().find(|(known, _)| known == name).unwrap().1;
    let clean = image("instance/acme__widget-1");
    let work = testbed(&store, clean, folder.path());
    history_is_the_base_commits(&work, &commits, &loose);
    status_reads_no_contents(&work);

    // Built again in an empty store: only the planted stamp differs, and it is named.
    let again = folder.path().join("again");
    let make = |store: &Store| {
        Embedded::new(store, launcher()).map(|runtime| Box::new(runtime) as Box<dyn Runtime>)
    };
    let (findings, done) = pipeline.rebuild_and_compare(&board, &selected, &again, make).unwrap();
    assert!(done.failures.is_empty(), "{:?}", done.failures);
    let [layer, file] = &findings[..] else { panic!("{findings:?}") };
    let top = image("instance/acme__widget-2").layers.last().unwrap().diff_id;
    let index = image("instance/acme__widget-2").layers.len() - 1;
    let start = format!("instance/acme__widget-2: layer {index}: expected {top}, got sha256:");
    assert!(layer.starts_with(&start), "{layer}");
    assert_eq!(
        file,
        "  /usr/local/lib/stamp: other contents (only numbers differ: a time, a process id or a random number)"
    );

    // Whatever else could hold the solution is found too.
    let instance = &split.instances[0];
    let lock = lock::parse_env(
        "lock",
        &fs_err::read_to_string(lock::paths::env_lock(
            &project.lockfiles(),
            "acme__widget/1",
            Arch::HOST,
        ))
        .unwrap(),
        &fs_err::read_to_string(lock::paths::pylock(&project.lockfiles(), "acme__widget/1"))
            .unwrap(),
    )
    .unwrap();
    let patches = build::patches(bench, image("base/bookworm"), instance).unwrap();
    let leaks = |image: &Image| build::leaks(bench, image, &lock, instance, &patches).unwrap();
    assert_eq!(leaks(clean), []);
    let with = |name: &str, fill: &dyn Fn(&Path)| {
        let tree = store.scratch_dir("planted").unwrap().keep();
        fill(&tree);
        let rules = PackRules::root(DATE).with_time("testbed", DATE);
        let layer = image::commit_tree(&store, tree, &rules, &cancel).unwrap();
        clean.with_layer(layer, &name).unwrap()
    };
    let prefix = "usr/local/lib/python3.11/dist-packages/widget";
    let in_prefix = with("prefix", &|tree| {
        fs_err::create_dir_all(tree.join(prefix)).unwrap();
        fs_err::write(tree.join(prefix).join("core.py"), NEW).unwrap();
    });
    let gold = "widget.py".to_owned();
    assert_eq!(
        leaks(&in_prefix),
        [Leak::GoldFile { gold: gold.clone(), found: format!("/{prefix}/core.py") }]
    );
    let dangling = with("dangling", &|tree| {
        let from = work.join(".git");
        copy(&from, &tree.join("testbed/.git"));
        fs_err::write(work.join("new"), NEW).unwrap();
        let testbed = tree.join("testbed");
        git(&testbed, &["hash-object", "-w", &work.join("new").display().to_string()]);
        git(&testbed, &["update-ref", "refs/remotes/origin/topic", &commits[0]]);
    });
    let blob = git(&work, &["hash-object", "new"]);
    let (head, tail) = blob.split_at(2);
    assert_eq!(
        leaks(&dangling),
        [
            Leak::Stray { found: "refs/remotes/origin/topic".to_owned() },
            Leak::Stray { found: ".git/logs/HEAD".to_owned() },
            Leak::Stray { found: ".git/logs/refs/remotes/origin/topic".to_owned() },
            Leak::Stray { found: format!(".git/objects/{head}/{tail}") },
            Leak::GoldObject { gold, blob: blob.clone() },
        ]
    );
}

#[test]
fn histories_need_their_commit_and_all_of_its_ancestors() {
    let folder = tempfile::tempdir().unwrap();
    let (path, commits, _) = upstream(folder.path());
    let store = Store::open(&folder.path().join("store"), &folder.path().join("scratch")).unwrap();
    let take = |from: &Path, commit: &str| {
        hallmark::bundle::history::take(&store, &from.to_string_lossy(), commit, &Cancel::new())
            .map(|history| history.tags.into_iter().map(|(_, name)| name).collect::<Vec<_>>())
            .map_err(|error| error.to_string())
    };
    let shallow = folder.path().join("shallow");
    let url = format!("file://{}", path.display());
    git(folder.path(), &["clone", "-q", "--depth", "1", &url, "shallow"]);
    assert!(take(&shallow, &commits[2]).unwrap_err().contains("shallow clone"));
    let tree = git(&path, &["rev-parse", "HEAD^{tree}"]);
    for wrong in ["0".repeat(40), tree] {
        assert!(take(&path, &wrong).unwrap_err().contains(&wrong));
    }
    assert_eq!(take(&path, &commits[0]).unwrap(), ["refs/tags/v1"]);
    assert_eq!(
        take(&path, &commits[1]).unwrap(),
        ["refs/tags/v1", "refs/tags/v2", "refs/tags/v2-again"]
    );
}

#[test]
fn a_checkout_has_the_commits_files_and_what_versions_are_made_from() {
    let folder = tempfile::tempdir().unwrap();
    let (path, commits, _) = upstream(folder.path());
    let into = folder.path().join("tree");
    fs_err::create_dir(&into).unwrap();
    hallmark::bundle::checkout(&path.to_string_lossy(), &commits[1], &into).unwrap();
    assert_eq!(fs_err::read_to_string(into.join("widget.py")).unwrap(), OLD);
    let described = git(&into, &["describe", "--dirty", "--tags", "--long", "--abbrev=40"]);
    assert_eq!(described, format!("v2-0-g{}", commits[1]));
    assert_eq!(git(&into, &["rev-list", "HEAD"]), format!("{}\n{}", commits[1], commits[0]));
    assert_eq!(git(&into, &["tag"]), "v1\nv2\nv2-again");
    // Two commits, two tags; a tree and two blobs of the commit's own.
    let held = git(&into, &["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
    assert_eq!(held.lines().count(), 7, "{held}");
    assert_eq!(git(&into, &["status", "--porcelain"]), "");
}
