//! A moved clock on every suite's own Python. Long: each base is built from its committed lock.

use std::path::Path;
use std::sync::Arc;

use hallmark::base::{Arch, Cancel, SharedReporter, Store, progress};
use hallmark::lock::{self, paths};
use hallmark::runtime::embedded::Embedded;
use hallmark::runtime::{Root, RunSpec, Runtime as _, Workbench};
use hallmark::verify::conditions::{self, Tools};
use hallmark::verify::{Clock, Profile, Setting};

use super::scaffold::say_skipped;

/// Waits of all kinds last as long as they say, and every way to ask for the time gives the moved one.
const PROBE: &str = r#"
import asyncio, datetime, multiprocessing, os, queue, select, signal, subprocess, sys, tempfile, threading, time
offset = float(sys.argv[1])
file = tempfile.NamedTemporaryFile()
real = os.stat(file.name).st_mtime
def near(value, wanted, what):
    assert abs(value - wanted) < 30, (what, value - wanted)
near(time.time(), real + offset, "time")
near(time.time_ns() / 1e9, real + offset, "time_ns")
near(time.clock_gettime(time.CLOCK_REALTIME), real + offset, "clock_gettime")
near(datetime.datetime.now().timestamp(), real + offset, "datetime")
near(float(subprocess.check_output(["date", "+%s"])), real + offset, "date")
near(float(subprocess.check_output(["date", "+%s"], env={})), real, "without the environment")
with open("/proc/uptime") as uptime:
    near(time.monotonic(), float(uptime.read().split()[0]), "monotonic")
def lasts(what, call):
    start = time.monotonic()
    call()
    took = time.monotonic() - start
    assert 0.15 < took < 10, (what, took)
lock = threading.Lock()
lock.acquire()
condition = threading.Condition()
condition.acquire()
def empty():
    try:
        queue.Queue().get(timeout=.2)
    except queue.Empty:
        pass
def alarm():
    def handler(*arguments):
        raise KeyboardInterrupt
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, .2)
    try:
        time.sleep(20)
    except KeyboardInterrupt:
        pass
def child():
    try:
        subprocess.run(["sleep", "20"], timeout=.2)
    except subprocess.TimeoutExpired:
        pass
async def both():
    try:
        await asyncio.wait_for(asyncio.sleep(20), .2)
    except asyncio.TimeoutError:
        pass
poll = select.poll()
epoll = select.epoll()
for what, call in {
    "lock": lambda: lock.acquire(timeout=.2), "event": lambda: threading.Event().wait(.2),
    "condition": lambda: condition.wait(.2), "queue": empty, "sleep": lambda: time.sleep(.2),
    "select": lambda: select.select([], [], [], .2), "poll": lambda: poll.poll(200),
    "epoll": lambda: epoll.poll(.2), "alarm": alarm, "child": child,
    "asyncio": lambda: asyncio.run(both()),
    "process": lambda: multiprocessing.get_context("fork").Semaphore(0).acquire(timeout=.2),
}.items():
    lasts(what, call)
assert os.listdir("/dev/shm") == [], os.listdir("/dev/shm")
# Compiled modules are of the checked kind: a changed source of the same size and time is what runs.
import colorsys, importlib.util
path = colorsys.__file__
assert os.path.exists(importlib.util.cache_from_source(path))
with open(path) as module:
    text = module.read()
stat = os.stat(path)
with open(path, "w") as module:
    module.write(text.replace("ONE_THIRD = 1.0/3.0", "ONE_THIRD = 6.0/3.0"))
os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
assert os.stat(path).st_mtime_ns == stat.st_mtime_ns and os.stat(path).st_size == stat.st_size
code = "import colorsys; print(colorsys.ONE_THIRD)"
print("changed module:", subprocess.check_output([sys.executable, "-c", code]).decode().strip())
os.environ.clear()
near(time.time(), real + offset, "a cleared environment")
print("done")
"#;

#[test]
#[ignore = "builds three bases: minutes"]
fn clocks_move_on_every_suite() {
    if !rustix::process::geteuid().is_root() {
        return say_skipped("needs root");
    }
    let Some(client) = crate::net::online_client() else { return };
    let folder = crate::support::shared_folder().join("suites");
    let store = Store::open(&folder.join("store"), &folder.join("scratch")).unwrap();
    let runtime = Embedded::new(&store, env!("CARGO_BIN_EXE_hallmark").into()).unwrap();
    let reporter: SharedReporter = Arc::new(progress::Silent);
    let cancel = Cancel::new();
    let bench =
        Workbench { store: &store, runtime: &runtime, reporter: &reporter, cancel: &cancel };
    let locks = Path::new(env!("CARGO_MANIFEST_DIR")).join("lockfiles");
    let read = |path: &Path| fs_err::read_to_string(path).unwrap();
    for suite in ["bullseye", "bookworm", "trixie"] {
        let base = lock::parse_base(suite, &read(&paths::base_lock(&locks, suite, Arch::HOST)));
        let tools = lock::parse_tools(suite, &read(&paths::tools_lock(&locks, suite, Arch::HOST)));
        let (base, tools) = (base.unwrap(), tools.unwrap());
        lock::check_tools(suite, &base, &tools).unwrap();
        let files = [lock::base_files(&base), lock::tools_files(&tools)].concat();
        hallmark::bundle::fetch(&store, &client, &files, &reporter, &cancel).unwrap();
        let image = hallmark::build::base(bench, &base).unwrap();
        let tools = Tools { faketime: Some(hallmark::build::faketime(bench, &tools).unwrap()) };
        for days in [400, -4000, 0] {
            let output = store.scratch_dir("clock").unwrap();
            let seconds = (days * 86_400).to_string();
            let mut spec = RunSpec::new(["python3", "-c", PROBE, &seconds], output.path());
            let profile = Profile::of([Setting::Clock { clock: Clock::Shifted { days } }]);
            assert_eq!(conditions::apply(&profile, &mut spec, &tools), []);
            let log = runtime.run(Root::Layers(&image.layers), &spec, &cancel).unwrap();
            let said = read(&log.stdout);
            assert!(log.success(), "{suite} {days}: {said}{}", read(&log.stderr));
            assert_eq!(said, "changed module: 2.0\ndone\n", "{suite} {days}");
        }
    }
}
