//! What changed between two locks, for people.

use std::collections::BTreeMap;
use std::fmt;

use super::model::{BaseLock, Deb, EnvLock, PythonPackage};

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What kind of thing: `package`, `python`, `base` ...
    pub kind: &'static str,
    /// Which.
    pub name: String,
    /// What it was; `None` when it is new.
    pub old: Option<String>,
    /// What it is; `None` when it has gone.
    pub new: Option<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, old, new } = self;
        match (old, new) {
            (Some(old), Some(new)) => write!(f, "~ {kind} {name} {old} -> {new}"),
            (None, Some(new)) => write!(f, "+ {kind} {name} {new}"),
            (Some(old), None) => write!(f, "- {kind} {name} {old}"),
            (None, None) => write!(f, "~ {kind} {name}"),
        }
    }
}

/// From `old` to `new`, in the order of names. Empty when the values are equal.
pub fn diff_base(old: &BaseLock, new: &BaseLock) -> Vec<Change> {
    let mut changes = fields(&[
        ("definition", old.base_hash.to_string(), new.base_hash.to_string()),
        ("arch", old.arch.oci().to_owned(), new.arch.oci().to_owned()),
        ("suite", old.suite.clone(), new.suite.clone()),
        ("as-of", old.as_of.to_string(), new.as_of.to_string()),
        ("inrelease", old.inrelease.to_string(), new.inrelease.to_string()),
        ("packages-index", old.packages_index.to_string(), new.packages_index.to_string()),
        ("python", old.python.clone(), new.python.clone()),
        ("image", image(old), image(new)),
    ]);
    changes.extend(maps("package", &debs(&old.debs), &debs(&new.debs)));
    changes
}

/// From `old` to `new`, in the order of names. Empty when the values are equal.
pub fn diff_env(old: &EnvLock, new: &EnvLock) -> Vec<Change> {
    let mut changes = fields(&[
        ("env-hash", old.env_hash.to_string(), new.env_hash.to_string()),
        ("arch", old.arch.oci().to_owned(), new.arch.oci().to_owned()),
        ("base", old.base.clone(), new.base.clone()),
        ("base-lock", old.base_lock.to_string(), new.base_lock.to_string()),
    ]);
    changes.extend(maps("package", &debs(&old.debs), &debs(&new.debs)));
    changes.extend(maps("distribution", &python(&old.packages), &python(&new.packages)));
    changes.extend(maps("build requirement", &builders(old), &builders(new)));
    changes.extend(maps("built wheel", &built(old), &built(new)));
    changes
}

fn image(lock: &BaseLock) -> String {
    lock.image.as_ref().map_or_else(
        || "none".to_owned(),
        |image| format!("{}@{} ({})", image.repository, image.digest, image.manifest.short()),
    )
}

fn fields(fields: &[(&str, String, String)]) -> Vec<Change> {
    fields
        .iter()
        .filter(|(_, old, new)| old != new)
        .map(|(name, old, new)| Change {
            kind: "field",
            name: (*name).to_owned(),
            old: Some(old.clone()),
            new: Some(new.clone()),
        })
        .collect()
}

/// A version and, when only bytes differ, enough of the digest to see it.
type Items = BTreeMap<String, (String, String)>;

fn maps(kind: &'static str, old: &Items, new: &Items) -> Vec<Change> {
    let names: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    names
        .into_iter()
        .filter_map(|name| {
            let (before, after) = (old.get(name), new.get(name));
            if before == after {
                return None;
            }
            let same_version = before.zip(after).is_some_and(|(before, after)| before.0 == after.0);
            let show = |item: &(String, String)| {
                if same_version { format!("{} ({})", item.0, item.1) } else { item.0.clone() }
            };
            Some(Change { kind, name: name.clone(), old: before.map(show), new: after.map(show) })
        })
        .collect()
}

fn debs(debs: &[Deb]) -> Items {
    debs.iter()
        .map(|deb| {
            (deb.name.clone(), (deb.version.clone(), format!("{} {}", deb.path, deb.sha256)))
        })
        .collect()
}

fn python(packages: &[PythonPackage]) -> Items {
    packages
        .iter()
        .map(|package| {
            let bytes = format!("{} {}", package.file.name, package.file.sha256);
            (package.name.clone(), (package.version.clone(), bytes))
        })
        .collect()
}

fn builders(lock: &EnvLock) -> Items {
    lock.build_environments
        .iter()
        .flat_map(|environment| {
            python(&environment.packages)
                .into_iter()
                .map(|(name, item)| (format!("{name} for {}", environment.sdist), item))
        })
        .collect()
}

fn built(lock: &EnvLock) -> Items {
    lock.built
        .iter()
        .map(|wheel| (wheel.sdist.clone(), (wheel.wheel.clone(), wheel.sha256.to_string())))
        .collect()
}
