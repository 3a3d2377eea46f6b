//! The commit that `/testbed` is at, read from an image's layers.

use std::path::Path;

use super::Error;
use crate::image::{Image, ensure_unpacked};
use crate::runtime::Workbench;

/// The commit of the work tree in an instance's image: the row's base commit, or the one that was made of a pair's base sdist.
pub fn head_commit(bench: Workbench<'_>, image: &Image) -> Result<String, Error> {
    let unknown = |problem: String| Error::Invalid {
        what: "the work tree in the image".to_owned(),
        problem,
        hint: Some("build the image again: its layers were changed".into()),
    };
    for layer in image.layers.iter().rev() {
        let git = ensure_unpacked(bench.store, layer, bench.cancel)?.join("testbed/.git");
        let Some(head) = read(&git.join("HEAD"))? else { continue };
        let head = head.trim_end();
        let Some(reference) = head.strip_prefix("ref: ") else { return Ok(head.to_owned()) };
        if let Some(commit) = read(&git.join(reference))? {
            return Ok(commit.trim_end().to_owned());
        }
        let packed = read(&git.join("packed-refs"))?.unwrap_or_default();
        let found = packed.lines().find_map(|line| {
            let (commit, name) = line.split_once(' ')?;
            (name == reference).then(|| commit.to_owned())
        });
        return found.ok_or_else(|| unknown(format!("HEAD is {reference}, which is not there")));
    }
    Err(unknown("it has no HEAD".to_owned()))
}

/// A file of the layer; `None` where it has none. Never through a link, which would lead to the host's files.
fn read(path: &Path) -> Result<Option<String>, Error> {
    match fs_err::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(Some(fs_err::read_to_string(path)?)),
        _ => Ok(None),
    }
}
