//! Source distributions, built once, offline, in their locked build environment, always at the same path; the wheel is
//! written anew in one canonical form, so that neither the backend's zip habits nor the umask nor the clock can show.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::distribution::{Distribution, EPOCH, settle};
use super::inside::file_inside;
use super::plan::LayerPlan;
use super::{Error, env};
use crate::base::progress::Task;
use crate::base::{Digest, canon};
use crate::image::Image;
use crate::lock::{BuiltWheel, EnvLock, PythonFile};
use crate::resolve::python::{
    Archive, BuildSystem, HOOK, Interpreter, PYTHON, how_it_ended, tail_of, write_stored,
};
use crate::runtime::{Mount, Network, Root, RunLog, RunSpec, Workbench};

/// Where sources lie while they are built: compilers write it into what they make.
const PLACE: &str = "/build";
const OUTPUT: &str = "/run/hallmark/out";
const SCRIPT: &str = "/run/hallmark/hook.py";

/// Everything that a built wheel depends on.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Inputs<'a> {
    step: &'static str,
    version: u32,
    image: Digest,
    sdist: &'a str,
    sha256: Digest,
    environment: &'a [Distribution],
    hook: &'static str,
}

/// The wheel of `sdist`: from the store, or built now. It must be the one that the lock names, if it names one.
pub(super) fn wheel_of(
    bench: Workbench<'_>,
    image: &Image,
    interpreter: &Interpreter,
    lock: &EnvLock,
    sdist: &PythonFile,
) -> Result<BuiltWheel, Error> {
    let promised = lock.built.iter().find(|built| built.sdist == sdist.name);
    let wheel = build(bench, image, interpreter, lock, sdist)?;
    match promised {
        Some(promised) if promised.sha256 != wheel.sha256 => Err(Error::Mismatch {
            what: format!("{}, built from {}", wheel.wheel, wheel.sdist),
            expected: promised.sha256,
            actual: wheel.sha256,
        }),
        _ => Ok(wheel),
    }
}

fn build(
    bench: Workbench<'_>,
    image: &Image,
    interpreter: &Interpreter,
    lock: &EnvLock,
    sdist: &PythonFile,
) -> Result<BuiltWheel, Error> {
    let invalid = |problem: &str, hint: &str| Error::Invalid {
        what: sdist.name.clone(),
        problem: problem.to_owned(),
        hint: Some(hint.to_owned()),
    };
    let environment =
        lock.build_environments.iter().find(|environment| environment.sdist == sdist.name);
    let environment = environment.ok_or_else(|| {
        invalid("the lock has no build environment for it", "lock the spec again")
    })?;
    let mut distributions = Vec::new();
    for package in &environment.packages {
        if !package.file.is_wheel() {
            return Err(invalid(
                &format!("its build environment holds {}, which is no wheel", package.file.name),
                "lock the spec again",
            ));
        }
        distributions.push(Distribution {
            name: package.name.clone(),
            wheel: package.file.name.clone(),
            sha256: package.file.sha256,
        });
    }
    distributions.sort();
    let key = canon::digest(&Inputs {
        step: "sdist",
        version: 2,
        image: image.key,
        sdist: &sdist.name,
        sha256: sdist.sha256,
        environment: &distributions,
        hook: HOOK,
    })?;
    let held =
        || bench.store.step::<BuiltWheel>(&key).filter(|built| bench.store.has_blob(&built.sha256));
    let task = Task::start(bench.reporter, "sdist", &sdist.name, None);
    if let Some(built) = held() {
        task.cached();
        return Ok(built);
    }
    let _lock = bench.store.lock_step(&key, bench.cancel)?;
    if let Some(built) = held() {
        task.cached();
        return Ok(built);
    }

    let plan = LayerPlan::default();
    let mut layers = image.layers.clone();
    layers.extend(env::layers(bench, image, interpreter, &distributions, &plan, &sdist.name)?);

    let scratch = bench.store.scratch_dir("sdist")?;
    let folder = |name: &str| -> Result<PathBuf, Error> {
        let path = scratch.path().join(name);
        fs_err::create_dir(&path)?;
        Ok(path)
    };
    let (sources, out, logs) = (folder("source")?, folder("out")?, folder("logs")?);
    let top = crate::bundle::sdist::extract(bench.store, &sdist.sha256, &sdist.name, &sources)?;
    settle(&top)?;
    let system = BuildSystem::of(&top, &sdist.name)?;
    let top_name = top.file_name().map(|name| name.to_string_lossy().into_owned());
    let target = format!("{PLACE}/{}", top_name.unwrap_or_else(|| "source".to_owned()));
    let script = scratch.path().join("hook.py");
    fs_err::write(&script, HOOK)?;

    let argument = system.hook_argument();
    let mut run = RunSpec::new([PYTHON, "-s", SCRIPT, "wheel", &target, OUTPUT, &argument], &logs);
    run.network = Network::Unreachable;
    run.working_dir.clone_from(&target);
    let epoch = EPOCH.to_string();
    for (name, value) in [
        ("PYTHONHASHSEED", "0"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("SOURCE_DATE_EPOCH", &epoch),
        ("TMPDIR", "/tmp"),
        ("PIP_NO_INDEX", "1"),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ] {
        run.env.insert(name.to_owned(), value.to_owned());
    }
    run.mounts = vec![
        Mount { source: script, target: SCRIPT.to_owned(), writable: false },
        Mount { source: top, target, writable: true },
        Mount { source: out.clone(), target: OUTPUT.to_owned(), writable: true },
    ];
    let log = bench.runtime.run(Root::Layers(&layers), &run, bench.cancel)?;
    if !log.success() {
        return Err(failed(sdist, &log));
    }
    let wheel = repack(bench, sdist, &out)?;
    bench.store.put_step(&key, &wheel)?;
    task.done();
    Ok(wheel)
}

/// Why a build failed, in words for the most common reason: it wanted the network.
fn failed(sdist: &PythonFile, log: &RunLog) -> Error {
    const SIGNS: [&str; 6] = [
        "Temporary failure in name resolution",
        "Name or service not known",
        "Network is unreachable",
        "No matching distribution found",
        "fetch_build_egg",
        "Download error on",
    ];
    let (how, tail) = (how_it_ended(log), tail_of(log));
    if SIGNS.iter().any(|sign| tail.contains(sign)) {
        return Error::Invalid {
            what: format!("building {}", sdist.name),
            problem: format!("it tried to download something ({how}); builds are offline\n{}", tail.trim_end()),
            hint: Some(
                "what a build needs must be among its build requirements (`[build-system]` or `setup_requires`), which are locked; choose a version with a wheel otherwise"
                    .to_owned(),
            ),
        };
    }
    Error::Command { step: format!("building {}", sdist.name), how, tail, log: None }
}

/// Writes the one wheel in `out` to the store, canonically.
fn repack(bench: Workbench<'_>, sdist: &PythonFile, out: &Path) -> Result<BuiltWheel, Error> {
    let invalid = |problem: String| Error::Invalid {
        what: format!("building {}", sdist.name),
        problem,
        hint: None,
    };
    let mut wheels = Vec::new();
    for entry in fs_err::read_dir(out)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if Path::new(&name).extension().is_some_and(|extension| extension == "whl") {
            wheels.push(name);
        }
    }
    let [wheel] = &wheels[..] else {
        return Err(invalid(format!("{} wheels came out, expected one", wheels.len())));
    };
    let archive =
        Archive::open(&file_inside(out, wheel)?).map_err(|error| invalid(error.to_string()))?;
    let mut entries = archive.entries.clone();
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    let files = entries
        .iter()
        .map(|entry| Ok((entry.name.clone(), archive.read(entry)?, entry.is_executable())));
    let mut writer = bench.store.blob_writer()?;
    write_stored(&mut writer, files)?;
    let (sha256, size) = writer.commit()?;
    Ok(BuiltWheel { sdist: sdist.name.clone(), wheel: wheel.clone(), sha256, size })
}
