//! What only a daemon can do to a run: be killed, forget, or keep what dead runs left.

use std::time::Duration;

use hallmark::base::{Cancel, Digest, Owner};
use hallmark::runtime::docker::{DaemonError, Docker, remove_run_images};
use hallmark::runtime::{Error, Root, Runtime as _};

use rustix::process::Signal;

use super::attach::{Fault, attach_proxy};
use super::set::engine;
use crate::runtime::daemon::{docker_runtime, docker_scaffold, docker_scaffold_over};
use crate::runtime::scaffold::{Scaffold, stderr, stdout};
use crate::support::Dockerd;

/// The containers that a daemon has, dead or alive.
fn containers(dockerd: &Dockerd, filter: &str) -> String {
    dockerd.ask(&["ps", "--all", "--quiet", "--no-trunc", "--filter", filter])
}

#[test]
fn a_run_leaves_no_container_and_no_network() {
    let Some(dockerd) = Dockerd::start(&[]) else { return };
    let scaffold = docker_scaffold_over(&dockerd);
    let networks = dockerd.ask(&["network", "ls", "--quiet"]);
    assert!(scaffold.run(&scaffold.sh("sleep 300 & true")).success());
    let mut spec = scaffold.sh("sleep 300");
    spec.limits.wall = Duration::from_millis(300);
    assert!(scaffold.run(&spec).timed_out);
    let cancel = Cancel::new();
    cancel.cancel();
    let layers = Root::Layers(&scaffold.layers);
    scaffold.runtime.run(layers, &spec, &cancel).unwrap_err();
    assert_eq!(dockerd.ask(&["ps", "--all", "--quiet"]), "");
    assert_eq!(dockerd.ask(&["volume", "ls", "--quiet"]), "");
    assert_eq!(dockerd.ask(&["network", "ls", "--quiet"]), networks);
    let images = dockerd.ask(&["images", "--filter", "label=hallmark.run-image", "--quiet"]);
    assert_eq!(images.lines().count(), 1, "{images}");
}

#[test]
fn images_of_runs_can_be_removed_and_come_back() {
    let Some(dockerd) = Dockerd::start(&[]) else { return };
    let scaffold = docker_scaffold_over(&dockerd);
    assert!(scaffold.run(&scaffold.sh("true")).success());
    let engine = engine(&dockerd.socket());
    let gc = |dry_run| remove_run_images(&engine, dry_run, &Cancel::new()).unwrap();
    let all = gc(true);
    assert!(all.len() == 1 && all[0].starts_with("hallmark-run:"), "{all:?}");
    let user = dockerd.ask(&["create", "--entrypoint", "true", &all[0]]);
    assert!(gc(false).is_empty(), "a container uses it");
    dockerd.ask(&["rm", &user]);
    assert_eq!(gc(false), all);
    assert_eq!(dockerd.ask(&["images", "--all", "--quiet"]), "");
    assert!(scaffold.run(&scaffold.sh("true")).success(), "it is loaded again");
}

#[test]
fn a_full_disk_of_the_daemon_is_no_verdict_and_passes() {
    let Some(dockerd) = Dockerd::on_small_disk("40m") else { return };
    let scaffold = docker_scaffold_over(&dockerd);
    assert!(scaffold.run(&scaffold.sh("true")).success());
    let ballast = dockerd.folder().join("data/ballast");
    let fill = || {
        let mut file = fs_err::File::create(&ballast).unwrap();
        // Until there is no byte left.
        while std::io::Write::write(&mut file, &[1; 4096]).is_ok_and(|written| written > 0) {}
    };
    // Before the container is made.
    fill();
    let run = |script: &str| {
        let (layers, spec) = (Root::Layers(&scaffold.layers), scaffold.sh(script));
        scaffold.runtime.run(layers, &spec, &Cancel::new())
    };
    let error = run("true").unwrap_err();
    assert!(matches!(error, Error::Daemon(DaemonError::DiskFull { .. })), "{error:?}");
    assert!(error.hint().unwrap().contains("free some space"), "{error}");
    fs_err::remove_file(&ballast).unwrap();
    assert!(run("true").unwrap().success());
    // In its middle: what the run writes is on hallmark's disk, not on the daemon's, so that it has a whole result or none.
    let run = std::thread::scope(|scope| {
        let running = scope.spawn(|| run("sleep 2; echo whole > /kept; cat /kept"));
        std::thread::sleep(Duration::from_millis(1200));
        fill();
        running.join().unwrap()
    });
    match run {
        Ok(log) => assert!(log.success() && stdout(&log) == "whole\n", "{log:?}"),
        Err(error) => assert!(matches!(error, Error::Daemon(_)), "{error:?}"),
    }
    fs_err::remove_file(&ballast).unwrap();
    assert!(scaffold.run(&scaffold.sh("true")).success());
    assert_eq!(dockerd.ask(&["ps", "--all", "--quiet"]), "");
}

#[test]
fn containers_of_the_dead_are_removed_at_the_start() {
    let Some(dockerd) = Dockerd::start(&[]) else { return };
    let scaffold = docker_scaffold_over(&dockerd);
    assert!(scaffold.run(&scaffold.sh("true")).success());
    let image = dockerd.ask(&["images", "--filter", "label=hallmark.run-image", "--quiet"]);
    let boot = fs_err::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let own = Owner::own().unwrap().to_string();
    let dead = format!("{}-4294967295-5", own.split('-').next().unwrap());
    let start = |owner: &str| {
        let owner = format!("hallmark.owner={owner}");
        let boot = format!("hallmark.boot={}", boot.trim());
        let labels = ["--label", "hallmark.run=x", "--label", &owner, "--label", &boot];
        let arguments = [
            &["run", "--detach", "--network", "none"][..],
            &labels,
            &["--entrypoint", "sleep", &image, "300"],
        ];
        dockerd.ask(&arguments.concat())
    };
    let (of_dead, of_own) = (start(&dead), start(&own));
    let stranger = dockerd.ask(&[
        "run",
        "--detach",
        "--network",
        "none",
        "--entrypoint",
        "sleep",
        &image,
        "300",
    ]);
    assert!(containers(&dockerd, "status=running").contains(&of_dead));
    drop(docker_runtime(&dockerd, &scaffold.store));
    let left = containers(&dockerd, "status=running");
    assert!(!left.contains(&of_dead), "{left}");
    assert!(left.contains(&of_own) && left.contains(&stranger), "{left}");
}

#[test]
fn a_daemon_that_dies_is_an_error_and_no_verdict() {
    let Some(dockerd) = Dockerd::start(&[]) else { return };
    let scaffold = docker_scaffold_over(&dockerd);
    assert!(scaffold.run(&scaffold.sh("true")).success());
    let spec = scaffold.sh("echo on; sleep 20");
    let layers = Root::Layers(&scaffold.layers);
    let watch = hallmark::base::clock::Stopwatch::start();
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(1500));
            dockerd.signal(Signal::KILL);
        });
        scaffold.runtime.run(layers, &spec, &Cancel::new()).unwrap_err()
    });
    assert!(matches!(error, Error::Daemon(DaemonError::Lost { .. })), "{error:?}");
    assert!(error.hint().unwrap().contains("journalctl"), "{error}");
    assert!(watch.elapsed() < Duration::from_secs(15));
    let again = scaffold.runtime.run(layers, &scaffold.sh("true"), &Cancel::new()).unwrap_err();
    assert!(matches!(again, Error::Daemon(_)), "{again:?}");
}

/// A runtime behind a proxy with a fault, over the scaffold's store.
fn faulty(dockerd: &Dockerd, scaffold: &Scaffold, fault: Fault) -> Docker {
    let socket = scaffold.folder.path().join("p.sock");
    attach_proxy(&socket, &dockerd.socket(), fault);
    Docker::new(&scaffold.store, engine(&socket), &Cancel::new()).unwrap()
}

#[test]
fn output_that_does_not_come_whole_is_no_output() {
    let Some(dockerd) = Dockerd::shared() else { return };
    let scaffold = docker_scaffold_over(dockerd);
    let runtime = faulty(dockerd, &scaffold, Fault::Cut);
    let layers = Root::Layers(&scaffold.layers);
    for script in ["echo first; sleep 1; echo second", "echo one >&2"] {
        let error = runtime.run(layers, &scaffold.sh(script), &Cancel::new()).unwrap_err();
        assert!(matches!(error, Error::Daemon(DaemonError::CutOutput { .. })), "{error:?}");
        assert!(error.hint().unwrap().contains("again"), "{error}");
    }
    // What a command itself writes ends nothing.
    let log = scaffold.run(&scaffold.sh("exec >&- 2>&-; sleep 0.2"));
    assert!(log.success() && stdout(&log).is_empty(), "{log:?}");
}

#[test]
fn output_that_never_ends_holds_up_nobody_who_wants_to_stop() {
    let Some(dockerd) = Dockerd::shared() else { return };
    let scaffold = docker_scaffold_over(dockerd);
    let runtime = faulty(dockerd, &scaffold, Fault::Hold);
    let (cancel, spec) = (Cancel::new(), scaffold.sh("echo on"));
    let watch = hallmark::base::clock::Stopwatch::start();
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(2));
            cancel.cancel();
        });
        runtime.run(Root::Layers(&scaffold.layers), &spec, &cancel).unwrap_err()
    });
    assert!(matches!(error, Error::Base(hallmark::base::Error::Cancelled)), "{error:?}");
    assert!(watch.elapsed() < Duration::from_secs(5), "{:?}", watch.elapsed());
}

#[test]
fn a_daemon_that_hangs_holds_up_nobody_who_wants_to_stop() {
    let Some(dockerd) = Dockerd::start(&[]) else { return };
    let scaffold = docker_scaffold_over(&dockerd);
    assert!(scaffold.run(&scaffold.sh("true")).success());
    dockerd.freeze();
    let cancel = Cancel::new();
    let stop = cancel.clone();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        stop.cancel();
    });
    let layers = Root::Layers(&scaffold.layers);
    let watch = hallmark::base::clock::Stopwatch::start();
    let error = scaffold.runtime.run(layers, &scaffold.sh("true"), &cancel).unwrap_err();
    let elapsed = watch.elapsed();
    dockerd.signal(Signal::CONT);
    stopper.join().unwrap();
    assert!(elapsed < Duration::from_secs(2), "{elapsed:?} {error}");
    assert!(matches!(error, Error::Base(_)), "{error:?}");
}

/// Bytes that no text has, in odd pieces, on both streams at once.
const NOISE: &str = r#"
    my ($seed, $pieces) = @ARGV; $| = 1;
    for my $n (1 .. $pieces) {
        my $size = ($n * 7919) % 70000 + 1;
        syswrite(STDOUT, pack("C*", map { ($_ * $n) & 255 } 1 .. 64) x ($size / 64 + 1), $size);
        syswrite(STDERR, "\x01\x02\x00\x00\x00\x00\xff\xff\n" x ($n % 50 + 1));
    }
"#;

#[test]
fn streams_are_apart_and_whole_at_every_border() {
    let Some(scaffold) = docker_scaffold() else { return };
    let mut spec = scaffold.sh("");
    spec.argv = ["perl", "-e", NOISE, "1", "1000"].map(str::to_owned).to_vec();
    let log = scaffold.run(&spec);
    assert!(log.success(), "{log:?}");
    let expected = std::process::Command::new("perl").args(&spec.argv[1..]).output().unwrap();
    assert_eq!(Digest::of(fs_err::read(&log.stdout).unwrap()), Digest::of(&expected.stdout));
    assert_eq!(Digest::of(fs_err::read(&log.stderr).unwrap()), Digest::of(&expected.stderr));
}

/// Prints what a run costs beside the daemon's own client, and how fast output comes.
#[test]
#[ignore = "a measurement: run it alone, with --nocapture"]
#[expect(clippy::print_stderr, reason = "its result")]
fn what_a_run_costs() {
    let Some(dockerd) = Dockerd::start(&[]) else { return };
    let scaffold = docker_scaffold_over(&dockerd);
    let mut spec = scaffold.sh("");
    spec.argv = vec!["/bin/true".to_owned()];
    assert!(scaffold.run(&spec).success());
    let image = dockerd.ask(&["images", "--filter", "label=hallmark.run-image", "--quiet"]);
    let measure = |name: &str, run: &dyn Fn()| {
        let mut times: Vec<_> = (0..10)
            .map(|_| {
                let watch = hallmark::base::clock::Stopwatch::start();
                run();
                watch.elapsed()
            })
            .collect();
        times.sort();
        eprintln!("{name:24} fastest {:?}, median {:?}", times[0], times[5]);
    };
    measure("docker runtime", &|| assert!(scaffold.run(&spec).success()));
    let client = ["run", "--rm", "--network", "none", "--entrypoint", "/bin/true", &image];
    measure("docker run --rm", &|| drop(dockerd.ask(&client)));
    let embedded = crate::runtime::scaffold::scaffold().unwrap();
    measure("embedded runtime", &|| assert!(embedded.run(&spec).success()));

    let mut spec = scaffold.sh("head -c 2147483648 /dev/zero");
    spec.limits.output = None;
    spec.limits.disk = None;
    let watch = hallmark::base::clock::Stopwatch::start();
    let log = scaffold.run(&spec);
    let size = fs_err::metadata(&log.stdout).unwrap().len();
    assert_eq!((log.success(), size), (true, 2 << 30), "{}{}", stdout(&log), stderr(&log));
    eprintln!("2 GiB of output in {:?}", watch.elapsed());
}
