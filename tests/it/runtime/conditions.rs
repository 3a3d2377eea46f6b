//! Conditions that a run can be given: each holds inside, and plain runs lack it.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use hallmark::base::Cancel;
use hallmark::image::Layer;
use hallmark::runtime::{Account, EntryOrder, FolderCopy, Gap, Network, Root, RunLog, RunSpec};

use super::scaffold::{Scaffold, say_skipped, scaffold, stderr, stdout};

/// How a folder lists its entries, as the kernel gives them.
const LIST: &str = r#"for (@ARGV) { opendir(my $d, $_) or die; print join(" ", grep { !/^\.\.?$/ } readdir $d), "\n" }"#;

/// A layer with a work tree of some kinds of files.
fn work_tree(scaffold: &Scaffold) -> Layer {
    scaffold.add_layer("work tree", |root| {
        let tree = root.join("testbed");
        fs_err::create_dir_all(tree.join("deep/er")).unwrap();
        fs_err::create_dir_all(tree.join(".git/objects/pack")).unwrap();
        for number in 0..40 {
            fs_err::write(tree.join(format!("f{:02}", number * 37 % 40)), "text").unwrap();
            fs_err::write(tree.join(format!("deep/d{:02}", number * 37 % 40)), "").unwrap();
        }
        fs_err::write(tree.join(".git/objects/pack/p.pack"), vec![7; 200 << 10]).unwrap();
        fs_err::write(tree.join(".git/index"), "index").unwrap();
        fs_err::write(tree.join("run.sh"), "#!/bin/sh\necho ran\n").unwrap();
        let mode = |path: &Path, mode| {
            fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(&tree.join("run.sh"), 0o755);
        mode(&tree.join("deep/er"), 0o700);
        fs_err::hard_link(tree.join("f00"), tree.join("twin")).unwrap();
        symlink("f01", tree.join("link")).unwrap();
        let old = filetime(1_600_000_000, 123_456_789);
        let file = fs_err::File::options().write(true).open(tree.join("f02")).unwrap();
        file.set_modified(old).unwrap();
        let folder = fs_err::File::open(tree.join("deep")).unwrap();
        folder.set_modified(old).unwrap();
        let owned = |path: &Path| std::os::unix::fs::chown(path, Some(7), Some(8));
        // One id is all that some users have.
        let _ = owned(&tree.join("f03"));
    })
}

fn filetime(seconds: u64, nanoseconds: u32) -> std::time::SystemTime {
    std::time::UNIX_EPOCH + Duration::new(seconds, nanoseconds)
}

pub(super) fn copy(order: Option<EntryOrder>, owner: Option<(u32, u32)>) -> FolderCopy {
    FolderCopy {
        path: "/testbed".to_owned(),
        order,
        owner,
        in_place: vec![".git/objects/pack".to_owned()],
    }
}

fn run_over(scaffold: &Scaffold, top: Layer, spec: &RunSpec) -> RunLog {
    let layers = [scaffold.base(), top];
    scaffold.runtime.run(Root::Layers(&layers), spec, &Cancel::new()).unwrap()
}

fn perl(scaffold: &Scaffold, script: &str, arguments: &[&str]) -> RunSpec {
    let mut spec = scaffold.sh("");
    spec.argv =
        ["perl", "-e", script].iter().chain(arguments).map(|text| (*text).to_owned()).collect();
    spec
}

pub(super) fn folders_list_their_entries_in_either_order(scaffold: &Scaffold) {
    let top = work_tree(scaffold);
    let mut lists = Vec::new();
    for order in [None, Some(EntryOrder::Ascending), Some(EntryOrder::Descending)] {
        let mut spec = perl(scaffold, LIST, &["/testbed", "/testbed/deep", "/testbed/.git"]);
        if order.is_some() {
            spec.copies = vec![copy(order, None)];
        }
        let log = run_over(scaffold, top, &spec);
        assert!(log.success() && !log.gaps.contains(&Gap::EntryOrder), "{log:?} {}", stderr(&log));
        lists.push(
            stdout(&log)
                .lines()
                .map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>())
                .collect::<Vec<_>>(),
        );
    }
    for (number, (plain, ascending)) in lists[0].iter().zip(&lists[1]).enumerate() {
        let mut sorted = plain.clone();
        sorted.sort();
        assert_eq!(ascending, &sorted);
        sorted.reverse();
        assert_eq!(lists[2][number], sorted);
        // What a disk gives is neither, unless there are hardly any.
        assert!(plain != ascending && plain != &sorted || plain.len() < 5, "{plain:?}");
    }
    assert_eq!(lists[1][1].len(), 41);
}

/// Everything that stat says, but for what is the filesystem's own.
const STAT: &str = r#"
chdir "/testbed";
sub look { my ($p) = @_; my @s = lstat $p; my $l = -l $p ? readlink $p : "";
  my $size = -d _ ? 0 : $s[7]; my $links = -d _ ? 0 : $s[3];
  printf "%s %o %d %d:%d %d %d %s\n", $p, $s[2], $links, $s[4], $s[5], $size, $s[9], $l;
  if (-d _ && !-l $p) { opendir(my $d, $p); look("$p/$_") for sort grep { !/^\.\.?$/ } readdir $d } }
look(".");
"#;

pub(super) fn a_copy_is_what_the_folder_was(scaffold: &Scaffold) {
    let top = work_tree(scaffold);
    let plain = run_over(scaffold, top, &perl(scaffold, STAT, &[]));
    let mut spec = perl(scaffold, STAT, &[]);
    spec.copies = vec![copy(Some(EntryOrder::Descending), None)];
    let copied = run_over(scaffold, top, &spec);
    assert_eq!(stdout(&copied), stdout(&plain), "{}", stderr(&copied));
    assert!(stdout(&plain).contains("./twin 100644 2 0:0 4 "), "{}", stdout(&plain));
    assert!(stdout(&plain).contains("./f02 100644 1 0:0 4 1600000000 "), "{}", stdout(&plain));

    let mut spec = scaffold.sh("cd /testbed; ./run.sh; wc -c < .git/objects/pack/p.pack; \
        echo more >> twin; cat f00; stat -c %Y.%y f02 | tr -dc 0-9.; echo; rm -r deep f03; echo new > deep; cat deep link");
    spec.copies = vec![copy(Some(EntryOrder::Ascending), None)];
    spec.keep_upper = true;
    let log = run_over(scaffold, top, &spec);
    let text = stdout(&log);
    assert!(text.starts_with("ran\n204800\ntextmore\n1600000000."), "{text}{}", stderr(&log));
    assert!(scaffold.packed || text.contains("123456789"), "{text}");
    assert!(text.ends_with("new\ntext"), "{text}");
    let upper = log.upper.unwrap();
    assert_eq!(fs_err::read_dir(&upper).unwrap().count(), 0, "no change reached the root");
    fs_err::remove_dir_all(upper).unwrap();
}

pub(super) fn a_copy_counts_as_memory(scaffold: &Scaffold) {
    if scaffold.runtime.gaps().contains(&Gap::MemoryLimit) {
        return say_skipped("this host limits no memory");
    }
    let top = scaffold.add_layer("large", |root| {
        fs_err::create_dir(root.join("testbed")).unwrap();
        fs_err::write(root.join("testbed/large"), vec![1; 48 << 20]).unwrap();
    });
    let mut spec = scaffold.sh("true");
    spec.copies = vec![copy(Some(EntryOrder::Ascending), None)];
    spec.limits.memory = Some(512 << 20);
    let log = run_over(scaffold, top, &spec);
    assert!(log.success() && log.peak_memory.is_some_and(|peak| peak > 48 << 20), "{log:?}");
}

pub(super) fn a_user_owns_the_copy_and_has_a_name(scaffold: &Scaffold) {
    if scaffold.runtime.gaps().contains(&Gap::SingleId) {
        return say_skipped("there is one id only");
    }
    let top = work_tree(scaffold);
    let script = "id -u; id -un; cd /testbed && echo x >> f00 && echo y > deep/er/new && rm f03 && \
        echo z > .git/index.lock && mv .git/index.lock .git/index && echo written; \
        stat -c %u:%g . f01 deep .git; (echo x > /usr/x) 2>/dev/null || echo refused; cd; pwd; echo h > h";
    let mut spec = scaffold.sh(script);
    (spec.uid, spec.gid) = (1234, 1235);
    let plain = run_over(scaffold, top, &spec);
    assert_eq!(stdout(&plain).lines().next(), Some("1234"), "{}", stderr(&plain));
    assert!(!stdout(&plain).contains("written"), "{}", stdout(&plain));

    spec.account = Some(Account { name: "tester".to_owned(), home: "/root".to_owned() });
    spec.copies = vec![copy(None, Some((1234, 1235)))];
    let mut home = copy(None, Some((1234, 1235)));
    "/root".clone_into(&mut home.path);
    spec.copies.push(home);
    let log = run_over(scaffold, top, &spec);
    assert!(log.success(), "{}{}", stdout(&log), stderr(&log));
    let owner = "1234:1235\n";
    assert_eq!(
        stdout(&log),
        format!("1234\ntester\nwritten\n{owner}{owner}{owner}{owner}refused\n/root\n")
    );
}

pub(super) fn a_read_only_folder_is_that_for_root_too(scaffold: &Scaffold) {
    let host = scaffold.output();
    let script = "(echo x > /root/x) 2>/dev/null && echo written; cat /root/in/file; \
        (echo x > /root/in/y) 2>/dev/null && echo inner; echo z > /tmp/z && cat /tmp/z";
    let mut spec = scaffold.sh(script);
    fs_err::write(host.join("file"), "text\n").unwrap();
    let mount =
        hallmark::runtime::Mount { source: host, target: "/root/in".to_owned(), writable: true };
    spec.mounts = vec![mount];
    assert_eq!(stdout(&scaffold.run(&spec)), "written\ntext\ninner\nz\n");
    spec.read_only = vec!["/root".to_owned(), "/missing".to_owned()];
    let log = scaffold.run(&spec);
    assert_eq!(stdout(&log), "text\ninner\nz\n", "{}", stderr(&log));
}

pub(super) fn one_processor_is_all_that_is_seen(scaffold: &Scaffold) {
    let script = "cat /sys/devices/system/cpu/online; while read k v; do \
        [ $k = Cpus_allowed_list: ] && echo $v; done < /proc/self/status; true";
    let mut spec = scaffold.sh(script);
    let plain = stdout(&scaffold.run(&spec));
    spec.limits.processors = Some(1);
    let log = scaffold.run(&spec);
    let text = stdout(&log);
    let lines: Vec<_> = text.lines().map(|line| line.parse::<u32>().unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0], lines[1]);
    assert!(!log.gaps.contains(&Gap::Processors));
    if std::thread::available_parallelism().unwrap().get() > 1 {
        assert_ne!(plain, text);
        let other = stdout(&scaffold.run(&spec));
        assert_ne!(other, text, "the next run is on the next processor");
    }
    spec.limits.processors = Some(4096);
    let log = scaffold.run(&spec);
    assert!(log.success() && log.gaps.contains(&Gap::Processors), "{log:?}");
}

/// Binds and connects to `::1` and to 127.0.0.1.
const LOOPBACK: &str = r#"
use Socket qw(:all);
for my $family (AF_INET6, AF_INET) {
    my $home = $family == AF_INET6 ? pack_sockaddr_in6(0, inet_pton(AF_INET6, "::1"))
        : pack_sockaddr_in(0, inet_aton("127.0.0.1"));
    socket(my $s, $family, SOCK_STREAM, 0) or die "socket $!";
    my $bound = bind($s, $home) && listen($s, 1);
    my $why = $bound ? "" : $!{EADDRNOTAVAIL} ? " not available" : " $!";
    socket(my $c, $family, SOCK_STREAM, 0) or die "socket $!";
    my $to = $bound ? getsockname($s) : pack_sockaddr_in6(9, inet_pton(AF_INET6, "::1"));
    print $bound ? "bound" : "unbound$why", connect($c, $to) ? " connected\n" : " unreached\n";
}
"#;

pub(super) fn loopback_can_lack_ipv6(scaffold: &Scaffold) {
    let mut spec = perl(scaffold, &format!("use Errno; {LOOPBACK}"), &[]);
    let plain = scaffold.run(&spec);
    assert_eq!(stdout(&plain), "bound connected\nbound connected\n", "{}", stderr(&plain));
    spec.network = Network::NoneV4;
    let log = scaffold.run(&spec);
    assert_eq!(
        stdout(&log),
        "unbound not available unreached\nbound connected\n",
        "{}",
        stderr(&log)
    );
    assert!(!log.gaps.contains(&Gap::Ipv4Only), "{log:?}");
    let attempts = log.network_attempts.unwrap();
    assert_eq!((attempts.packets, attempts.lookups), (0, 0), "no try to leave");
}

pub(super) fn names_and_limits_are_as_asked(scaffold: &Scaffold) {
    let script = "uname -n; cat /etc/hostname; ulimit -Sn; ulimit -Hn; \
        perl -e 'open(my $f, \"/proc/mounts\"); for (<$f>) { print /size=(\\d+k)/ if m{ /dev/shm } }'";
    let mut spec = scaffold.sh(script);
    let plain = stdout(&scaffold.run(&spec));
    assert!(plain.starts_with("hallmark\nhallmark\n") && plain.ends_with("\n65536k"), "{plain}");
    spec.hostname = format!("other-host-{}", "x".repeat(52));
    spec.limits.open_files = Some(64);
    spec.limits.shm = 1 << 20;
    let text = stdout(&scaffold.run(&spec));
    let name = &spec.hostname;
    assert_eq!(text, format!("{name}\n{name}\n64\n64\n1024k"));
}

pub(super) fn all_at_once(scaffold: &Scaffold) {
    if scaffold.runtime.gaps().contains(&Gap::SingleId) {
        return say_skipped("there is one id only");
    }
    let top = work_tree(scaffold);
    let mut spec = scaffold.sh(
        "id -u; cd /testbed; echo x > new && cat new; (echo x > /root/x) 2>/dev/null || echo refused; \
         cat /sys/devices/system/cpu/online | wc -w; ulimit -n; uname -n",
    );
    (spec.uid, spec.gid) = (1000, 1000);
    spec.account = Some(Account { name: "tester".to_owned(), home: "/root".to_owned() });
    spec.copies = vec![copy(Some(EntryOrder::Descending), Some((1000, 1000)))];
    let mut home = copy(None, Some((1000, 1000)));
    "/root".clone_into(&mut home.path);
    spec.copies.push(home);
    spec.read_only = vec!["/root".to_owned()];
    spec.network = Network::NoneV4;
    spec.limits.processors = Some(1);
    spec.limits.open_files = Some(64);
    spec.limits.cpus = Some(0.5);
    spec.hostname = "a-b".to_owned();
    let log = run_over(scaffold, top, &spec);
    assert_eq!(stdout(&log), "1000\nx\nrefused\n1\n64\na-b\n", "{}", stderr(&log));
}

#[test]
fn load_is_the_same_command_at_the_same_time() {
    let Some(scaffold) = scaffold() else { return };
    let shared = scaffold.output();
    let fifo = shared.join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o666),
        0,
    )
    .unwrap();
    let own = scaffold.output();
    fs_err::write(own.join("given"), "text\n").unwrap();
    let mount = |source: &Path, target: &str, writable| hallmark::runtime::Mount {
        source: source.to_owned(),
        target: target.to_owned(),
        writable,
    };
    // Each says that it is there, and the first to read two of them lets all go on.
    let mut spec =
        scaffold.sh("cat /own/given; rm /own/given; echo here > /shared/fifo; sleep 0.5");
    spec.mounts = vec![mount(&shared, "/shared", false), mount(&own, "/own", true)];
    let reader = std::thread::spawn(move || {
        let file = fs_err::OpenOptions::new().read(true).write(true).open(fifo).unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(file));
        // Four writers, of which three are done only when the run is.
        (0..4).map(|_| lines.next().unwrap().unwrap()).collect::<Vec<_>>()
    });
    let reporter: hallmark::base::SharedReporter =
        std::sync::Arc::new(hallmark::base::progress::Silent);
    let cancel = Cancel::new();
    let bench = hallmark::runtime::Workbench {
        store: &scaffold.store,
        runtime: &*scaffold.runtime,
        reporter: &reporter,
        cancel: &cancel,
    };
    let log = hallmark::verify::with_load(bench, Root::Layers(&scaffold.layers), &spec, 4).unwrap();
    assert!(log.success() && !log.gaps.contains(&Gap::Load), "{log:?} {}", stderr(&log));
    assert_eq!(stdout(&log), "text\n", "its own output alone");
    assert_eq!(reader.join().unwrap(), ["here"; 4]);
    scaffold.store.settle();
    let left: Vec<_> = fs_err::read_dir(scaffold.store.scratch())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("runtime-"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

/// Prints what other owners and orders cost, by a copy and by the overlay's own copying up.
#[test]
#[ignore = "a measurement: run it alone, with --nocapture"]
#[expect(clippy::print_stderr, reason = "its result")]
fn what_a_copy_costs() {
    let Some(scaffold) = scaffold() else { return };
    let top = scaffold.add_layer("five thousand", |root| {
        for folder in 0..100 {
            let path = root.join(format!("testbed/d{folder}"));
            fs_err::create_dir_all(&path).unwrap();
            for file in 0..50 {
                let text = vec![b'x'; 200 * (file + 1)];
                fs_err::write(path.join(format!("f{file}")), text).unwrap();
            }
        }
        fs_err::create_dir_all(root.join("testbed/.git/objects/pack")).unwrap();
        fs_err::write(root.join("testbed/.git/objects/pack/p.pack"), vec![1; 64 << 20]).unwrap();
    });
    let mut plain = scaffold.sh("true");
    plain.argv = vec!["/bin/true".to_owned()];
    let with = |copies: Vec<FolderCopy>| RunSpec { copies, ..plain.clone() };
    let mut chown = plain.clone();
    chown.argv = ["chown", "-R", "1000:1000", "/testbed"].map(str::to_owned).to_vec();
    let cases = [
        ("plain", plain.clone()),
        ("ordered copy", with(vec![copy(Some(EntryOrder::Descending), None)])),
        ("owned copy", with(vec![copy(None, Some((1000, 1000)))])),
        ("chown in the overlay", chown),
    ];
    for (name, spec) in cases {
        let mut times: Vec<_> = (0..15)
            .map(|_| {
                let watch = hallmark::base::clock::Stopwatch::start();
                assert!(run_over(&scaffold, top, &spec).success());
                watch.elapsed()
            })
            .collect();
        times.sort();
        eprintln!("{name:22} fastest {:?}, median {:?}", times[0], times[7]);
    }
}
