//! A project whose rows are trees of the corpus: a git repository with a commit an instance, one spec, one lock.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hallmark::base::Arch;
use hallmark::lock::{self, EnvLock};
use hallmark::spec;

use super::corpus::{FAIL_TO_PASS, Tree, gold_patch, test_patch};

/// 2024-06-01T00:00:00Z, the date of all commits.
const DATE: i64 = 1_717_200_000;
/// The spec whose lock lends pytest: it is in the shared store.
const LENDER: &str = "pypi__voluptuous";
/// What pytest needs.
const PACKAGES: [&str; 4] = ["iniconfig", "packaging", "pluggy", "pytest"];

/// One row.
#[derive(Debug, Clone)]
pub(crate) struct Instance {
    pub(crate) name: String,
    pub(crate) tree: Tree,
    pub(crate) gold: String,
    pub(crate) test: String,
}

impl Instance {
    /// With the corpus's own patches.
    pub(crate) fn new(name: impl Into<String>, tree: Tree) -> Self {
        Self { name: name.into(), tree, gold: gold_patch(), test: test_patch() }
    }

    /// Its id.
    pub(crate) fn id(&self) -> String {
        format!("acme__flakyland-{}", self.name)
    }
}

/// A folder with a project and a store, removed when dropped.
pub(crate) struct Land {
    folder: tempfile::TempDir,
}

impl Land {
    /// An empty one beside a shared store whose files are linked.
    pub(crate) fn new() -> Option<Self> {
        let full = crate::support::Full::get()?;
        let folder = tempfile::Builder::new()
            .prefix("flaky-")
            .tempdir_in(crate::support::shared_folder())
            .unwrap();
        let land = Self { folder };
        crate::support::copy_store(&full.store(), &land.store());
        Some(land)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// A folder on the disk of the store.
    pub(crate) fn scratch(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Writes repository, spec, lock and rows. `limits` are lines of the spec's `[limits]`.
    pub(crate) fn settle(&self, instances: &[Instance], limits: &str) {
        let repository = self.folder.path().join("flakyland.git");
        let commits = import(&repository, instances);
        let (project, own, arch) =
            (self.project(), Path::new(env!("CARGO_MANIFEST_DIR")), Arch::HOST);
        fs_err::create_dir_all(project.join("images")).unwrap();
        fs_err::create_dir_all(project.join("specs/acme__flakyland")).unwrap();
        fs_err::create_dir_all(project.join("lockfiles/_bases")).unwrap();
        fs_err::copy(own.join("images/bookworm.toml"), project.join("images/bookworm.toml"))
            .unwrap();
        crate::support::copy(
            &own.join("lockfiles/_bases/bookworm"),
            &project.join("lockfiles/_bases"),
            "-r",
        );
        let first = &commits[&instances[0].name];
        let text = format!(
            "repo = \"acme/flakyland\"\nversion = \"1\"\nbase = \"bookworm\"\npython = \"3.11\"\n\
             [setup]\ncommit = \"{first}\"\n\
             [dependencies]\nrequirements = [\"pytest\"]\nproject = false\nexclude-newer = \"2024-08-01T00:00:00Z\"\n\
             [commands]\ninstall = []\n\
             [test]\ncommand = [\"python3\", \"-m\", \"pytest\", \"-p\", \"no:cacheprovider\"]\nfiles = \"none\"\n\
             [limits]\n{limits}\n"
        );
        fs_err::write(project.join("specs/acme__flakyland/1.toml"), text).unwrap();
        lend_lock(own, &project, arch);
        let rows: String = instances
            .iter()
            .map(|instance| {
                let row = serde_json::json!({
                    "instance_id": instance.id(), "repo": "acme/flakyland", "version": "1",
                    "repo_url": repository, "base_commit": commits[&instance.name],
                    "patch": instance.gold, "test_patch": instance.test,
                    "FAIL_TO_PASS": [FAIL_TO_PASS], "PASS_TO_PASS": instance.tree.pass_to_pass,
                });
                format!("{row}\n")
            })
            .collect();
        fs_err::write(project.join("images/flaky.rows.jsonl"), rows).unwrap();
    }

    /// hallmark on the project and the store, without a network.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hallmark"));
        command
            .args(arguments)
            .args(["--offline", "--project"])
            .arg(self.project())
            .arg("--store")
            .arg(self.store())
            .current_dir(self.folder.path())
            .env_remove("HALLMARK_SCRATCH");
        command
    }

    /// Its answer.
    pub(crate) fn call(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Builds and verifies the split; verdicts by the name of the instance, and what was said on stderr.
    pub(crate) fn verify(
        &self,
        arguments: &[&str],
    ) -> (BTreeMap<String, serde_json::Value>, String) {
        let built = self.call(&["build", "flaky", "--quiet"]);
        let said = String::from_utf8_lossy(&built.stderr).into_owned();
        assert!(built.status.success(), "{said}");
        let output = self.call(&[&["verify", "flaky", "--json"], arguments].concat());
        let verdicts = String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .filter(|line| line["kind"] == "verdict")
            .map(|line| {
                let value = &line["value"];
                let id = value["instance"].as_str().unwrap();
                let name = id.trim_start_matches("acme__flakyland-").to_owned();
                (name, value["verdict"].clone())
            })
            .collect();
        (verdicts, String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// The lock of the spec: the packages of another one that are needed.
fn lend_lock(own: &Path, project: &Path, arch: Arch) {
    let lockfiles = own.join("lockfiles");
    let lender = fs_err::read_dir(lockfiles.join(LENDER)).unwrap().next().unwrap().unwrap();
    let name = format!("{LENDER}/{}", lender.file_name().to_str().unwrap());
    let read = |path: PathBuf| fs_err::read_to_string(path).unwrap();
    let held = lock::parse_env(
        "lender",
        &read(lock::paths::env_lock(&lockfiles, &name, arch)),
        &read(lock::paths::pylock(&lockfiles, &name)),
    )
    .unwrap();
    let spec = spec::load(&project.join("specs"), "acme/flakyland", "1").unwrap();
    let packages: Vec<_> = held
        .packages
        .into_iter()
        .filter(|package| PACKAGES.contains(&package.name.as_str()))
        .collect();
    assert_eq!(packages.len(), PACKAGES.len());
    let lock = EnvLock {
        env_hash: spec.env_hash().unwrap(),
        debs: Vec::new(),
        packages,
        build_environments: Vec::new(),
        built: Vec::new(),
        ..held
    };
    let texts = lock::write_env(&lock).unwrap();
    let lockfiles = project.join("lockfiles");
    let path = lock::paths::env_lock(&lockfiles, &spec.name(), arch);
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, texts.lock).unwrap();
    fs_err::write(lock::paths::pylock(&lockfiles, &spec.name()), texts.pylock).unwrap();
}

/// A repository with a root commit and a branch for each instance; the commits by name.
fn import(repository: &Path, instances: &[Instance]) -> BTreeMap<String, String> {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command
            .args(["-c", "safe.directory=*"])
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        command
    };
    let path = repository.to_str().unwrap();
    assert!(git(&["init", "-q", "--bare", path]).status().unwrap().success());
    let mut stream = Vec::new();
    for instance in instances {
        writeln!(stream, "commit refs/heads/{}", instance.name).unwrap();
        writeln!(stream, "committer x <x@example.invalid> {DATE} +0000").unwrap();
        writeln!(stream, "data 4\nbase").unwrap();
        for (path, text) in &instance.tree.files {
            writeln!(stream, "M 100644 inline {path}\ndata {}\n{text}", text.len()).unwrap();
        }
    }
    let mut importer =
        git(&["-C", path, "fast-import", "--quiet"]).stdin(Stdio::piped()).spawn().unwrap();
    importer.stdin.take().unwrap().write_all(&stream).unwrap();
    assert!(importer.wait().unwrap().success());
    let listed = git(&["-C", path, "for-each-ref", "--format=%(refname:short) %(objectname)"])
        .output()
        .unwrap();
    String::from_utf8(listed.stdout)
        .unwrap()
        .lines()
        .map(|line| {
            let (name, commit) = line.split_once(' ').unwrap();
            (name.to_owned(), commit.to_owned())
        })
        .collect()
}
