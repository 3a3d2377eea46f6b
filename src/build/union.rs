//! Several distributions in one tree. The rule for paths that more than one of them has does not depend on any order:
//!
//! - equal contents and modes are one file;
//! - `__init__.py` files that do nothing but declare a namespace (`pkgutil`, `pkg_resources`) are interchangeable: the first
//!   distribution by name gives it;
//! - a compiled file follows its source;
//! - anything else is an error that names both. An installer would let the last one win, whichever that is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Error;

/// A path that more than one distribution has, and the distribution that gives it.
pub(crate) type Shared = BTreeMap<String, String>;

/// Judges the trees (by distribution name) together.
pub(crate) fn judge(trees: &BTreeMap<String, PathBuf>) -> Result<Shared, Error> {
    let mut owners: BTreeMap<String, (&String, bool)> = BTreeMap::new();
    let mut shared = Shared::new();
    for (name, tree) in trees {
        for (path, is_folder) in entries(tree)? {
            let Some((owner, owner_folder)) = owners.get(&path) else {
                owners.insert(path, (name, is_folder));
                continue;
            };
            if is_folder && *owner_folder {
                continue;
            }
            let problem = if is_folder == *owner_folder {
                let (one, other) = (trees[*owner].join(&path), tree.join(&path));
                (!is_interchangeable(&one, &other)?).then_some("differ in")
            } else {
                Some("do not agree whether it is a folder:")
            };
            if let Some(problem) = problem {
                return Err(Error::Invalid {
                    what: format!("the distributions {owner} and {name}"),
                    problem: format!("they {problem} /{path}, which both install"),
                    hint: Some(
                        "only one of them can be in the environment; remove one, or choose another version"
                            .to_owned(),
                    ),
                });
            }
            shared.insert(path, (*owner).clone());
        }
    }
    Ok(shared)
}

/// Links the files of `trees` into `target`; of shared paths, only what their owner gives.
pub(crate) fn link(
    trees: &BTreeMap<&str, PathBuf>,
    shared: &Shared,
    target: &Path,
) -> Result<(), Error> {
    for (name, tree) in trees {
        for (path, is_folder) in entries(tree)? {
            let to = target.join(&path);
            if is_folder {
                fs_err::create_dir_all(&to)?;
            } else if shared.get(&path).is_none_or(|owner| owner == name) {
                let from = tree.join(&path);
                // Another filesystem, or too many links to one (empty) file.
                if std::fs::hard_link(&from, &to).is_err() {
                    fs_err::copy(&from, &to)?;
                }
            }
        }
    }
    Ok(())
}

/// Paths below `tree`, parents first, and whether each is a folder.
fn entries(tree: &Path) -> Result<Vec<(String, bool)>, Error> {
    let mut found = Vec::new();
    for entry in walkdir::WalkDir::new(tree).min_depth(1).sort_by_file_name() {
        let entry = entry.map_err(std::io::Error::from)?;
        let path = entry.path().strip_prefix(tree).expect("walkdir stays in its root");
        let path = path.to_str().ok_or_else(|| Error::Invalid {
            what: path.display().to_string(),
            problem: "a distribution's file name is not UTF-8".to_owned(),
            hint: None,
        })?;
        found.push((path.to_owned(), entry.file_type().is_dir()));
    }
    Ok(found)
}

fn is_interchangeable(one: &Path, other: &Path) -> Result<bool, Error> {
    use std::os::unix::fs::PermissionsExt as _;
    // A compiled file follows its source, which is judged by itself.
    if one.parent().is_some_and(|folder| folder.ends_with("__pycache__")) {
        return Ok(true);
    }
    let (left, right) = (fs_err::metadata(one)?, fs_err::metadata(other)?);
    let same_mode = left.permissions().mode() == right.permissions().mode();
    if same_mode && left.len() == right.len() && fs_err::read(one)? == fs_err::read(other)? {
        return Ok(true);
    }
    Ok(one.file_name().is_some_and(|name| name == "__init__.py")
        && is_namespace(&fs_err::read_to_string(one)?)
        && is_namespace(&fs_err::read_to_string(other)?))
}

/// Whether a source does nothing but declare its package a namespace.
fn is_namespace(source: &str) -> bool {
    let mut declares = false;
    for line in source.lines().map(str::trim) {
        let known = line.is_empty()
            || line.starts_with('#')
            || matches!(line, "try:" | "except ImportError:" | "pass")
            || line.starts_with("from pkgutil import extend_path")
            || line.starts_with("import pkg_resources")
            || line.starts_with("import pkgutil");
        let declaration = line.contains("declare_namespace(__name__)")
            || (line.starts_with("__path__") && line.contains("extend_path(__path__, __name__)"));
        declares |= declaration;
        if !known && !declaration {
            return false;
        }
    }
    declares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(folder: &Path, name: &str, files: &[(&str, &str)]) -> (String, PathBuf) {
        let root = folder.join(name);
        for (path, text) in files {
            let path = root.join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        (name.to_owned(), root)
    }

    const PKGUTIL: &str =
        "from pkgutil import extend_path\n__path__ = extend_path(__path__, __name__)\n";
    const RESOURCES: &str = "__import__('pkg_resources').declare_namespace(__name__)\n";

    #[test]
    fn equal_files_and_namespaces_are_shared() {
        let folder = tempfile::tempdir().unwrap();
        let trees: BTreeMap<_, _> = [
            tree(
                folder.path(),
                "a",
                &[
                    ("ns/__init__.py", PKGUTIL),
                    ("ns/a.py", "1"),
                    ("ns/__pycache__/__init__.c.pyc", "A"),
                ],
            ),
            tree(
                folder.path(),
                "b",
                &[
                    ("ns/__init__.py", RESOURCES),
                    ("ns/b.py", "2"),
                    ("ns/__pycache__/__init__.c.pyc", "B"),
                ],
            ),
            tree(folder.path(), "c", &[("ns/a.py", "1")]),
        ]
        .into();
        let shared = judge(&trees).unwrap();
        assert_eq!(
            shared.iter().map(|(path, owner)| (path.as_str(), owner.as_str())).collect::<Vec<_>>(),
            [("ns/__init__.py", "a"), ("ns/__pycache__/__init__.c.pyc", "a"), ("ns/a.py", "a")]
        );
        let target = folder.path().join("target");
        let by_name = trees.iter().map(|(name, tree)| (name.as_str(), tree.clone())).collect();
        link(&by_name, &shared, &target).unwrap();
        assert_eq!(fs_err::read_to_string(target.join("ns/__init__.py")).unwrap(), PKGUTIL);
        assert_eq!(
            fs_err::read_to_string(target.join("ns/__pycache__/__init__.c.pyc")).unwrap(),
            "A"
        );
        assert_eq!(fs_err::read_to_string(target.join("ns/b.py")).unwrap(), "2");
    }

    #[test]
    fn collisions_name_both() {
        let folder = tempfile::tempdir().unwrap();
        let problem = |name: &str, left: &[(&str, &str)], right: &[(&str, &str)]| {
            let place = folder.path().join(name);
            let trees = [tree(&place, "left", left), tree(&place, "right", right)].into();
            judge(&trees).unwrap_err().to_string()
        };
        assert_eq!(
            problem("1", &[("lib/x.py", "1")], &[("lib/x.py", "2")]),
            "the distributions left and right: they differ in /lib/x.py, which both install"
        );
        assert_eq!(
            problem("2", &[("lib/x", "1")], &[("lib/x/y", "2")]),
            "the distributions left and right: they do not agree whether it is a folder: /lib/x, which both install"
        );
        let code = format!("{PKGUTIL}VERSION = 1\n");
        assert!(
            problem("3", &[("n/__init__.py", PKGUTIL)], &[("n/__init__.py", &code)])
                .contains("differ")
        );
    }
}
