//! Compiled Python files (docs/decisions/0003-pyc.md): checked source hashes, marshal version 2, hash seed 0, optimisation
//! level 0 only.
//!
//! Python 3.6 and older know no header with a hash. There, nothing is compiled: a file with a source time in its header runs
//! old code when a patched source gets the same time and size.

use std::path::Path;

use serde::Serialize;

use super::Error;
use crate::image::Image;
use crate::resolve::python::{Interpreter, PYTHON, how_it_ended, tail_of};
use crate::runtime::{Mount, Network, Root, RunSpec, Workbench};

const SCRIPT: &str = include_str!("pyc.py");
const TREES: &str = "/run/hallmark/trees";

/// The oldest Python whose compiled files can name their source by its hash (PEP 552).
const FIRST_WITH_HASHES: (u32, u32) = (3, 7);

/// Everything that decides what a source is compiled to.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Compiler<'a> {
    version: &'a str,
    magic: &'a str,
    binary: crate::base::Digest,
    script: &'static str,
}

impl<'a> Compiler<'a> {
    /// The compiler of `interpreter`.
    pub(crate) fn of(interpreter: &'a Interpreter) -> Self {
        Self {
            version: &interpreter.version,
            magic: &interpreter.magic,
            binary: interpreter.binary,
            script: SCRIPT,
        }
    }
}

/// Compiles the sources of the trees `0`, `1`, ... in `folder`, in one container of `image`.
pub(crate) fn compile(
    bench: Workbench<'_>,
    image: &Image,
    interpreter: &Interpreter,
    folder: &Path,
    count: usize,
) -> Result<(), Error> {
    if interpreter.minor() < FIRST_WITH_HASHES {
        return Ok(());
    }
    let output = bench.store.scratch_dir("pyc")?;
    let script = output.path().join("pyc.py");
    fs_err::write(&script, SCRIPT)?;
    let scheme = &interpreter.scheme;
    let count = count.to_string();
    let target = "/run/hallmark/pyc.py";
    let mut run = RunSpec::new(
        [PYTHON, "-s", target, TREES, &count, &scheme.purelib, &scheme.platlib],
        output.path(),
    );
    run.network = Network::Unreachable;
    // Not `-I`, which would ignore the seed.
    run.env.insert("PYTHONHASHSEED".to_owned(), "0".to_owned());
    run.env.insert("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned());
    run.mounts = vec![
        Mount { source: script, target: target.to_owned(), writable: false },
        Mount { source: folder.to_owned(), target: TREES.to_owned(), writable: true },
    ];
    let log = bench.runtime.run(Root::Layers(&image.layers), &run, bench.cancel)?;
    if log.success() {
        return Ok(());
    }
    Err(Error::Command {
        step: "compiling Python files".to_owned(),
        how: how_it_ended(&log),
        tail: tail_of(&log),
        log: None,
    })
}
