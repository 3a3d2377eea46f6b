//! What every run gets and gives.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::time::Duration;

use hallmark::base::{Cancel, Error as BaseError};
use hallmark::runtime::{Error, ExitStatus, Mount, Root, RunLog};

use hallmark::runtime::embedded::{Options, Status};

use super::scaffold::{Scaffold, fill, scaffold, scaffold_with, stderr, stdout};

pub(super) fn a_command_runs_and_its_end_is_known(scaffold: &Scaffold) {
    let log = scaffold.run(&scaffold.sh("echo out; echo err >&2; exit 3"));
    assert_eq!(log.status, ExitStatus::Exited(3), "{}", stderr(&log));
    assert_eq!((stdout(&log), stderr(&log)), ("out\n".to_owned(), "err\n".to_owned()));
    assert!(!log.timed_out && !log.oom_killed && !log.disk_full && log.upper.is_none());

    let log = scaffold.run(&scaffold.sh("kill -TERM $$"));
    assert_eq!(log.status, ExitStatus::Signaled(15));

    let mut spec = scaffold.sh("");
    spec.argv = vec!["no-such-program".to_owned()];
    let log = scaffold.run(&spec);
    assert_eq!(log.status, ExitStatus::Exited(127));
    assert!(stderr(&log).contains("cannot run no-such-program: "), "{}", stderr(&log));
    scaffold.store.settle();
    let left = fs_err::read_dir(scaffold.store.scratch()).unwrap();
    let left = left.flat_map(|folder| fs_err::read_dir(folder.unwrap().path()).unwrap());
    let names = left.map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| name == "skeleton" || name == "init"));
}

pub(super) fn layers_stack_and_the_upper_dir_holds_the_changes_alone(scaffold: &Scaffold) {
    let top = scaffold.add_layer("top", |root| {
        fs_err::create_dir(root.join("data")).unwrap();
        fs_err::write(root.join("data/a"), "a").unwrap();
        fs_err::write(root.join("data/b"), "b").unwrap();
    });
    let mut spec =
        scaffold.sh("cat /data/a; rm /data/b; echo new > /data/c; chown 33:65535 /data/c");
    spec.keep_upper = true;
    let layers = [scaffold.base(), top];
    let log = scaffold.runtime.run(Root::Layers(&layers), &spec, &Cancel::new()).unwrap();
    assert!(log.success(), "{}", stderr(&log));
    assert_eq!(stdout(&log), "a");
    let upper = log.upper.unwrap();
    let mut paths: Vec<_> = walkdir::WalkDir::new(&upper)
        .min_depth(1)
        .into_iter()
        .map(|entry| entry.unwrap().path().strip_prefix(&upper).unwrap().to_owned())
        .collect();
    paths.sort();
    assert_eq!(paths, ["data", "data/b", "data/c"].map(std::path::PathBuf::from));
    let whiteout = fs_err::symlink_metadata(upper.join("data/b")).unwrap();
    assert!(whiteout.file_type().is_char_device() && whiteout.rdev() == 0);
    let made = fs_err::metadata(upper.join("data/c")).unwrap();
    assert_eq!((made.uid(), made.gid()), (33, 65535));
    assert_eq!(
        fs_err::read_to_string(scaffold.store.layer_path(&top.diff_id).join("data/a")).unwrap(),
        "a"
    );
}

pub(super) fn a_directory_is_changed_in_place_and_keeps_no_mount_points(scaffold: &Scaffold) {
    let root = scaffold.folder.path().join("root");
    fs_err::create_dir(&root).unwrap();
    fill(&root);
    let spec = scaffold.sh("mkdir /made && chmod 4755 /usr/bin/true && chown 7:8 /made && ls /dev/null /proc/self/status");
    let log = scaffold.runtime.run(Root::Directory(&root), &spec, &Cancel::new()).unwrap();
    assert!(log.success(), "{}", stderr(&log));
    let made = fs_err::metadata(root.join("made")).unwrap();
    assert_eq!((made.uid(), made.gid()), (7, 8));
    assert_eq!(fs_err::metadata(root.join("usr/bin/true")).unwrap().mode() & 0o7777, 0o4755);
    for path in ["dev", "proc", "sys", "etc/hosts", "etc/resolv.conf", "etc/hostname"] {
        assert!(!root.join(path).exists(), "{path} was left");
    }
}

pub(super) fn no_layer_at_all_is_a_root_too(scaffold: &Scaffold) {
    let mut spec = scaffold.sh("");
    spec.argv = vec!["/anything".to_owned()];
    let log = scaffold.runtime.run(Root::Layers(&[]), &spec, &Cancel::new()).unwrap();
    assert_eq!(log.status, ExitStatus::Exited(127));
}

/// A daemon puts files and folders of its own in such places, under its containers' roots.
#[test]
fn links_that_lead_nowhere_are_mounted_on() {
    let Some(scaffold) = scaffold() else { return };
    let top = scaffold.add_layer("links", |root| {
        fs_err::create_dir(root.join("etc")).unwrap();
        symlink("../run/systemd/resolve/stub-resolv.conf", root.join("etc/resolv.conf")).unwrap();
    });
    let layers = [scaffold.base(), top];
    let spec = scaffold.sh("readlink /etc/resolv.conf; cat /etc/resolv.conf; echo; cat /etc/hosts");
    let log = scaffold.runtime.run(Root::Layers(&layers), &spec, &Cancel::new()).unwrap();
    let said = stdout(&log);
    assert!(
        log.success() && said.starts_with("../run/systemd/resolve/stub-resolv.conf\n"),
        "{said}"
    );
    assert!(said.contains("localhost"), "{said}");
}

/// Makes the layer of an image.
type Fill = fn(&std::path::Path);

#[test]
fn a_root_that_cannot_be_one_is_the_images_fault() {
    let Some(scaffold) = scaffold() else { return };
    let fills: [(&str, Fill); 3] = [
        ("file", |root| fs_err::write(root.join("sys"), "").unwrap()),
        ("circle", |root| symlink("proc", root.join("proc")).unwrap()),
        ("folder", |root| fs_err::create_dir_all(root.join("etc/hosts")).unwrap()),
    ];
    for (name, fill) in fills {
        let layers = [scaffold.base(), scaffold.add_layer(name, fill)];
        let spec = scaffold.sh("true");
        let error = scaffold.runtime.run(Root::Layers(&layers), &spec, &Cancel::new()).unwrap_err();
        assert!(matches!(error, Error::Root { .. }), "{name}: {error:?}");
        assert!(error.hint().is_some());
    }
}

pub(super) fn mounts_are_files_or_folders_read_only_unless_said(scaffold: &Scaffold) {
    let host = scaffold.folder.path().join("host");
    fs_err::create_dir(&host).unwrap();
    fs_err::write(host.join("file"), "text").unwrap();
    let mount = |source: &std::path::Path, target: &str, writable| Mount {
        source: source.to_owned(),
        target: target.to_owned(),
        writable,
    };
    let mut spec = scaffold.sh("cat /in/one; (echo x > /in/one) 2>/dev/null && echo bad; \
         (echo x > /ro/new) 2>/dev/null && echo bad; echo y > /deep/er/rw/new; cat /ro/file");
    spec.mounts = vec![
        mount(&host.join("file"), "/in/one", false),
        mount(&host, "/ro", false),
        mount(&host, "/deep/er/rw", true),
    ];
    spec.keep_upper = true;
    let log = scaffold.run(&spec);
    assert_eq!(stdout(&log), "texttext", "{}", stderr(&log));
    assert_eq!(fs_err::read_to_string(host.join("new")).unwrap(), "y\n");
    assert_eq!(
        fs_err::read_dir(log.upper.unwrap()).unwrap().count(),
        0,
        "an upper without targets"
    );
}

pub(super) fn nothing_is_inherited(scaffold: &Scaffold) {
    assert_eq!(
        scaffold
            .stdout("env | grep -v ^PWD= || env | wc -l; ls -l /proc/self/fd | wc -l")
            .lines()
            .last(),
        Some("5")
    );
    let mut spec = scaffold.sh("env");
    spec.argv = vec!["env".to_owned()];
    assert_eq!(
        stdout(&scaffold.run(&spec)),
        "HOME=/root\nLC_ALL=C\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nTZ=UTC\n"
    );
}

pub(super) fn a_user_is_a_user(scaffold: &Scaffold) {
    let mut spec =
        scaffold.sh("id -u; id -g; echo x > /dev/stdout; (echo x > /root/x) 2>&1; pwd; uname -n");
    (spec.uid, spec.gid) = (1000, 1001);
    spec.working_dir = "/tmp".to_owned();
    spec.hostname = "box".to_owned();
    let log = scaffold.run(&spec);
    assert_eq!(
        stdout(&log),
        "1000\n1001\nx\nsh: 1: cannot create /root/x: Permission denied\n/tmp\nbox\n"
    );
}

pub(super) fn the_wall_limit_kills_everything(scaffold: &Scaffold) {
    let mut spec =
        scaffold.sh("setsid sleep 300 & setsid sh -c 'sleep 300 & sleep 300' & echo on; sleep 300");
    spec.limits.wall = Duration::from_millis(400);
    let log = scaffold.run(&spec);
    assert!(log.timed_out, "{log:?}");
    assert_eq!(log.status, ExitStatus::Signaled(9));
    assert_eq!(stdout(&log), "on\n");
    assert!(log.wall >= Duration::from_millis(400) && log.wall < Duration::from_secs(3), "{log:?}");
    // What is known of a run that ended by itself is known of this one.
    let whole = scaffold.run(&scaffold.sh("true"));
    let known = |log: &RunLog| {
        (log.cpu.is_some(), log.peak_memory.is_some(), log.network_attempts.is_some())
    };
    assert_eq!(known(&log), known(&whole));
}

/// The process on the host that runs just this command.
fn process_of(argv: &[&str]) -> Option<i32> {
    let expected: String = argv.iter().map(|word| format!("{word}\0")).collect();
    fs_err::read_dir("/proc").unwrap().find_map(|entry| {
        let pid = entry.unwrap().file_name().to_str()?.parse().ok()?;
        (fs_err::read_to_string(format!("/proc/{pid}/cmdline")).ok()? == expected).then_some(pid)
    })
}

pub(super) fn a_pid_1_that_does_not_answer_is_killed(scaffold: &Scaffold) {
    // No other test's, and no other runtime's.
    let seconds = format!(
        "271.{}",
        scaffold.folder.path().as_os_str().as_bytes().iter().map(u8::to_string).collect::<String>()
    );
    let argv = ["sleep", &seconds];
    let mut spec = scaffold.sh("");
    spec.argv = argv.map(str::to_owned).to_vec();
    spec.limits.wall = Duration::from_secs(2);
    let watch = hallmark::base::clock::Stopwatch::start();
    let log = std::thread::scope(|scope| {
        let run = scope.spawn(|| scaffold.run(&spec));
        let command = loop {
            match process_of(&argv) {
                Some(command) => break command,
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        let status = fs_err::read_to_string(format!("/proc/{command}/status")).unwrap();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:\t")).unwrap();
        let pid = rustix::process::Pid::from_raw(parent.parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        run.join().unwrap()
    });
    assert!(log.timed_out && log.status == ExitStatus::Signaled(9), "{log:?}");
    assert!(watch.elapsed() > Duration::from_secs(4) && log.network_attempts.is_none(), "{log:?}");
    assert!(process_of(&argv).is_none());
}

pub(super) fn a_run_cannot_be_ended_by_signals_to_pid_1(scaffold: &Scaffold) {
    let log = scaffold.run(&scaffold.sh(
        "for signal in HUP INT QUIT USR1 USR2 TERM; do kill -$signal 1; done; sleep 0.2; echo on",
    ));
    assert!(log.success() && stdout(&log) == "on\n", "{log:?}");
}

pub(super) fn cancelling_kills(scaffold: &Scaffold) {
    let cancel = Cancel::new();
    let spec = scaffold.sh("sleep 300");
    let other = cancel.clone();
    let stop = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        other.cancel();
    });
    let watch = hallmark::base::clock::Stopwatch::start();
    let error = scaffold.runtime.run(Root::Layers(&scaffold.layers), &spec, &cancel).unwrap_err();
    assert!(matches!(error, Error::Base(BaseError::Cancelled)), "{error}");
    assert!(watch.elapsed() < Duration::from_millis(1200));
    stop.join().unwrap();
}

pub(super) fn a_missing_layer_is_named(scaffold: &Scaffold) {
    let layer = hallmark::image::Layer { diff_id: hallmark::base::Digest::of("none"), size: 0 };
    let error = scaffold
        .runtime
        .run(Root::Layers(&[layer]), &scaffold.sh("true"), &Cancel::new())
        .unwrap_err();
    assert!(matches!(error, Error::MissingLayer { .. }), "{error}");
}

pub(super) fn runs_in_parallel_do_not_meet(scaffold: &Scaffold) {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for round in 0..5 {
                    let word = format!("{thread}-{round}");
                    let script = format!("echo {word} > /tmp/x; cat /tmp/x; ls /tmp | wc -l");
                    assert_eq!(scaffold.stdout(&script), format!("{word}\n1\n"));
                }
            });
        }
    });
}

#[test]
fn both_ways_of_stacking_take_many_layers() {
    for (classic_overlay, count) in [(false, 300), (true, 300)] {
        let options = Options { classic_overlay, ..Options::default() };
        let Some(mut scaffold) = scaffold_with(options) else { return };
        for number in 0..count {
            let layer = scaffold.add_layer(&format!("layer {number}"), |root| {
                fs_err::write(root.join(format!("f{number}")), "").unwrap();
                fs_err::write(root.join("last"), number.to_string()).unwrap();
            });
            scaffold.layers.push(layer);
        }
        let text = scaffold.stdout("ls -d /f* | wc -l; cat /last");
        assert!(text.contains(&format!("{count}\n")) && text.ends_with("299"), "{text}");
    }
}

#[test]
fn doctor_tries_everything() {
    let Some(scaffold) = scaffold() else { return };
    let launcher = std::path::Path::new(env!("CARGO_BIN_EXE_hallmark"));
    let rows = hallmark::runtime::embedded::probe(&scaffold.store, launcher);
    let bad: Vec<_> = rows.iter().filter(|row| row.status == Status::Missing).collect();
    assert!(bad.is_empty(), "{rows:?}");
    for name in ["kernel", "user ids", "container", "memory limit", "black hole", "disk"] {
        assert!(rows.iter().any(|row| row.name == name), "{name}: {rows:?}");
    }
    assert!(rows.iter().all(|row| (row.status == Status::Gap) == row.fix.is_some()), "{rows:?}");
}
