//! The published JSON schema.

use super::Error;
use super::model::Manifest;

/// The schema's text, as it stands in `docs/schema/manifest.schema.json`.
pub fn schema() -> Result<String, Error> {
    let schema = schemars::schema_for!(Manifest);
    let mut text = serde_json::to_string_pretty(&schema).map_err(crate::base::Error::Canon)?;
    text.push('\n');
    Ok(text)
}
