//! From bytes to a [`Split`].

use std::collections::BTreeMap;
use std::path::Path;

use super::error::{Error, RowFault};
use super::model::Split;
use super::{row, rows};

/// Reads a split. `name` is the split's name and what messages call the file.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Split, Error> {
    let invalid = |faults| Error::Invalid { name: name.to_owned(), faults };
    let mut faults = Vec::new();
    let mut instances = Vec::new();
    let mut lines = BTreeMap::new();
    for row in rows::split(bytes).map_err(invalid)? {
        let line = row.line;
        let Some(instance) = row::read(row, &mut faults) else { continue };
        if let Some(first) = lines.insert(instance.id.clone(), line) {
            faults.push(RowFault {
                line,
                id: Some(instance.id.to_string()),
                message: format!("the id stands in line {first} already"),
                hint: "remove one of the two rows".to_owned(),
            });
        }
        instances.push(instance);
    }
    if !faults.is_empty() {
        return Err(invalid(faults));
    }
    if instances.is_empty() {
        let hint = "a split has at least one row".to_owned();
        let fault = RowFault { line: 1, id: None, message: "there are no rows".to_owned(), hint };
        return Err(invalid(vec![fault]));
    }
    Ok(Split { name: name.to_owned(), instances })
}

/// Reads a split from a file; its name is the file's without `.rows.jsonl` or the like.
pub fn load(path: &Path) -> Result<Split, Error> {
    let bytes = fs_err::read(path)?;
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let name = [".jsonl", ".json"].iter().find_map(|end| file.strip_suffix(end)).unwrap_or(&file);
    let name = name.strip_suffix(".rows").unwrap_or(name).to_owned();
    match parse(&path.display().to_string(), &bytes) {
        Ok(split) => Ok(Split { name, ..split }),
        Err(error) => Err(error),
    }
}
