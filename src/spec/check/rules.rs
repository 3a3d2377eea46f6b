//! What all rules share: the reader they report to, and lists of things.

use crate::spec::names::path_fault;
use crate::spec::reader::{Located, Place, Reader};

pub(super) type Strings = Vec<Located<String>>;

/// The rules, as methods that report to one reader.
pub(in crate::spec) struct Checks<'r, 'f> {
    pub(in crate::spec) reader: &'r mut Reader<'f>,
}

impl Checks<'_, '_> {
    pub(super) fn push_once(&mut self, names: &mut Vec<String>, name: String, place: &Place) {
        if names.contains(&name) {
            self.reader.fault(place, format!("{name:?} is named twice"), "remove one of the two");
        } else {
            names.push(name);
        }
    }

    pub(super) fn paths(&mut self, raw: Option<Located<Strings>>) -> Vec<String> {
        let mut out = Vec::new();
        for Located { value, place } in raw.map(|raw| raw.value).unwrap_or_default() {
            if let Some(problem) = path_fault(&value) {
                let message = format!("the path {} {problem}", short(&value));
                let hint = "write a path inside the repository, relative to its root";
                self.reader.fault(&place, message, hint);
            } else {
                self.push_once(&mut out, value, &place);
            }
        }
        out
    }
}

/// A text quoted for a message, cut where it is long.
pub(super) fn short(text: &str) -> String {
    let start: String = text.chars().take(60).collect();
    if start.len() < text.len() { format!("{start:?}...") } else { format!("{start:?}") }
}
