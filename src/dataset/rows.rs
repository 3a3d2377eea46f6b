//! A file cut into rows, each with its line, whatever the shape of the file.
//!
//! The top level is read by hand, value by value, so that a row's line is known and no two rows of an object fall
//! together in silence.

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::error::RowFault;

/// One row as it stands in the file.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) line: usize,
    /// The key that the row has in an object keyed by id.
    pub(super) key: Option<String>,
    pub(super) fields: Map<String, Value>,
}

/// The fields of an object, none of them twice.
struct Fields(Map<String, Value>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a row, which is an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Map::new();
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    if fields.insert(key.clone(), value).is_some() {
                        return Err(A::Error::custom(format!("the field {key:?} stands twice")));
                    }
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// A file, read from left to right.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scanner<'t> {
    fn skip_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at = self.text.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn eat(&mut self, c: char) -> bool {
        self.skip_space();
        let found = self.peek() == Some(c);
        self.at += if found { c.len_utf8() } else { 0 };
        found
    }

    fn line(&self) -> usize {
        self.text[..self.at].matches('\n').count() + 1
    }

    fn fault(&self, message: impl Into<String>, hint: &str) -> RowFault {
        RowFault { line: self.line(), id: None, message: message.into(), hint: hint.to_owned() }
    }

    /// The next value; on an error the place is where serde_json stopped.
    fn value<T: Deserialize<'t>>(&mut self) -> Result<T, RowFault> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<T>();
        match stream.next() {
            Some(Ok(value)) => {
                self.at += stream.byte_offset();
                Ok(value)
            }
            Some(Err(error)) if error.is_eof() => Err(cut_off(self.text)),
            Some(Err(error)) => Err(RowFault {
                line: self.line() + error.line().saturating_sub(1),
                id: None,
                message: without_place(&error),
                hint: "rows are JSON objects".to_owned(),
            }),
            None => Err(cut_off(self.text)),
        }
    }
}

/// The file ends within a value.
fn cut_off(text: &str) -> RowFault {
    RowFault {
        line: text.trim_end().matches('\n').count() + 1,
        id: None,
        message: "the file ends in the middle of a row".to_owned(),
        hint: "it was cut off, by a full disk or a broken download: get it again".to_owned(),
    }
}

/// The message of serde_json without its own idea of the place, which counts from the row.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// Cuts a file into rows. `Err` holds what ends the reading; in JSON lines each line is tried.
pub(super) fn split(bytes: &[u8]) -> Result<Vec<Row>, Vec<RowFault>> {
    let text = decode(bytes).map_err(|fault| vec![fault])?;
    let mut scanner = Scanner { text, at: 0 };
    scanner.skip_space();
    match scanner.peek() {
        None => {
            let hint = "a split has at least one row; was the download cut off?";
            Err(vec![scanner.fault("there are no rows", hint)])
        }
        Some('[') => array(&mut scanner).map_err(|fault| vec![fault]),
        Some('{') if is_keyed(text) => object(&mut scanner).map_err(|fault| vec![fault]),
        Some('{') => lines(text),
        Some(_) => {
            let hint =
                "rows come as a JSON array, as JSON lines or as an object keyed by instance id";
            Err(vec![scanner.fault("this is not JSON that holds rows", hint)])
        }
    }
}

fn decode(bytes: &[u8]) -> Result<&str, RowFault> {
    let fault = |line, message: &str, hint: &str| RowFault {
        line,
        id: None,
        message: message.to_owned(),
        hint: hint.to_owned(),
    };
    if bytes.starts_with(b"PAR1") {
        let hint = "write it as JSON lines, for example with pandas: to_json(orient=\"records\", lines=True)";
        return Err(fault(1, "this is a Parquet file", hint));
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return Err(fault(1, "this is a gzip file", "unpack it with `gunzip`"));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
        fault(line, "the file is not UTF-8", "convert it: JSON is UTF-8 by its standard")
    })
}

/// Whether the text is one object whose values are rows, and not a row itself.
fn is_keyed(text: &str) -> bool {
    let mut scanner = Scanner { text, at: 0 };
    scanner.eat('{');
    if scanner.eat('}') {
        return true;
    }
    scanner.value::<String>().is_ok() && scanner.eat(':') && {
        scanner.skip_space();
        // A row's first field is an object only in a pair, whose name is known.
        scanner.peek() == Some('{') && !text.trim_start()[1..].trim_start().starts_with("\"pair\"")
    }
}

fn array(scanner: &mut Scanner<'_>) -> Result<Vec<Row>, RowFault> {
    let mut rows = Vec::new();
    scanner.eat('[');
    if !scanner.eat(']') {
        loop {
            scanner.skip_space();
            let line = scanner.line();
            rows.push(Row { line, key: None, fields: scanner.value::<Fields>()?.0 });
            if scanner.eat(']') {
                break;
            }
            comma(scanner, ']')?;
        }
    }
    end(scanner).map(|()| rows)
}

fn object(scanner: &mut Scanner<'_>) -> Result<Vec<Row>, RowFault> {
    let mut rows = Vec::new();
    scanner.eat('{');
    if !scanner.eat('}') {
        loop {
            scanner.skip_space();
            let line = scanner.line();
            let key = Some(scanner.value::<String>()?);
            if !scanner.eat(':') {
                return Err(expected(scanner, "a colon after the id"));
            }
            rows.push(Row { line, key, fields: scanner.value::<Fields>()?.0 });
            if scanner.eat('}') {
                break;
            }
            comma(scanner, '}')?;
        }
    }
    end(scanner).map(|()| rows)
}

fn comma(scanner: &mut Scanner<'_>, close: char) -> Result<(), RowFault> {
    if scanner.eat(',') {
        Ok(())
    } else {
        Err(expected(scanner, &format!("a comma or `{close}` after the row")))
    }
}

fn expected(scanner: &Scanner<'_>, what: &str) -> RowFault {
    if scanner.peek().is_none() {
        return cut_off(scanner.text);
    }
    scanner.fault(format!("expected {what}"), "the file must be valid JSON")
}

fn end(scanner: &mut Scanner<'_>) -> Result<(), RowFault> {
    scanner.skip_space();
    match scanner.peek() {
        None => Ok(()),
        Some(_) => Err(scanner.fault(
            "something follows the last row",
            "a file holds one array, one object, or one row per line",
        )),
    }
}

fn lines(text: &str) -> Result<Vec<Row>, Vec<RowFault>> {
    let mut rows = Vec::new();
    let mut faults = Vec::new();
    let last = text.trim_end().matches('\n').count() + 1;
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let number = index + 1;
        match serde_json::from_str::<Fields>(line) {
            Ok(Fields(fields)) => rows.push(Row { line: number, key: None, fields }),
            Err(error) if error.is_eof() && number == last => faults.push(cut_off(text)),
            Err(error) => faults.push(RowFault {
                line: number,
                id: None,
                message: format!("{} at column {}", without_place(&error), error.column()),
                hint: "in JSON lines each line is one whole object".to_owned(),
            }),
        }
    }
    if faults.is_empty() { Ok(rows) } else { Err(faults) }
}
