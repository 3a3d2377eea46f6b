//! What the types of a run allow and the kernel does not.

use std::io;
use std::path::PathBuf;

use super::error::system;
use super::{Error, Mount, RunSpec};

/// An error where a spec cannot be run anywhere.
pub(crate) fn check(spec: &RunSpec) -> Result<(), Error> {
    let invalid = |what: &str| {
        let reason = io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
        Err(system("start the command")(reason))
    };
    if spec.argv.is_empty() {
        return invalid("no command was given");
    }
    let env = spec.env.iter().flat_map(|(name, value)| [name, value]);
    if spec.argv.iter().chain(env).chain([&spec.working_dir]).any(|text| text.contains('\0')) {
        return invalid("an argument or variable holds a NUL");
    }
    if spec.env.keys().any(|name| name.is_empty() || name.contains('=')) {
        return invalid("a variable's name is empty or holds `=`");
    }
    let targets = spec.mounts.iter().map(|mount| &mount.target);
    let folders = spec.copies.iter().map(|copy| &copy.path).chain(&spec.read_only);
    if targets.chain(folders).any(|path| !is_plain(path)) {
        return invalid("a mount's target must be absolute, without `.` and `..`");
    }
    if spec.account.as_ref().is_some_and(|account| {
        account.name.is_empty()
            || [&account.name, &account.home].iter().any(|field| field.contains([':', '\n']))
    }) {
        return invalid("an account's name or home holds `:` or a line's end");
    }
    Ok(())
}

fn is_plain(target: &str) -> bool {
    target.len() > 1
        && target.starts_with('/')
        && !target.contains('\0')
        && !target.split('/').any(|part| part == "." || part == "..")
}

/// A mount's source without links, and whether it is a folder.
pub(crate) fn source(mount: &Mount) -> Result<(PathBuf, bool), Error> {
    let doing = || format!("mount {}", mount.source.display());
    let source = fs_err::canonicalize(&mount.source).map_err(|error| system(doing())(error))?;
    let folder = source.is_dir();
    Ok((source, folder))
}
