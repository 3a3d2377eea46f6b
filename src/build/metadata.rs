//! Files of an sdist that its build backend generated: read by backends, no part of the project's source.

/// Whether `path` (relative to the sdist's top folder, `/`-separated) is generated metadata or a stray
/// compiled file.
pub(crate) fn is_generated(path: &[u8]) -> bool {
    if path == b"PKG-INFO" {
        return true;
    }
    let mut components = path.split(|byte| *byte == b'/');
    components.any(|name| name.ends_with(b".egg-info") || name == b"__pycache__")
        || path.ends_with(b".pyc")
        || path.ends_with(b".pyo")
}

/// The same rule as [`is_generated`], as git ignore patterns: such files stay untracked.
pub(crate) const GENERATED_PATTERNS: &str = "/PKG-INFO\n*.egg-info\n__pycache__/\n*.pyc\n*.pyo\n";

/// What installs leave behind in a work tree and projects ignore in theirs.
pub(crate) const LEFTOVER_PATTERNS: &str = "/build/\n/dist/\n/.eggs/\n*.so\n.hatch/\n";

/// Whether a changed path belongs to the test patch: a component `test`, `tests` or `testing`, or a file
/// named `test_*.py`, `*_test.py` or `conftest.py`.
pub(crate) fn is_test_path(path: &[u8]) -> bool {
    let mut components = path.split(|byte| *byte == b'/').peekable();
    while let Some(name) = components.next() {
        if components.peek().is_some() {
            if matches!(name, b"test" | b"tests" | b"testing") {
                return true;
            }
        } else {
            return matches!(name, b"test" | b"tests" | b"testing" | b"conftest.py")
                || (name.starts_with(b"test_") && name.ends_with(b".py"))
                || name.ends_with(b"_test.py");
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_told_from_source() {
        for path in [
            "PKG-INFO",
            "a.egg-info/SOURCES.txt",
            "src/a.egg-info/PKG-INFO",
            "t/__pycache__/x.pyc",
            "t/a.pyc",
        ] {
            assert!(is_generated(path.as_bytes()), "{path}");
        }
        for path in ["setup.cfg", "src/PKG-INFO", "egg-info/a.py", "a.py"] {
            assert!(!is_generated(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn test_paths_are_told_from_gold_paths() {
        for path in [
            "tests/a.txt",
            "src/pkg/testing/x.py",
            "pkg/test/y",
            "test_a.py",
            "a/b_test.py",
            "conftest.py",
        ] {
            assert!(is_test_path(path.as_bytes()), "{path}");
        }
        for path in [
            "src/latest/a.py",
            "test_a.txt",
            "mytests/a.py",
            "a_tests.py",
            "testing.py",
            "contest.py",
        ] {
            assert!(!is_test_path(path.as_bytes()), "{path}");
        }
    }
}
