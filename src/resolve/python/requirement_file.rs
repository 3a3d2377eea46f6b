//! Requirement files of a project, as pip reads them, reduced to what a lock can hold.
//!
//! - `-r` and `-c` are followed inside the source; `-e .`, `.` and `.[extra]` mean the project itself.
//! - URLs, other paths and version control are errors: a lock names files of an index.
//! - Options that choose an index or a kind of file are left out with a notice; hashes are left out silently, since the
//!   lock has its own.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::Error;

/// What requirement files ask for.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    /// PEP 508 requirements.
    pub(super) requirements: BTreeSet<String>,
    /// PEP 508 constraints.
    pub(super) constraints: BTreeSet<String>,
    /// Extras of the project itself.
    pub(super) extras: BTreeSet<String>,
    /// Whether pre-releases are wanted.
    pub(super) prereleases: bool,
    /// What people should know.
    pub(super) notices: BTreeSet<String>,
}

/// Reads `file` (relative) of `source` and what it includes.
pub(super) fn read(source: &Path, file: &str, into: &mut Asked) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    read_one(source, Path::new(file), false, &mut seen, into)
}

fn read_one(
    source: &Path,
    file: &Path,
    constraints: bool,
    seen: &mut BTreeSet<(PathBuf, bool)>,
    into: &mut Asked,
) -> Result<(), Error> {
    let file = inside(file).ok_or_else(|| Error::Requirements {
        path: file.to_owned(),
        line: 1,
        problem: "the file lies outside of the project".to_owned(),
        hint: "name a path inside the project".to_owned(),
    })?;
    if !seen.insert((file.clone(), constraints)) {
        return Ok(());
    }
    let text = super::source::read(source, &file).map_err(|error| Error::Requirements {
        path: file.clone(),
        line: 1,
        problem: format!("it cannot be read at the setup source: {}", reason(&error)),
        hint: "check `requirement-files` of the spec".to_owned(),
    })?;
    for (number, line) in logical_lines(&text) {
        let fail = |problem: String, hint: &str| Error::Requirements {
            path: file.clone(),
            line: number,
            problem,
            hint: hint.to_owned(),
        };
        match classify(&line) {
            Line::Include { path, constraints: as_constraints } => {
                let folder = file.parent().unwrap_or(Path::new(""));
                let as_constraints = constraints || as_constraints;
                read_one(source, &folder.join(path), as_constraints, seen, into)?;
            }
            Line::Itself(extras) if !constraints => into.extras.extend(extras),
            Line::Itself(_) => {}
            Line::Prereleases => into.prereleases = true,
            Line::Ignored(option) => {
                into.notices.insert(format!("{}:{number}: `{option}` is left out", file.display()));
            }
            Line::Elsewhere => {
                return Err(fail(
                    format!("`{line}` is not a file of an index"),
                    "write `name==version` into the spec's requirements and leave the file out",
                ));
            }
            Line::Unknown => {
                return Err(fail(
                    format!("`{line}` is not understood"),
                    "write the requirements into the spec and leave the file out",
                ));
            }
            Line::Requirement(text) => {
                let set = if constraints { &mut into.constraints } else { &mut into.requirements };
                set.insert(text);
            }
        }
    }
    Ok(())
}

/// Without the path on this machine.
fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::InvalidInput => "it is a link that leads out of the project".to_owned(),
        kind => kind.to_string(),
    }
}

/// `path` without `.` and `..`; `None` if it leaves its root.
fn inside(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => out.push(part),
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(out)
}

/// Lines with continuations joined and comments removed, with the number of their first line.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (index, raw) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let is_comment = raw.trim_start().starts_with('#');
        let (number, mut line) = open.take().unwrap_or((index + 1, String::new()));
        let continued = !is_comment && raw.ends_with('\\');
        line.push_str(if continued { &raw[..raw.len() - 1] } else { raw });
        if continued {
            open = Some((number, line));
            continue;
        }
        lines.push((number, line));
    }
    lines.extend(open);
    lines
        .into_iter()
        .map(|(number, line)| (number, without_comment(&line).trim().to_owned()))
        .filter(|(_, line)| !line.is_empty())
        .collect()
}

/// A `#` starts a comment at the start of a line or after white space.
fn without_comment(line: &str) -> &str {
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        if c == '#' && before.is_whitespace() {
            return &line[..at];
        }
        before = c;
    }
    line
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    Requirement(String),
    Include { path: String, constraints: bool },
    Itself(Vec<String>),
    Prereleases,
    Ignored(String),
    Elsewhere,
    Unknown,
}

fn classify(line: &str) -> Line {
    if let Some(rest) = line.strip_prefix('-') {
        return option(line, rest);
    }
    if let Some(extras) = itself(line) {
        return Line::Itself(extras);
    }
    // Options of one requirement follow it: hashes and settings.
    let text = line.split(" --").next().unwrap_or(line).trim();
    let name_end = text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'));
    let (name, rest) = text.split_at(name_end.unwrap_or(text.len()));
    let before_marker = rest.split(';').next().unwrap_or_default();
    if name.is_empty() || before_marker.contains(['/', '@', ':']) || name.starts_with('.') {
        return Line::Elsewhere;
    }
    if std::path::Path::new(name).extension().is_some_and(|extension| extension == "whl")
        || text.contains("${")
    {
        return Line::Elsewhere;
    }
    Line::Requirement(text.to_owned())
}

fn option(line: &str, rest: &str) -> Line {
    let split = rest.find(['=', ' ', '\t']).unwrap_or(rest.len());
    let (name, value) = rest.split_at(split);
    let value = value.trim_start_matches(['=', ' ', '\t']).trim();
    let value = value.trim_matches(['"', '\'']);
    // pip takes `-rfile` too.
    let (name, value) = match name.as_bytes() {
        [b'r' | b'c' | b'e' | b'i' | b'f', _, ..] if !name.starts_with('-') => {
            let (name, stuck) = rest.split_at(1);
            (name, stuck.trim())
        }
        _ => (name, value),
    };
    match name {
        "r" | "-requirement" => Line::Include { path: value.to_owned(), constraints: false },
        "c" | "-constraint" => Line::Include { path: value.to_owned(), constraints: true },
        "e" | "-editable" => itself(value).map_or(Line::Elsewhere, Line::Itself),
        "-pre" => Line::Prereleases,
        "i" | "-index-url" | "-extra-index-url" | "f" | "-find-links" | "-no-index"
        | "-trusted-host" | "-no-binary" | "-only-binary" | "-prefer-binary"
        | "-require-hashes" | "-use-feature" | "-config-settings" | "-global-option" => {
            Line::Ignored(line.to_owned())
        }
        _ => Line::Unknown,
    }
}

/// The extras of the project itself, if `text` means the project.
fn itself(text: &str) -> Option<Vec<String>> {
    let text = text.trim().trim_start_matches("file:");
    let (path, extras) = match text.split_once('[') {
        Some((path, rest)) => (path, rest.strip_suffix(']')?),
        None => (text, ""),
    };
    matches!(path.trim(), "." | "./").then(|| {
        extras
            .split(',')
            .map(|extra| extra.trim().to_owned())
            .filter(|extra| !extra.is_empty())
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn files_are_followed_and_reduced() {
        let source = source(&[
            (
                "requirements/dev.txt",
                "\u{feff}# c\n-r base.txt\n-c ../constraints.txt\n-e .[test, docs]\npytest>=3 # why\nfoo==1 \\\n  --hash=sha256:aa \\\n  --hash=sha256:bb\nurl-in-marker; python_version<'4'\n--extra-index-url https://x.y\n--pre\n",
            ),
            ("requirements/base.txt", "-rdev.txt\nattrs\n"),
            ("constraints.txt", "attrs<22\n-e .\n"),
        ]);
        let mut read_back = Asked::default();
        read(source.path(), "requirements/dev.txt", &mut read_back).unwrap();
        let set = |items: &[&str]| items.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        assert_eq!(
            read_back,
            Asked {
                requirements: set(&[
                    "attrs",
                    "foo==1",
                    "pytest>=3",
                    "url-in-marker; python_version<'4'"
                ]),
                constraints: set(&["attrs<22"]),
                extras: set(&["docs", "test"]),
                prereleases: true,
                notices: set(&[
                    "requirements/dev.txt:10: `--extra-index-url https://x.y` is left out"
                ]),
            }
        );
    }

    #[test]
    fn what_no_lock_can_hold_is_an_error_with_its_line() {
        for (line, problem) in [
            ("git+https://x/y", "r.txt:2: `git+https://x/y` is not a file of an index"),
            ("x @ https://x/y.whl", "r.txt:2: `x @ https://x/y.whl` is not a file of an index"),
            ("./sub", "r.txt:2: `./sub` is not a file of an index"),
            ("-e ../other", "r.txt:2: `-e ../other` is not a file of an index"),
            ("x.whl", "r.txt:2: `x.whl` is not a file of an index"),
            ("foo==${V}", "r.txt:2: `foo==${V}` is not a file of an index"),
            ("--what", "r.txt:2: `--what` is not understood"),
            ("-r ../x.txt", "../x.txt:1: the file lies outside of the project"),
            ("-r none.txt", "none.txt:1: it cannot be read at the setup source: entity not found"),
        ] {
            let source = source(&[("r.txt", &format!("ok\n{line}\n"))]);
            let error = read(source.path(), "r.txt", &mut Asked::default()).unwrap_err();
            assert_eq!(error.to_string(), problem);
            assert!(error.hint().is_some());
        }
    }
}
