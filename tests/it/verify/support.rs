//! An image with the host's Python, pytest and git, and a small repository in it.
//!
//! Needs root, a Debian-like host with `/usr/bin/python3` and git, and PyPI once; else tests say that they are skipped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use hallmark::base::progress::{Recording, Silent};
use hallmark::base::{Arch, Cancel, Digest, SharedReporter, Store};
use hallmark::dataset::InstanceId;
use hallmark::image::{self, Image, ImageConfig, PackRules};
use hallmark::runtime::Workbench;
use hallmark::runtime::embedded::Embedded;
use hallmark::spec::{
    Commands, Compat, Dependencies, Parser, RunLimits, Setup, Spec, Test, TestFiles,
};
use hallmark::verify::conditions::Tools;
use hallmark::verify::{Phase, Profile, RunPlan, RunRecord, execute};

/// The date of the repository.
pub(crate) const DATE: i64 = 1_600_000_000;

const PROGRAMS: [&str; 12] =
    ["sh", "cat", "cp", "echo", "env", "git", "ls", "mkdir", "mv", "rm", "sleep", "true"];

/// A store, a runtime and an instance image.
pub(crate) struct Bench {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) store: Store,
    pub(crate) runtime: Embedded,
    pub(crate) cancel: Cancel,
    pub(crate) image: Image,
    pub(crate) id: InstanceId,
    pub(crate) tools: Tools,
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn skipped(reason: &str) {
    eprintln!("skipped: {reason}");
}

impl Bench {
    /// A bench whose `/testbed` holds `files`, committed.
    pub(crate) fn new(files: &[(&str, &str)]) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skipped("needs root");
            return None;
        }
        let Some(root) = python_root() else {
            skipped("needs /usr/bin/python3, git and PyPI");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let store =
            Store::open(&folder.path().join("store"), &folder.path().join("scratch")).unwrap();
        let runtime = Embedded::new(&store, env!("CARGO_BIN_EXE_hallmark").into()).unwrap();
        let cancel = Cancel::new();
        let env = {
            // Made once; other tests take the blob.
            let copy = store.scratch_dir("tree").unwrap().keep();
            let target = copy.join("root");
            run(Command::new("cp").args(["-a", "--reflink=auto"]).arg(root).arg(&target));
            image::commit_tree(&store, target, &PackRules::root(315_532_800), &cancel).unwrap()
        };
        let tree = store.scratch_dir("tree").unwrap().keep().join("root");
        let work = tree.join("testbed");
        for (name, text) in files {
            let path = work.join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        let git = |words: &[&str]| {
            run(Command::new("git")
                .args(["-c", "user.name=x", "-c", "user.email=x@example.invalid"])
                .args(words)
                .current_dir(&work)
                .env("GIT_CONFIG_GLOBAL", "/dev/null"));
        };
        git(&["init", "-q"]);
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", "base"]);
        let testbed = image::commit_tree(&store, tree, &PackRules::root(DATE), &cancel).unwrap();
        let config = ImageConfig {
            env: [("PATH", "/usr/bin:/bin"), ("HOME", "/root"), ("PYTHONDONTWRITEBYTECODE", "1")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            working_dir: "/testbed".to_owned(),
            ..ImageConfig::default()
        };
        let image = Image {
            key: Digest::of("instance"),
            arch: Arch::HOST,
            layers: vec![env, testbed],
            config,
            created: DATE,
        };
        let id = InstanceId::try_from("owner__name-1".to_owned()).unwrap();
        Some(Self { folder, store, runtime, cancel, image, id, tools: Tools::default() })
    }

    /// One run.
    pub(crate) fn run(
        &self,
        spec: &Spec,
        phase: Phase,
        repeat: u32,
        patches: [&str; 2],
    ) -> RunRecord {
        self.run_watched(spec, phase, repeat, patches, &(Arc::new(Silent) as SharedReporter))
    }

    /// One run whose progress is recorded.
    pub(crate) fn run_recorded(
        &self,
        spec: &Spec,
        phase: Phase,
        repeat: u32,
        patches: [&str; 2],
    ) -> (RunRecord, Vec<hallmark::base::Event>) {
        let recording = Arc::new(Recording::default());
        let reporter: SharedReporter = recording.clone();
        let record = self.run_watched(spec, phase, repeat, patches, &reporter);
        (record, recording.events())
    }

    fn run_watched(
        &self,
        spec: &Spec,
        phase: Phase,
        repeat: u32,
        patches: [&str; 2],
        reporter: &SharedReporter,
    ) -> RunRecord {
        self.run_as(spec, phase, repeat, patches, &Profile::plain(), &[], reporter)
    }

    /// One run after the gold patch under other conditions; `collected` are the ids that orders are made from.
    pub(crate) fn run_under(
        &self,
        spec: &Spec,
        phase: Phase,
        patches: [&str; 2],
        profile: &Profile,
        collected: &[String],
    ) -> RunRecord {
        let silent = Arc::new(Silent) as SharedReporter;
        self.run_as(spec, phase, 0, patches, profile, collected, &silent)
    }

    #[expect(clippy::too_many_arguments, reason = "all that a run is made of")]
    fn run_as(
        &self,
        spec: &Spec,
        phase: Phase,
        repeat: u32,
        [gold, test]: [&str; 2],
        profile: &Profile,
        collected: &[String],
        reporter: &SharedReporter,
    ) -> RunRecord {
        let bench = Workbench {
            store: &self.store,
            runtime: &self.runtime,
            reporter,
            cancel: &self.cancel,
        };
        let plan = RunPlan {
            instance: &self.id,
            spec,
            phase,
            series: "",
            repeat,
            profile,
            alone: false,
            collected,
            tools: &self.tools,
            test_patch: test.as_bytes(),
            gold_patch: gold.as_bytes(),
            slots: 1,
        };
        let record = execute(bench, &self.image, &plan).unwrap();
        self.store.settle();
        assert_eq!(
            fs_err::read_dir(self.store.scratch())
                .unwrap()
                .filter(|entry| {
                    let name = entry.as_ref().unwrap().file_name();
                    ["run-", "patches-"].iter().any(|one| name.to_str().unwrap().starts_with(one))
                })
                .count(),
            0,
            "scratch is left"
        );
        record
    }

    /// A log of a record.
    pub(crate) fn log(&self, record: &RunRecord, kind: hallmark::verify::LogKind) -> String {
        let path = hallmark::verify::log_path(&self.store, &record.key, kind);
        String::from_utf8_lossy(&fs_err::read(path).unwrap()).into_owned()
    }
}

/// A spec whose test command is pytest over the files of the test patch.
pub(crate) fn spec() -> Spec {
    Spec {
        repo: "owner/name".to_owned(),
        version: "1.0".to_owned(),
        setup: Setup::Commit { commit: "0".repeat(40) },
        base: "bookworm".to_owned(),
        python: "3.11".to_owned(),
        system_packages: Vec::new(),
        dependencies: Dependencies {
            requirements: Vec::new(),
            requirement_files: Vec::new(),
            extras: Vec::new(),
            groups: Vec::new(),
            constraints: Vec::new(),
            project: true,
            no_binary: Vec::new(),
            exclude_newer: jiff::Timestamp::UNIX_EPOCH,
            exclude_newer_package: BTreeMap::new(),
        },
        commands: Commands::default(),
        test: Test {
            command: ["python3", "-m", "pytest", "-p", "no:cacheprovider"]
                .map(str::to_owned)
                .into(),
            files: TestFiles::TestPatch,
            parser: Parser::Pytest,
            continue_on_collection_errors: false,
        },
        env: BTreeMap::new(),
        limits: RunLimits {
            cpus: 2.0,
            memory: 1 << 30,
            pids: 256,
            shm: 64 << 20,
            timeout: 120.0,
            test_timeout: 60.0,
        },
        compat: Compat::None,
    }
}

/// A patch that adds one file.
pub(crate) fn adds(path: &str, text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
    let count = text.lines().count();
    format!(
        "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{count} @@\n{lines}"
    )
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A root folder with Python, pytest and git, made once and kept between test runs.
fn python_root() -> Option<&'static Path> {
    static ROOT: OnceLock<Option<PathBuf>> = OnceLock::new();
    ROOT.get_or_init(|| {
        let folder = &crate::support::shared_folder();
        let cancel = Cancel::new();
        let lock = folder.join("python-root.lock");
        let _lock = hallmark::base::flock::FileLock::exclusive(&lock, &cancel).unwrap();
        let made = folder.join("python-root-1");
        if !made.exists() {
            let fresh = tempfile::tempdir_in(folder).unwrap();
            let root = fresh.path().join("root");
            fill(&root)?;
            fs_err::rename(&root, &made).unwrap();
        }
        Some(made)
    })
    .as_deref()
}

fn fill(root: &Path) -> Option<()> {
    let python = Path::new("/usr/bin/python3");
    let ask = |code: &str| {
        let output = Command::new(python).args(["-I", "-c", code]).output().ok()?;
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
    };
    let library = ask("import sysconfig; print(sysconfig.get_path('stdlib'))")?;
    for folder in ["usr/bin", "etc", "tmp", "root", "var", "run"] {
        fs_err::create_dir_all(root.join(folder)).unwrap();
    }
    for link in ["bin", "lib", "lib64"] {
        std::os::unix::fs::symlink(format!("usr/{link}"), root.join(link)).unwrap();
    }
    fs_err::write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\n").unwrap();
    let copy = |path: &Path| {
        // Below the links of a merged /usr, whatever the loader calls it.
        let real =
            fs_err::canonicalize(path.parent().unwrap()).unwrap().join(path.file_name().unwrap());
        let target = root.join(real.strip_prefix("/").unwrap());
        fs_err::create_dir_all(target.parent().unwrap()).unwrap();
        fs_err::copy(path, target).unwrap();
    };
    let mut binaries: Vec<PathBuf> = vec![python.to_owned()];
    for name in PROGRAMS {
        let path = Path::new("/usr/bin").join(name);
        if !path.exists() {
            return None;
        }
        binaries.push(path);
    }
    for path in &binaries {
        copy(path);
    }
    let target = root.join(library.trim_start_matches('/'));
    fs_err::create_dir_all(target.parent().unwrap()).unwrap();
    run(Command::new("cp").arg("-a").arg(&library).arg(&target));
    for name in ["test", "idlelib", "ensurepip"] {
        let _ = fs_err::remove_dir_all(target.join(name));
    }
    binaries.extend(
        walkdir::WalkDir::new(target.join("lib-dynload"))
            .into_iter()
            .filter_map(Result::ok)
            .map(walkdir::DirEntry::into_path)
            .filter(|path| path.extension().is_some_and(|extension| extension == "so")),
    );
    for path in &binaries {
        let output = Command::new("ldd").arg(path).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for library in text.lines().filter_map(|line| {
            line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from)
        }) {
            copy(&library);
        }
    }
    let site_packages = root.join("usr/lib/python3/dist-packages");
    let installed = Command::new(crate::results::python_with_pip()?)
        .args(["-m", "pip", "install", "-q", "--target"])
        .arg(&site_packages)
        .args(["pytest==8.3.5", "tomli==2.2.1", "exceptiongroup==1.2.2"])
        .env_remove("PIP_FIND_LINKS")
        .output()
        .unwrap();
    installed.status.success().then_some(())
}
