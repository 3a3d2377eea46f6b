//! Every setting of a profile, proved from inside: a test per axis holds in plain runs, and fails in runs that change
//! this axis, and in no others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hallmark::base::{Arch, SharedReporter};
use hallmark::results::Outcome;
use hallmark::runtime::{Gap, Workbench};
use hallmark::verify::conditions::Tools;
use hallmark::verify::{Clock, Cpu, LogKind, Phase, Profile, RunOutcome, RunRecord, Setting};
use hallmark::{bundle, lock};

use super::support::{Bench, adds, spec};

const GOLD: &str =
    "diff --git a/lib.py b/lib.py\n--- a/lib.py\n+++ b/lib.py\n@@ -1 +1 @@\n-ONE = 2\n+ONE = 1\n";

/// What must hold in plain runs, and whatever the conditions are.
const TESTS: &str = r#"
import getpass, os, resource, shutil, socket, subprocess, sys, threading, time
HERE = os.path.dirname(__file__)
def kernel_time(folder):
    path = folder / "now"
    path.write_text("")
    return path.stat().st_mtime
def test_hash_seed():
    code = [sys.executable, "-c", "print(hash('x'))"]
    said = subprocess.run(code, env={"PYTHONHASHSEED": "0"}, stdout=subprocess.PIPE).stdout
    assert hash("x") == int(said)
def test_clock(tmp_path):
    assert abs(time.time() - kernel_time(tmp_path)) < 60
def test_clock_of_children(tmp_path):
    code = [sys.executable, "-c", "import time; print(time.time())"]
    said = subprocess.run(code, stdout=subprocess.PIPE).stdout
    assert abs(float(said) - kernel_time(tmp_path)) < 60
def test_zone():
    assert time.localtime(0).tm_gmtoff == 0
def test_locale():
    assert os.environ["LC_ALL"] == "C.UTF-8"
def test_processors():
    assert os.cpu_count() > 1 and len(os.sched_getaffinity(0)) > 1
def test_user():
    assert os.getuid() == os.getgid() == 0
def test_shared_memory():
    stat = os.statvfs("/dev/shm")
    assert stat.f_blocks * stat.f_frsize == 64 << 20
def test_open_files():
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] > 64
def test_home():
    with open(os.path.expanduser("~/written"), "w") as file:
        file.write("x")
def test_not_ascending():
    names = os.listdir(os.path.join(HERE, "data"))
    assert len(names) == 30 and names != sorted(names)
def test_not_descending():
    names = os.listdir(os.path.join(HERE, "data"))
    assert names != sorted(names, reverse=True)
def test_host_name():
    assert socket.gethostname() == "hallmark"
def test_ipv6():
    with socket.socket(socket.AF_INET6) as server:
        server.bind(("::1", 0))

def test_always_elapsed_time_is_real():
    with open("/proc/uptime") as file:
        assert abs(time.monotonic() - float(file.read().split()[0])) < 5
    for wait in [time.sleep, threading.Event().wait, lambda t: threading.Lock().acquire(timeout=t)]:
        start = time.monotonic()
        wait(0.05)
        assert time.monotonic() - start < 20
    lock = threading.Lock()
    lock.acquire()
    start = time.monotonic()
    assert not lock.acquire(timeout=0.05)
    assert 0.04 < time.monotonic() - start < 20
def test_always_times_of_files_are_kept(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    os.utime(path, (10**9, 10**9))
    assert path.stat().st_mtime == 10**9 == next(os.scandir(tmp_path)).stat().st_mtime
    shutil.copy2(path, tmp_path / "copy")
    assert (tmp_path / "copy").stat().st_mtime == 10**9
    code = [sys.executable, "-c", "import os, sys; print(os.stat(sys.argv[1]).st_mtime)", path]
    assert float(subprocess.run(code, stdout=subprocess.PIPE).stdout) == 10**9
def test_always_the_work_tree_is_ours():
    with open(os.path.join(HERE, "..", "lib.py"), "a") as file:
        file.write("\n")
    assert os.stat(HERE).st_uid == os.stat(os.path.expanduser("~")).st_uid == os.getuid()
    git = subprocess.run(["git", "status", "--short"], stdout=subprocess.PIPE, check=True)
    assert b" M lib.py" in git.stdout
def test_always_there_is_a_name():
    assert getpass.getuser() and os.path.isdir(os.path.expanduser("~"))
def test_always_nothing_shows_in_dev_shm():
    assert os.listdir("/dev/shm") == []
def test_always_ipv4():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        socket.create_connection(server.getsockname(), 5).close()
"#;

fn bench() -> Option<Bench> {
    let names: Vec<String> = (0..30).map(|n| format!("tests/data/f{}", n * 7 % 30)).collect();
    let mut files = vec![("lib.py", "ONE = 2\n")];
    files.extend(names.iter().map(|name| (name.as_str(), "")));
    Bench::new(&files)
}

/// Fetches and prepares the library of the committed lock; the test image is this host's Python.
fn with_tools(bench: &mut Bench) -> Option<()> {
    let client = crate::net::online_client()?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("lockfiles");
    let path = lock::paths::tools_lock(&folder, "bookworm", Arch::HOST);
    let text = fs_err::read_to_string(&path).ok()?;
    let lock = lock::parse_tools(&path.display().to_string(), &text).unwrap();
    let reporter: SharedReporter = std::sync::Arc::new(hallmark::base::progress::Silent);
    let files = lock::tools_files(&lock);
    bundle::fetch(&bench.store, &client, &files, &reporter, &bench.cancel).unwrap();
    let workbench = Workbench {
        store: &bench.store,
        runtime: &bench.runtime,
        reporter: &reporter,
        cancel: &bench.cancel,
    };
    let faketime = hallmark::build::faketime(workbench, &lock).unwrap();
    // Prepared once, from then on found.
    assert_eq!(hallmark::build::faketime(workbench, &lock).unwrap(), faketime);
    bench.tools = Tools { faketime: Some(faketime) };
    Some(())
}

fn run(bench: &Bench, settings: impl IntoIterator<Item = Setting>) -> RunRecord {
    let test = adds("tests/test_conditions.py", TESTS);
    let profile = Profile::of(settings);
    let record = bench.run_under(&spec(), Phase::Post, [GOLD, &test], &profile, &[]);
    assert_eq!(record.outcome, RunOutcome::Completed, "{}", bench.log(&record, LogKind::Stderr));
    assert_eq!(record.tests.len(), TESTS.matches("\ndef test_").count());
    record
}

/// Names of the tests that failed.
fn failed(bench: &Bench, record: &RunRecord) -> BTreeSet<String> {
    let failed: BTreeSet<String> = record
        .tests
        .iter()
        .filter(|(_, result)| result.outcome != Outcome::Passed)
        .map(|(id, _)| id.rsplit("test_").next().unwrap().to_owned())
        .map(|name| if name == "seed" { "hash_seed".to_owned() } else { name })
        .collect();
    let always: Vec<_> = failed.iter().filter(|name| name.starts_with("always")).collect();
    assert!(always.is_empty(), "{always:?}\n{}", bench.log(record, LogKind::Stdout));
    failed
}

fn settings() -> BTreeMap<&'static str, (Setting, Vec<&'static str>)> {
    let clock = |clock| Setting::Clock { clock };
    let both = vec!["clock", "clock_of_children"];
    [
        ("seed", (Setting::HashSeed { seed: 7 }, vec!["hash_seed"])),
        ("later", (clock(Clock::Shifted { days: 400 }), both.clone())),
        ("earlier", (clock(Clock::Shifted { days: -4000 }), both.clone())),
        ("at", (clock(Clock::At { epoch: 1_711_846_790 }), both)),
        ("zone", (Setting::Zone { zone: "<+14>-14".to_owned() }, vec!["zone"])),
        ("locale", (Setting::Locale { locale: "C".to_owned() }, vec!["locale"])),
        ("one core", (Setting::Cpu { cpu: Cpu::OneCore }, vec!["processors"])),
        ("quota", (Setting::Cpu { cpu: Cpu::Quota { percent: 50 } }, vec![])),
        ("load", (Setting::Load { copies: 2 }, vec![])),
        ("user", (Setting::User { uid: 1000, gid: 1000 }, vec!["user"])),
        ("shm", (Setting::SharedMemory { bytes: 1 << 20 }, vec!["shared_memory"])),
        ("files", (Setting::OpenFiles { limit: 64 }, vec!["open_files"])),
        ("home", (Setting::Home { read_only: true }, vec!["home"])),
        ("a to z", (Setting::DirectoryOrder { descending: false }, vec!["not_ascending"])),
        ("z to a", (Setting::DirectoryOrder { descending: true }, vec!["not_descending"])),
        ("host", (Setting::HostName { name: "a-1.b".to_owned() }, vec!["host_name"])),
        ("ipv6", (Setting::Network { ipv6: false }, vec!["ipv6"])),
    ]
    .into()
}

/// One processor is all that some hosts have.
fn expected(names: impl IntoIterator<Item = &'static str>) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = names.into_iter().map(str::to_owned).collect();
    if std::thread::available_parallelism().unwrap().get() == 1 {
        names.insert("processors".to_owned());
    }
    names
}

#[test]
fn online_each_setting_changes_its_axis_alone() {
    let Some(mut bench) = bench() else { return };
    let Some(()) = with_tools(&mut bench) else { return };
    assert_eq!(failed(&bench, &run(&bench, [])), expected([]));
    for (name, (setting, fails)) in settings() {
        let record = run(&bench, [setting]);
        assert_eq!(failed(&bench, &record), expected(fails), "{name}");
        assert!(!record.gaps.iter().any(|gap| {
            matches!(gap, Gap::Clock | Gap::User | Gap::EntryOrder | Gap::Ipv4Only | Gap::Load)
        }));
    }
    let all = settings();
    let fails = all.values().flat_map(|(_, fails)| fails.clone());
    // Of several settings of an axis the last counts.
    let profile = all.values().map(|(setting, _)| setting.clone());
    let mut names = expected(fails);
    names.remove(
        if Profile::of(profile.clone())
            .settings()
            .iter()
            .any(|setting| matches!(setting, Setting::DirectoryOrder { descending: true }))
        {
            "not_ascending"
        } else {
            "not_descending"
        },
    );
    names.remove("processors");
    let profile = profile.chain([Setting::Cpu { cpu: Cpu::Quota { percent: 50 } }]);
    let together = failed(&bench, &run(&bench, profile));
    assert_eq!(together, names.into_iter().chain(expected([])).collect());
}

#[test]
fn online_a_clock_without_its_library_is_a_gap() {
    let Some(bench) = bench() else { return };
    let record = run(&bench, [Setting::Clock { clock: Clock::Shifted { days: 400 } }]);
    assert_eq!(failed(&bench, &record), expected([]));
    assert!(record.gaps.contains(&Gap::Clock) && record.tools.is_empty(), "{:?}", record.gaps);
}

/// A change of the offset, seen by the C library's own rule for the zone.
const EDGE: &str = r#"
import os, time
def test_edge():
    edge = 1711846800
    assert abs(time.time() - edge) < 100, time.time() - edge
    assert os.environ["TZ"].startswith("CET")
    offsets = [time.localtime(edge + seconds).tm_gmtoff for seconds in (-1, 0)]
    assert offsets == [3600, 7200], offsets
"#;

#[test]
fn online_a_clock_and_a_zone_meet_at_an_edge() {
    let Some(mut bench) = bench() else { return };
    let Some(()) = with_tools(&mut bench) else { return };
    let profile = Profile::of([
        Setting::Clock { clock: Clock::At { epoch: 1_711_846_790 } },
        Setting::Zone { zone: "CET-1CEST,M3.5.0,M10.5.0/3".to_owned() },
    ]);
    let test = adds("tests/test_edge.py", EDGE);
    let record = bench.run_under(&spec(), Phase::Post, [GOLD, &test], &profile, &[]);
    let log = bench.log(&record, LogKind::Stdout);
    assert_eq!(record.outcome_of("tests/test_edge.py::test_edge"), Outcome::Passed, "{log}");
    assert!(record.tools.contains_key("libfaketime"), "{:?}", record.tools);
}
