//! A runtime that replays answers, for tests of schedules, statistics and grading.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use super::check::{check, source};
use super::{EMBEDDED, Error, ExitStatus, Gap, Root, RunLog, RunSpec, Runtime};
use crate::base::{Cancel, Digest};

/// What one run is to answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// How the command ends.
    pub status: ExitStatus,
    /// What it writes to standard output.
    pub stdout: Vec<u8>,
    /// What it writes to standard error.
    pub stderr: Vec<u8>,
    /// Files it writes into writable mounts, by their path inside the container.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Whether its wall limit killed it.
    pub timed_out: bool,
    /// Whether its memory limit did.
    pub oom_killed: bool,
    /// What it had to do without.
    pub gaps: Vec<Gap>,
}

impl Answer {
    /// Exits with `code`, silently.
    pub fn exit(code: i32) -> Self {
        Self {
            status: ExitStatus::Exited(code),
            stdout: Vec::new(),
            stderr: Vec::new(),
            files: BTreeMap::new(),
            timed_out: false,
            oom_killed: false,
            gaps: Vec::new(),
        }
    }

    /// Writes `text` to standard output besides.
    #[must_use]
    pub fn with_stdout(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.stdout = text.into();
        self
    }

    /// Writes a file into a writable mount besides.
    #[must_use]
    pub fn with_file(mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.into(), bytes.into());
        self
    }
}

/// One call that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The layers, or none for a folder.
    pub layers: Vec<Digest>,
    /// The folder, or none for layers.
    pub directory: Option<PathBuf>,
    /// The spec.
    pub spec: RunSpec,
}

/// Answers calls in order, from a list, and keeps what was asked.
#[derive(Debug, Default)]
pub struct Fake {
    answers: Mutex<VecDeque<Answer>>,
    calls: Mutex<Vec<Call>>,
}

impl Fake {
    /// Will give `answers`, in order; a call beyond them is an error.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), calls: Mutex::default() }
    }

    /// Will give this answer, too, after all others.
    pub fn will(&self, answer: Answer) {
        self.answers.lock().expect("no holder panics").push_back(answer);
    }

    /// What was asked so far.
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().expect("no holder panics").clone()
    }
}

impl Runtime for Fake {
    fn run(&self, root: Root<'_>, spec: &RunSpec, cancel: &Cancel) -> Result<RunLog, Error> {
        cancel.check()?;
        check(spec)?;
        spec.mounts.iter().try_for_each(|mount| source(mount).map(drop))?;
        let (layers, directory) = match root {
            Root::Layers(layers) => (layers.iter().map(|layer| layer.diff_id).collect(), None),
            Root::Directory(path) => (Vec::new(), Some(path.to_owned())),
        };
        let call = Call { layers, directory, spec: spec.clone() };
        self.calls.lock().expect("no holder panics").push(call);
        let next = self.answers.lock().expect("no holder panics").pop_front();
        let answer = next.ok_or_else(|| Error::Launcher {
            message: format!("no answer is left for {:?}", spec.argv),
        })?;
        let write = |path: PathBuf, bytes: &[u8]| {
            fs_err::write(&path, bytes)
                .map(|()| path)
                .map_err(|source| Error::System { doing: "write an answer".to_owned(), source })
        };
        for (path, bytes) in &answer.files {
            let target = spec.mounts.iter().filter(|mount| mount.writable).find_map(|mount| {
                let rest = path.strip_prefix(&mount.target)?;
                let rest = rest.strip_prefix('/').unwrap_or(rest);
                Some(if rest.is_empty() { mount.source.clone() } else { mount.source.join(rest) })
            });
            let target = target.ok_or_else(|| Error::Launcher {
                message: format!("no writable mount holds {path}"),
            })?;
            write(target, bytes)?;
        }
        Ok(RunLog {
            status: answer.status,
            timed_out: answer.timed_out,
            oom_killed: answer.oom_killed,
            disk_full: false,
            output_full: false,
            wall: Duration::from_millis(1),
            cpu: None,
            peak_memory: None,
            network_attempts: None,
            stdout: write(spec.output.join("stdout"), &answer.stdout)?,
            stderr: write(spec.output.join("stderr"), &answer.stderr)?,
            upper: None,
            gaps: answer.gaps,
        })
    }

    fn gaps(&self) -> &[Gap] {
        &[]
    }

    fn name(&self) -> &str {
        EMBEDDED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Mount;

    #[test]
    fn replays_and_records() {
        let folder = tempfile::tempdir().unwrap();
        let fake = Fake::new([
            Answer::exit(3).with_stdout("out"),
            Answer::exit(0).with_file("/report/a", "text"),
        ]);
        let mut spec = RunSpec::new(["x"], folder.path());
        let run = |spec: &RunSpec| fake.run(Root::Layers(&[]), spec, &Cancel::new());
        let log = run(&spec).unwrap();
        assert_eq!(log.status, ExitStatus::Exited(3));
        assert_eq!(fs_err::read(log.stdout).unwrap(), b"out");
        let report = folder.path().join("report");
        fs_err::create_dir(&report).unwrap();
        spec.mounts =
            vec![Mount { source: report.clone(), target: "/report".to_owned(), writable: true }];
        assert!(run(&spec).unwrap().success());
        assert_eq!(fs_err::read(report.join("a")).unwrap(), b"text");
        assert!(run(&spec).is_err());
        assert_eq!(fake.calls().len(), 3);
        assert_eq!(fake.calls()[0].spec.argv, ["x"]);
    }
}
