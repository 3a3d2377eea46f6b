//! uv, run in the sandbox: its wheel comes from PyPI, pinned here, and it sees nothing of the host but the
//! index's address, credentials, proxy and authorities.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::archive::Archive;
use super::tags::Platform;
use super::{Error, PYTHON, uv_output};
use crate::base::{Arch, Digest, Scratch, canon};
use crate::bundle;
use crate::image::Image;
use crate::lock::{FileRef, Origin, PythonPackage};
use crate::net::{self, UvEnvironment};
use crate::runtime::{Mount, Network, Root, RunLog, RunSpec, Workbench};
use crate::spec::PackageDate;

/// The version of uv that resolves. Raising it may change what a spec resolves to, so locks are then made anew.
const VERSION: &str = "0.13.9";

/// uv's wheel for an architecture.
fn wheel(arch: Arch) -> FileRef {
    let (tags, sha256, size) = match arch {
        Arch::Amd64 => (
            "manylinux_2_17_x86_64.manylinux2014_x86_64",
            "d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19",
            17_606_939,
        ),
        Arch::Arm64 => (
            "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
            "5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe",
            18_026_789,
        ),
    };
    FileRef {
        name: format!("uv-{VERSION}-py3-none-{tags}.whl"),
        sha256: Digest::from_hex(sha256).expect("a constant of 64 hex digits"),
        size,
        origin: Origin::Pypi { project: "uv".to_owned() },
    }
}

/// Mount points inside.
const TOOL: &str = "/run/hallmark/uv";
const CACHE: &str = "/run/hallmark/uv-cache";
const WORK: &str = "/run/hallmark/work";

/// What exists for a resolution: files uploaded before a date.
#[derive(Debug, Clone)]
pub(super) struct Dates {
    pub(super) all: Timestamp,
    pub(super) packages: BTreeMap<String, PackageDate>,
}

impl Dates {
    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["--exclude-newer".to_owned(), self.all.to_string()];
        for (name, date) in &self.packages {
            let date = match date {
                PackageDate::Before(time) => time.to_string(),
                PackageDate::Never(_) => "false".to_owned(),
            };
            arguments.extend(["--exclude-newer-package".to_owned(), format!("{name}={date}")]);
        }
        arguments
    }
}

/// What to solve.
#[derive(Debug, Clone, Default)]
pub(super) struct Question {
    pub(super) requirements: Vec<String>,
    pub(super) constraints: Vec<String>,
    /// Packages that must come as sdists.
    pub(super) no_binary: Vec<String>,
    /// Whether everything must come as wheels.
    pub(super) only_wheels: bool,
    pub(super) prereleases: bool,
}

/// uv in one image.
pub(super) struct Uv<'a> {
    bench: Workbench<'a>,
    image: &'a Image,
    platform: Platform,
    tool: PathBuf,
    environment: UvEnvironment,
    dates: Dates,
    scratch: Scratch,
}

impl<'a> Uv<'a> {
    /// Fetches uv if the store does not have it.
    pub(super) fn new(
        bench: Workbench<'a>,
        client: &net::Client,
        image: &'a Image,
        platform: Platform,
        dates: Dates,
    ) -> Result<Self, Error> {
        let scratch = bench.store.scratch_dir("uv")?;
        fs_err::create_dir(scratch.path().join("cache"))?;
        let environment = client.config().uv_environment()?;
        if let Some(certificates) = &environment.certificates {
            fs_err::write(scratch.path().join("certificates.pem"), certificates)?;
        }
        let tool = install(bench, client, image.arch)?;
        Ok(Self { bench, image, platform, tool, environment, dates, scratch })
    }

    /// A fresh folder that the runs of one piece of work share.
    pub(super) fn work_dir(&self) -> Result<Scratch, Error> {
        Ok(self.bench.store.scratch_dir("work")?)
    }

    /// Runs a command in the image, offline and without uv, with `work` mounted at [`Uv::WORK`].
    pub(super) fn run_offline(
        &self,
        argv: Vec<String>,
        work: &Path,
        mount: Mount,
        variables: &BTreeMap<String, String>,
    ) -> Result<RunLog, Error> {
        let mut run = self.run_spec(argv, work)?;
        run.network = Network::Unreachable;
        run.env.extend(variables.clone());
        run.mounts.push(mount);
        self.start(&run)
    }

    fn start(&self, run: &RunSpec) -> Result<RunLog, Error> {
        Ok(self.bench.runtime.run(Root::Layers(&self.image.layers), run, self.bench.cancel)?)
    }

    fn run_spec(&self, argv: Vec<String>, work: &Path) -> Result<RunSpec, Error> {
        let logs = tempfile::Builder::new()
            .prefix("logs-")
            .disable_cleanup(true)
            .tempdir_in(self.scratch.path())?;
        let mut run = RunSpec::new(argv, logs.path());
        let fixed = [("PYTHONHASHSEED", "0"), ("PYTHONDONTWRITEBYTECODE", "1"), ("TMPDIR", "/tmp")];
        run.env.extend(fixed.map(|(name, value)| (name.to_owned(), value.to_owned())));
        run.mounts.push(mount(work, WORK, true));
        Ok(run)
    }

    /// Path inside of the work folder.
    pub(super) const WORK: &'static str = WORK;

    /// Runs uv itself.
    fn uv(&self, arguments: Vec<String>, work: &Path, doing: &str) -> Result<(), Error> {
        let mut argv = vec![format!("{TOOL}/uv")];
        argv.extend(arguments);
        let mut run = self.run_spec(argv, work)?;
        run.network = Network::Host;
        let fixed = [
            ("UV_CACHE_DIR", CACHE),
            ("UV_LINK_MODE", "copy"),
            ("UV_NO_PROGRESS", "1"),
            ("UV_PYTHON_DOWNLOADS", "never"),
        ];
        run.env.extend(fixed.map(|(name, value)| (name.to_owned(), value.to_owned())));
        run.env.extend(self.environment.variables.clone());
        run.mounts.push(mount(&self.tool, TOOL, false));
        run.mounts.push(mount(&self.scratch.path().join("cache"), CACHE, true));
        let certificates = self.scratch.path().join("certificates.pem");
        if certificates.exists() {
            run.mounts.push(mount(&certificates, UvEnvironment::CERTIFICATES, false));
        }
        let log = self.start(&run)?;
        if log.success() { Ok(()) } else { Err(Error::command(doing, &log)) }
    }

    /// Makes a virtual environment in `work` and installs `requirements` there; gives its interpreter's path inside.
    pub(super) fn environment(
        &self,
        work: &Path,
        requirements: &[String],
        doing: &str,
    ) -> Result<String, Error> {
        let folder = format!("{WORK}/env");
        let python = format!("{folder}/bin/python");
        if !work.join("env").exists() {
            let arguments = ["venv", "--quiet", "--no-config", "--python", PYTHON, folder.as_str()];
            self.uv(arguments.map(str::to_owned).to_vec(), work, doing)?;
        }
        if !requirements.is_empty() {
            fs_err::write(work.join("install.txt"), lines(requirements))?;
            let file = format!("{WORK}/install.txt");
            let fixed = [
                "pip",
                "install",
                "--quiet",
                "--no-config",
                "--python",
                python.as_str(),
                "-r",
                file.as_str(),
            ];
            let mut arguments = fixed.map(str::to_owned).to_vec();
            arguments.extend(self.dates.arguments());
            self.uv(arguments, work, doing)?;
        }
        Ok(python)
    }

    /// Solves `question`: every package with the one file that this interpreter takes.
    pub(super) fn solve(
        &self,
        question: &Question,
        doing: &str,
    ) -> Result<Vec<PythonPackage>, Error> {
        let work = self.work_dir()?;
        fs_err::write(work.path().join("requirements.in"), lines(&question.requirements))?;
        fs_err::write(work.path().join("constraints.txt"), lines(&question.constraints))?;
        let fixed = [
            "pip",
            "compile",
            "--quiet",
            "--no-config",
            "--no-header",
            "--format",
            "pylock.toml",
            "--python",
            PYTHON,
        ];
        let mut arguments = fixed.map(str::to_owned).to_vec();
        arguments.extend(["--output-file".to_owned(), format!("{WORK}/pylock.toml")]);
        arguments.extend(["--constraints".to_owned(), format!("{WORK}/constraints.txt")]);
        arguments.extend(self.dates.arguments());
        if question.only_wheels {
            arguments.extend(["--only-binary".to_owned(), ":all:".to_owned()]);
        }
        for name in &question.no_binary {
            arguments.extend(["--no-binary".to_owned(), name.clone()]);
        }
        if question.prereleases {
            arguments.extend(["--prerelease".to_owned(), "allow".to_owned()]);
        }
        arguments.push(format!("{WORK}/requirements.in"));
        self.uv(arguments, work.path(), doing)?;
        let text = fs_err::read_to_string(work.path().join("pylock.toml"))?;
        uv_output::parse(&text, self.platform)
    }
}

fn mount(source: &Path, target: &str, writable: bool) -> Mount {
    Mount { source: source.to_owned(), target: target.to_owned(), writable }
}

/// One a line, sorted and without repeats, so that the order of a spec or of a file cannot matter.
fn lines(requirements: &[String]) -> String {
    let sorted: std::collections::BTreeSet<&String> = requirements.iter().collect();
    sorted.into_iter().map(|line| format!("{line}\n")).collect()
}

/// The folder that holds uv's executable, in the store.
fn install(bench: Workbench<'_>, client: &net::Client, arch: Arch) -> Result<PathBuf, Error> {
    let wheel = wheel(arch);
    let tree = bench.store.tree_path(&canon::digest(&("uv", 1, wheel.sha256))?);
    if tree.join("uv").exists() {
        return Ok(tree);
    }
    bundle::fetch(bench.store, client, std::slice::from_ref(&wheel), bench.reporter, bench.cancel)?;
    let unreadable = |problem: String| Error::Unreadable { what: wheel.name.clone(), problem };
    let archive = Archive::open(&bench.store.blob_path(&wheel.sha256))?;
    let entry = archive
        .find(&format!("uv-{VERSION}.data/scripts/uv"))
        .ok_or_else(|| unreadable("it holds no uv".to_owned()))?;
    let folder = bench.store.scratch_dir("uvtool")?;
    let path = folder.path().join("uv");
    let mut file = fs_err::File::create(&path)?;
    std::io::copy(&mut archive.reader(entry)?, &mut file)?;
    drop(file);
    for (path, mode) in [(path.as_path(), 0o755), (folder.path(), 0o755)] {
        use std::os::unix::fs::PermissionsExt as _;
        fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    }
    // Another process may have been faster.
    if let Err(error) = fs_err::rename(folder.path(), &tree)
        && !tree.exists()
    {
        return Err(error.into());
    }
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_passed_on_exactly() {
        let cut: Timestamp = "2022-02-20T00:00:00Z".parse().unwrap();
        let packages = [
            ("a".to_owned(), PackageDate::Before("2023-01-01T00:00:00Z".parse().unwrap())),
            ("b".to_owned(), PackageDate::Never(false)),
        ];
        assert_eq!(
            Dates { all: cut, packages: packages.into() }.arguments().join(" "),
            "--exclude-newer 2022-02-20T00:00:00Z --exclude-newer-package a=2023-01-01T00:00:00Z --exclude-newer-package b=false"
        );
    }

    #[test]
    fn order_and_repeats_do_not_matter() {
        let one = ["b", "a", "b"].map(str::to_owned);
        assert_eq!(lines(&one), "a\nb\n");
    }
}
