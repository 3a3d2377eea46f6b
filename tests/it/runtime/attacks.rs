//! Attempts to get out, or to get power, from inside.

use std::fmt::Write;
use std::os::unix::fs::MetadataExt;

use hallmark::runtime::{ExitStatus, Mount};

use super::scaffold::{Scaffold, scaffold, stderr, stdout};

/// Runs perl as root of the container.
fn perl(scaffold: &Scaffold, script: &str) -> String {
    let mut spec = scaffold.sh("");
    spec.argv = ["perl", "-e", script].map(str::to_owned).to_vec();
    let log = scaffold.run(&spec);
    assert_eq!(log.status, ExitStatus::Exited(0), "{}{}", stdout(&log), stderr(&log));
    stdout(&log)
}

pub(super) fn the_command_has_dockers_powers_and_no_more(scaffold: &Scaffold) {
    let text = scaffold.stdout("cat /proc/self/status");
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
        line.unwrap().to_owned()
    };
    // What `docker run debian grep Cap /proc/self/status` shows.
    assert_eq!(field("CapEff"), "00000000a80425fb");
    assert_eq!(field("CapPrm"), "00000000a80425fb");
    assert_eq!(field("CapBnd"), "00000000a80425fb");
    assert_eq!((field("CapInh"), field("CapAmb")), ("0".repeat(16), "0".repeat(16)));
    assert_eq!((field("NoNewPrivs"), field("Seccomp")), ("1".to_owned(), "2".to_owned()));

    let mut spec = scaffold.sh("cat /proc/self/status");
    (spec.uid, spec.gid) = (1000, 1000);
    let text = stdout(&scaffold.run(&spec));
    assert!(text.contains("CapEff:\t0000000000000000\nCapBnd:\t00000000a80425fb"), "{text}");
    assert!(text.contains("Groups:\t \n") || text.contains("Groups:\t\n"), "{text}");
}

pub(super) fn calls_that_change_the_world_are_refused(scaffold: &Scaffold) {
    let calls: [(&str, i64, &str, i32); 31] = [
        ("mount", libc::SYS_mount, "'none', '/tmp', 'tmpfs', 0, 0", libc::EPERM),
        ("umount2", libc::SYS_umount2, "'/proc', 2", libc::EPERM),
        ("pivot_root", libc::SYS_pivot_root, "'/', '/tmp'", libc::EPERM),
        ("unshare", libc::SYS_unshare, "0x10000000", libc::EPERM),
        ("setns", libc::SYS_setns, "0, 0", libc::EPERM),
        ("clone NEWUSER", libc::SYS_clone, "0x10000011, 0, 0, 0, 0", libc::EPERM),
        ("clone3", libc::SYS_clone3, "0, 0", libc::ENOSYS),
        ("a new call", 599, "0", libc::ENOSYS),
        ("bpf", libc::SYS_bpf, "0, 0, 0", libc::EPERM),
        ("perf_event_open", libc::SYS_perf_event_open, "0, 0, 0, 0, 0", libc::EPERM),
        ("userfaultfd", libc::SYS_userfaultfd, "0", libc::EPERM),
        ("keyctl", libc::SYS_keyctl, "0, 0, 0, 0, 0", libc::EPERM),
        ("add_key", libc::SYS_add_key, "'user', 'x', 'y', 1, -3", libc::EPERM),
        ("request_key", libc::SYS_request_key, "'user', 'x', 0, -3", libc::EPERM),
        ("open_by_handle_at", libc::SYS_open_by_handle_at, "0, 0, 0", libc::EPERM),
        ("init_module", libc::SYS_init_module, "0, 0, ''", libc::EPERM),
        ("finit_module", libc::SYS_finit_module, "0, '', 0", libc::EPERM),
        ("kexec_load", libc::SYS_kexec_load, "0, 0, 0, 0", libc::EPERM),
        ("reboot", libc::SYS_reboot, "0, 0, 0, 0", libc::EPERM),
        ("swapon", libc::SYS_swapon, "'/x', 0", libc::EPERM),
        ("syslog", libc::SYS_syslog, "10, 0, 0", libc::EPERM),
        ("settimeofday", libc::SYS_settimeofday, "0, 0", libc::EPERM),
        ("io_uring_setup", libc::SYS_io_uring_setup, "1, 0", libc::EPERM),
        ("fsopen", libc::SYS_fsopen, "'tmpfs', 0", libc::EPERM),
        ("open_tree", libc::SYS_open_tree, "-100, '/', 1", libc::EPERM),
        ("move_mount", libc::SYS_move_mount, "-100, '/proc', -100, '/tmp', 0", libc::EPERM),
        ("personality", libc::SYS_personality, "0x0040000", libc::EPERM),
        ("socket AF_VSOCK", libc::SYS_socket, "40, 1, 0", libc::EPERM),
        ("sethostname", libc::SYS_sethostname, "'x', 1", libc::EPERM),
        ("prlimit of pid 1", libc::SYS_prlimit64, "1, 1, pack('QQ', 0, 0), 0", libc::EPERM),
        ("quotactl", libc::SYS_quotactl, "0, 0, 0, 0", libc::EPERM),
    ];
    let (mut script, mut expected) = (String::new(), String::new());
    for (name, number, arguments, errno) in calls {
        let _ = write!(
            script,
            "$! = 0; @a = ({arguments}); $r = syscall({number}, @a); \
             print '{name}: ', $r == -1 ? $!+0 : 'done', \"\\n\";"
        );
        let _ = writeln!(expected, "{name}: {errno}");
    }
    assert_eq!(perl(scaffold, &script), expected);
}

pub(super) fn what_docker_allows_works(scaffold: &Scaffold) {
    let script = format!(
        "print syscall({}, 0xffffffff), ' '; print syscall({}, 0), \"\\n\"; \
         mkdir '/jail'; chroot '/jail' or die; print -e '/bin' ? 'out' : 'in', \"\\n\"",
        libc::SYS_personality,
        libc::SYS_sched_yield
    );
    assert_eq!(perl(scaffold, &script), "0 0\nin\n");
    assert_eq!(
        scaffold.stdout("chown 5:6 /tmp; stat -c %u:%g /tmp; ln -s x /l; setsid true; kill -0 $$"),
        "5:6\n"
    );
}

pub(super) fn the_root_has_no_way_out(scaffold: &Scaffold) {
    let marker = scaffold.folder.path().join("marker");
    fs_err::write(&marker, "host").unwrap();
    let marker = marker.display();
    // Up, through pid 1, and by the classical way out of a chroot.
    let script = format!(
        "cat {marker} ../../../../..{marker} /proc/1/root{marker} /proc/1/cwd{marker} 2>/dev/null; \
         ls /proc/1/root 2>/dev/null; readlink /proc/1/fd/0 /proc/1/exe /proc/1/cwd"
    );
    assert_eq!(scaffold.stdout(&format!("{script}; true")), "");
    let chroot = format!(
        "mkdir '/jail'; opendir(my $d, '/'); chroot '/jail' or die; chdir $d; chdir '..' for 1..20; \
         chroot '.'; print -e '{marker}' ? 'out' : 'in'"
    );
    assert_eq!(perl(scaffold, &chroot), "in");
    // Nor do mounts tell where the host keeps things.
    let mounts = scaffold.stdout("cat /proc/self/mountinfo /proc/self/cgroup /proc/1/cmdline");
    let host = scaffold.folder.path().to_str().unwrap();
    assert!(!mounts.contains(host) && !mounts.contains("scaffold-"), "{mounts}");
    assert!(!mounts.contains("hallmark-run"), "{mounts}");
}

pub(super) fn descriptors_of_the_host_are_closed(scaffold: &Scaffold) {
    let path = scaffold.folder.path().join("secret");
    fs_err::write(&path, "secret").unwrap();
    let open = rustix::fs::open(&path, rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty());
    let fd = open.unwrap();
    assert_eq!(
        perl(
            scaffold,
            "opendir(my $d, '/proc/self/fd'); print join ' ', sort grep { !/\\./ } readdir $d"
        ),
        "0 1 2 3"
    );
    assert_eq!(scaffold.stdout("readlink /proc/self/fd/0"), "/dev/null\n");
    drop(fd);
    // A working directory through a descriptor of ours (CVE-2024-21626).
    for number in 3..12 {
        let mut spec = scaffold.sh("pwd");
        spec.working_dir = format!("/proc/self/fd/{number}");
        let log = scaffold.run(&spec);
        assert_eq!(log.status, ExitStatus::Exited(126), "{}", stdout(&log));
    }
}

pub(super) fn the_launcher_cannot_be_run_from_inside(scaffold: &Scaffold) {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_hallmark"));
    let before = fs_err::metadata(binary).unwrap();
    let mut spec = scaffold.sh("");
    spec.argv = vec!["/proc/self/exe".to_owned()];
    let log = scaffold.run(&spec);
    assert_eq!(log.status, ExitStatus::Exited(126), "{}", stderr(&log));

    let scripts = scaffold.output();
    fs_err::write(scripts.join("one"), "#!/proc/self/exe\n").unwrap();
    fs_err::write(scripts.join("two"), "#! /in/one x\n").unwrap();
    for name in ["one", "two"] {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs_err::set_permissions(scripts.join(name), permissions).unwrap();
    }
    spec.mounts = vec![Mount { source: scripts, target: "/in".to_owned(), writable: false }];
    for name in ["/in/one", "/in/two"] {
        spec.argv = vec![name.to_owned()];
        let log = scaffold.run(&spec);
        assert_eq!(log.status, ExitStatus::Exited(126), "{name}: {}", stderr(&log));
    }
    // While it runs: pid 1's file cannot be opened, to read or to write.
    assert_eq!(
        perl(
            scaffold,
            "print open(my $f, '<', '/proc/1/exe') ? 'open' : 'closed', open(my $g, '+<', '/proc/1/exe') ? 'open' : 'closed', open(my $h, '<', '/proc/1/mem') ? 'open' : 'closed'"
        ),
        "closedclosedclosed"
    );
    let after = fs_err::metadata(binary).unwrap();
    assert_eq!((before.len(), before.mtime()), (after.len(), after.mtime()));
}

pub(super) fn processes_outside_cannot_be_seen_traced_or_killed(scaffold: &Scaffold) {
    let outside = std::process::id();
    let script = format!(
        "print kill(0, {outside}) ? 'seen' : 'unseen', ' '; print -e '/proc/{outside}' ? 'seen' : 'unseen', ' '; \
         $! = 0; syscall({}, 16, 1, 0, 0); print $!+0, ' '; kill 'KILL', 1; kill 'TERM', 1; print 'alive'",
        libc::SYS_ptrace
    );
    // A large process id: only a few exist inside.
    assert!(outside > 10);
    assert_eq!(perl(scaffold, &script), "unseen unseen 1 alive");
}

pub(super) fn setuid_and_file_capabilities_give_nothing(scaffold: &Scaffold) {
    // VFS_CAP_REVISION_2 with the effective bit and CAP_NET_RAW permitted.
    let script = format!(
        "system 'cp /usr/bin/id /usr/bin/cat /tmp'; system 'chmod 4755 /tmp/id'; \
         my $caps = pack 'V5', 0x02000001, 1 << 13, 0, 0, 0; \
         @a = ('/tmp/cat', 'security.capability', $caps, 20, 0); syscall({}, @a) == 0 or print 'unset '; \
         $) = '1000 1000'; $( = 1000; $< = $> = 1000; \
         print `/tmp/id -u`, `/tmp/cat /proc/self/status`",
        libc::SYS_setxattr
    );
    let text = perl(scaffold, &script);
    assert!(text.starts_with("1000\n"), "{text}");
    assert!(text.contains("CapEff:\t0000000000000000"), "{text}");
}

pub(super) fn there_is_no_terminal(scaffold: &Scaffold) {
    // TIOCSTI, on every stream.
    let script = "print open(my $t, '+<', '/dev/tty') ? 'tty' : $!+0, ' '; \
                  for my $fd (*STDIN, *STDOUT, *STDERR) { my $c = 'x'; $! = 0; ioctl($fd, 0x5412, $c); print $!+0, ' ' } \
                  print -t STDIN ? 1 : 0";
    assert_eq!(perl(scaffold, script), "6 25 25 25 0");
}

pub(super) fn proc_and_sys_are_read_only_or_empty(scaffold: &Scaffold) {
    let script = "for my $f (qw(/proc/sys/kernel/hostname /proc/sys/kernel/core_pattern \
        /proc/sys/vm/drop_caches /proc/sys/net/ipv4/ip_forward /proc/sysrq-trigger \
        /sys/kernel/mm/transparent_hugepage/enabled /proc/irq/default_smp_affinity)) \
        { print \"$f\\n\" if open(my $h, '>', $f) and syswrite($h, '1') } \
        for my $f (qw(/proc/kcore /proc/keys /proc/timer_list /proc/interrupts)) \
        { print \"$f\\n\" if open(my $h, '<', $f) and sysread($h, my $x, 1) } \
        opendir(my $d, '/sys/firmware'); print join ' ', grep { !/^\\./ } readdir $d; \
        print mkdir('/sys/fs/cgroup/x') ? 'cgroup' : ''";
    assert_eq!(perl(scaffold, script), "");
}

#[test]
fn devices_cannot_be_made() {
    let Some(scaffold) = scaffold() else { return };
    assert_eq!(
        scaffold.stdout("for kind in 'b 8 0' 'c 1 1' 'c 5 1'; do mknod /tmp/x $kind 2>/dev/null && echo made; done; \
             cat /dev/zero | head -c 3 | wc -c; echo x > /dev/null; ls /dev | tr '\\n' ' '"),
        "3\nfd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero "
    );
}
