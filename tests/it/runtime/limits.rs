//! Limits that a run tries to burst.

use std::time::Duration;

use hallmark::runtime::embedded::Options;
use hallmark::runtime::{ExitStatus, Gap, Mount};

use super::scaffold::{Scaffold, say_skipped, scaffold_with, stderr, stdout};

/// Whether the host can enforce what a test bursts.
fn can(scaffold: &Scaffold, gap: &Gap) -> bool {
    let can = !scaffold.runtime.gaps().contains(gap);
    if !can {
        say_skipped(&format!("this host has the gap {gap:?}"));
    }
    can
}

pub(super) fn a_memory_hog_is_killed_and_said_to_be(scaffold: &Scaffold) {
    if !can(scaffold, &Gap::MemoryLimit) {
        return;
    }
    let mut spec = scaffold.sh("perl -e '$x = \"x\" x (200 << 20); print length $x'");
    spec.limits.memory = Some(64 << 20);
    let log = scaffold.run(&spec);
    assert!(log.oom_killed && !log.success() && !log.timed_out, "{log:?}");
    assert!(log.peak_memory.is_some_and(|peak| peak <= 64 << 20 && peak > 32 << 20), "{log:?}");

    spec.limits.memory = Some(1 << 30);
    let log = scaffold.run(&spec);
    assert!(log.success() && !log.oom_killed, "{log:?}");
    assert!(log.peak_memory.is_some_and(|peak| peak > 200 << 20), "{log:?}");
}

pub(super) fn memory_in_dev_shm_counts_and_its_size_holds(scaffold: &Scaffold) {
    let mut spec = scaffold
        .sh("dd if=/dev/zero of=/dev/shm/x bs=1M count=9 2>&1 | tail -1; stat -c %s /dev/shm/x");
    spec.limits.shm = 8 << 20;
    let log = scaffold.run(&spec);
    assert!(stdout(&log).ends_with("8388608\n"), "{}{}", stdout(&log), stderr(&log));
}

pub(super) fn a_fork_bomb_stops_at_the_limit_and_leaves_nothing(scaffold: &Scaffold) {
    if !can(scaffold, &Gap::PidsLimit) {
        return;
    }
    let bomb = "my $n = 0; while (defined(my $p = fork)) { if (!$p) { sleep 300 } $n++; last if $n > 500 } print $n";
    let mut spec = scaffold.sh("");
    spec.argv = vec!["perl".to_owned(), "-e".to_owned(), bomb.to_owned()];
    spec.limits.pids = Some(50);
    let log = scaffold.run(&spec);
    assert_eq!((log.status, stdout(&log).as_str()), (ExitStatus::Exited(0), "49"), "{log:?}");
}

pub(super) fn processor_time_is_shared_out_and_counted(scaffold: &Scaffold) {
    if !can(scaffold, &Gap::CpuLimit) {
        return;
    }
    let mut spec = scaffold.sh("");
    let busy = "my ($u) = times; while ($u < 0.3) { ($u) = times }";
    spec.argv = vec!["perl".to_owned(), "-e".to_owned(), busy.to_owned()];
    spec.limits.cpus = Some(0.2);
    let log = scaffold.run(&spec);
    assert!(log.success(), "{log:?}");
    assert!(log.wall > Duration::from_secs(1), "0.3 s at a fifth of a core: {log:?}");
    let cpu = log.cpu.unwrap();
    assert!(cpu > Duration::from_millis(250) && cpu < log.wall, "{log:?}");
}

pub(super) fn many_files_burst_the_disk_limit(scaffold: &Scaffold) {
    let mut spec = scaffold.sh(
        "i=0; while dd if=/dev/zero of=/f$i bs=1M count=8 2>/dev/null; do i=$((i+1)); done; echo stopped",
    );
    spec.limits.disk = Some(64 << 20);
    let log = scaffold.run(&spec);
    assert!(log.disk_full && !log.success() && !log.timed_out, "{log:?}");
}

pub(super) fn one_file_bursts_the_disk_limit(scaffold: &Scaffold) {
    let mut spec = scaffold.sh("dd if=/dev/zero of=/f bs=1M count=200 && echo done");
    spec.limits.disk = Some(32 << 20);
    let log = scaffold.run(&spec);
    assert!(log.disk_full && !log.success(), "{log:?} {}", stderr(&log));
    assert_eq!(stdout(&log), "");
}

pub(super) fn writable_mounts_count_for_the_disk_limit(scaffold: &Scaffold) {
    let host = scaffold.output();
    fs_err::write(host.join("old"), vec![0; 48 << 20]).unwrap();
    let mut spec = scaffold.sh("for i in 1 2 3 4 5 6; do dd if=/dev/zero of=/m/$i bs=1M count=8 2>/dev/null; done; sleep 1");
    spec.limits.disk = Some(32 << 20);
    spec.mounts = vec![Mount { source: host, target: "/m".to_owned(), writable: true }];
    let log = scaffold.run(&spec);
    assert!(log.disk_full, "{log:?}");
    spec.limits.disk = Some(100 << 20);
    assert!(scaffold.run(&spec).success());
}

pub(super) fn a_flood_of_output_stops_at_the_disk_limit(scaffold: &Scaffold) {
    let mut spec = scaffold.sh("yes");
    spec.limits.disk = Some(16 << 20);
    let log = scaffold.run(&spec);
    assert!(log.disk_full && !log.output_full, "{log:?}");
    let size = fs_err::metadata(&log.stdout).unwrap().len();
    assert!(size > 16 << 20 && size < 512 << 20, "{size}");
}

pub(super) fn all_output_is_kept_also_when_opened_by_name(scaffold: &Scaffold) {
    let log =
        scaffold.run(&scaffold.sh(
            "echo one; echo two > /dev/stdout; echo three; echo four > /dev/stderr; seq 1 200000",
        ));
    let text = stdout(&log);
    assert!(text.starts_with("one\ntwo\nthree\n1\n2\n") && text.ends_with("\n200000\n"));
    assert_eq!(text.lines().count(), 200_003);
    assert_eq!(stderr(&log), "four\n");
}

pub(super) fn open_files_are_limited_and_never_raised(scaffold: &Scaffold) {
    let mut spec = scaffold.sh("ulimit -Sn; ulimit -Hn; ulimit -c");
    spec.limits.open_files = Some(100);
    assert_eq!(stdout(&scaffold.run(&spec)), "100\n100\n0\n");
    spec.limits.open_files = Some(u64::MAX);
    assert!(scaffold.run(&spec).success());
}

#[test]
fn a_host_without_cgroups_runs_with_gaps() {
    let options = Options { cgroups: false, black_holes: &[], ..Options::default() };
    let Some(scaffold) = scaffold_with(options) else { return };
    let log = scaffold.run(&scaffold.sh("echo on"));
    assert!(log.success());
    assert_eq!(log.gaps, [Gap::MemoryLimit, Gap::PidsLimit, Gap::BlackHole]);
    assert!(log.cpu.is_some(), "counted by waiting");
}

pub(super) fn a_flood_of_output_stops_at_its_own_limit(scaffold: &Scaffold) {
    let mut spec = scaffold.sh("yes >&2 & exec yes");
    spec.limits.output = Some(16 << 20);
    let log = scaffold.run(&spec);
    assert!(log.output_full && !log.disk_full && !log.success(), "{log:?}");
    let size = |path| fs_err::metadata(path).unwrap().len();
    let printed = size(&log.stdout) + size(&log.stderr);
    assert!(printed > 16 << 20 && printed < 512 << 20, "{printed}");
    spec.limits.output = None;
    spec.limits.disk = None;
    spec.limits.wall = std::time::Duration::from_millis(200);
    let log = scaffold.run(&spec);
    assert!(log.timed_out && !log.output_full, "{log:?}");
}
