//! The interpreter of an image, asked by running it: who it is and where it installs.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Error;

use crate::base::{Digest, canon};
use crate::image::Image;
use crate::runtime::{Mount, Root, RunSpec, Workbench};

/// The script that answers; part of the step's key.
const QUESTION: &str = include_str!("interpreter.py");

/// The path by which the interpreter is called and that scripts name. The suite's own interpreter: what is asked of
/// another one would need this as a parameter of the base.
pub const PYTHON: &str = "/usr/bin/python3";

/// Where a distribution's files go, absolute paths in the image.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Scheme {
    /// Pure modules.
    pub purelib: String,
    /// Modules of one platform.
    pub platlib: String,
    /// Headers; a folder per distribution is made in it.
    pub headers: String,
    /// Scripts.
    pub scripts: String,
    /// The root of data files.
    pub data: String,
    /// The interpreter that scripts name.
    pub python: String,
}

/// An interpreter: everything of it that decides what an install or a compiled file looks like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Interpreter {
    /// `X.Y.Z`.
    pub version: String,
    /// Magic number of compiled files, hex.
    pub magic: String,
    /// Digest of the executable.
    pub binary: Digest,
    /// glibc's version, `X.Y`.
    pub glibc: Option<String>,
    /// Where it installs.
    pub scheme: Scheme,
}

#[derive(Deserialize)]
struct Answer {
    version: String,
    magic: String,
    binary: Digest,
    libc: Option<String>,
    scheme: Option<Paths>,
    searched: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Paths {
    purelib: String,
    platlib: String,
    headers: String,
    scripts: String,
    data: String,
}

impl Interpreter {
    /// Asks the interpreter of `image`, once per image.
    pub fn of(bench: Workbench<'_>, image: &Image) -> Result<Self, Error> {
        let key = canon::digest(&("python-interpreter", 1, image.key, PYTHON, QUESTION))?;
        if let Some(held) = bench.store.step(&key) {
            return Ok(held);
        }
        let folder = bench.store.scratch_dir("interpreter")?;
        let script = folder.path().join("interpreter.py");
        fs_err::write(&script, QUESTION)?;
        let mut run = RunSpec::new([PYTHON, "-I", "/run/hallmark/interpreter.py"], folder.path());
        run.network = crate::runtime::Network::Unreachable;
        run.mounts.push(Mount {
            source: script,
            target: "/run/hallmark/interpreter.py".to_owned(),
            writable: false,
        });
        let log = bench.runtime.run(Root::Layers(&image.layers), &run, bench.cancel)?;
        if !log.success() {
            return Err(Error::command("asking the base's Python for its paths", &log));
        }
        let text = fs_err::read_to_string(&log.stdout)?;
        let answer: Answer = serde_json::from_str(&text).map_err(|source| Error::Unreadable {
            what: "the answer of the base's Python".to_owned(),
            problem: source.to_string(),
        })?;
        let path = run.env.get("PATH").map(String::as_str).unwrap_or_default();
        let interpreter =
            answer.check(image.config.env.get("PATH").map_or(path, String::as_str))?;
        bench.store.put_step(&key, &interpreter)?;
        Ok(interpreter)
    }

    /// `X.Y` as two numbers.
    pub fn minor(&self) -> (u32, u32) {
        let mut parts = self.version.split('.').map(|part| part.parse().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    }
}

impl Answer {
    /// Packages must be importable and scripts callable without any set-up of the environment.
    fn check(self, path: &str) -> Result<Interpreter, Error> {
        let unusable = |problem: String| Error::Unreadable {
            what: format!("the base's Python {}", self.version),
            problem,
        };
        let searched = self.searched.iter().cloned().collect::<Vec<_>>().join(", ");
        let scheme = self.scheme.as_ref().ok_or_else(|| {
            unusable(format!("no install scheme of it is on sys.path, which is {searched}"))
        })?;
        if !path.split(':').any(|folder| folder == scheme.scripts) {
            return Err(unusable(format!("scripts go to {}, PATH is {path}", scheme.scripts)));
        }
        Ok(Interpreter {
            scheme: Scheme {
                purelib: scheme.purelib.clone(),
                platlib: scheme.platlib.clone(),
                headers: scheme.headers.clone(),
                scripts: scheme.scripts.clone(),
                data: scheme.data.clone(),
                python: PYTHON.to_owned(),
            },
            version: self.version,
            magic: self.magic,
            binary: self.binary,
            glibc: self.libc.and_then(|text| text.strip_prefix("glibc ").map(str::to_owned)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Result<Interpreter, Error> {
        serde_json::from_str::<Answer>(text).unwrap().check("/usr/local/bin:/usr/bin")
    }

    #[test]
    fn paths_must_be_searched() {
        let scheme =
            r#"{"purelib":"/l/p","platlib":"/l/p","headers":"/i","scripts":"SCRIPTS","data":"/l"}"#;
        let text = |scheme: &str| {
            format!(
                r#"{{"version":"3.11.2","magic":"a70d0d0a","binary":"{}","libc":"glibc 2.36","scheme":{scheme},"searched":["/l/p"]}}"#,
                Digest::of("python")
            )
        };
        let good = answer(&text(&scheme.replace("SCRIPTS", "/usr/local/bin"))).unwrap();
        assert_eq!((good.minor(), good.glibc.as_deref()), ((3, 11), Some("2.36")));
        assert_eq!(good.scheme.python, PYTHON);
        assert_eq!(
            answer(&text(&scheme.replace("SCRIPTS", "/opt/bin"))).unwrap_err().to_string(),
            "the base's Python 3.11.2: scripts go to /opt/bin, PATH is /usr/local/bin:/usr/bin"
        );
        assert_eq!(
            answer(&text("null")).unwrap_err().to_string(),
            "the base's Python 3.11.2: no install scheme of it is on sys.path, which is /l/p"
        );
    }
}
