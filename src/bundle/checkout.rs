//! A work tree at a commit, for those who ask a project's build backend: with the commit's own files, and with the history
//! that versions are made from (setuptools_scm, versioneer and others call `git describe`).
//!
//! The history is commits and tags alone, so a large repository costs little: only the commit's own tree has its files.

use std::path::Path;

use super::Error;
use super::git::{git, tags_into};

/// Makes the empty folder `into` a work tree of `commit`, from the repository in the folder `location`.
pub fn checkout(location: &str, commit: &str, into: &Path) -> Result<(), Error> {
    let repository = Path::new(location);
    let tags = tags_into(location, repository, commit)?;
    let mut tips = format!("{commit}\n");
    for (id, _) in &tags {
        tips.push_str(id);
        tips.push('\n');
    }
    // No template: hooks and settings of this host have no say.
    git(location, Some(into), &["init", "-q", "--template=", "."], &[])?;
    let pack = |options: &[&str], objects: &str| -> Result<(), Error> {
        let mut arguments = vec!["pack-objects", "--revs", "--stdout", "-q"];
        arguments.extend(options);
        let pack = git(location, Some(repository), &arguments, objects.as_bytes())?;
        git(location, Some(into), &["index-pack", "--stdin"], &pack)?;
        Ok(())
    };
    pack(&["--filter=tree:0"], &tips)?;
    pack(&[], &format!("{commit}^{{tree}}\n"))?;
    let updates: String = tags.iter().map(|(id, name)| format!("create {name} {id}\n")).collect();
    git(location, Some(into), &["update-ref", "--stdin"], updates.as_bytes())?;
    git(location, Some(into), &["update-ref", "--no-deref", "HEAD", commit], &[])?;
    git(location, Some(into), &["reset", "-q", "--hard"], &[])?;
    Ok(())
}
