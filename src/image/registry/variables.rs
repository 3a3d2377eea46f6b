//! The variables of an image's config.

use std::collections::BTreeMap;

use oci_spec::image::ImageConfiguration;

/// The variables that a container of the image starts with, or why no process can have them. Entries without `=` set nothing.
pub fn variables(config: &ImageConfiguration) -> Result<BTreeMap<String, String>, String> {
    let entries = config.config().as_ref().and_then(|config| config.env().as_deref());
    let mut variables = BTreeMap::new();
    for entry in entries.unwrap_or_default() {
        let Some((name, value)) = entry.split_once('=') else { continue };
        if name.is_empty() {
            return Err(format!("its variable {entry:?} has no name"));
        }
        if entry.contains('\0') {
            return Err(format!("its variable {name:?} holds a NUL"));
        }
        variables.insert(name.to_owned(), value.to_owned());
    }
    Ok(variables)
}
