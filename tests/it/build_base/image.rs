//! Real bases, built from the committed locks. Root only; the packages come from the archive once.

use std::path::Path;
use std::sync::Arc;

use hallmark::base::{Arch, Cancel, SharedReporter, Store, progress};
use hallmark::build::{base, system_packages};
use hallmark::image::Image;
use hallmark::lock::{self, BaseLock, EnvLock};
use hallmark::resolve::Error;
use hallmark::resolve::debian::{check_closure, lock_packages};
use hallmark::runtime::embedded::Embedded;
use hallmark::runtime::{Network, Root, RunSpec, Runtime as _, Workbench};
use hallmark::spec::{BaseDefinition, Interpreter};
use hallmark::{bundle, net};

/// A store with a runtime over it.
struct Place {
    folder: tempfile::TempDir,
    store: Store,
    runtime: Embedded,
    reporter: SharedReporter,
    cancel: Cancel,
}

impl Place {
    fn new(store: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let store = Store::open(&path.join(store), &path.join("scratch")).unwrap();
        let runtime = Embedded::new(&store, env!("CARGO_BIN_EXE_hallmark").into()).unwrap();
        let reporter: SharedReporter = Arc::new(progress::Silent);
        Self { folder, store, runtime, reporter, cancel: Cancel::new() }
    }

    fn bench(&self) -> Workbench<'_> {
        Workbench {
            store: &self.store,
            runtime: &self.runtime,
            reporter: &self.reporter,
            cancel: &self.cancel,
        }
    }

    /// What a command prints in the image; it must succeed.
    fn run(&self, image: &Image, script: &str) -> String {
        let output = self.folder.path().join("output");
        fs_err::create_dir_all(&output).unwrap();
        let mut spec = RunSpec::new(["sh", "-c", script], &output);
        spec.network = Network::Unreachable;
        spec.env.clone_from(&image.config.env);
        let log = self.runtime.run(Root::Layers(&image.layers), &spec, &self.cancel).unwrap();
        let said = fs_err::read_to_string(&log.stdout).unwrap();
        assert!(log.success(), "{said}{}", fs_err::read_to_string(&log.stderr).unwrap());
        said
    }
}

fn committed(suite: &str) -> (BaseDefinition, BaseLock) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs_err::read_to_string(root.join(format!("images/{suite}.toml"))).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let mut packages: Vec<String> = table["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    packages.sort();
    let definition = BaseDefinition {
        name: suite.to_owned(),
        suite: suite.to_owned(),
        packages,
        interpreter: Interpreter::Debian,
        registry: None,
    };
    let path = lock::paths::base_lock(&root.join("lockfiles"), suite, Arch::Amd64);
    let text = fs_err::read_to_string(&path).unwrap();
    let lock = lock::parse_base(&path.display().to_string(), &text).unwrap();
    (definition, lock)
}

/// The archive, where this host can run containers and reaches it.
fn client() -> Option<net::Client> {
    if !rustix::process::geteuid().is_root() {
        #[expect(clippy::print_stderr, reason = "a skipped test says so")]
        {
            eprintln!("skipped: needs root");
        }
        return None;
    }
    crate::net::online_client()
}

#[test]
fn committed_locks_answer_their_definitions_and_are_in_normal_form() {
    for suite in ["bullseye", "bookworm", "trixie"] {
        let (definition, lock) = committed(suite);
        lock::check_base(&definition, &lock, Arch::Amd64).unwrap();
        let path = lock::paths::base_lock(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("lockfiles"),
            suite,
            Arch::Amd64,
        );
        assert_eq!(fs_err::read_to_string(path).unwrap(), lock::write_base(&lock).unwrap());
    }
}

#[test]
fn online_a_base_built_twice_is_the_same() {
    let Some(client) = client() else { return };
    let (definition, mut lock) = committed("bookworm");
    let first = Place::new("store");
    let files = lock::base_files(&lock);
    bundle::fetch(&first.store, &client, &files, &first.reporter, &first.cancel).unwrap();
    let image = base(first.bench(), &lock).unwrap();

    // Another place, another time, the packages in another order.
    let second = Place::new("another store, deeper");
    for file in &files {
        let bytes = first.store.read_blob(&file.sha256).unwrap();
        second.store.put_blob(&bytes).unwrap();
    }
    lock.debs.reverse();
    assert_eq!(base(second.bench(), &lock).unwrap(), image);
    lock.debs.reverse();

    // Nothing runs again.
    assert_eq!(base(first.bench(), &lock).unwrap(), image);

    let said = first.run(
        &image,
        "dpkg --audit; python -c 'import sys, ssl, sqlite3, ctypes; print(sys.version_info[:2])'; \
         git --version | cut -c-3",
    );
    assert_eq!(said, "(3, 11)\ngit\n");
    check_tree(&first.store.layer_path(&image.layers[0].diff_id));

    // Every compiled module is of the checked kind, and none is stale.
    let said = first.run(
        &image,
        r#"python - <<'END'
import importlib.util, pathlib
count = 0
for path in [*pathlib.Path("/usr/lib").rglob("*.pyc"), *pathlib.Path("/usr/share").rglob("*.pyc")]:
    data = path.read_bytes()
    source = pathlib.Path(importlib.util.source_from_cache(str(path))).read_bytes()
    assert data[4:8] == b"\3\0\0\0", path
    assert data[8:16] == importlib.util.source_hash(source), path
    count += 1
print(count > 500)
END"#,
    );
    assert_eq!(said, "True\n");

    // apt agrees with our rule.
    check_closure(first.bench(), &client, &definition, &image, &lock).unwrap();
    let less = BaseLock { debs: lock.debs[1..].to_vec(), ..lock.clone() };
    let error = check_closure(first.bench(), &client, &definition, &image, &less).unwrap_err();
    assert!(
        matches!(&error, Error::Closure { missing, extra, .. } if missing.len() == 1 && extra.is_empty()),
        "{error}"
    );

    system_packages_on_top(&first, &second, &client, &image, &lock);
}

/// What is in no base and what is empty in every one.
fn check_tree(tree: &Path) {
    for name in ["etc/hostname", "etc/resolv.conf", "var/lib/dpkg/available"] {
        assert_eq!(fs_err::read(tree.join(name)).unwrap(), b"", "{name}");
    }
    let names = |folder: &str| -> Vec<String> {
        fs_err::read_dir(tree.join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    for folder in
        ["dev", "proc", "sys", "tmp", "var/tmp", "var/lib/dpkg/updates", "var/lib/apt/lists"]
    {
        assert_eq!(names(folder), Vec::<String>::new(), "{folder}");
    }
    assert_eq!(names("run"), ["lock"]);
    for name in [
        ".hallmark",
        "testbed",
        "etc/machine-id",
        "usr/lib/python3.11/EXTERNALLY-MANAGED",
        "usr/lib/python3.11/py_compile.py.hallmark",
        "usr/sbin/policy-rc.d",
        "var/cache/ldconfig/aux-cache",
        "var/lib/dpkg/status-old",
        "var/log/dpkg.log",
    ] {
        assert!(tree.join(name).symlink_metadata().is_err(), "{name}");
    }
    assert_eq!(
        fs_err::read_link(tree.join("usr/local/bin/python")).unwrap(),
        Path::new("/usr/bin/python3")
    );
}

fn system_packages_on_top(
    first: &Place,
    second: &Place,
    client: &net::Client,
    image: &Image,
    lock: &BaseLock,
) {
    let names = ["gcc".to_owned(), "libc6-dev".to_owned(), "python3-dev".to_owned()];
    assert_eq!(lock_packages(first.bench(), client, image, lock, &[]).unwrap(), []);
    let error =
        lock_packages(first.bench(), client, image, lock, &["gccc".to_owned()]).unwrap_err();
    assert_eq!(error.to_string(), "bookworm has no package `gccc`");
    // What the base has already adds nothing.
    assert_eq!(lock_packages(first.bench(), client, image, lock, &["git".to_owned()]).unwrap(), []);
    let mut debs = lock_packages(first.bench(), client, image, lock, &names).unwrap();
    let mut shuffled = names.clone();
    shuffled.reverse();
    assert_eq!(lock_packages(first.bench(), client, image, lock, &shuffled).unwrap(), debs);
    let held: Vec<&str> = lock.debs.iter().map(|deb| deb.name.as_str()).collect();
    assert!(debs.iter().all(|deb| !held.contains(&deb.name.as_str())));
    let env = EnvLock {
        env_hash: lock.base_hash,
        arch: lock.arch,
        base: lock.suite.clone(),
        base_lock: lock.digest().unwrap(),
        debs: debs.clone(),
        packages: Vec::new(),
        build_environments: Vec::new(),
        built: Vec::new(),
    };
    let files = lock::env_files(&env, lock);
    bundle::fetch(&first.store, client, &files, &first.reporter, &first.cancel).unwrap();
    for file in &files {
        second.store.put_blob(&first.store.read_blob(&file.sha256).unwrap()).unwrap();
    }
    assert_eq!(&system_packages(first.bench(), image, lock, &[]).unwrap(), image);
    let over = system_packages(first.bench(), image, lock, &debs).unwrap();
    debs.reverse();
    assert_eq!(system_packages(second.bench(), image, lock, &debs).unwrap(), over);
    assert_eq!(over.layers.len(), 2);
    assert_ne!(over.key, image.key);
    let said = first.run(
        &over,
        "dpkg --audit; ls -A /.hallmark 2> /dev/null; cd /tmp; echo 'int main(void){return 7;}' > a.c; gcc a.c -o a; \
         ./a; echo $?; test -s /usr/bin/py3compile; test -s /usr/lib/python3.11/py_compile.py; echo whole",
    );
    assert_eq!(said, "7\nwhole\n");
    // The base's own tools for compiling were hidden, not changed.
    let upper = first.store.layer_path(&over.layers[1].diff_id);
    for path in [
        ".hallmark",
        "usr/bin/py3compile",
        "usr/lib/python3.11/py_compile.py",
        "usr/sbin/policy-rc.d",
    ] {
        assert!(upper.join(path).symlink_metadata().is_err(), "{path}");
    }
}
