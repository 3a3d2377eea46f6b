//! Writing and reading TOML so that the bytes depend on the values alone.
//!
//! The writer is ours, since a lock is compared byte by byte and must not move with a library's taste
//! for quotes. Reading goes through the `toml` crate, the version first.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Error;

/// The format version that is written and the newest that is read.
pub(super) const VERSION: i64 = 1;

/// Builds a text line by line.
#[derive(Default)]
pub(super) struct Text(String);

impl Text {
    /// Starts with the format version, before anything else.
    pub(super) fn versioned() -> Self {
        let mut text = Self::default();
        text.integer("version", VERSION);
        text
    }

    pub(super) fn blank(&mut self) {
        self.0.push('\n');
    }

    pub(super) fn comment(&mut self, comment: &str) {
        self.line(&format!("# {comment}"));
    }

    /// A blank line, then a header such as `[[debs]]`.
    pub(super) fn header(&mut self, header: &str) {
        self.blank();
        self.line(header);
    }

    pub(super) fn string(&mut self, key: &str, value: &str) {
        self.line(&format!("{key} = {}", quote(value)));
    }

    pub(super) fn display(&mut self, key: &str, value: impl std::fmt::Display) {
        self.string(key, &value.to_string());
    }

    pub(super) fn integer(&mut self, key: &str, value: impl std::fmt::Display) {
        self.line(&format!("{key} = {value}"));
    }

    /// A whole line as it is.
    pub(super) fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// A TOML basic string.
pub(super) fn quote(value: &str) -> String {
    let mut out = String::with_capacity(value.len() + 2);
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => {
                write!(out, "\\u{:04X}", u32::from(c)).expect("a string takes everything");
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Reads a text of ours: the version first, so that a newer file is called newer and not wrong.
pub(super) fn parse<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, Error> {
    #[derive(Deserialize)]
    struct Head {
        version: Option<i64>,
    }
    let head: Head = toml::from_str(text).map_err(|source| syntax(file, source))?;
    match head.version {
        Some(VERSION) => {}
        Some(found) if found > VERSION => {
            return Err(Error::Newer {
                file: file.to_owned(),
                found: found.to_string(),
                known: VERSION.to_string(),
            });
        }
        Some(found) => return Err(invalid(file, format!("there is no format version {found}"))),
        None => return Err(invalid(file, "`version` is missing".to_owned())),
    }
    toml::from_str(text).map_err(|source| syntax(file, source))
}

pub(super) fn syntax(file: &str, source: toml::de::Error) -> Error {
    Error::Syntax { file: file.to_owned(), source: Box::new(source) }
}

pub(super) fn invalid(file: &str, problem: String) -> Error {
    Error::Invalid { file: file.to_owned(), problem }
}

/// Sorts by key and refuses two of the same.
pub(super) fn sort_unique<T: Ord>(
    file: &str,
    what: &str,
    items: &mut [T],
    key: impl Fn(&T) -> &str,
) -> Result<(), Error> {
    items.sort_by(|a, b| key(a).cmp(key(b)));
    match items.windows(2).find(|pair| key(&pair[0]) == key(&pair[1])) {
        Some(pair) => Err(invalid(file, format!("{what} `{}` is there twice", key(&pair[0])))),
        None => Ok(()),
    }
}

/// A file name that cannot leave its folder or break a line.
pub(super) fn check_file_name(file: &str, name: &str) -> Result<(), Error> {
    let bad = name.is_empty()
        || name == "."
        || name == ".."
        || name.len() > 255
        || name.chars().any(|c| c == '/' || c == '\\' || c.is_control());
    if bad {
        return Err(invalid(file, format!("{name:?} is not a bare file name")));
    }
    Ok(())
}

/// TOML's own date and time, as PEP 751 wants upload times.
pub(super) fn from_datetime(
    file: &str,
    datetime: &toml::value::Datetime,
) -> Result<Timestamp, Error> {
    datetime
        .to_string()
        .parse()
        .map_err(|error| invalid(file, format!("{datetime} is not a time with an offset: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_survives_toml() {
        for text in ["", "a", "a\"b\\c", "\n\r\t\u{1}\u{7f}", "é\u{85}日本", "'''\"\"\""] {
            let table: toml::Table = toml::from_str(&format!("x = {}", quote(text))).unwrap();
            assert_eq!(table["x"].as_str(), Some(text));
        }
    }

    #[test]
    fn file_names_stay_in_their_folder() {
        for name in ["", ".", "..", "a/b", "a\\b", "a\nb", "a\0b", &"x".repeat(256)] {
            assert!(check_file_name("f", name).is_err(), "{name:?}");
        }
        check_file_name("f", "..a b+~1.whl").unwrap();
    }
}
