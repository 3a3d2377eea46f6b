//! What whoever calls a runtime may rely on, whichever it is.

use std::collections::BTreeMap;
use std::time::Duration;

use hallmark::base::{Cancel, Error as BaseError};
use hallmark::runtime::fake::Answer;
use hallmark::runtime::{Error, ExitStatus, Mount, Root, RunLog, RunSpec};

use super::scaffold::{Scaffold, stderr, stdout};

fn try_run(scaffold: &Scaffold, spec: &RunSpec, cancel: &Cancel) -> Result<RunLog, Error> {
    scaffold.runtime.run(Root::Layers(&scaffold.layers), spec, cancel)
}

pub(super) fn the_end_and_both_streams_are_told(scaffold: &Scaffold) {
    let spec = scaffold.sh("printf out; printf err >&2; exit 3");
    scaffold.will(Answer { stderr: b"err".to_vec(), ..Answer::exit(3).with_stdout("out") });
    let log = scaffold.run(&spec);
    assert_eq!(log.status, ExitStatus::Exited(3), "{}", stderr(&log));
    assert!(!log.success());
    assert_eq!((stdout(&log), stderr(&log)), ("out".to_owned(), "err".to_owned()));
    assert_eq!(log.stdout, spec.output.join("stdout"));
    assert_eq!(log.stderr, spec.output.join("stderr"));
    assert!(log.wall > Duration::ZERO && log.wall < spec.limits.wall, "{log:?}");
    assert!(!log.timed_out && !log.oom_killed && !log.disk_full && !log.output_full, "{log:?}");
    assert!(log.upper.is_none(), "nobody asked for it");

    scaffold.will(Answer::exit(0));
    let log = scaffold.run(&scaffold.sh("true"));
    assert!(log.success(), "{log:?}");
    assert_eq!((stdout(&log), stderr(&log)), (String::new(), String::new()), "files are there");
}

pub(super) fn files_of_writable_mounts_are_the_hosts(scaffold: &Scaffold) {
    let folder = scaffold.output();
    fs_err::write(folder.join("given"), "given").unwrap();
    let mut spec = scaffold.sh("printf made > /shared/made && cat /shared/given");
    spec.mounts =
        vec![Mount { source: folder.clone(), target: "/shared".to_owned(), writable: true }];
    scaffold.will(Answer::exit(0).with_stdout("given").with_file("/shared/made", "made"));
    let log = scaffold.run(&spec);
    assert_eq!(stdout(&log), "given", "{}", stderr(&log));
    assert_eq!(fs_err::read_to_string(folder.join("made")).unwrap(), "made");
}

pub(super) fn what_ended_a_run_is_told(scaffold: &Scaffold) {
    let mut spec = scaffold.sh("sleep 300");
    spec.limits.wall = Duration::from_millis(300);
    let killed = Answer { status: ExitStatus::Signaled(9), ..Answer::exit(0) };
    scaffold.will(Answer { timed_out: true, ..killed.clone() });
    let log = scaffold.run(&spec);
    assert_eq!((log.status, log.timed_out), (ExitStatus::Signaled(9), true), "{log:?}");
    assert!(!log.success() && !log.oom_killed, "{log:?}");
    // The same end, brought about by the command itself.
    scaffold.will(killed);
    let log = scaffold.run(&scaffold.sh("kill -KILL $$"));
    assert_eq!((log.status, log.timed_out), (ExitStatus::Signaled(9), false), "{log:?}");
    assert!(!log.success() && !log.oom_killed, "{log:?}");
}

pub(super) fn an_end_that_was_asked_for_is_no_result(scaffold: &Scaffold) {
    let cancel = Cancel::new();
    cancel.cancel();
    let spec = scaffold.sh("true");
    let error = try_run(scaffold, &spec, &cancel).unwrap_err();
    assert!(matches!(error, Error::Base(BaseError::Cancelled)), "{error:?}");
    assert_eq!(fs_err::read_dir(&spec.output).unwrap().count(), 0, "nothing was written");
}

/// Makes a spec one that nothing can run.
type Spoil = fn(&mut RunSpec);

pub(super) fn what_cannot_be_run_anywhere_is_refused(scaffold: &Scaffold) {
    let target =
        |target: &str| Mount { source: "/".into(), target: target.to_owned(), writable: false };
    let env = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    let spoils: [(Spoil, &str); 4] = [
        (|spec| spec.argv.clear(), "no command was given"),
        (|spec| spec.argv.push("a\0b".to_owned()), "NUL"),
        (|spec| spec.working_dir = "/\0".to_owned(), "NUL"),
        (|spec| spec.read_only = vec!["../etc".to_owned()], "absolute"),
    ];
    let mut specs: Vec<_> = spoils
        .into_iter()
        .map(|(spoil, reason)| {
            let mut spec = scaffold.sh("true");
            spoil(&mut spec);
            (spec, reason)
        })
        .collect();
    for (name, value, reason) in [("", "x", "empty"), ("A=B", "x", "`=`"), ("A", "\0", "NUL")] {
        specs.push((RunSpec { env: env(name, value), ..scaffold.sh("true") }, reason));
    }
    for place in ["relative", "/a/../b", "/a/./b", "/"] {
        let mounts = vec![target(place)];
        specs.push((RunSpec { mounts, ..scaffold.sh("true") }, "absolute"));
    }
    for (spec, reason) in specs {
        let error = try_run(scaffold, &spec, &Cancel::new()).unwrap_err();
        let text = format!("{error}: {}", std::error::Error::source(&error).unwrap());
        assert!(text.contains(reason), "{text}, not {reason}");
    }
}

pub(super) fn a_mount_that_is_not_there_is_named(scaffold: &Scaffold) {
    let mut spec = scaffold.sh("true");
    let source = "/nonexistent/source".into();
    spec.mounts = vec![Mount { source, target: "/in".to_owned(), writable: false }];
    let error = try_run(scaffold, &spec, &Cancel::new()).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/source"), "{error}");
}

pub(super) fn runs_at_once_have_an_answer_each(scaffold: &Scaffold) {
    let specs: Vec<RunSpec> = (0..4).map(|_| scaffold.sh("printf on")).collect();
    std::thread::scope(|scope| {
        for spec in &specs {
            scaffold.will(Answer::exit(0).with_stdout("on"));
            scope.spawn(move || assert_eq!(stdout(&scaffold.run(spec)), "on"));
        }
    });
    let outputs = specs.iter().map(|spec| fs_err::read(spec.output.join("stdout")).unwrap());
    assert!(outputs.into_iter().all(|text| text == b"on"));
}
