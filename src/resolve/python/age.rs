//! Upload dates lie: files that were uploaded again later do not exist for an older date, and a solver then falls
//! back, silently, to something very old. This points it out.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::lock::PythonPackage;
use crate::net::pypi::IndexFile;

/// A release is much older than another when this lies between their uploads: a year. The known case of such a fallback
/// (pytest 3.5.1 for 5.2.0) spans 17 months.
const MUCH: SignedDuration = SignedDuration::from_hours(365 * 24);

/// A notice, if a release that was there by `cut` and fits Python `version` is much newer than what `package`
/// resolved to. Releases are dated by their first file; pre-releases and yanked files do not count.
pub(super) fn notice(
    package: &PythonPackage,
    files: &[IndexFile],
    cut: Option<Timestamp>,
    version: &str,
) -> Option<String> {
    let mut releases: BTreeMap<String, Timestamp> = BTreeMap::new();
    for file in files {
        let Some(release) = release_of(&file.name, &package.name) else { continue };
        let Some(time) = file.upload_time else { continue };
        let is_there = cut.is_none_or(|cut| time < cut) && file.yanked.is_none();
        let fits = file.requires_python.as_deref().is_none_or(|wanted| matches(wanted, version));
        if !is_there || !fits {
            continue;
        }
        let first = releases.entry(release).or_insert(time);
        *first = (*first).min(time);
    }
    let own = releases.get(&package.version).copied().or(package.file.upload_time)?;
    let (newest, time) = releases
        .iter()
        .filter(|(release, _)| !is_prerelease(release))
        .max_by_key(|(_, time)| **time)?;
    (time.duration_since(own) > MUCH && *newest != package.version).then(|| {
        format!(
            "{} {} of {} was resolved, although {newest} of {} existed by the date; a bound, or a dependency whose files were uploaded again later, holds it back (see `exclude-newer-package`)",
            package.name,
            package.version,
            day(own),
            day(*time),
        )
    })
}

fn day(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d").to_string()
}

/// The version in a file's name.
fn release_of(file: &str, project: &str) -> Option<String> {
    if let Some(wheel) = super::WheelName::parse(file) {
        return Some(wheel.version);
    }
    let stem =
        [".tar.gz", ".zip", ".tar.bz2"].iter().find_map(|suffix| file.strip_suffix(suffix))?;
    let (name, version) = stem.rsplit_once('-')?;
    (super::normalize(name) == project).then(|| version.to_owned())
}

fn is_prerelease(version: &str) -> bool {
    let public = version.split('+').next().unwrap_or(version).to_ascii_lowercase();
    public.replace("post", "").replace("rev", "").contains(|c: char| c.is_ascii_alphabetic())
}

/// Whether a Python version satisfies a `Requires-Python` (PEP 440). What is not understood counts as satisfied: a notice
/// is advice, not a rule.
fn matches(wanted: &str, version: &str) -> bool {
    let numbers = |text: &str| -> Option<Vec<u64>> {
        let mut parts: Vec<u64> =
            text.trim().split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
        parts.resize(parts.len().max(3), 0);
        Some(parts)
    };
    let Some(own) = numbers(version) else { return true };
    wanted.split(',').map(str::trim).all(|clause| {
        let end = clause.find(|c: char| c.is_ascii_digit()).unwrap_or(clause.len());
        let (operator, rest) = clause.split_at(end);
        if let Some(prefix) = rest.trim().strip_suffix(".*") {
            let same = version == prefix || version.starts_with(&format!("{prefix}."));
            return match operator.trim() {
                "==" => same,
                "!=" => !same,
                _ => true,
            };
        }
        let Some(other) = numbers(rest) else { return true };
        match operator.trim() {
            ">=" => own >= other,
            ">" => own > other,
            "<=" => own <= other,
            "<" => own < other,
            "==" => own == other,
            "!=" => own != other,
            "~=" => {
                let parts: Vec<&str> = rest.trim().split('.').collect();
                let prefix = parts[..parts.len().saturating_sub(1)].join(".");
                own >= other && format!("{version}.").starts_with(&format!("{prefix}."))
            }
            _ => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_bounds_are_read() {
        for (wanted, fits) in [
            (">=3.8", true),
            (">=3.8,<4", true),
            (">=3.12", false),
            ("<3.11", false),
            ("!=3.11.*", false),
            ("!=3.10.*,>=2.7", true),
            ("==3.11.*", true),
            ("~=3.8", true),
            ("~=3.11.3", false),
            ("==3.11.2", true),
            (">3.11", true),
            ("what", true),
        ] {
            assert_eq!(matches(wanted, "3.11.2"), fits, "{wanted}");
        }
    }

    #[test]
    fn pre_releases_are_told() {
        for (version, pre) in [
            ("1.0", false),
            ("1.0.post1", false),
            ("1.0rc1", true),
            ("1.0.dev3", true),
            ("2.0b1", true),
            ("1.0+abc", false),
        ] {
            assert_eq!(is_prerelease(version), pre, "{version}");
        }
    }
}
