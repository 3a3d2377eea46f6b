//! Ctrl-C: a clean end within two seconds, and the same command goes on.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use hallmark::base::clock::Stopwatch;
use hallmark::cli::exit;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::context::TestContext;
use super::leftovers::{assert_nothing_runs, assert_scratch_is_empty};
use crate::support::{Full, INSTANCES, copy_store};

/// Starts hallmark in a process group of its own, as a shell does.
pub(super) fn start(context: &TestContext, arguments: &[&str]) -> Child {
    let log = fs_err::File::create(context.path().join("stderr")).unwrap().into_parts().0;
    context.command(arguments).stdout(Stdio::null()).stderr(log).process_group(0).spawn().unwrap()
}

pub(super) fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed()).unwrap()
}

/// Waits until a base is begun or a command runs in a container.
fn until_a_run(context: &TestContext, child: &mut Child) {
    let watch = Stopwatch::start();
    loop {
        let runs = fs_err::read_dir(context.scratch()).is_ok_and(|entries| {
            entries.filter_map(Result::ok).any(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                name.starts_with("run-") || name.starts_with("base-")
            })
        });
        if runs {
            return;
        }
        let ended = child.try_wait().unwrap();
        let said = || fs_err::read_to_string(context.path().join("stderr")).unwrap();
        assert!(ended.is_none(), "ended with {ended:?}\n{}", said());
        assert!(watch.elapsed() < Duration::from_mins(1), "no run began\n{}", said());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits at most so long.
#[track_caller]
fn ends_within(child: &mut Child, limit: Duration) -> ExitStatus {
    let watch = Stopwatch::start();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(watch.elapsed() < limit, "still there after {limit:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What a person waits for without a second thought.
const SOON: Duration = Duration::from_secs(2);

/// Interrupts `arguments` some time after a container has started.
fn interrupt(context: &TestContext, arguments: &[&str], after: Duration, whole_group: bool) {
    let mut child = start(context, arguments);
    until_a_run(context, &mut child);
    std::thread::sleep(after);
    if whole_group {
        kill_process_group(pid(&child), Signal::INT).unwrap();
    } else {
        kill_process(pid(&child), Signal::INT).unwrap();
    }
    let status = ends_within(&mut child, SOON);
    let said = fs_err::read_to_string(context.path().join("stderr")).unwrap();
    assert_eq!(status.code(), Some(i32::from(exit::INTERRUPTED)), "{said}");
    assert!(said.contains("interrupted") && !said.contains("panicked"), "{said}");
    assert_nothing_runs(context, &[child.id()]);
    assert_scratch_is_empty(context);
}

#[test]
fn full_a_base_build_is_interrupted_and_begins_again() {
    let Some(full) = Full::get() else { return };
    let context = TestContext::quickstart();
    copy_store(&full.store(), &context.store());
    for made in ["steps", "runs", "layers", "trees"] {
        fs_err::remove_dir_all(context.store().join(made)).unwrap();
    }
    let arguments = ["build", "quickstart", "-i", INSTANCES[0], "--locked", "--offline"];
    for (after, whole_group) in [(300, true), (3000, false)] {
        interrupt(&context, &arguments, Duration::from_millis(after), whole_group);
        assert_eq!(context.listing("store/layers"), Vec::<String>::new());
    }
}

#[test]
fn full_runs_are_interrupted_and_the_same_command_goes_on() {
    let Some(full) = Full::get() else { return };
    let context = TestContext::with_store(&full.store());
    fs_err::remove_dir_all(context.store().join("runs")).unwrap();
    let arguments = TestContext::both(&["verify", "--offline"]);
    interrupt(&context, &arguments, Duration::from_millis(500), true);
    interrupt(&context, &arguments, Duration::from_secs(3), false);
    let answer = context.run(&arguments);
    answer.expect(exit::OK, &[]);
    assert_eq!(answer.stdout.matches("provisional").count(), 2, "{answer}");
    assert_scratch_is_empty(&context);
}

#[test]
fn full_a_second_interrupt_ends_at_once() {
    let Some(full) = Full::get() else { return };
    let context = TestContext::with_store(&full.store());
    fs_err::remove_dir_all(context.store().join("runs")).unwrap();
    let mut child = start(&context, &TestContext::both(&["verify", "--offline"]));
    until_a_run(&context, &mut child);
    kill_process(pid(&child), Signal::INT).unwrap();
    std::thread::sleep(Duration::from_millis(5));
    // Where the first was enough already there is nobody to signal.
    let _ = kill_process(pid(&child), Signal::INT);
    let status = ends_within(&mut child, Duration::from_millis(500));
    assert_eq!(status.code(), Some(i32::from(exit::INTERRUPTED)));
    // What was given no time to be tidied is swept by the next start.
    context.run(["doctor"]).expect(exit::OK, &[]);
    assert_nothing_runs(&context, &[child.id()]);
    assert_scratch_is_empty(&context);
}
