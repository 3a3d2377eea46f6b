//! A small root file system made of the host's own programs, and a runtime over it.

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use hallmark::base::{Cancel, Digest, Store};
use hallmark::image::{Layer, Owner, PackRules, Times, commit_tree};
use hallmark::runtime::embedded::{Embedded, Options};
use hallmark::runtime::fake::{Answer, Fake};
use hallmark::runtime::{Error, Gap, Root, RunLog, RunSpec, Runtime};

/// Programs of Debian's essential packages; perl makes system calls by number.
const PROGRAMS: [&str; 33] = [
    "sh", "cat", "chmod", "chown", "cp", "dd", "echo", "env", "false", "head", "id", "kill", "ln",
    "ls", "mkdir", "mknod", "mv", "perl", "readlink", "rm", "rmdir", "seq", "setsid", "sleep",
    "stat", "tail", "tee", "touch", "tr", "true", "uname", "wc", "yes",
];

/// A store with a bottom layer to run things in.
pub(crate) struct Scaffold {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) store: Store,
    pub(crate) runtime: Box<dyn Runtime>,
    pub(crate) layers: Vec<Layer>,
    /// Whether layers are named by what is in them, as a daemon wants it that unpacks them itself. Then their files have
    /// whole seconds.
    pub(crate) packed: bool,
    /// The runtime, where it replays answers.
    pub(crate) fake: Option<Arc<Fake>>,
}

/// A scaffold, or `None` (and a word about it) where this host or user cannot run containers.
pub(crate) fn scaffold() -> Option<Scaffold> {
    scaffold_with(Options::default())
}

/// The same, over a folder that stays.
pub(crate) fn scaffold_at(folder: &Path) -> Option<Scaffold> {
    let inner = tempfile::tempdir_in(folder).unwrap();
    build(inner, folder, Options::default())
}

/// The same, as on another kind of host.
pub(crate) fn scaffold_with(options: Options) -> Option<Scaffold> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    build(folder, &path, options)
}

fn build(folder: tempfile::TempDir, path: &Path, options: Options) -> Option<Scaffold> {
    if !rustix::process::geteuid().is_root() {
        say_skipped("needs root");
        return None;
    }
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let store = Store::open(&path.join("store"), &path.join("scratch")).unwrap();
    let launcher = env!("CARGO_BIN_EXE_hallmark").into();
    let runtime = Embedded::with_options(&store, launcher, options).unwrap();
    let layer = Layer { diff_id: Digest::of("base"), size: 0 };
    symlink(shared_layer(), store.layer_path(&layer.diff_id)).unwrap();
    let runtime = Box::new(runtime);
    Some(Scaffold { folder, store, runtime, layers: vec![layer], packed: false, fake: None })
}

/// One whose runtime replays what [`Scaffold::will`] says.
pub(crate) fn fake_scaffold() -> Scaffold {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let store = Store::open(&path.join("store"), &path.join("scratch")).unwrap();
    let fake = Arc::new(Fake::default());
    let runtime = Box::new(Shared(fake.clone()));
    let layers = vec![Layer { diff_id: Digest::of("base"), size: 0 }];
    Scaffold { folder, store, runtime, layers, packed: false, fake: Some(fake) }
}

/// A runtime that its test holds, too.
struct Shared(Arc<Fake>);

impl Runtime for Shared {
    fn run(&self, root: Root<'_>, spec: &RunSpec, cancel: &Cancel) -> Result<RunLog, Error> {
        self.0.run(root, spec, cancel)
    }

    fn gaps(&self) -> &[Gap] {
        self.0.gaps()
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

/// Nothing is changed, but times are whole seconds.
pub(crate) fn as_it_is() -> PackRules {
    PackRules { owner: Owner::Keep, epoch: 0, times: Times::Keep, overrides: Vec::new() }
}

/// Names a folder that the tests' user may write to, where they do not run as the one who built them.
pub(crate) const LAYERS: &str = "HALLMARK_TEST_LAYERS";

#[expect(clippy::disallowed_methods, reason = "how a test tells its child where to work")]
pub(crate) fn layers_folder() -> PathBuf {
    std::env::var_os(LAYERS).map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from)
}

/// Says why a test does nothing.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn say_skipped(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// The layer's tree, made once and kept between test runs; nothing can write to a lower layer.
fn shared_layer() -> PathBuf {
    static MADE: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    let make = || {
        let folder = layers_folder();
        let folder = folder.as_path();
        let made = folder.join("scaffold-2");
        if !made.exists() {
            let fresh = tempfile::tempdir_in(folder).unwrap();
            let root = fresh.path().join("root");
            fill(&root);
            // Another test process may have been faster.
            let _ = fs_err::rename(&root, &made);
        }
        made
    };
    MADE.get_or_init(make).clone()
}

/// Copies the programs, and the libraries they load, into `root`.
pub(crate) fn fill(root: &Path) {
    for folder in ["usr/bin", "etc", "tmp", "root", "var"] {
        fs_err::create_dir_all(root.join(folder)).unwrap();
    }
    fs_err::set_permissions(root.join("tmp"), std::fs::Permissions::from_mode(0o1777)).unwrap();
    symlink("usr/bin", root.join("bin")).unwrap();
    fs_err::write(
        root.join("etc/passwd"),
        "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/:/bin/sh\n",
    )
    .unwrap();
    let mut libraries = BTreeSet::new();
    for program in PROGRAMS {
        let source = [Path::new("/usr/bin"), Path::new("/bin")]
            .map(|folder| folder.join(program))
            .into_iter()
            .find(|path| path.exists())
            .unwrap();
        fs_err::copy(&source, root.join("usr/bin").join(program)).unwrap();
        libraries.extend(loaded(&source));
    }
    // What perl's own modules need, wherever the distribution keeps them.
    for folder in String::from_utf8(
        Command::new("perl").args(["-e", "print join \"\\n\", @INC"]).output().unwrap().stdout,
    )
    .unwrap()
    .lines()
    {
        if folder.ends_with("perl-base") {
            copy_tree(Path::new(folder), &root.join(folder.trim_start_matches('/')));
        }
    }
    for library in libraries {
        let target = root.join(library.strip_prefix("/").unwrap());
        fs_err::create_dir_all(target.parent().unwrap()).unwrap();
        fs_err::copy(&library, &target).unwrap();
    }
}

/// What the loader would load, by its own word.
fn loaded(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .map(PathBuf::from)
        .collect()
}

fn copy_tree(from: &Path, to: &Path) {
    fs_err::create_dir_all(to).unwrap();
    for entry in walkdir::WalkDir::new(from).min_depth(1).follow_links(true) {
        let entry = entry.unwrap();
        let target = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            fs_err::create_dir_all(&target).unwrap();
        } else {
            fs_err::copy(entry.path(), &target).unwrap();
        }
    }
}

impl Scaffold {
    /// The layer that programs are in.
    pub(crate) fn base(&self) -> Layer {
        self.layers[0]
    }

    /// Adds an unpacked layer that `fill` fills.
    pub(crate) fn add_layer(&self, name: &str, fill: impl FnOnce(&Path)) -> Layer {
        if self.packed {
            let tree = tempfile::tempdir_in(self.store.scratch()).unwrap().keep();
            fill(&tree);
            return commit_tree(&self.store, tree, &as_it_is(), &Cancel::new()).unwrap();
        }
        let diff_id = Digest::of(name);
        let path = self.store.layer_path(&diff_id);
        fs_err::create_dir_all(&path).unwrap();
        fill(&path);
        Layer { diff_id, size: 0 }
    }

    /// A fresh folder for the output of one run.
    pub(crate) fn output(&self) -> PathBuf {
        tempfile::Builder::new().prefix("out-").tempdir_in(self.folder.path()).unwrap().keep()
    }

    /// A spec that runs a shell script.
    pub(crate) fn sh(&self, script: &str) -> RunSpec {
        let mut spec = RunSpec::new(["sh", "-c", script], &self.output());
        spec.limits.wall = Duration::from_mins(1);
        // The scaffold has no locale but the built-in one.
        spec.env.insert("LC_ALL".to_owned(), "C".to_owned());
        spec
    }

    /// Says how a command ends that only a runtime with real processes finds out by running it.
    pub(crate) fn will(&self, answer: Answer) {
        if let Some(fake) = &self.fake {
            fake.will(answer);
        }
    }

    /// Runs over the scaffold's layers.
    pub(crate) fn run(&self, spec: &RunSpec) -> RunLog {
        self.runtime.run(Root::Layers(&self.layers), spec, &Cancel::new()).unwrap()
    }

    /// Runs a shell script and returns its standard output; it must succeed.
    pub(crate) fn stdout(&self, script: &str) -> String {
        let log = self.run(&self.sh(script));
        assert!(log.success(), "{log:?}\n{}\n{}", stdout(&log), stderr(&log));
        stdout(&log)
    }
}

pub(crate) fn stdout(log: &RunLog) -> String {
    String::from_utf8_lossy(&fs_err::read(&log.stdout).unwrap()).into_owned()
}

pub(crate) fn stderr(log: &RunLog) -> String {
    String::from_utf8_lossy(&fs_err::read(&log.stderr).unwrap()).into_owned()
}
