//! The strict form of a split: JSON lines, one order of fields, lists as lists.

use serde_json::{Map, Value};

use super::model::{Instance, Source, Split};

/// Writes a split as JSON lines, in the split's order. Reading it gives the same split, and equal splits give
/// equal bytes.
pub fn write(split: &Split) -> String {
    let mut out = String::new();
    for instance in &split.instances {
        out.push_str(&Value::Object(row(instance)).to_string());
        out.push('\n');
    }
    out
}

fn row(instance: &Instance) -> Map<String, Value> {
    let mut row = Map::new();
    let mut put = |name: &str, value: Value| row.insert(name.to_owned(), value);
    put("instance_id", instance.id.as_str().into());
    put("repo", instance.repo.as_str().into());
    put("version", instance.version.as_str().into());
    match &instance.source {
        Source::Git { url, base_commit, gold_patch, test_patch } => {
            if let Some(url) = url {
                put("repo_url", url.as_str().into());
            }
            put("base_commit", base_commit.as_str().into());
            put("patch", gold_patch.as_str().into());
            put("test_patch", test_patch.as_str().into());
        }
        Source::Pair(pair) => {
            put(
                "pair",
                serde_json::to_value(pair).expect("a pair is strings, digests and numbers"),
            );
        }
    }
    for (name, ids) in
        [("FAIL_TO_PASS", &instance.fail_to_pass), ("PASS_TO_PASS", &instance.pass_to_pass)]
    {
        if let Some(ids) = ids {
            put(name, ids.as_slice().into());
        }
    }
    let mut extra: Vec<_> = instance.extra.iter().collect();
    extra.sort_by_key(|(name, _)| *name);
    for (name, value) in extra {
        put(name, sorted(value));
    }
    row
}

/// The value with the keys of its objects in order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(name, _)| *name);
            Value::Object(
                entries.into_iter().map(|(name, value)| (name.clone(), sorted(value))).collect(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}
