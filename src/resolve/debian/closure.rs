//! Which packages a base is made of: Essential ones, apt, the definition's roots, and what they need.
//!
//! The rule: `Pre-Depends` and `Depends`, no recommends; of alternatives the one that is a root, else the
//! first that exists in a version that fits, else the first provider by priority and name. For the base images of
//! bullseye, bookworm and trixie it gives what apt gives, which is checked against apt itself once the base runs.

use std::collections::{BTreeMap, BTreeSet};

use super::index::{Index, Package};
use crate::lock::Deb;
use crate::resolve::Error;

/// The packages of a base, sorted by name.
pub fn closure(suite: &str, index: &Index, roots: &[String]) -> Result<Vec<Deb>, Error> {
    let mut queue: Vec<&Package> = index.essential().collect();
    for name in roots.iter().map(String::as_str).chain(["apt"]) {
        queue.push(index.package(name).ok_or_else(|| Error::NoPackage {
            suite: suite.to_owned(),
            name: name.to_owned(),
            similar: index.similar(name),
        })?);
    }
    closure_of(suite, index, queue)
}

/// Packages and all that they need, sorted by name; they themselves are what alternatives prefer.
pub fn closure_of<'a>(
    suite: &str,
    index: &'a Index,
    mut queue: Vec<&'a Package>,
) -> Result<Vec<Deb>, Error> {
    let preferred: BTreeSet<&str> = queue.iter().map(|package| package.name.as_str()).collect();
    let mut chosen: BTreeMap<&str, &Package> = BTreeMap::new();
    while let Some(package) = queue.pop() {
        if chosen.contains_key(package.name.as_str()) {
            continue;
        }
        chosen.insert(&package.name, package);
        for clause in &package.depends {
            let choice = index.choose(clause, |name| preferred.contains(name));
            queue.push(choice.ok_or_else(|| Error::Unmet {
                suite: suite.to_owned(),
                package: package.name.clone(),
                clause: clause.text.clone(),
            })?);
        }
    }
    Ok(chosen.into_values().map(|package| package.file.clone()).collect())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn index(packages: &[(&str, &str)]) -> Index {
        let mut text = String::new();
        for (name, fields) in packages {
            write!(
                text,
                "Package: {name}\nFilename: pool/{name}.deb\nSize: 1\nSHA256: {}\n{fields}\n\n",
                "0".repeat(64)
            )
            .unwrap();
        }
        Index::parse("test", &text).unwrap()
    }

    fn names(index: &Index, roots: &[&str]) -> Vec<String> {
        let roots: Vec<String> = roots.iter().map(|name| (*name).to_owned()).collect();
        closure("test", index, &roots).unwrap().into_iter().map(|deb| deb.name).collect()
    }

    const APT: (&str, &str) = ("apt", "Version: 1");

    #[test]
    fn the_rule() {
        let index = index(&[
            APT,
            ("base", "Version: 1\nEssential: yes\nPre-Depends: awk"),
            ("gawk", "Version: 1\nPriority: optional\nProvides: awk"),
            ("mawk", "Version: 1\nPriority: required\nProvides: awk"),
            (
                "tool",
                "Version: 1\nDepends: none | old (>= 2) | second | third, apt:any\nRecommends: third",
            ),
            ("old", "Version: 1"),
            ("second", "Version: 1"),
            ("third", "Version: 1"),
            ("versioned", "Version: 1\nDepends: api (>= 2)"),
            ("api-1", "Version: 1\nProvides: api (= 1)"),
            ("api-2", "Version: 1\nProvides: api (= 2)"),
        ]);
        // A provider by priority, not by name; alternatives in their order.
        assert_eq!(names(&index, &["tool"]), ["apt", "base", "mawk", "second", "tool"]);
        // What is a root anyway is preferred.
        assert_eq!(
            names(&index, &["tool", "third", "gawk"]),
            ["apt", "base", "gawk", "third", "tool"]
        );
        assert_eq!(names(&index, &["versioned"]), ["api-2", "apt", "base", "mawk", "versioned"]);
    }

    #[test]
    fn the_newest_version_of_a_name_wins_unless_it_does_not_fit() {
        let index = index(&[
            APT,
            ("lib", "Version: 1.10"),
            ("lib", "Version: 1.9"),
            ("old", "Version: 1\nDepends: lib (<< 1.10)"),
            ("new", "Version: 1\nDepends: lib"),
        ]);
        let version = |root: &str| {
            let debs = closure("test", &index, &[root.to_owned()]).unwrap();
            debs.into_iter().find(|deb| deb.name == "lib").unwrap().version
        };
        assert_eq!(version("new"), "1.10");
        assert_eq!(version("old"), "1.9");
    }

    #[test]
    fn what_is_missing_is_named() {
        let index = index(&[APT, ("python3", "Version: 1\nDepends: gone (>= 3) | lost")]);
        let error = closure("test", &index, &["pyhton3".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "test has no package `pyhton3`");
        assert_eq!(error.hint().unwrap(), "did you mean python3?");
        let error = closure("test", &index, &["python3".to_owned()]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "nothing in test meets `gone (>= 3) | lost`, which python3 depends on"
        );
    }

    #[test]
    fn broken_indexes_are_refused() {
        for (text, message) in [
            ("Version: 1\n", "a paragraph has no `Package`"),
            ("Package: x\n", "x has no `Version`"),
            (
                "Package: x\nVersion: 1\nFilename: p\nSHA256: 12\nSize: 1\n",
                "x: `12` is not a digest",
            ),
            ("Package: x\nVersion: 1\nDepends: a (~ 1)\n", "x: \"a (~ 1)\" is not a dependency"),
        ] {
            let error = Index::parse("test", text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("Packages of test: {message}")), "{error}");
        }
    }
}
