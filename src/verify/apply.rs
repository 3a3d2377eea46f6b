//! The layers that a phase lays over the instance image: its patches, then what the rebuild made. Made once
//! per image and patches, and shared by all runs of the phase.
//!
//! Patches are applied by `git apply` after a dry run: all or nothing, no fuzz, no reverse, no fallback. Files they
//! touch get a time after the image's, so that a rebuild by time (make, setuptools) sees them as newer than what
//! was built from their old text.

use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use super::Error;
use super::patch::patched_files;
use super::plan::RunPlan;
use super::record::{PatchName, PatchRef, RunOutcome};
use crate::base::{Digest, canon};
use crate::build;
use crate::image::{self, Image, Layer, PackRules};
use crate::runtime::{ExitStatus, Limits, Mount, Network, Root, RunLog, RunSpec, Workbench};

/// Changes when the same inputs would make other layers.
const APPLY: &str = "verify.apply/1";
pub(crate) const REBUILD: &str = "verify.rebuild/2";

/// Seconds between the image's newest file and a patched one, and between that and a rebuilt one.
const LATER: i64 = 60;

/// Least wall time of a rebuild: compiled projects need more than their tests.
const REBUILD_WALL: Duration = Duration::from_hours(1);

/// Where patches are inside the container.
const PATCHES: &str = "/run/hallmark-patches";

/// Applies the patches named by its arguments. 9: there is no git; 10 and up: the patch of that number.
const SCRIPT: &str = r#"
cd /testbed || exit 8
command -v git > /dev/null || exit 9
number=10
for name; do
  git apply --check --whitespace=nowarn "/run/hallmark-patches/$name" || exit $number
  git apply --whitespace=nowarn "/run/hallmark-patches/$name" || exit $number
  number=$((number + 1))
done
"#;

/// A patch as it is applied.
pub(crate) struct Patch {
    pub(crate) reference: PatchRef,
    pub(crate) bytes: Vec<u8>,
}

impl Patch {
    /// Adds a missing last newline, which some writers drop and `git apply` wants.
    pub(crate) fn new(name: PatchName, bytes: &[u8]) -> Self {
        let normalised = !bytes.is_empty() && !bytes.ends_with(b"\n");
        let mut bytes = bytes.to_vec();
        if normalised {
            bytes.push(b'\n');
        }
        let reference =
            PatchRef { name, sha256: Digest::of(&bytes), size: bytes.len() as u64, normalised };
        Self { reference, bytes }
    }
}

/// What came of the patches and the rebuild.
pub(crate) enum Prepared {
    /// Layers over the image.
    Ready(Vec<Layer>),
    /// The run ends here; the log is of the command that stopped it.
    Stopped(RunOutcome, Box<RunLog>),
}

/// Makes the layers, or finds them. The logs of a command that stops are in `output`.
pub(crate) fn prepare(
    bench: Workbench<'_>,
    image: &Image,
    plan: &RunPlan<'_>,
    patches: &[Patch],
    output: &Path,
) -> Result<Prepared, Error> {
    let references: Vec<&PatchRef> = patches.iter().map(|patch| &patch.reference).collect();
    let inputs = serde_json::json!({
        "step": APPLY, "image": image.key,
        "patches": references.iter().map(|patch| patch.sha256).collect::<Vec<_>>(),
    });
    let epoch = testbed_time(bench, image) + LATER;
    let applied =
        cached(bench, &inputs, |bench| apply(bench, image, plan, patches, epoch, output))?;
    let layer = match applied {
        Ok(layer) => layer,
        Err((outcome, log)) => return Ok(Prepared::Stopped(outcome, log)),
    };
    let commands = &plan.spec.commands.rebuild;
    if commands.is_empty() {
        return Ok(Prepared::Ready(vec![layer]));
    }
    let inputs = serde_json::json!({
        "step": REBUILD, "image": image.key, "applied": layer.diff_id, "commands": commands,
    });
    let rebuilt =
        cached(bench, &inputs, |bench| rebuild(bench, image, plan, layer, epoch + LATER, output))?;
    Ok(match rebuilt {
        Ok(rebuilt) => Prepared::Ready(vec![layer, rebuilt]),
        Err((outcome, log)) => Prepared::Stopped(outcome, log),
    })
}

type Made = Result<Layer, (RunOutcome, Box<RunLog>)>;

/// A layer that was made before, or a new one. What stops is not kept: a rebuild may stop for reasons of
/// the moment.
fn cached(
    bench: Workbench<'_>,
    inputs: &serde_json::Value,
    make: impl FnOnce(Workbench<'_>) -> Result<Made, Error>,
) -> Result<Made, Error> {
    let key = canon::digest(inputs)?;
    let _lock = bench.store.lock_step(&key, bench.cancel)?;
    if let Some(layer) = bench.store.step::<Layer>(&key)
        && bench.store.layer_path(&layer.diff_id).exists()
    {
        return Ok(Ok(layer));
    }
    let made = make(bench)?;
    if let Ok(layer) = &made {
        bench.store.put_step(&key, layer)?;
    }
    Ok(made)
}

fn apply(
    bench: Workbench<'_>,
    image: &Image,
    plan: &RunPlan<'_>,
    patches: &[Patch],
    epoch: i64,
    output: &Path,
) -> Result<Made, Error> {
    let folder = bench.store.scratch_dir("patches")?;
    // An empty patch changes nothing, and git has no word for that.
    let patches: Vec<&Patch> = patches.iter().filter(|patch| !patch.bytes.is_empty()).collect();
    for patch in &patches {
        fs_err::write(folder.path().join(patch.reference.name.as_str()), &patch.bytes)?;
    }
    let mut argv: Vec<String> = ["/bin/sh", "-c", SCRIPT, "apply"].map(str::to_owned).into();
    argv.extend(patches.iter().map(|patch| patch.reference.name.as_str().to_owned()));
    let mut spec = RunSpec::new(argv, output);
    spec.env.extend(image.config.env.clone());
    spec.env.extend(
        [("LC_ALL", "C"), ("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    spec.network = Network::Unreachable;
    spec.keep_upper = true;
    spec.mounts.push(Mount {
        source: folder.path().to_owned(),
        target: PATCHES.to_owned(),
        writable: false,
    });
    let log = bench.runtime.run(Root::Layers(&image.layers), &spec, bench.cancel)?;
    if log.success() {
        return commit(bench, log, epoch).map(Ok);
    }
    discard(&log)?;
    let code = match log.status {
        ExitStatus::Exited(code) => usize::try_from(code).unwrap_or(0),
        ExitStatus::Signaled(_) => 0,
    };
    if code == 9 || code == 127 {
        return Err(Error::NoGit { instance: plan.instance.to_string() });
    }
    if let Some(patch) = code.checked_sub(10).and_then(|number| patches.get(number)) {
        let message = fs_err::read(&log.stderr)?;
        let outcome = patch_error(patch, &String::from_utf8_lossy(&message));
        return Ok(Err((outcome, Box::new(log))));
    }
    let reason = format!("applying the patches: {}: {}", how(&log), last_lines(&log)?);
    Ok(Err((RunOutcome::EnvError { reason }, Box::new(log))))
}

/// `error: patch failed: FILE:LINE`, else the first file that an `error:` line names.
fn patch_error(patch: &Patch, message: &str) -> RunOutcome {
    let errors = || message.lines().filter_map(|line| line.strip_prefix("error: "));
    let failed = errors()
        .find_map(|line| line.strip_prefix("patch failed: ")?.rsplit_once(':'))
        .map(|(file, line)| (file.to_owned(), line.parse::<u64>().ok()));
    let files = patched_files(&patch.bytes);
    // git's words differ from version to version.
    let message = if files.is_empty() { "it changes no file" } else { message };
    let named = |file: &str| {
        let path = file.as_bytes();
        files
            .iter()
            .find(|one| one.old.as_deref() == Some(path) || one.new.as_deref() == Some(path))
    };
    let (file, hunk) = if let Some((file, line)) = failed {
        let hunk = named(&file)
            .and_then(|one| one.hunks.iter().position(|(start, _)| Some(*start) == line))
            .map(|at| at as u64 + 1);
        (Some(file), hunk)
    } else {
        let file = errors().find_map(|line| {
            let (file, _) = line.rsplit_once(": ")?;
            named(file).map(|_| file.to_owned())
        });
        (file, None)
    };
    RunOutcome::PatchError { patch: patch.reference.name, file, hunk, message: message.to_owned() }
}

fn rebuild(
    bench: Workbench<'_>,
    image: &Image,
    plan: &RunPlan<'_>,
    applied: Layer,
    epoch: i64,
    output: &Path,
) -> Result<Made, Error> {
    let commands: String = plan
        .spec
        .commands
        .rebuild
        .iter()
        .map(|command| format!("({command}\n) || exit $?\n"))
        .collect();
    let script = format!("umask 022\n{commands}");
    let mut spec = RunSpec::new(["/bin/sh", "-c", &script], output);
    spec.env.extend(build::environment(epoch));
    spec.env.extend(image.config.env.clone());
    "/testbed".clone_into(&mut spec.working_dir);
    spec.network = Network::Unreachable;
    spec.keep_upper = true;
    let limits = plan.limits();
    spec.limits = Limits { wall: limits.wall.max(REBUILD_WALL), ..limits };
    let layers: Vec<Layer> = image.layers.iter().copied().chain([applied]).collect();
    let log = bench.runtime.run(Root::Layers(&layers), &spec, bench.cancel)?;
    if log.success() {
        build::sweep(log.upper.as_deref().expect("asked for"))?;
        return commit(bench, log, epoch).map(Ok);
    }
    discard(&log)?;
    let outcome = RunOutcome::BuildFailed { how: how(&log), tail: last_lines(&log)? };
    Ok(Err((outcome, Box::new(log))))
}

fn commit(bench: Workbench<'_>, log: RunLog, epoch: i64) -> Result<Layer, Error> {
    let upper = log.upper.expect("asked for");
    Ok(image::commit_tree(bench.store, upper, &PackRules::root(epoch), bench.cancel)?)
}

fn discard(log: &RunLog) -> Result<(), Error> {
    if let Some(upper) = &log.upper {
        image::remove_tree(upper)?;
    }
    Ok(())
}

/// The newest time of `/testbed` itself: what the image's rules gave the work tree.
fn testbed_time(bench: Workbench<'_>, image: &Image) -> i64 {
    let of = |layer: &Layer| {
        let folder = bench.store.layer_path(&layer.diff_id).join("testbed");
        fs_err::symlink_metadata(folder).ok().map(|metadata| metadata.mtime())
    };
    image.layers.iter().filter_map(of).max().unwrap_or(image.created).max(image.created)
}

/// How a command ended, for people.
pub(crate) fn how(log: &RunLog) -> String {
    if log.timed_out {
        return "killed at the wall limit".to_owned();
    }
    if log.oom_killed {
        return "killed at the memory limit".to_owned();
    }
    if log.disk_full {
        return "killed at the disk limit".to_owned();
    }
    if log.output_full {
        return "killed at the limit of output".to_owned();
    }
    match log.status {
        ExitStatus::Exited(code) => format!("exit code {code}"),
        ExitStatus::Signaled(signal) => format!("signal {signal}"),
    }
}

/// The last lines of standard error, or of standard output when there are none.
pub(crate) fn last_lines(log: &RunLog) -> Result<String, Error> {
    const BYTES: u64 = 2048;
    for path in [&log.stderr, &log.stdout] {
        let bytes = tail(path, BYTES)?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        if !text.is_empty() {
            return Ok(text);
        }
    }
    Ok(String::new())
}

/// The last bytes of a file.
pub(crate) fn tail(path: &Path, bytes: u64) -> Result<Vec<u8>, Error> {
    let mut file = fs_err::File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(bytes)))?;
    let mut out = Vec::new();
    file.read_to_end(&mut out)?;
    Ok(out)
}

/// The environment of a run: hallmark's own, then the image's. Hashes of strings are the same in every plain run, so
/// that a test that hangs on them is found by varying the seed and not by chance.
pub(crate) fn environment(image: &Image, spec: &RunSpec) -> BTreeMap<String, String> {
    let mut env = spec.env.clone();
    env.insert("PYTHONHASHSEED".to_owned(), "0".to_owned());
    env.extend(image.config.env.clone());
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hunk_that_fails_is_named() {
        let text = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,1 +1,1 @@\n-1\n+2\n\
                    @@ -40,1 +40,1 @@\n-1\n+2\n";
        let patch = Patch::new(PatchName::Gold, text.as_bytes());
        let place = |message: &str| match patch_error(&patch, message) {
            RunOutcome::PatchError { file, hunk, .. } => (file, hunk),
            other => panic!("{other:?}"),
        };
        let file = Some("x.py".to_owned());
        assert_eq!(
            place("error: patch failed: x.py:40\nerror: x.py: patch does not apply\n"),
            (file.clone(), Some(2))
        );
        assert_eq!(place("error: x.py: No such file or directory\n"), (file, None));
        assert_eq!(place("error: corrupt patch at line 3\n"), (None, None));
        let words = Patch::new(PatchName::Gold, b"Fixes the widget.\n");
        let outcome = patch_error(&words, "error: No valid patches in input\n");
        assert_eq!(outcome.explain(), "the gold patch does not apply: it changes no file");
    }

    #[test]
    fn a_missing_last_newline_is_added_and_said() {
        let patch = Patch::new(PatchName::Test, b"x");
        assert_eq!((patch.bytes.as_slice(), patch.reference.normalised), (&b"x\n"[..], true));
        let patch = Patch::new(PatchName::Test, b"x\n");
        assert_eq!((patch.bytes.as_slice(), patch.reference.normalised), (&b"x\n"[..], false));
        assert!(!Patch::new(PatchName::Test, b"").reference.normalised);
    }
}
