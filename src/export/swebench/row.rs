//! One row.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use super::ids::named;
use super::runner::Runner;
use super::script::{END, START, Script};
use crate::dataset::Instance;
use crate::export::Error;
use crate::image::Image;
use crate::results::TestResult;
use crate::runtime::RunSpec;
use crate::spec::{Compat, Spec};
use crate::verify::{Lists, Verdict, environment};

/// An instance and what is known of it.
#[derive(Debug, Clone, Copy)]
pub struct RowInput<'a> {
    /// The row.
    pub instance: &'a Instance,
    /// Its spec.
    pub spec: &'a Spec,
    /// Its image.
    pub image: &'a Image,
    /// The image's name in the daemon or the registry.
    pub name: &'a str,
    /// The commit of the work tree in the image.
    pub base_commit: &'a str,
    /// The gold patch.
    pub gold_patch: &'a [u8],
    /// The test patch.
    pub test_patch: &'a [u8],
    /// The expected tests.
    pub lists: &'a Lists,
    /// What its runs say: which tests are set aside, which were meant.
    pub verdict: &'a Verdict,
    /// The outcomes of a run after the gold patch; none where there was no such run.
    pub tests: &'a BTreeMap<String, TestResult>,
}

/// A row as the harness reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    fields: Map<String, Value>,
    /// Expected tests that are not in the row's lists, by reason.
    pub left_out: BTreeMap<&'static str, Vec<String>>,
}

impl Row {
    /// The row as one line of JSON, in ASCII: the harness splits files at every separator of lines that Unicode knows, also
    /// inside of strings.
    pub fn line(&self) -> String {
        let json = Value::Object(self.fields.clone()).to_string();
        let mut line = String::with_capacity(json.len() + 1);
        for c in json.chars() {
            if c.is_ascii() {
                line.push(c);
            } else {
                // Outside of strings JSON is ASCII.
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    line.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
        line.push('\n');
        line
    }
}

/// Makes the row, with every field that the harness reads (5.0.2; 4.1.0 makes its script of `test_patch`, for repositories it knows)
/// and what else the dataset says of the instance.
pub fn row(input: &RowInput<'_>) -> Result<Row, Error> {
    let gold_patch = text(input.gold_patch, "gold patch")?;
    let test_patch = text(input.test_patch, "test patch")?;
    if let Some(mark) = [START, END].into_iter().find(|mark| test_patch.contains(mark)) {
        return Err(Error::Mark { mark });
    }
    let runner = Runner::of(input.spec, input.test_patch)?;
    let named = named(&runner, input.lists, input.verdict, input.tests);
    if named.fail_to_pass.is_empty() {
        return Err(Error::NothingLeft);
    }
    let script = Script {
        base_commit: input.base_commit,
        test_patch,
        rebuild: &input.spec.commands.rebuild,
        command: &runner.command,
        env: &environment_of_runs(input.image),
        activates: input.spec.compat == Compat::Swebench,
    };
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("instance_id", input.instance.id.as_str().into());
    put("repo", input.instance.repo.as_str().into());
    put("version", input.instance.version.as_str().into());
    put("base_commit", input.base_commit.into());
    put("image", input.name.into());
    // By this name mini-swe-agent knows it.
    put("image_name", input.name.into());
    put("eval_script", script.text().into());
    put("log_parser", runner.log_parser.into());
    put("eval_type", "pass_and_fail".into());
    put("FAIL_TO_PASS", named.fail_to_pass.into());
    put("PASS_TO_PASS", named.pass_to_pass.into());
    put("patch", gold_patch.into());
    put("test_patch", test_patch.into());
    put("problem_statement", "".into());
    for (name, value) in &input.instance.extra {
        if name == "problem_statement" || !fields.contains_key(name) {
            fields.insert(name.clone(), value.clone());
        }
    }
    Ok(Row { fields, left_out: named.left_out })
}

/// What hallmark's own plain runs set beside the image's variables. The rest is the container's.
fn environment_of_runs(image: &Image) -> BTreeMap<String, String> {
    let mut env = environment(image, &RunSpec::new([""], Path::new("")));
    env.retain(|name, _| {
        !image.config.env.contains_key(name) && !matches!(name.as_str(), "PATH" | "HOME")
    });
    env
}

fn text<'a>(bytes: &'a [u8], what: &'static str) -> Result<&'a str, Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(Error::NotText { what }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_ascii_and_reads_as_before() {
        let text = "a\u{2028}b\u{85}c\u{1f600}\u{c}\"";
        let row = Row {
            fields: [("x".to_owned(), Value::from(text))].into_iter().collect(),
            left_out: BTreeMap::new(),
        };
        let line = row.line();
        assert!(line.is_ascii() && line.lines().count() == 1 && line.ends_with("\"}\n"));
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["x"], text);
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        assert_eq!(text(b"a\xff", "gold patch"), Err(Error::NotText { what: "gold patch" }));
        assert!(text(b"a\0", "gold patch").is_err());
        assert_eq!(text("ä".as_bytes(), ""), Ok("ä"));
    }
}
