//! From a spec to its Python packages and the build environments of those that come as sdists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jiff::Timestamp;

use super::project::{self, Metadata};
use super::requirement_file::{self, Asked};
use super::tags::Platform;
use super::uv::{Dates, Question, Uv};
use super::{BuildSystem, Error, HOOK, Interpreter, age, normalize};
use crate::base::progress::Task;
use crate::bundle;
use crate::image::Image;
use crate::lock::{BuildEnvironment, FileRef, Origin, PythonPackage};
use crate::net;
use crate::runtime::{Mount, Workbench};
use crate::spec::{PackageDate, Spec};

/// The Python part of an environment's lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonLock {
    /// Every package, sorted by name; the project itself is not among them.
    pub packages: Vec<PythonPackage>,
    /// How each sdist among them is built, sorted by the sdist's file name.
    pub build_environments: Vec<BuildEnvironment>,
    /// What people should know, sorted.
    pub notices: Vec<String>,
}

/// Solves the Python dependencies of `spec` on `image` (the base with the spec's system packages). `source` is the tree of the
/// spec's setup source; it is not changed. Runs code of the project
/// and of packages in the sandbox: hooks called here are offline, those that uv calls are not.
pub fn lock(
    bench: Workbench<'_>,
    client: &net::Client,
    image: &Image,
    spec: &Spec,
    source: &Path,
) -> Result<PythonLock, Error> {
    let task = Task::start(bench.reporter, "resolve", spec.name(), None);
    let interpreter = Interpreter::of(bench, image)?;
    let (major, minor) = interpreter.minor();
    if spec.python != format!("{major}.{minor}") {
        return Err(Error::Unreadable {
            what: format!("the spec asks for Python {}", spec.python),
            problem: format!("its base `{}` has {}", spec.base, interpreter.version),
        });
    }
    let platform = Platform::of(&interpreter, image.arch);
    let dates = Dates {
        all: spec.dependencies.exclude_newer,
        packages: spec
            .dependencies
            .exclude_newer_package
            .iter()
            .map(|(name, date)| (normalize(name), *date))
            .collect(),
    };
    let solver = Solver {
        bench,
        client,
        spec,
        dates: dates.clone(),
        interpreter,
        uv: Uv::new(bench, client, image, platform, dates)?,
    };
    let lock = solver.lock(source)?;
    task.done_with(format!("{} packages", lock.packages.len()));
    Ok(lock)
}

struct Solver<'a> {
    bench: Workbench<'a>,
    client: &'a net::Client,
    spec: &'a Spec,
    dates: Dates,
    interpreter: Interpreter,
    uv: Uv<'a>,
}

/// What a backend says of a source tree.
struct Dynamic {
    /// Build requirements, static and dynamic, of wheels.
    wheel: BTreeSet<String>,
    /// The same of editable installs.
    editable: BTreeSet<String>,
    metadata: Option<Metadata>,
}

impl Solver<'_> {
    fn lock(&self, source: &Path) -> Result<PythonLock, Error> {
        let dependencies = &self.spec.dependencies;
        let mut asked = Asked::default();
        for file in &dependencies.requirement_files {
            requirement_file::read(source, file, &mut asked)?;
        }
        let mut requirements: BTreeSet<String> =
            dependencies.requirements.iter().cloned().collect();
        requirements.extend(asked.requirements);
        let mut constraints: BTreeSet<String> = dependencies.constraints.iter().cloned().collect();
        constraints.extend(asked.constraints);
        // pip is always there: the field's evaluation scripts call it.
        requirements.insert("pip".to_owned());

        let mut extras: BTreeSet<String> = dependencies.extras.iter().cloned().collect();
        extras.extend(asked.extras);
        let mut project = self.spec.repo.rsplit('/').next().map(normalize).unwrap_or_default();
        let wants_project = dependencies.project || !extras.is_empty();
        match BuildSystem::of(source, &self.spec.name()) {
            Ok(system) => {
                if system.is_setuptools() {
                    requirements.extend(["setuptools", "wheel"].map(str::to_owned));
                }
                if wants_project {
                    let dynamic =
                        self.ask_backend(source, "/testbed", &system, &self.spec.env, true)?;
                    if dependencies.project {
                        requirements.extend(dynamic.wheel);
                        requirements.extend(dynamic.editable);
                    }
                    if let Some(metadata) = dynamic.metadata {
                        requirements.extend(metadata.dependencies(&extras)?);
                        project = metadata.name;
                    }
                }
            }
            Err(error) if wants_project => return Err(error),
            // A tree that nothing builds, such as a folder of scripts.
            Err(error) => tracing::debug!(%error, "the source has no build system"),
        }
        requirements.extend(project::groups(source, &project, &dependencies.groups)?);

        let question = Question {
            requirements: requirements.into_iter().collect(),
            constraints: constraints.into_iter().collect(),
            no_binary: dependencies.no_binary.clone(),
            only_wheels: false,
            prereleases: asked.prereleases,
        };
        let name = self.spec.name();
        let mut packages = self.uv.solve(&question, &format!("resolving {name}"))?;
        packages.retain(|package| package.name != project);

        let mut build_environments = Vec::new();
        for package in packages.iter().filter(|package| !package.file.is_wheel()) {
            build_environments.push(self.build_environment(package)?);
        }
        build_environments.sort();
        let mut notices = asked.notices;
        for package in &packages {
            notices.extend(self.age(package, &question)?);
        }
        Ok(PythonLock { packages, build_environments, notices: notices.into_iter().collect() })
    }

    /// The wheels that an sdist needs to be built.
    fn build_environment(&self, package: &PythonPackage) -> Result<BuildEnvironment, Error> {
        let sdist = &package.file;
        let reference = FileRef {
            name: sdist.name.clone(),
            sha256: sdist.sha256,
            size: sdist.size,
            origin: Origin::Pypi { project: package.name.clone() },
        };
        let files = [reference];
        bundle::fetch(
            self.bench.store,
            self.client,
            &files,
            self.bench.reporter,
            self.bench.cancel,
        )?;
        let folder = self.uv.work_dir()?;
        let top =
            bundle::sdist::extract(self.bench.store, &sdist.sha256, &sdist.name, folder.path())?;
        let system = BuildSystem::of(&top, &sdist.name)?;
        let name = top.file_name().map_or_else(|| "source".into(), |name| name.to_string_lossy());
        let target = format!("/build/{name}");
        let dynamic = self.ask_backend(&top, &target, &system, &BTreeMap::new(), false)?;
        let question = Question {
            requirements: dynamic.wheel.into_iter().collect(),
            only_wheels: true,
            ..Question::default()
        };
        let doing = format!("resolving what {} needs to be built (wheels only)", sdist.name);
        let packages = self.uv.solve(&question, &doing)?;
        Ok(BuildEnvironment { sdist: sdist.name.clone(), packages })
    }

    /// Calls the hooks of a source's backend in an environment of its own.
    fn ask_backend(
        &self,
        source: &Path,
        target: &str,
        system: &BuildSystem,
        variables: &BTreeMap<String, String>,
        with_metadata: bool,
    ) -> Result<Dynamic, Error> {
        let work = self.uv.work_dir()?;
        let out = work.path().join("out");
        fs_err::create_dir(&out)?;
        fs_err::write(work.path().join("hook.py"), HOOK)?;
        // Hooks write into the source.
        copy_tree(source, &work.path().join("source"))?;
        let name = target.rsplit('/').next().unwrap_or(target);
        let doing = format!("installing the build requirements of {name}");
        let python = self.uv.environment(work.path(), &system.requires, &doing)?;
        let call = |action: &str| -> Result<(), Error> {
            let argv = [
                python.as_str(),
                "-s",
                &format!("{}/hook.py", Uv::WORK),
                action,
                target,
                &format!("{}/out", Uv::WORK),
                &system.hook_argument(),
            ];
            let mut variables = variables.clone();
            let folder = format!("{}/env/bin", Uv::WORK);
            variables.insert(
                "PATH".to_owned(),
                format!("{folder}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
            );
            let mount = Mount {
                source: work.path().join("source"),
                target: target.to_owned(),
                writable: true,
            };
            let argv = argv.map(str::to_owned).to_vec();
            let log = self.uv.run_offline(argv, work.path(), mount, &variables)?;
            if log.success() {
                return Ok(());
            }
            Err(Error::command(
                format!("asking the build backend of {name} for its {action}"),
                &log,
            ))
        };
        call("requires")?;
        let answer: Requires = read_json(&out.join("requires.json"))?;
        let static_requires = || system.requires.iter().cloned();
        let wheel: BTreeSet<String> = static_requires().chain(answer.wheel).collect();
        let editable: BTreeSet<String> = static_requires().chain(answer.editable).collect();
        let mut metadata = None;
        if with_metadata {
            let all: Vec<String> = wheel.union(&editable).cloned().collect();
            if all.len() > system.requires.len() {
                self.uv.environment(work.path(), &all, &doing)?;
            }
            call("metadata")?;
            metadata = Some(read_metadata(&out)?);
        }
        Ok(Dynamic { wheel, editable, metadata })
    }

    /// Whether a package is much older than the date allows; one that the spec itself pins is not worth a word.
    fn age(&self, package: &PythonPackage, question: &Question) -> Result<Option<String>, Error> {
        let pins = question.requirements.iter().chain(&question.constraints).any(|requirement| {
            let end = requirement
                .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'))
                .unwrap_or(requirement.len());
            normalize(&requirement[..end]) == package.name
                && requirement[end..].contains(['=', '<', '~'])
        });
        if pins {
            return Ok(None);
        }
        let cut: Option<Timestamp> = match self.dates.packages.get(&package.name) {
            Some(PackageDate::Before(time)) => Some(*time),
            Some(PackageDate::Never(_)) => None,
            None => Some(self.dates.all),
        };
        let files = net::pypi::files(self.client, &package.name)?;
        Ok(age::notice(package, &files, cut, &self.interpreter.version))
    }
}

#[derive(serde::Deserialize)]
struct Requires {
    wheel: Vec<String>,
    editable: Vec<String>,
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let bytes = fs_err::read(path)?;
    serde_json::from_slice(&bytes).map_err(|error| Error::Unreadable {
        what: "the answer of a build backend".to_owned(),
        problem: error.to_string(),
    })
}

/// The metadata that the hook left in `out`: a `.dist-info` folder, or a whole wheel.
fn read_metadata(out: &Path) -> Result<Metadata, Error> {
    let inside = |name: String| -> Result<String, Error> {
        if name.contains('/') || name == ".." {
            return Err(Error::Unreadable {
                what: "the answer of a build backend".to_owned(),
                problem: format!("`{name}` is not a file name"),
            });
        }
        Ok(name)
    };
    let folder = out.join("metadata.json");
    if folder.exists() {
        let name = inside(read_json(&folder)?)?;
        let bytes = fs_err::read(out.join(name).join("METADATA"))?;
        return Metadata::parse(&String::from_utf8_lossy(&bytes));
    }
    let wheel = inside(read_json(&out.join("built.json"))?)?;
    let archive = super::Archive::open(&out.join(&wheel))?;
    let entry = archive.entries.iter().find(|entry| {
        entry
            .name
            .split_once('/')
            .is_some_and(|(folder, file)| folder.ends_with(".dist-info") && file == "METADATA")
    });
    let entry = entry.ok_or_else(|| Error::Unreadable {
        what: wheel.clone(),
        problem: "it has no metadata".to_owned(),
    })?;
    Metadata::parse(&String::from_utf8_lossy(&archive.read(entry)?))
}

/// Copies folders, files and links; modes stay.
fn copy_tree(from: &Path, to: &Path) -> Result<(), Error> {
    for entry in walkdir::WalkDir::new(from).sort_by_file_name() {
        let entry = entry.map_err(std::io::Error::from)?;
        let path = to.join(entry.path().strip_prefix(from).expect("walkdir stays in its root"));
        if entry.file_type().is_dir() {
            fs_err::create_dir_all(&path)?;
        } else if entry.file_type().is_symlink() {
            fs_err::os::unix::fs::symlink(fs_err::read_link(entry.path())?, &path)?;
        } else if entry.file_type().is_file() {
            fs_err::copy(entry.path(), &path)?;
        }
    }
    Ok(())
}
