//! `/testbed` from a git repository's history.

use super::repository::settle;
use super::{Error, command, offline};
use crate::bundle::history::History;
use crate::image::{self, Image};
use crate::runtime::{Root, Workbench};

/// The script that lays the work tree; part of the step's key.
pub(crate) const FROM_HISTORY: &str = include_str!("scripts/history.sh");

/// A layer with `/testbed` at `commit`: its history, the tags into it, and nothing else.
pub(crate) fn from_history(
    bench: Workbench<'_>,
    base: &Image,
    name: &str,
    commit: &str,
    history: &History,
) -> Result<image::Layer, Error> {
    let scratch = bench.store.scratch_dir("repository")?;
    let folder = scratch.path();
    fs_err::create_dir(folder.join("logs"))?;
    let tags: String = history.tags.iter().map(|(id, name)| format!("{id} {name}\n")).collect();
    fs_err::write(folder.join("tags"), tags)?;
    let mut spec = offline::shell(FROM_HISTORY, base.created, &folder.join("logs"));
    offline::with(
        &mut spec,
        [("PACK", "/run/hallmark/pack"), ("TAGS", "/run/hallmark/tags"), ("COMMIT", commit)],
    );
    spec.mounts = vec![
        offline::input(&bench.store.blob_path(&history.pack), "pack"),
        offline::input(&folder.join("tags"), "tags"),
    ];
    let step = format!("repository of {name}");
    let log = command::run(bench, &step, Root::Layers(&base.layers), &spec)?;
    // The script's last line: the base commit's date.
    let text = fs_err::read_to_string(&log.stdout)?;
    let date = text.lines().last().and_then(|line| line.trim().parse().ok()).ok_or_else(|| {
        Error::Invalid {
            what: name.to_owned(),
            problem: format!("the commit's date does not read: {text:?}"),
            hint: None,
        }
    })?;
    settle(bench, log.upper.expect("asked for"), date)
}
