//! One row to one [`Instance`].

use serde_json::{Map, Value};

use super::error::RowFault;
use super::model::{Instance, InstanceId, Pair, Sdist, Source};
use super::rows::Row;
use super::test_ids;
use crate::spec::{is_file_name, normalize_package_name};

/// Fields that only rows with a git source have.
const GIT_FIELDS: [&str; 4] = ["base_commit", "patch", "test_patch", "repo_url"];

/// Reads the row's fields one by one; what is left is kept as it came.
struct RowReader<'f> {
    line: usize,
    id: Option<String>,
    fields: Map<String, Value>,
    faults: &'f mut Vec<RowFault>,
}

impl RowReader<'_> {
    fn fault(&mut self, message: impl Into<String>, hint: impl Into<String>) {
        self.faults.push(RowFault {
            line: self.line,
            id: self.id.clone(),
            message: message.into(),
            hint: hint.into(),
        });
    }

    fn optional(&mut self, name: &str) -> Option<String> {
        // The order of what is left does not matter: it is written sorted.
        match self.fields.swap_remove(name)? {
            Value::String(text) => Some(text),
            Value::Null => None,
            _ => {
                self.fault(format!("`{name}` is not a string"), "write it as a JSON string");
                None
            }
        }
    }

    fn required(&mut self, name: &str, hint: &str) -> Option<String> {
        let absent = self.fields.get(name).is_none_or(Value::is_null);
        if absent {
            self.fields.swap_remove(name);
            self.fault(format!("`{name}` is missing"), hint);
            return None;
        }
        self.optional(name)
    }

    fn tests(&mut self, name: &str) -> Option<Vec<String>> {
        let value = self.fields.swap_remove(name)?;
        test_ids::parse(value).unwrap_or_else(|problem| {
            let hint = "write a JSON list of test ids, each once";
            self.fault(format!("`{name}`: {problem}"), hint);
            None
        })
    }
}

/// Reads one row; what is wrong goes to `faults`.
pub(super) fn read(row: Row, faults: &mut Vec<RowFault>) -> Option<Instance> {
    let before = faults.len();
    let shown = row.fields.get("instance_id").and_then(Value::as_str).or(row.key.as_deref());
    let shown = shown.map(|id| id.chars().take(80).collect::<String>().escape_debug().to_string());
    let mut fields = RowReader { line: row.line, id: shown, fields: row.fields, faults };
    let id = id(&mut fields, row.key);
    let repo = fields
        .required("repo", "write `owner/name`, or `pypi/<package>` for a pair")
        .and_then(|repo| check_repo(&mut fields, repo));
    let version = fields
        .required("version", "write the version whose spec the row uses")
        .and_then(|version| check_version(&mut fields, version));
    let source = match fields.fields.swap_remove("pair") {
        Some(pair) => {
            pair_source(&mut fields, pair, id.as_ref(), repo.as_deref(), version.as_deref())
        }
        None => git_source(&mut fields),
    };
    let fail_to_pass = fields.tests("FAIL_TO_PASS");
    let pass_to_pass = fields.tests("PASS_TO_PASS");
    if let (Some(fail), Some(pass)) = (&fail_to_pass, &pass_to_pass)
        && let Some(both) = fail.iter().find(|id| pass.contains(id))
    {
        let message = format!("the test {both:?} is in FAIL_TO_PASS and in PASS_TO_PASS");
        fields.fault(
            message,
            "a test fails before the gold patch or passes: remove it from one list",
        );
    }
    let extra = fields.fields;
    if faults.len() > before {
        return None;
    }
    Some(Instance {
        id: id?,
        repo: repo?,
        version: version?,
        source: source?,
        fail_to_pass,
        pass_to_pass,
        extra,
    })
}

fn id(fields: &mut RowReader<'_>, key: Option<String>) -> Option<InstanceId> {
    let text = match (fields.optional("instance_id"), key) {
        (Some(id), Some(key)) if id != key => {
            fields.fault(
                format!("the row's key is {:?}", key.chars().take(80).collect::<String>()),
                "in an object keyed by id, key and `instance_id` are equal",
            );
            return None;
        }
        (Some(id), _) | (None, Some(id)) => id,
        (None, None) => {
            fields.fault("`instance_id` is missing", "every row has an id of its own");
            return None;
        }
    };
    InstanceId::try_from(text)
        .map_err(|error| {
            fields.fault(error.to_string(), "ids name folders and images: rename the instance");
        })
        .ok()
}

fn check_repo(fields: &mut RowReader<'_>, repo: String) -> Option<String> {
    let parts: Vec<&str> = repo.split('/').collect();
    if parts.len() == 2 && parts.iter().all(|part| is_file_name(part)) {
        return Some(repo);
    }
    let shown: String = repo.chars().take(80).collect();
    fields.fault(format!("{shown:?} is not a repository"), "write `owner/name`");
    None
}

fn check_version(fields: &mut RowReader<'_>, version: String) -> Option<String> {
    if is_file_name(&version) {
        return Some(version);
    }
    let shown: String = version.chars().take(80).collect();
    let hint = "versions name files: use letters, digits, `.`, `_`, `-`, `+` and `!`";
    fields.fault(format!("{shown:?} cannot be a version"), hint);
    None
}

fn git_source(fields: &mut RowReader<'_>) -> Option<Source> {
    let base_commit = fields.required(
        "base_commit",
        "a row has a `base_commit` with `patch` and `test_patch`, or a `pair` of releases",
    );
    let base_commit = base_commit.and_then(|commit| {
        let hex =
            commit.len() == 40 && commit.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if !hex {
            let shown: String = commit.chars().take(80).collect();
            let hint = "write all 40 lower-case hex digits: branches and tags move";
            fields.fault(format!("the base commit {shown:?} is not a commit"), hint);
        }
        hex.then_some(commit)
    });
    let gold_patch = fields.required("patch", "write the gold patch");
    let test_patch = fields.required("test_patch", "write the test patch");
    let url = fields.optional("repo_url");
    Some(Source::Git {
        url,
        base_commit: base_commit?,
        gold_patch: gold_patch?,
        test_patch: test_patch?,
    })
}

fn pair_source(
    fields: &mut RowReader<'_>,
    pair: Value,
    id: Option<&InstanceId>,
    repo: Option<&str>,
    version: Option<&str>,
) -> Option<Source> {
    for name in GIT_FIELDS {
        if fields.fields.contains_key(name) {
            let message = format!("a pair row has no `{name}`");
            fields.fault(
                message,
                "its patches are the difference of the two sdists: remove the field",
            );
        }
    }
    let pair: Pair = match serde_json::from_value(pair) {
        Ok(pair) => pair,
        Err(error) => {
            let hint =
                "a pair is {package, base, fixed}; each release {version, file, sha256, size}";
            fields.fault(format!("`pair`: {error}"), hint);
            return None;
        }
    };
    let package = &pair.package;
    let mut demand = |what: &str, expected: String, actual: Option<&str>| {
        if let Some(actual) = actual.filter(|actual| *actual != expected) {
            let message = format!("{what} of the pair: expected {expected:?}, got {actual:?}");
            fields.fault(message, format!("write {expected:?}"));
        }
    };
    demand("the package", normalize_package_name(package), Some(package));
    demand("the id", format!("pypi__{package}-{}", pair.fixed.version), id.map(InstanceId::as_str));
    demand("the repo", format!("pypi/{package}"), repo);
    demand("the version", pair.base.version.clone(), version);
    if pair.base.version == pair.fixed.version || pair.base.sha256 == pair.fixed.sha256 {
        fields
            .fault("the pair's releases are the same", "name the release before the fix as `base`");
    }
    for (which, sdist) in [("base", &pair.base), ("fixed", &pair.fixed)] {
        check_sdist(fields, which, package, sdist);
    }
    Some(Source::Pair(pair))
}

fn check_sdist(fields: &mut RowReader<'_>, which: &str, package: &str, sdist: &Sdist) {
    let stem = sdist.file.strip_suffix(".tar.gz").or_else(|| sdist.file.strip_suffix(".zip"));
    let expected = normalize_package_name(&format!("{package}-{}", sdist.version));
    let good = is_file_name(&sdist.file)
        && stem.is_some_and(|stem| normalize_package_name(stem) == expected);
    if !good {
        let shown: String = sdist.file.chars().take(80).collect();
        let message = format!("{shown:?} is not the sdist of {package} {}", sdist.version);
        let hint = format!("write the file's name on PyPI as `file` of `{which}`");
        fields.fault(message, hint);
    }
    if sdist.size == 0 {
        let hint = format!("write the file's length in bytes as `size` of `{which}`");
        fields.fault("an sdist is never empty", hint);
    }
}
