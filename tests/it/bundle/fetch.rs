//! From a list of files to blobs in the store, over a network that misbehaves.

use std::sync::Arc;
use std::time::Duration;

use hallmark::base::progress::{Event, Recording};
use hallmark::base::{Cancel, Digest, SharedReporter, Store};
use hallmark::bundle::{self, Error, FetchReport};
use hallmark::lock::{FileRef, Origin};
use hallmark::net::{self, Client};

use super::{blob_names, file_of, silent, store};
use crate::net::server::{Do, Request, Server, answer, head, ok};
use crate::net::{client_for, config_for};

/// Content that is different for each name.
fn content(name: &str, size: usize) -> Vec<u8> {
    name.bytes().cycle().take(size).collect()
}

fn good(name: &str, size: usize) -> FileRef {
    file_of(name, &content(name, size))
}

/// An index of HTML pages whose files are as long as the name says, `x-SIZE...`, and `handler` for what differs.
fn index(handler: impl Fn(&Request) -> Option<Vec<Do>> + Send + Sync + 'static) -> Server {
    Server::start(move |request| {
        if let Some(steps) = handler(request) {
            return steps;
        }
        if let Some(project) = request.target.strip_prefix("/simple/") {
            let project = project.trim_end_matches('/');
            let links: String = (1..=9)
                .flat_map(|n| [1000, 200_000, 40_000_000].map(|size| (n, size)))
                .map(|(n, size)| {
                    format!("<a href='/f/{project}-{n}.{size}.whl'>{project}-{n}.{size}.whl</a>")
                })
                .collect();
            return ok("text/html", links);
        }
        let name = request.target.rsplit('/').next().unwrap();
        let size = name.split('.').nth(1).and_then(|size| size.parse().ok());
        match size {
            Some(size) => ok("x/y", content(name, size)),
            None => answer("404 Not Found", &[], ""),
        }
    })
}

fn fetch(store: &Store, client: &Client, files: &[FileRef]) -> Result<FetchReport, Error> {
    bundle::fetch(store, client, files, &silent(), &Cancel::new())
}

#[test]
fn files_come_once_with_one_page_for_each_project() {
    let server = index(|_| None);
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let mut files: Vec<_> =
        (1..=9).map(|n| good(&format!("demo-{n}.200000.whl"), 200_000)).collect();
    files.push(files[0].clone());
    let recording = Arc::new(Recording::default());
    let reporter: SharedReporter = recording.clone();
    let client = client_for(&server);
    let report = bundle::fetch(&store, &client, &files, &reporter, &Cancel::new()).unwrap();
    assert_eq!(report, FetchReport { fetched: 9, cached: 0, bytes: 1_800_000 });
    let mut targets = server.targets();
    targets.sort();
    assert_eq!((targets.len(), targets[9].as_str()), (10, "/simple/demo/"));

    // Each byte is reported for its file and for the whole.
    let events = recording.events();
    let started = events.iter().filter(|event| matches!(event, Event::Started { .. })).count();
    let advanced: u64 = events
        .iter()
        .map(|event| if let Event::Advanced { by, .. } = event { *by } else { 0 })
        .sum();
    assert_eq!((started, advanced), (10, 3_600_000));

    assert_eq!(
        fetch(&store, &client, &files).unwrap(),
        FetchReport { cached: 9, ..FetchReport::default() }
    );
    assert_eq!(server.requests().len(), 10);

    // A file of another length is not the one; one that is gone comes again.
    fs_err::write(store.blob_path(&files[0].sha256), b"cut").unwrap();
    fs_err::remove_file(store.blob_path(&files[1].sha256)).unwrap();
    assert_eq!(bundle::missing(&store, &files).unwrap().len(), 2);
    assert_eq!(fetch(&store, &client, &files).unwrap().fetched, 2);
    assert_eq!(bundle::verify(&store, &files, &Cancel::new()).unwrap().len(), 0);
}

#[test]
fn all_failures_are_told_and_bad_bytes_dropped() {
    let server = index(|request| {
        Some(match request.target.as_str() {
            "/f/demo-2.1000.whl" | "/debian/pool/x.deb" => ok("x/y", vec![0; 1000]),
            "/f/demo-3.1000.whl" | "/simple/gone/" => answer("404 Not Found", &[], ""),
            "/f/demo-4.1000.whl" => ok("x/y", vec![0; 2000]),
            _ => return None,
        })
    });
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let mut files: Vec<_> = (1..=5).map(|n| good(&format!("demo-{n}.1000.whl"), 1000)).collect();
    files.push(good("gone-1.1000.whl", 1000));
    files.push(good("demo-77.1000.whl", 1000));
    files.push(FileRef {
        origin: Origin::Debian {
            path: "pool/x.deb".to_owned(),
            as_of: "2026-07-11T10:16:37Z".parse().unwrap(),
        },
        ..good("x.deb", 1000)
    });
    let error = fetch(&store, &client_for(&server), &files).unwrap_err();
    let text = error.to_string().replace(&server.url(), "URL/");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "6 of 8 files could not be fetched:");
    for (line, start) in lines[1..].iter().zip([
        "  demo-2.1000.whl (PyPI, demo): demo-2.1000.whl: expected sha256:",
        "  demo-3.1000.whl (PyPI, demo): URL/f/demo-3.1000.whl: the server says 404 Not Found",
        "  demo-4.1000.whl (PyPI, demo): demo-4.1000.whl: expected 1000 bytes, got 2000",
        "  demo-77.1000.whl (PyPI, demo): URL/simple/ has no demo-77.1000.whl of demo",
        "  gone-1.1000.whl (PyPI, gone): URL/simple/gone/: the server says 404 Not Found",
        "  x.deb (Debian, 2026-07-11T10:16:37Z): no address gave x.deb: x.deb: expected sha256:",
    ]) {
        assert!(line.starts_with(start), "{line}");
    }
    assert_eq!(lines.len(), 7);
    assert!(error.hint().unwrap().contains("HALLMARK_PYPI_INDEX"));
    // What is good is kept, and nothing else.
    let mut kept = [files[0].sha256.hex(), files[4].sha256.hex()];
    kept.sort();
    assert_eq!(blob_names(&store), kept);
}

#[test]
fn offline_the_list_says_what_to_do() {
    let server = index(|_| None);
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let files = [good("demo-1.1000.whl", 1000), good("demo-2.1000.whl", 1000)];
    store.put_blob(&content("demo-1.1000.whl", 1000)).unwrap();
    let config = net::Config { offline: true, ..config_for(&server) };
    let client = Client::new(config, &Cancel::new()).unwrap();
    let error = fetch(&store, &client, &files).unwrap_err();
    assert!(
        error.to_string().starts_with("1 of 2 files could not be fetched:\n  demo-2"),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("bundle unpack"));
    assert_eq!(fetch(&store, &client, &files[..1]).unwrap().cached, 1);
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_list_that_contradicts_itself_is_refused() {
    let server = index(|_| None);
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let file = good("demo-1.1000.whl", 1000);
    let files = [file.clone(), FileRef { size: 999, ..file }];
    let error = fetch(&store, &client_for(&server), &files).unwrap_err();
    assert!(matches!(error, Error::Contradiction { first: 1000, second: 999, .. }), "{error}");
}

#[test]
fn several_may_fetch_the_same_at_once() {
    let server = index(|_| None);
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let files: Vec<_> = (1..=4).map(|n| good(&format!("demo-{n}.200000.whl"), 200_000)).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| fetch(&store, &client_for(&server), &files).unwrap());
        }
    });
    assert_eq!(bundle::verify(&store, &files, &Cancel::new()).unwrap().len(), 0);
    assert_eq!(blob_names(&store).len(), 4);
}

#[test]
fn an_interrupted_fetch_leaves_whole_files_only() {
    let server = index(|request| {
        (request.target == "/f/demo-2.200000.whl")
            .then(|| vec![Do::Send(head("200 OK", &[], Some(200_000))), Do::Drip(vec![0; 100], 20)])
    });
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let files: Vec<_> = (1..=3).map(|n| good(&format!("demo-{n}.200000.whl"), 200_000)).collect();
    let cancel = Cancel::new();
    let soon = cancel.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        soon.cancel();
    });
    let mut config = config_for(&server);
    config.patience = net::Patience::default();
    let client = Client::new(config, &Cancel::new()).unwrap();
    let error = bundle::fetch(&store, &client, &files, &silent(), &cancel).unwrap_err();
    assert!(matches!(error, Error::Base(hallmark::base::Error::Cancelled)), "{error}");
    let mut whole = [files[0].sha256.hex(), files[2].sha256.hex()];
    whole.sort();
    assert_eq!(blob_names(&store), whole);
}

const CHILD_STORE: &str = "HALLMARK_TEST_STORE";
const CHILD_SERVER: &str = "HALLMARK_TEST_SERVER";

/// Not a test of its own: the process that [`a_killed_fetch_leaves_whole_files_and_leftovers`] kills.
#[test]
#[ignore = "runs as a child of another test"]
#[expect(clippy::disallowed_methods, reason = "its parent speaks through the environment")]
fn child_that_fetches() {
    let (Ok(folder), Ok(url)) = (std::env::var(CHILD_STORE), std::env::var(CHILD_SERVER)) else {
        return;
    };
    let folder = std::path::Path::new(&folder);
    let store = Store::open(&folder.join("store"), &folder.join("scratch")).unwrap();
    let env = [("HALLMARK_PYPI_INDEX".to_owned(), url)].into();
    let host = net::Host { env: &env, home: None, root: std::path::Path::new("/nonexistent") };
    let client = Client::new(net::Config::read(&host).unwrap(), &Cancel::new()).unwrap();
    let files: Vec<_> = (1..=3).map(|n| good(&format!("demo-{n}.200000.whl"), 200_000)).collect();
    fetch(&store, &client, &files).unwrap();
}

#[test]
fn a_killed_fetch_leaves_whole_files_and_leftovers() {
    let server = index(|request| {
        (request.target == "/f/demo-2.200000.whl").then(|| {
            let mut start = head("200 OK", &[], Some(200_000));
            start.extend(content("demo-2.200000.whl", 150_000));
            vec![Do::Send(start), Do::Wait(20_000)]
        })
    });
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["bundle::fetch::child_that_fetches", "--exact", "--ignored"])
        .env(CHILD_STORE, folder.path())
        .env(CHILD_SERVER, format!("{}simple/", server.url()))
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let watch = hallmark::base::clock::Stopwatch::start();
    while blob_names(&store).iter().filter(|name| !name.starts_with('.')).count() < 2 {
        assert!(watch.elapsed() < Duration::from_secs(30), "the child does not fetch");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (leftovers, whole): (Vec<_>, Vec<_>) =
        blob_names(&store).into_iter().partition(|name| name.starts_with(".tmp-"));
    assert_eq!((leftovers.len(), whole.len()), (1, 2));
    for name in whole {
        let bytes = fs_err::read(store.root().join("blobs/sha256").join(&name)).unwrap();
        assert_eq!(Digest::of(bytes).hex(), name);
    }
    // The next call goes on: only what is missing is asked for.
    let server = index(|_| None);
    let files: Vec<_> = (1..=3).map(|n| good(&format!("demo-{n}.200000.whl"), 200_000)).collect();
    let report = fetch(&store, &client_for(&server), &files).unwrap();
    assert_eq!((report.fetched, report.cached), (1, 2));
}

/// Unmounts when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64m", "tmpfs"])
            .arg(folder.path())
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(folder));
        }
        eprintln!("skipped: a tmpfs cannot be mounted here (root only)");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn root_a_full_disk_is_told_as_such() {
    let Some(disk) = SmallDisk::mount() else { return };
    let server = index(|_| None);
    let store = store(&disk.0);
    let files = [good("demo-1.40000000.whl", 40_000_000), good("demo-2.40000000.whl", 40_000_000)];
    let mut config = config_for(&server);
    config.patience = net::Patience::default();
    let client = Client::new(config, &Cancel::new()).unwrap();
    let error = fetch(&store, &client, &files).unwrap_err();
    let Error::DiskFull { wanted, .. } = &error else { panic!("{error}") };
    assert!(matches!(wanted, 40_000_000 | 80_000_000), "{wanted}");
    assert!(error.hint().unwrap().contains("HALLMARK_STORE"));
    assert!(blob_names(&store).iter().all(|name| !name.starts_with('.')), "bytes were left");

    // The same when a bundle is unpacked.
    let roomy = tempfile::tempdir().unwrap();
    let from = super::store(&roomy);
    fetch(&from, &client, &files).unwrap();
    let path = roomy.path().join("bundle.tar");
    bundle::pack(&from, &files, &path, &silent(), &Cancel::new()).unwrap();
    let error = bundle::unpack(&store, &path, &silent(), &Cancel::new()).unwrap_err();
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    assert!(blob_names(&store).iter().all(|name| !name.starts_with('.')), "bytes were left");
}

#[test]
fn a_folder_for_other_installers_holds_lock_and_files() {
    use hallmark::lock::{EnvLock, PythonFile, PythonPackage};
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let wheel = content("demo-1.0-py3-none-any.whl", 1000);
    store.put_blob(&wheel).unwrap();
    let package = |name: &str| PythonPackage {
        name: "demo".to_owned(),
        version: "1.0".to_owned(),
        file: PythonFile {
            name: name.to_owned(),
            sha256: Digest::of(&wheel),
            size: 1000,
            upload_time: None,
        },
    };
    let mut lock = EnvLock {
        env_hash: Digest::of("env"),
        arch: hallmark::base::Arch::Amd64,
        base: "bookworm".to_owned(),
        base_lock: Digest::of("base"),
        debs: Vec::new(),
        packages: vec![package("demo-1.0-py3-none-any.whl")],
        build_environments: Vec::new(),
        built: Vec::new(),
    };
    let out = folder.path().join("out");
    let text = "lock-version = \"1.0\"\n";
    let count = bundle::export_wheels(&store, &lock, text, &out, &Cancel::new()).unwrap();
    assert_eq!(count, 1);
    assert_eq!(fs_err::read(out.join("demo-1.0-py3-none-any.whl")).unwrap(), wheel);
    assert_eq!(fs_err::read_to_string(out.join("pylock.toml")).unwrap(), text);
    for bad in ["../demo-1.0.whl", "a/b.whl", "pylock.toml", ".."] {
        lock.packages = vec![package(bad)];
        let error = bundle::export_wheels(&store, &lock, text, &out, &Cancel::new()).unwrap_err();
        assert!(matches!(error, Error::Name { .. }), "{bad}: {error}");
    }
}
