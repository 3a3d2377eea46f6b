//! The script that the harness runs in a container: the test patch, the rebuild, the tests between the marks.
//!
//! The harness takes the first two lines away and puts them back, and puts a line of its own before that of the end mark,
//! which keeps the exit status of the test command: nothing may stand between the two.

use std::collections::BTreeMap;

use shlex::try_join;

use crate::verify::patched_files;

pub(super) const START: &str = ">>>>> Start Test Output";
pub(super) const END: &str = ">>>>> End Test Output";

/// What the script is made of.
pub(super) struct Script<'a> {
    pub(super) base_commit: &'a str,
    pub(super) test_patch: &'a str,
    pub(super) rebuild: &'a [String],
    pub(super) command: &'a [String],
    /// Variables that the image does not set.
    pub(super) env: &'a BTreeMap<String, String>,
    /// Whether `conda activate testbed` works there.
    pub(super) activates: bool,
}

impl Script<'_> {
    pub(super) fn text(&self) -> String {
        let restore = self.restore();
        let mut lines = vec![
            "#!/bin/bash".to_owned(),
            "set -uxo pipefail".to_owned(),
            // Two streams are read as one, in any order.
            "exec 2>&1".to_owned(),
        ];
        if self.activates {
            lines.push("source /opt/miniconda3/bin/activate".to_owned());
            lines.push("conda activate testbed".to_owned());
        }
        lines.push("cd /testbed".to_owned());
        for (name, value) in self.env {
            lines.push(format!("export {name}={}", words([value])));
        }
        lines.extend(restore.iter().cloned());
        if !self.test_patch.is_empty() {
            let end = self.delimiter();
            // Without it, what would be graded is another test.
            lines.push(format!("git apply -v - <<'{end}' || exit 1"));
            lines.push(self.test_patch.strip_suffix('\n').unwrap_or(self.test_patch).to_owned());
            lines.push(end);
        }
        // As in hallmark's own runs, a failing rebuild ends the run.
        lines.extend(self.rebuild.iter().map(|command| format!("({command}\n) || exit 1")));
        lines.push(format!(": '{START}'"));
        lines.push(words(self.command));
        lines.push(format!(": '{END}'"));
        lines.extend(restore);
        lines.join("\n") + "\n"
    }

    /// Puts the files of the test patch back to what the base commit has: changed ones again, new ones away.
    fn restore(&self) -> Vec<String> {
        let text = |path: Vec<u8>| String::from_utf8(path).expect("a part of a text");
        let files = patched_files(self.test_patch.as_bytes());
        let old: Vec<String> = files.iter().filter_map(|file| file.old.clone()).map(text).collect();
        let mut new: Vec<String> =
            files.iter().filter_map(|file| file.new.clone()).map(text).collect();
        new.retain(|path| !old.contains(path));
        let mut lines = Vec::new();
        if !old.is_empty() {
            lines.push(format!("git checkout {} -- {}", self.base_commit, words(&old)));
        }
        if !new.is_empty() {
            lines.push(format!("rm -rf -- {}", words(&new)));
        }
        lines
    }

    /// A word that is no line of the patch.
    fn delimiter(&self) -> String {
        let mut word = "EOF_114329324912".to_owned();
        while self.test_patch.lines().any(|line| line == word) {
            word.push('_');
        }
        word
    }
}

fn words<'a, S: AsRef<str> + ?Sized + 'a>(words: impl IntoIterator<Item = &'a S>) -> String {
    try_join(words.into_iter().map(AsRef::as_ref)).expect("no word holds a NUL")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "diff --git a/t/test a.py b/t/test a.py\n--- a/t/test a.py\t\n+++ b/t/test a.py\t\n@@ -1 +1 @@\n-1\n+2\n\
        diff --git a/t/new.py b/t/new.py\nnew file mode 100644\n--- /dev/null\n+++ b/t/new.py\n@@ -0,0 +1 @@\n+3\n";

    fn script(patch: &str, activates: bool) -> String {
        let command = ["pytest", "-k", "a or b", "t/test a.py"].map(str::to_owned);
        let rebuild = ["make  # twice".to_owned()];
        let env = [("TZ".to_owned(), "UTC".to_owned())].into();
        Script {
            base_commit: "abc",
            test_patch: patch,
            rebuild: &rebuild,
            command: &command,
            env: &env,
            activates,
        }
        .text()
    }

    #[test]
    fn the_script_has_the_shape_that_the_harness_reads() {
        let text = script(PATCH, true);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..3], ["#!/bin/bash", "set -uxo pipefail", "exec 2>&1"]);
        assert!(text.contains(
            "cd /testbed\nexport TZ=UTC\ngit checkout abc -- 't/test a.py'\nrm -rf -- t/new.py\ngit apply"
        ));
        assert!(text.contains("+3\nEOF_114329324912\n(make  # twice\n) || exit 1\n: '>>>>> Start"));
        let end = lines.iter().position(|line| *line == ": '>>>>> End Test Output'").unwrap();
        assert_eq!(lines[end - 1], "pytest -k 'a or b' 't/test a.py'");
        assert_eq!(lines[end + 1..], ["git checkout abc -- 't/test a.py'", "rm -rf -- t/new.py"]);
        assert!(text.contains("\nconda activate testbed\n"));
        assert!(!script(PATCH, false).contains("conda"));
    }

    #[test]
    fn no_line_of_a_patch_ends_it() {
        let text = script("EOF_114329324912\nEOF_114329324912_\n+x", false);
        assert!(text.contains("<<'EOF_114329324912__' || exit 1\n"));
        assert!(text.contains("\n+x\nEOF_114329324912__\n"));
    }
}
