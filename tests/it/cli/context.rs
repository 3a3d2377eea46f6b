//! A project and a store of one test's own, and the binary that works on them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::{INSTANCES, copy_store, shared_folder};

/// Variables that reach hallmark: how to find programs and how to trust the network. Nothing else of the host's.
const PASSED: [&str; 14] = [
    "PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "HALLMARK_PYPI_INDEX",
    "HALLMARK_DEBIAN_MIRROR",
    "HALLMARK_DEBIAN_SNAPSHOT",
    "RUST_LOG",
];

/// Removed when dropped.
pub(super) struct TestContext {
    folder: tempfile::TempDir,
}

impl TestContext {
    /// An empty project (`specs/` and `images/` are there) and no store.
    pub(super) fn new() -> Self {
        // On the disk of the shared stores, whose files are linked.
        fs_err::create_dir_all(shared_folder()).unwrap();
        let folder = tempfile::Builder::new().prefix("cli-").tempdir_in(shared_folder()).unwrap();
        let context = Self { folder };
        for name in ["home", "project/specs", "project/images"] {
            fs_err::create_dir_all(context.folder.path().join(name)).unwrap();
        }
        context
    }

    /// The quickstart's specs, locks and images as the project.
    pub(super) fn quickstart() -> Self {
        let context = Self::new();
        for name in ["specs", "lockfiles", "images"] {
            let status = Command::new("cp")
                .arg("-r")
                .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(name))
                .arg(context.project())
                .status()
                .unwrap();
            assert!(status.success());
        }
        context
    }

    /// The same with a copy of a shared store.
    pub(super) fn with_store(store: &Path) -> Self {
        let context = Self::quickstart();
        copy_store(store, &context.store());
        context
    }

    /// A project of one spec and one row that name a release pair of nobody's.
    pub(super) fn demo(spec: &str) -> Self {
        let context = Self::new();
        context.write("specs/pypi__demo/1.0.toml", spec);
        context.write("images/bookworm.toml", BASE);
        context.write("images/demo.rows.jsonl", &format!("{}\n", row("pypi__demo-1.1")));
        context
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn project(&self) -> PathBuf {
        self.path().join("project")
    }

    pub(super) fn store(&self) -> PathBuf {
        self.path().join("store")
    }

    pub(super) fn scratch(&self) -> PathBuf {
        self.store().join("scratch")
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.project().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    pub(super) fn read(&self, path: &str) -> String {
        fs_err::read_to_string(self.project().join(path)).unwrap()
    }

    /// Replaces a text that must be in the file.
    pub(super) fn replace(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "{path} does not hold {from}");
        self.write(path, &text.replacen(from, to, 1));
    }

    /// Every file of a folder with its digest, by path.
    pub(super) fn listing(&self, folder: &str) -> Vec<String> {
        let top = self.path().join(folder);
        walkdir::WalkDir::new(&top)
            .sort_by_file_name()
            .into_iter()
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_file())
            .map(|entry| {
                let (digest, _) = hallmark::base::files::digest_file(entry.path()).unwrap();
                format!("{} {digest}", entry.path().strip_prefix(&top).unwrap().display())
            })
            .collect()
    }

    #[expect(clippy::disallowed_methods, reason = "what of the host's environment is passed on")]
    pub(super) fn command<A: AsRef<std::ffi::OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hallmark"));
        command
            .args(arguments)
            .env_clear()
            .envs(PASSED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .env("HOME", self.path().join("home"))
            .env("HALLMARK_STORE", self.store())
            .env("RUST_BACKTRACE", "0")
            .current_dir(self.project())
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub(super) fn run<A: AsRef<std::ffi::OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Answer {
        Answer::of(&self.command(arguments).output().unwrap(), self.path())
    }

    /// The arguments that choose the shared instances.
    pub(super) fn both<'a>(verb: &[&'a str]) -> Vec<&'a str> {
        let mut arguments = verb.to_vec();
        arguments.extend(["quickstart", "-i", INSTANCES[0], "-i", INSTANCES[1]]);
        arguments
    }
}

/// What hallmark said, with the test's own folder called `[DIR]`.
pub(super) struct Answer {
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Answer {
    pub(super) fn of(output: &Output, folder: &Path) -> Self {
        let text = |bytes: &[u8]| {
            String::from_utf8_lossy(bytes).replace(&folder.display().to_string(), "[DIR]")
        };
        Self {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// The exit code is `code` and stderr holds every one of `words`.
    #[track_caller]
    pub(super) fn expect(&self, code: u8, words: &[&str]) {
        assert_eq!(self.code, Some(i32::from(code)), "{self}");
        assert!(!self.stderr.contains("panicked"), "{self}");
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in\n{self}");
        }
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "exit code: {}\n---- stdout\n{}---- stderr\n{}",
            self.code.map_or("none".to_owned(), |code| code.to_string()),
            self.stdout,
            self.stderr
        )
    }
}

/// Compares a text with the one on file.
#[track_caller]
pub(super) fn snapshot(name: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cli"),
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(name, text);
    });
}

/// A base definition.
pub(super) const BASE: &str =
    "suite = \"bookworm\"\ninterpreter = \"debian\"\npackages = [\"git\", \"python3\"]\n";

/// A spec without faults.
pub(super) const SPEC: &str = r#"repo = "pypi/demo"
version = "1.0"
base = "bookworm"
python = "3.11"

[setup]
sdist = "demo-1.0.tar.gz"
sha256 = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
size = 10

[dependencies]
requirements = ["pytest"]
exclude-newer = "2024-01-01T00:00:00Z"

[commands]
install = ["pip install --no-deps --no-build-isolation --no-index -e ."]

[test]
command = ["python", "-m", "pytest"]

[limits]
timeout = "10 min"
test-timeout = "2 min"
"#;

/// A row of a release pair.
pub(super) fn row(id: &str) -> String {
    let sdist = |version: &str, digit: &str| {
        serde_json::json!({
            "version": version,
            "file": format!("demo-{version}.tar.gz"),
            "sha256": format!("sha256:{}", digit.repeat(64)),
            "size": 10,
        })
    };
    serde_json::json!({
        "instance_id": id,
        "repo": "pypi/demo",
        "version": "1.0",
        "pair": { "package": "demo", "base": sdist("1.0", "a"), "fixed": sdist("1.1", "b") },
        "FAIL_TO_PASS": ["test_demo.py::test_new"],
        "PASS_TO_PASS": [],
    })
    .to_string()
}
