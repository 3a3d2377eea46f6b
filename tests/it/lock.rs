//! Lock formats: round trips, one text whatever the order, and what is refused.

use hallmark::base::{Arch, Digest};
use hallmark::lock::{
    self, BaseLock, BuildEnvironment, BuiltWheel, Deb, EnvLock, Error, Origin, PythonFile,
    PythonPackage,
};
use hallmark::spec::{BaseDefinition, Interpreter};

fn deb(name: &str, version: &str) -> Deb {
    Deb {
        name: name.to_owned(),
        version: version.to_owned(),
        path: format!("pool/main/{}/{name}/{name}_{version}_amd64.deb", &name[..1]),
        sha256: Digest::of(name),
        size: 1234,
    }
}

fn package(name: &str, version: &str, file: &str, time: Option<&str>) -> PythonPackage {
    PythonPackage {
        name: name.to_owned(),
        version: version.to_owned(),
        file: PythonFile {
            name: file.to_owned(),
            sha256: Digest::of(file),
            size: 99,
            upload_time: time.map(|time| time.parse().unwrap()),
        },
    }
}

fn definition() -> BaseDefinition {
    BaseDefinition {
        name: "bookworm".to_owned(),
        suite: "bookworm".to_owned(),
        packages: vec!["git".to_owned(), "python3".to_owned()],
        interpreter: Interpreter::Debian,
        registry: None,
    }
}

fn base() -> BaseLock {
    BaseLock {
        base_hash: definition().hash().unwrap(),
        arch: Arch::Amd64,
        suite: "bookworm".to_owned(),
        as_of: "2026-07-11T09:36:37Z".parse().unwrap(),
        inrelease: Digest::of("InRelease"),
        packages_index: Digest::of("Packages"),
        python: "3.11".to_owned(),
        debs: vec![
            deb("git", "1:2.39.5-0+deb12u2"),
            deb("libstdc++6", "12.2.0-14"),
            deb("python3", "3.11.2-1+b1"),
        ],
        image: None,
    }
}

fn env() -> EnvLock {
    EnvLock {
        env_hash: Digest::of("spec"),
        arch: Arch::Amd64,
        base: "bookworm".to_owned(),
        base_lock: base().digest().unwrap(),
        debs: vec![deb("gcc", "4:12.2.0-3"), deb("make", "4.3-4.1")],
        packages: vec![
            package("blinker", "1.4", "blinker-1.4.tar.gz", Some("2015-07-23T04:22:13Z")),
            package(
                "flask",
                "2.0.0",
                "Flask-2.0.0-py3-none-any.whl",
                Some("2021-05-11T17:35:22.120501Z"),
            ),
            package("jinja2", "3.0.1", "Jinja2-3.0.1-py3-none-any.whl", None),
        ],
        build_environments: vec![BuildEnvironment {
            sdist: "blinker-1.4.tar.gz".to_owned(),
            packages: vec![
                package("setuptools", "57.0.0", "setuptools-57.0.0-py3-none-any.whl", None),
                package(
                    "wheel",
                    "0.36.2",
                    "wheel-0.36.2-py2.py3-none-any.whl",
                    Some("2020-12-13T00:00:00Z"),
                ),
            ],
        }],
        built: vec![BuiltWheel {
            sdist: "blinker-1.4.tar.gz".to_owned(),
            wheel: "blinker-1.4-py3-none-any.whl".to_owned(),
            sha256: Digest::of("wheel"),
            size: 7,
        }],
    }
}

#[test]
fn base_lock_round_trips_and_is_one_text() {
    let text = lock::write_base(&base()).unwrap();
    assert!(text.starts_with("version = 1\n"), "{text}");
    assert!(text.ends_with("size = 1234\n"), "{text}");
    insta::assert_snapshot!("base_lock", text);
    assert_eq!(lock::parse_base("lock", &text).unwrap(), base());
    let mut shuffled = base();
    shuffled.debs.rotate_left(1);
    assert_eq!(lock::write_base(&shuffled).unwrap(), text);
    assert_eq!(shuffled.digest().unwrap(), base().digest().unwrap());
}

#[test]
fn env_lock_round_trips_and_is_one_text() {
    let texts = lock::write_env(&env()).unwrap();
    insta::assert_snapshot!("env_lock", texts.lock);
    insta::assert_snapshot!("env_pylock", texts.pylock);
    assert_eq!(lock::parse_env("lock", &texts.lock, &texts.pylock).unwrap(), env());
    let mut shuffled = env();
    shuffled.debs.reverse();
    shuffled.packages.rotate_left(2);
    shuffled.build_environments[0].packages.reverse();
    assert_eq!(lock::write_env(&shuffled).unwrap(), texts);
    assert_eq!(shuffled.digest().unwrap(), env().digest().unwrap());
    // What the first build adds changes the digest of the whole but not of the inputs.
    let unbuilt = EnvLock { built: Vec::new(), ..env() };
    assert_eq!(unbuilt.inputs_digest().unwrap(), env().inputs_digest().unwrap());
    assert_ne!(unbuilt.digest().unwrap(), env().digest().unwrap());
}

#[test]
fn locks_name_no_host() {
    let texts = lock::write_env(&env()).unwrap();
    for text in [lock::write_base(&base()).unwrap(), texts.lock, texts.pylock] {
        assert!(!text.contains("://"), "{text}");
    }
}

#[test]
fn refused_base_locks() {
    let text = lock::write_base(&base()).unwrap();
    let cases = [
        ("version = 1", "version = 2", "lock has format version 2, newer than 1"),
        ("version = 1", "version = 0", "lock: there is no format version 0"),
        ("version = 1\n", "", "lock: `version` is missing"),
        ("suite =", "colour = \"red\"\nsuite =", "lock does not read: TOML parse error"),
        ("suite = \"bookworm\"\n", "", "lock does not read: TOML parse error"),
        ("name = \"git\"", "name = \"python3\"", "lock: package `python3` is there twice"),
        ("pool/main/g/git", "pool/../git", "lock: \"..\" is not a bare file name"),
        ("\"pool/main/g/git", "\"/pool/main/g/git", "lock: \"\" is not a bare file name"),
        ("name = \"git\"", "name = \"Git\"", "lock: \"Git\" is not a package name"),
        ("size = 1234", "size = -1", "lock does not read: TOML parse error"),
        ("sha256 = \"sha256:", "sha256 = \"md5:", "lock does not read: TOML parse error"),
    ];
    for (from, to, message) in cases {
        let broken = text.replacen(from, to, 1);
        assert_ne!(broken, text, "{from}");
        let error = lock::parse_base("lock", &broken).unwrap_err();
        assert!(error.to_string().starts_with(message), "{from} -> {to}: {error}");
        assert!(error.hint().is_some());
    }
    // A newer file is called newer whatever else it holds.
    let error = lock::parse_base("lock", "version = 9\nwhat = 1\n").unwrap_err();
    assert!(matches!(error, Error::Newer { .. }), "{error}");
}

#[test]
fn refused_env_locks() {
    let texts = lock::write_env(&env()).unwrap();
    let cases = [
        ("version = 1", "version = 3", "lock has format version 3"),
        ("packages-digest = \"sha256:", "packages-digest = \"sha256:x", "lock does not read"),
        (
            "[[built]]\nsdist = \"blinker-1.4.tar.gz\"",
            "[[built]]\nsdist = \"x.tar.gz\"",
            "lock: `x.tar.gz` is no sdist",
        ),
        (
            "file = \"setuptools-57.0.0-py3-none-any.whl\"",
            "file = \"../x.whl\"",
            "lock: \"../x.whl\" is not a bare",
        ),
        (
            "file = \"setuptools-57.0.0-py3-none-any.whl\"",
            "file = \"x.tar.gz\"",
            "lock: the build environment of blinker-1.4.tar.gz has an sdist",
        ),
    ];
    for (from, to, message) in cases {
        let broken = texts.lock.replacen(from, to, 1);
        assert_ne!(broken, texts.lock, "{from}");
        let error = lock::parse_env("lock", &broken, &texts.pylock).unwrap_err().to_string();
        assert!(error.starts_with(message), "{from} -> {to}: {error}");
    }
    let cases = [
        ("lock-version = \"1.0\"", "lock-version = \"2.0\"", "pylock.toml has format version 2.0"),
        ("lock-version = \"1.0\"\n", "", "pylock.toml: `lock-version` is missing"),
        ("\"hallmark\"", "\"uv\"", "pylock.toml: created by \"uv\""),
        ("size = 99", "size = 98", "lock: expected packages sha256:"),
        ("name = \"flask\"", "name = \"Flask\"", "pylock.toml: \"Flask\" is not a normalised"),
        ("name = \"flask\"", "name = \"blinker\"", "pylock.toml: package `blinker` is there twice"),
        (
            "wheels = [",
            "sdist = { path = \"a\", size = 1, hashes = { sha256 = \"0\" } }\nwheels = [",
            "pylock.toml: package `flask` must have exactly one file",
        ),
        (
            "path = \"Jinja2",
            "url = \"https://example.org\", path = \"Jinja2",
            "pylock.toml does not read",
        ),
    ];
    for (from, to, message) in cases {
        let broken = texts.pylock.replacen(from, to, 1);
        assert_ne!(broken, texts.pylock, "{from}");
        let error = lock::parse_env("lock", &texts.lock, &broken).unwrap_err().to_string();
        assert!(error.starts_with(message), "{from} -> {to}: {error}");
    }
    let twice = EnvLock { debs: vec![deb("gcc", "1"), deb("gcc", "2")], ..env() };
    assert_eq!(
        lock::write_env(&twice).unwrap_err().to_string(),
        "environment lock: package `gcc` is there twice"
    );
}

#[test]
fn files_name_origins_not_addresses() {
    let files = lock::base_files(&base());
    assert_eq!(files.len(), 3);
    assert_eq!(files[0].name, "git_1:2.39.5-0+deb12u2_amd64.deb");
    assert!(matches!(&files[0].origin, Origin::Debian { path, .. } if path.starts_with("pool/")));
    let mut twice = env();
    // The same file in two roles is fetched once.
    twice.packages.push(package(
        "wheel",
        "0.36.2",
        "wheel-0.36.2-py2.py3-none-any.whl",
        Some("2020-12-13T00:00:00Z"),
    ));
    let names: Vec<String> =
        lock::env_files(&twice, &base()).into_iter().map(|file| file.name).collect();
    assert_eq!(names.len(), 7, "{names:?}");
}

#[test]
fn a_stale_base_lock_says_what_changed_and_how_to_refresh() {
    lock::check_base(&definition(), &base(), Arch::Amd64).unwrap();
    let mut changed = definition();
    changed.packages.push("zip".to_owned());
    let stale = lock::check_base(&changed, &base(), Arch::Arm64).unwrap_err();
    assert_eq!(
        stale.to_string(),
        "the lock of bookworm is stale: it is for amd64, not arm64; package zip was added"
    );
    assert_eq!(
        stale.hint(),
        "refresh it with `hallmark lock SPLIT` for a split that uses it, and review the difference"
    );
    // A change that no words explain is stale all the same.
    let mut removed = definition();
    removed.packages.pop();
    let stale = lock::check_base(&removed, &base(), Arch::Amd64).unwrap_err();
    assert_eq!(stale.changes, ["the definition changed"]);
}

#[test]
fn differences_are_told_by_name() {
    let mut new = base();
    new.debs.remove(0);
    new.debs[0].version = "12.2.0-15".to_owned();
    new.debs[1].sha256 = Digest::of("other");
    new.debs.push(deb("zip", "3.0-13"));
    let lines: Vec<String> =
        lock::diff_base(&base(), &new).iter().map(ToString::to_string).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0], "- package git 1:2.39.5-0+deb12u2");
    assert_eq!(lines[1], "~ package libstdc++6 12.2.0-14 -> 12.2.0-15");
    assert!(lines[2].starts_with("~ package python3 3.11.2-1+b1 (pool/"), "{}", lines[2]);
    assert_eq!(lines[3], "+ package zip 3.0-13");
    assert_eq!(lock::diff_base(&base(), &base()), []);
    assert_eq!(lock::diff_env(&env(), &env()), []);
}
