//! Whether a lock still answers its spec.
//!
//! The hashes decide; the words only explain. A changed hash that nothing below explains is still stale.

use std::fmt;

use super::model::{BaseLock, EnvLock, ToolsLock};
use crate::base::{Arch, Digest};
use crate::spec::{BaseDefinition, Spec};

/// A lock that no longer answers its spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stale {
    /// Which lock: the base's or the spec's name.
    pub lock: String,
    /// What changed, fragments.
    pub changes: Vec<String>,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the lock of {} is stale: {}", self.lock, self.changes.join("; "))
    }
}

impl std::error::Error for Stale {}

impl Stale {
    /// The way out.
    pub fn hint(&self) -> &'static str {
        "refresh it with `hallmark lock SPLIT` for a split that uses it, and review the difference"
    }
}

/// Whether `lock` answers `definition`.
pub fn check_base(definition: &BaseDefinition, lock: &BaseLock, arch: Arch) -> Result<(), Stale> {
    let mut changes = Vec::new();
    if lock.arch != arch {
        changes.push(format!("it is for {}, not {}", lock.arch.oci(), arch.oci()));
    }
    let hash = definition.hash().expect("names and enums have a canonical form");
    if hash != lock.base_hash {
        let before = changes.len();
        if definition.suite != lock.suite {
            changes.push(format!("suite {} became {}", lock.suite, definition.suite));
        }
        let digest = |digest: Option<Digest>| {
            digest.map_or_else(|| "no digest".to_owned(), |digest| digest.to_string())
        };
        match (&definition.registry, &lock.image) {
            (None, Some(_)) => changes.push("it is no image of a registry any more".to_owned()),
            (Some(_), None) => changes.push("it became an image of a registry".to_owned()),
            (Some(new), Some(old)) if new.digest != Some(old.digest) => {
                changes.push(format!("the image {} became {}", old.digest, digest(new.digest)));
            }
            _ => {}
        }
        for package in &definition.packages {
            if !lock.debs.iter().any(|deb| &deb.name == package) {
                changes.push(format!("package {package} was added"));
            }
        }
        if changes.len() == before {
            changes.push("the definition changed".to_owned());
        }
    }
    finish(&definition.name, changes)
}

/// Whether `lock` answers `spec` on the base that `base` locks.
pub fn check_env(spec: &Spec, base: &BaseLock, lock: &EnvLock) -> Result<(), Stale> {
    let mut changes = Vec::new();
    if lock.arch != base.arch {
        changes.push(format!("it is for {}, not {}", lock.arch.oci(), base.arch.oci()));
    }
    if lock.base != spec.base {
        changes.push(format!("base {} became {}", lock.base, spec.base));
    } else if base.digest().expect("a lock has a canonical form") != lock.base_lock {
        changes.push(format!("the lock of base {} changed", spec.base));
    }
    if base.python != spec.python {
        changes.push(format!("Python {} is wanted, the base has {}", spec.python, base.python));
    }
    if spec.env_hash().expect("a spec has a canonical form") != lock.env_hash {
        let before = changes.len();
        let held =
            |package: &String| lock.debs.iter().chain(&base.debs).any(|deb| &deb.name == package);
        for package in spec.system_packages.iter().filter(|package| !held(package)) {
            changes.push(format!("system package {package} was added"));
        }
        for requirement in &spec.dependencies.requirements {
            let name = requirement_name(requirement);
            if !lock.packages.iter().any(|package| package.name == name) {
                changes.push(format!("requirement {name} was added"));
            }
        }
        if changes.len() == before {
            changes.push("what the environment is made from changed".to_owned());
        }
    }
    finish(&spec.name(), changes)
}

/// Whether `lock` was made from the same package index as the lock of its base, `name`.
pub fn check_tools(name: &str, base: &BaseLock, lock: &ToolsLock) -> Result<(), Stale> {
    let mut changes = Vec::new();
    if (lock.arch, &lock.suite) != (base.arch, &base.suite) {
        changes.push(format!("it is for {} on {}", lock.suite, lock.arch.oci()));
    }
    if (lock.as_of, lock.packages_index) != (base.as_of, base.packages_index) {
        changes.push(format!("it is of {}, the base of {}", lock.as_of, base.as_of));
    }
    finish(&format!("the tools of {name}"), changes)
}

fn finish(lock: &str, changes: Vec<String>) -> Result<(), Stale> {
    if changes.is_empty() {
        return Ok(());
    }
    Err(Stale { lock: lock.to_owned(), changes })
}

/// The normalised project name at the head of a PEP 508 requirement.
fn requirement_name(requirement: &str) -> String {
    let head: String = requirement
        .trim()
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        .collect();
    head.split(['-', '_', '.'])
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("-")
        .to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirement_names_are_normalised() {
        for (text, name) in [
            ("Flask_SQL.Alchemy[x]>=2; python_version < '3.9'", "flask-sql-alchemy"),
            ("lxml", "lxml"),
            (" pytest ==6", "pytest"),
        ] {
            assert_eq!(requirement_name(text), name);
        }
    }
}
