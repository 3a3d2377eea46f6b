//! Which files a patch touches: read from its `diff --git`, `---`, `+++`, `rename` and `copy` lines,
//! names quoted as git quotes them.

/// A file that a patch touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedFile {
    /// Path before; `None` for a new file.
    pub old: Option<Vec<u8>>,
    /// Path after; `None` for a deleted file.
    pub new: Option<Vec<u8>>,
    /// First old line and number of old lines of each hunk.
    pub hunks: Vec<(u64, u64)>,
}

/// The files of a patch in git's format (or a plain unified diff with `a/` and `b/`), in its order.
pub fn patched_files(patch: &[u8]) -> Vec<PatchedFile> {
    let mut files: Vec<PatchedFile> = Vec::new();
    // Lines that hunks still own: content may look like a header.
    let mut left = (0_u64, 0_u64);
    let mut in_header = false;
    for line in patch.split(|byte| *byte == b'\n') {
        if left != (0, 0) {
            match line.first() {
                Some(b'-') => left.0 = left.0.saturating_sub(1),
                Some(b'+') => left.1 = left.1.saturating_sub(1),
                Some(b'\\') => {}
                // A context line; an empty one may have lost its space.
                _ => left = (left.0.saturating_sub(1), left.1.saturating_sub(1)),
            }
            continue;
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(names) = line.strip_prefix(b"diff --git ") {
            let (old, new) = header_names(names).map_or((None, None), |(a, b)| (Some(a), Some(b)));
            files.push(PatchedFile { old, new, hunks: Vec::new() });
            in_header = true;
        } else if let Some(range) = line.strip_prefix(b"@@ -") {
            if let Some((old, new)) = hunk_ranges(range)
                && let Some(file) = files.last_mut()
            {
                left = (old.1, new.1);
                file.hunks.push(old);
            }
            in_header = false;
        } else if let Some(name) = line.strip_prefix(b"--- ") {
            if !in_header {
                files.push(PatchedFile { old: None, new: None, hunks: Vec::new() });
                in_header = true;
            }
            let file = files.last_mut().expect("just pushed, or the header's");
            file.old = side(name);
        } else if let Some(file) = files.last_mut().filter(|_| in_header) {
            if let Some(name) = line.strip_prefix(b"+++ ") {
                file.new = side(name);
            } else if line == b"GIT binary patch" {
                in_header = false;
            } else if line.starts_with(b"new file mode ") {
                file.old = None;
            } else if line.starts_with(b"deleted file mode ") {
                file.new = None;
            } else if let Some(name) =
                line.strip_prefix(b"rename from ").or_else(|| line.strip_prefix(b"copy from "))
            {
                file.old = Some(unquote(name).0);
            } else if let Some(name) =
                line.strip_prefix(b"rename to ").or_else(|| line.strip_prefix(b"copy to "))
            {
                file.new = Some(unquote(name).0);
            }
        }
    }
    files.retain(|file| file.old.is_some() || file.new.is_some());
    files
}

/// The Python test files that a patch leaves, relative to the repository, in order, each once: those named
/// `test_*.py` or `*_test.py`; when there is none, the modules in folders of tests.
pub fn test_files(patch: &[u8]) -> Vec<String> {
    let mut named = Vec::new();
    let mut others = Vec::new();
    for file in patched_files(patch) {
        let Some(path) = file.new.and_then(|path| String::from_utf8(path).ok()) else {
            continue;
        };
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let Some(stem) = name.strip_suffix(".py") else { continue };
        if matches!(stem, "__init__" | "conftest") {
            continue;
        }
        let list = if stem.starts_with("test_") || stem.ends_with("_test") {
            &mut named
        } else if matches!(stem, "test" | "tests")
            || folder.split('/').any(|part| matches!(part, "test" | "tests" | "testing"))
        {
            &mut others
        } else {
            continue;
        };
        if !list.contains(&path) {
            list.push(path);
        }
    }
    if named.is_empty() { others } else { named }
}

/// `a/x b/x`, either quoted. Unquoted names with spaces are only told apart when both are equal.
fn header_names(text: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    if text.starts_with(b"\"") {
        let (old, rest) = unquote(text);
        let (new, _) = unquote(rest.strip_prefix(b" ")?);
        return Some((strip_side(&old)?, strip_side(&new)?));
    }
    if let Some(at) = find(text, b" \"") {
        let (new, _) = unquote(&text[at + 1..]);
        return Some((strip_side(&text[..at])?, strip_side(&new)?));
    }
    let middles = || (0..text.len()).filter(|at| text[*at..].starts_with(b" b/"));
    let split = |at: usize| Some((strip_side(&text[..at])?, strip_side(&text[at + 1..])?));
    middles().filter_map(split).find(|(old, new)| old == new).or_else(|| split(middles().next()?))
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|window| window == needle)
}

fn strip_side(name: &[u8]) -> Option<Vec<u8>> {
    let rest = &name[name.iter().position(|byte| *byte == b'/')? + 1..];
    (!rest.is_empty()).then(|| rest.to_vec())
}

/// The name after `---` or `+++`: nothing for `/dev/null`, a time after a tab dropped.
fn side(name: &[u8]) -> Option<Vec<u8>> {
    let name = if name.starts_with(b"\"") {
        unquote(name).0
    } else {
        name.split(|byte| *byte == b'\t').next().unwrap_or(name).to_vec()
    };
    if name == b"/dev/null" { None } else { strip_side(&name) }
}

/// A name in git's C-style quotes, and what follows it; a name without quotes is all of it.
fn unquote(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let Some(mut rest) = text.strip_prefix(b"\"") else {
        return (text.to_vec(), b"");
    };
    let mut name = Vec::new();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => break,
            b'\\' => {
                let Some((escape, after)) = rest.split_first() else { break };
                rest = after;
                match escape {
                    b'a' => name.push(7),
                    b'b' => name.push(8),
                    b't' => name.push(b'\t'),
                    b'n' => name.push(b'\n'),
                    b'v' => name.push(11),
                    b'f' => name.push(12),
                    b'r' => name.push(b'\r'),
                    b'0'..=b'3' => {
                        let digits = rest.get(..2).filter(|digits| {
                            digits.iter().all(|digit| (b'0'..=b'7').contains(digit))
                        });
                        let Some(digits) = digits else { continue };
                        name.push(
                            (escape - b'0') << 6 | (digits[0] - b'0') << 3 | (digits[1] - b'0'),
                        );
                        rest = &rest[2..];
                    }
                    other => name.push(*other),
                }
            }
            other => name.push(*other),
        }
    }
    (name, rest)
}

/// `12,3 +14,2 @@ ...`.
fn hunk_ranges(text: &[u8]) -> Option<((u64, u64), (u64, u64))> {
    let text = std::str::from_utf8(text.split(|byte| *byte == b'@').next()?).ok()?;
    let (old, new) = text.trim_end().split_once(" +")?;
    let range = |part: &str| -> Option<(u64, u64)> {
        match part.split_once(',') {
            Some((line, count)) => Some((line.parse().ok()?, count.parse().ok()?)),
            None => Some((part.parse().ok()?, 1)),
        }
    };
    Some((range(old)?, range(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(patch: &str) -> Vec<(Option<String>, Option<String>)> {
        let text = |name: Option<Vec<u8>>| name.map(|name| String::from_utf8(name).unwrap());
        patched_files(patch.as_bytes())
            .into_iter()
            .map(|file| (text(file.old), text(file.new)))
            .collect()
    }

    fn pair(old: &str, new: &str) -> (Option<String>, Option<String>) {
        let side = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        (side(old), side(new))
    }

    #[test]
    fn names_are_read_in_every_form() {
        let patch = concat!(
            "diff --git a/a b.py b/a b.py\nindex 1..2 100644\n--- a/a b.py\t\n+++ b/a b.py\t\n",
            "@@ -1,2 +1,3 @@ def f():\n x\n+--- a/not/a/header\n-y\n+++ b/neither\n",
            "diff --git \"a/\\303\\244 \\\"q\\\".py\" \"b/\\303\\244 \\\"q\\\".py\"\nold mode 100644\nnew mode 100755\n",
            "diff --git a/gone.py b/gone.py\ndeleted file mode 100644\n--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n",
            "diff --git a/empty b/empty\nnew file mode 100644\nindex 0..0\n",
            "diff --git a/from.py b/to.py\nsimilarity index 100%\nrename from from.py\nrename to to.py\n",
            "diff --git a/x/bin b/x/bin\nnew file mode 100644\nGIT binary patch\nliteral 3\nKcmZ\n\n",
            "--- a/plain.py\t2020-01-01 00:00:00\n+++ b/plain.py\t2020-01-02 00:00:00\n@@ -5 +5 @@\n-1\n+2\n",
        );
        assert_eq!(
            names(patch),
            [
                pair("a b.py", "a b.py"),
                pair("\u{e4} \"q\".py", "\u{e4} \"q\".py"),
                pair("gone.py", ""),
                pair("", "empty"),
                pair("from.py", "to.py"),
                pair("", "x/bin"),
                pair("plain.py", "plain.py"),
            ]
        );
        assert_eq!(patched_files(patch.as_bytes())[6].hunks, [(5, 1)]);
    }

    #[test]
    fn test_files_are_those_that_pytest_would_find() {
        let patch = |paths: &[&str]| -> Vec<u8> {
            let one = |path: &&str| {
                format!(
                    "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-1\n+2\n"
                )
            };
            paths.iter().map(one).collect::<String>().into_bytes()
        };
        let files = |paths: &[&str]| test_files(&patch(paths));
        assert_eq!(
            files(&["tests/__init__.py", "tests/test_a.py", "tests/data.xml", "tests/helper.py"]),
            ["tests/test_a.py"]
        );
        assert_eq!(files(&["tests/runtests.py", "tests/conftest.py"]), ["tests/runtests.py"]);
        assert_eq!(files(&["src/thing.py"]), Vec::<String>::new());
        assert_eq!(files(&["b/x_test.py", "b/x_test.py"]), ["b/x_test.py"]);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            let mut patch = b"diff --git a/x b/x\n--- ".to_vec();
            patch.extend_from_slice(&bytes);
            let _ = patched_files(&patch);
            let mut patch = b"diff --git \"a/".to_vec();
            patch.extend_from_slice(&bytes);
            let _ = patched_files(&patch);
        }
    }
}
