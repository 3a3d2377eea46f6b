//! Lists of test ids: a JSON array, or a string that holds one in JSON or in Python's `repr`.

use serde_json::Value;

use super::python_list;

/// Reads a list of ids; `None` where the field says `null`. `Err` says what is wrong.
pub(super) fn parse(value: Value) -> Result<Option<Vec<String>>, String> {
    let ids = match value {
        Value::Null => return Ok(None),
        Value::Array(items) => strings(items)?,
        Value::String(text) => match serde_json::from_str::<Value>(&text) {
            Ok(Value::Array(items)) => strings(items)?,
            Ok(_) => return Err("the string holds JSON that is not a list".to_owned()),
            Err(_) => python_list::parse(&text).map_err(|problem| {
                format!("the string is neither a JSON list nor a Python one: {problem}")
            })?,
        },
        _ => return Err("it is neither a list nor a string that holds one".to_owned()),
    };
    let mut seen = std::collections::BTreeSet::new();
    for id in &ids {
        if id.is_empty() {
            return Err("one of its ids is empty".to_owned());
        }
        if !seen.insert(id) {
            return Err(format!("it has the id {id:?} twice"));
        }
    }
    Ok(Some(ids))
}

fn strings(items: Vec<Value>) -> Result<Vec<String>, String> {
    items
        .into_iter()
        .map(|item| match item {
            Value::String(text) => Ok(text),
            _ => Err("one of its ids is not a string".to_owned()),
        })
        .collect()
}
