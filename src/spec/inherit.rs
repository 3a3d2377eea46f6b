//! Which file inherits from which: a chain, never a tree.
//!
//! A file has at most one parent: the file beside it that its key `inherits` names; else `_defaults.toml` beside it;
//! else, and for such a file itself, `_defaults.toml` one folder up. A file that the chain meets twice is an error.

use std::path::{Path, PathBuf};

use super::reader::{Place, Reader};

/// The name of the files that are inherited without being named.
pub(super) const DEFAULTS: &str = "_defaults.toml";

/// One file, read by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecFile {
    /// Where it is: `<folder>/<owner>__<name>/<version>.toml`. Shown in messages; never opened.
    pub path: PathBuf,
    /// What it holds.
    pub text: String,
}

impl SpecFile {
    /// A file's path and text.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    pub(super) fn file_name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }
}

/// The parent of `file` among `others`, given what its `inherits` says.
pub(super) fn parent<'a>(
    file: &SpecFile,
    inherits: Option<(&str, &Place)>,
    others: &'a [SpecFile],
    reader: &mut Reader<'_>,
) -> Option<&'a SpecFile> {
    let find = |path: &Path| others.iter().find(|other| other.path == path);
    if let Some((name, place)) = inherits {
        if name.is_empty() || name.contains(['/', '\\', '\0']) || name == ".." || name == "." {
            reader.fault(
                place,
                format!("`inherits` names a file beside this one, not {name:?}"),
                "write the file's bare name, such as `inherits = \"2.0.toml\"`",
            );
            return None;
        }
        let found = find(&file.folder().join(name));
        if found.is_none() {
            let known: Vec<_> = others
                .iter()
                .filter(|other| other.folder() == file.folder() && other.path != file.path)
                .map(SpecFile::file_name)
                .collect();
            let hint = match known.as_slice() {
                [] => "there is no other spec in this folder: remove the line".to_owned(),
                _ => format!("beside this file there are: {}", known.join(", ")),
            };
            reader.fault(place, format!("there is no file {name:?} to inherit from"), hint);
        }
        return found;
    }
    let beside = file.folder().join(DEFAULTS);
    let above = || find(&file.folder().parent()?.join(DEFAULTS));
    if file.path == beside { above() } else { find(&beside).or_else(above) }
}
