//! JSON schemas of the files, for editors: committed as `docs/schema/*.schema.json`.

use schemars::generate::SchemaSettings;

use super::raw::{RawBase, RawSpec};

/// The schema of `specs/<owner>__<name>/<version>.toml`.
pub fn schema() -> serde_json::Value {
    generate::<RawSpec>("Hallmark spec")
}

/// The schema of `images/<base>.toml`.
pub fn base_schema() -> serde_json::Value {
    generate::<RawBase>("Hallmark base image")
}

/// The schema of a raw table.
pub(crate) fn generate<T: schemars::JsonSchema>(title: &str) -> serde_json::Value {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    schema.into()
}
