//! Programs from PyPI, each in a Python environment of its own with every version pinned.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{say_skipped, shared_folder, shared_lock};

/// A Python environment that holds what `tests/fixtures/interop/<name>.txt` lists. `None`, and a word about it, where it is not there
/// yet and cannot be made.
pub(crate) struct Venv {
    folder: PathBuf,
}

impl Venv {
    /// Made once, and kept in the folder of what tests share.
    pub(crate) fn get(name: &str) -> Option<Self> {
        let list = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures/interop")
            .join(format!("{name}.txt"));
        let folder = shared_folder().join("venvs").join(name);
        let _lock = shared_lock("venvs");
        let done = folder.join("done");
        let wanted = fs_err::read_to_string(&list).unwrap();
        if fs_err::read_to_string(&done).is_ok_and(|held| held == wanted) {
            return Some(Self { folder });
        }
        let run = |command: &mut Command| {
            let output = command.output();
            let good = output.as_ref().is_ok_and(|output| output.status.success());
            if !good {
                say_skipped(&format!("{name} cannot be had from PyPI: {output:?}"));
            }
            good.then_some(())
        };
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        // The list is complete: nothing is resolved.
        run(Command::new(folder.join("bin/pip"))
            .args(["install", "--quiet", "--no-deps", "--disable-pip-version-check", "-r"])
            .arg(&list))?;
        fs_err::write(done, wanted).unwrap();
        Some(Self { folder })
    }

    /// Its Python, to be given arguments.
    pub(crate) fn python(&self) -> Command {
        Command::new(self.folder.join("bin/python"))
    }
}
