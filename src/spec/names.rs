//! Names: of packages, files, variables; and the nearest known name to a wrong one.

/// A package name normalised as PEP 503 says: lower case, runs of `-`, `_` and `.` become one `-`.
pub fn normalize_package_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if matches!(c, '-' | '_' | '.') {
            if !out.ends_with('-') {
                out.push('-');
            }
        } else {
            out.push(c.to_ascii_lowercase());
        }
    }
    out
}

/// Whether `name` can be the name of a Python package, extra or group (PEP 508).
pub(super) fn is_package_name(name: &str) -> bool {
    let alphanumeric = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    alphanumeric(name.chars().next())
        && alphanumeric(name.chars().next_back())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// Whether `name` can be the name of a Debian package (Policy 5.6.7).
pub(super) fn is_debian_name(name: &str) -> bool {
    name.len() >= 2
        && name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c))
}

/// Whether `name` can be the name of an environment variable.
pub(super) fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether `name` can be a part of a file name: a version, a base, a half of `owner/name`.
pub fn is_file_name(name: &str) -> bool {
    name.len() <= 100
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._+!-".contains(c))
}

/// Why `path` is not a path inside the repository, if it is not.
pub(super) fn path_fault(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        Some("is empty")
    } else if path.contains(['\0', '\n', '\r']) {
        Some("holds a control character")
    } else if path.starts_with('/') {
        Some("is absolute")
    } else if path.split('/').any(|part| part == "..") {
        Some("leaves its folder")
    } else if path.len() > 1024 {
        Some("is longer than 1,024 bytes")
    } else {
        None
    }
}

/// The known name that is nearest to `name`, if one is near enough to be meant.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    // Short names are near to everything; one edit per three letters is what typos look like.
    let limit = (name.chars().count() / 3).max(1);
    known
        .iter()
        .map(|other| (distance(&name.replace('_', "-"), other), *other))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, other)| other)
}

/// Edits (insert, delete, replace, swap of neighbours) between two names.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().take(64).collect();
    let right: Vec<char> = right.chars().take(64).collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let cost = usize::from(left[i - 1] != right[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + cost);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_names_follow_pep_503() {
        // The example of PEP 503 with its spellings.
        for name in [
            "friendly-bard",
            "Friendly-Bard",
            "FRIENDLY-BARD",
            "friendly.bard",
            "friendly_bard",
            "friendly--bard",
            "FrIeNdLy-._.-bArD",
        ] {
            assert_eq!(normalize_package_name(name), "friendly-bard");
        }
    }

    #[test]
    fn the_nearest_name_is_one_that_was_meant() {
        let known = ["python", "base", "system-packages", "requirements"];
        assert_eq!(nearest("pyhton", &known), Some("python"));
        assert_eq!(nearest("system_packages", &known), Some("system-packages"));
        assert_eq!(nearest("requirement", &known), Some("requirements"));
        assert_eq!(nearest("conda", &known), None);
        assert_eq!(nearest("", &known), None);
    }

    #[test]
    fn paths_stay_in_their_folder() {
        for good in ["a", "a/b.txt", "a..b", "..a/b", "./a"] {
            assert_eq!(path_fault(good), None, "{good}");
        }
        for bad in ["", "/a", "..", "a/../../b", "a/..", "a\0", "a\nb", &"a/".repeat(600)] {
            assert!(path_fault(bad).is_some(), "{bad:?}");
        }
    }
}
