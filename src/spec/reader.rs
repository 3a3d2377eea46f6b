//! Reads TOML into raw tables whose every value knows its place, and goes on after a fault.
//!
//! `raw_table!` makes a table's type, its reader, its way to inherit and its JSON schema from one list of
//! keys, so that none of them can forget a key that another knows.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::SpecErrors;
use super::inherit::SpecFile;
use super::names::nearest;

/// Where a value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Index into the reader's files.
    file: usize,
    span: Range<usize>,
}

/// A value and its place.
#[derive(Debug, Clone)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
}

/// Collects the faults of the files that one spec is made of.
pub(crate) struct Reader<'a> {
    files: Vec<&'a SpecFile>,
    errors: SpecErrors,
    /// The keys down to what is being read.
    keys: Vec<String>,
    /// Full names of keys that are there but could not be read, or that a wrong key was meant to be.
    broken: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new() -> Self {
        Self {
            files: Vec::new(),
            errors: SpecErrors::default(),
            keys: Vec::new(),
            broken: BTreeSet::new(),
        }
    }

    /// Parses one more file. The second value says whether it is well-formed TOML; what could be read of
    /// a broken file is read all the same.
    pub(crate) fn file<T: Raw + Default>(&mut self, file: &'a SpecFile) -> (T, bool) {
        self.files.push(file);
        let index = self.files.len() - 1;
        let (table, errors) = DeTable::parse_recoverable(&file.text);
        let sound = errors.is_empty();
        for error in errors {
            let place = Place { file: index, span: error.span().unwrap_or(0..0) };
            let hint = if error.message().starts_with("duplicate key") {
                "write each table and each key once in a file: merge the two, or remove one"
            } else {
                "the file must be TOML 1.0; quote strings, and close quotes and brackets"
            };
            self.fault(&place, error.message(), hint);
        }
        let place = Place { file: index, span: table.span() };
        let value = DeValue::Table(table.into_inner());
        (T::read(&value, &place, self).unwrap_or_default(), sound)
    }

    /// The start of a file, for what is missing.
    pub(crate) fn start_of(file: usize) -> Place {
        Place { file, span: 0..0 }
    }

    pub(crate) fn fault(&mut self, place: &Place, message: impl AsRef<str>, hint: impl AsRef<str>) {
        let file = self.files[place.file];
        self.errors.push(file, place.span.clone(), message.as_ref(), hint.as_ref());
    }

    /// A fault of a part of a string: `part` is a byte range of `text`, the string at `place`.
    pub(super) fn fault_in(
        &mut self,
        place: &Place,
        text: &str,
        part: Range<usize>,
        message: impl AsRef<str>,
        hint: impl AsRef<str>,
    ) {
        let source = self.files[place.file].text.get(place.span.clone()).unwrap_or_default();
        // Without escapes the string stands in the file as it is, after one or three quotes.
        let span = match source.find(text) {
            Some(offset) if !text.is_empty() && source.len() <= text.len() + 7 => {
                let start = place.span.start + offset;
                start + part.start..start + part.end
            }
            _ => place.span.clone(),
        };
        self.fault(&Place { file: place.file, span }, message, hint);
    }

    pub(crate) fn finish<T>(self, value: Option<T>) -> Result<T, SpecErrors> {
        self.errors.into_result(value)
    }

    /// The full name of what is being read: `limits.memory`.
    fn name(&self) -> String {
        self.keys.join(".")
    }

    fn full_name(&self, key: &str) -> String {
        self.keys.iter().map(String::as_str).chain([key]).collect::<Vec<_>>().join(".")
    }

    /// Reports that a key is missing, unless what stands there was reported already.
    pub(crate) fn missing(&mut self, place: &Place, key: &str, hint: impl AsRef<str>) {
        if !self.is_broken(key) {
            self.fault(place, format!("`{key}` is missing"), hint);
        }
    }

    /// Whether the key, or a table above it, is there but could not be read.
    pub(super) fn is_broken(&self, key: &str) -> bool {
        let ends = key.match_indices('.').map(|(at, _)| at).chain([key.len()]);
        ends.into_iter().any(|end| self.broken.contains(&key[..end]))
    }

    /// Reports that a value is not of the kind that `expected` names.
    pub(crate) fn wrong_type(
        &mut self,
        value: &DeValue<'_>,
        place: &Place,
        expected: &str,
        hint: impl AsRef<str>,
    ) {
        let message = format!("`{}` must be {expected}, not {}", self.name(), kind(value));
        self.fault(place, message, hint);
    }

    /// Reads the table's keys through `read`, after refusing those that are not in `known`.
    pub(crate) fn table<'v>(
        &mut self,
        value: &'v DeValue<'v>,
        place: &Place,
        known: &[&str],
    ) -> Option<&'v DeTable<'v>> {
        let DeValue::Table(table) = value else {
            let hint = format!("write a table `[{}]` with keys of its own", self.name());
            self.wrong_type(value, place, "a table", hint);
            return None;
        };
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            if known.contains(&name) {
                continue;
            }
            let hint = match nearest(name, known) {
                Some(other) => {
                    self.broken.insert(self.full_name(other));
                    format!("did you mean `{other}`?")
                }
                None => format!("the keys here are: {}", known.join(", ")),
            };
            let within = match self.keys.as_slice() {
                [] => String::new(),
                _ => format!(" in `{}`", self.name()),
            };
            let place = Place { file: place.file, span: key.span() };
            self.fault(&place, format!("unknown key `{}`{within}", name.escape_debug()), hint);
        }
        Some(table)
    }

    /// Reads one key of a table, if it is there.
    pub(crate) fn field<T: Raw>(
        &mut self,
        table: &DeTable<'_>,
        key: &str,
        place: &Place,
    ) -> Option<Located<T>> {
        let value = table.get(key)?;
        self.keys.push(key.to_owned());
        let read = self.located(value, place.file);
        if read.is_none() {
            self.broken.insert(self.name());
        }
        self.keys.pop();
        read
    }

    fn located<T: Raw>(&mut self, value: &Spanned<DeValue<'_>>, file: usize) -> Option<Located<T>> {
        let place = Place { file, span: value.span() };
        let value = T::read(value.get_ref(), &place, self)?;
        Some(Located { value, place })
    }
}

/// What a TOML value is, with its article.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date-time",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

/// A value that can be read from TOML; faults go to the reader.
pub(crate) trait Raw: Sized {
    /// Reads `value`, or reports why not.
    fn read(value: &DeValue<'_>, place: &Place, reader: &mut Reader<'_>) -> Option<Self>;

    /// What holds when this file says `self` and the one it inherits from says `below`.
    fn over(self, below: Self) -> Self {
        let _ = below;
        self
    }
}

/// [`Raw::over`] for a key that may be absent.
pub(crate) fn inherit<T: Raw>(
    upper: Option<Located<T>>,
    below: Option<Located<T>>,
) -> Option<Located<T>> {
    match (upper, below) {
        (Some(upper), Some(below)) => {
            Some(Located { value: upper.value.over(below.value), place: upper.place })
        }
        (upper, below) => upper.or(below),
    }
}

impl Raw for String {
    fn read(value: &DeValue<'_>, place: &Place, reader: &mut Reader<'_>) -> Option<Self> {
        match value {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) => {
                let source = reader.files[place.file].text.get(place.span.clone());
                let hint = format!("write it in quotes: \"{}\"", source.unwrap_or_default());
                reader.wrong_type(value, place, "a string", hint);
                None
            }
            _ => {
                reader.wrong_type(value, place, "a string", "write one string in quotes");
                None
            }
        }
    }
}

impl Raw for bool {
    fn read(value: &DeValue<'_>, place: &Place, reader: &mut Reader<'_>) -> Option<Self> {
        if let DeValue::Boolean(value) = value {
            return Some(*value);
        }
        reader.wrong_type(value, place, "a boolean", "write `true` or `false`, without quotes");
        None
    }
}

impl<T: Raw> Raw for Vec<Located<T>> {
    fn read(value: &DeValue<'_>, place: &Place, reader: &mut Reader<'_>) -> Option<Self> {
        let DeValue::Array(items) = value else {
            let hint = match value {
                DeValue::String(text) if reader.name() == "test.command" => {
                    format!("write an array: {:?}", text.split_whitespace().collect::<Vec<_>>())
                }
                DeValue::String(text) => format!("write an array: [{:?}]", text.as_ref()),
                _ => "write an array of strings".to_owned(),
            };
            reader.wrong_type(value, place, "an array of strings", hint);
            return None;
        };
        // Every item is read, so that every fault is found, before one of them makes the array unusable.
        let read: Vec<_> = items.iter().map(|item| reader.located(item, place.file)).collect();
        read.into_iter().collect()
    }
}

/// Keys that are not fixed: each is inherited for itself.
impl<T: Raw> Raw for BTreeMap<String, Located<T>> {
    fn read(value: &DeValue<'_>, place: &Place, reader: &mut Reader<'_>) -> Option<Self> {
        let DeValue::Table(table) = value else {
            let hint = format!("write a table `[{}]`", reader.name());
            reader.wrong_type(value, place, "a table", hint);
            return None;
        };
        let mut map = Self::new();
        for (key, value) in table {
            reader.keys.push(key.get_ref().to_string());
            let read = reader.located(value, place.file);
            reader.keys.pop();
            if let Some(Located { value, place: at }) = read {
                // The key's place serves faults of the name; the value follows it on the same line.
                let span = key.span().start..at.span.end.max(key.span().end);
                let place = Place { file: at.file, span };
                map.insert(key.get_ref().to_string(), Located { value, place });
            }
        }
        Some(map)
    }

    fn over(self, below: Self) -> Self {
        let mut map = below;
        map.extend(self);
        map
    }
}

/// Makes a raw table: see the module's text.
macro_rules! raw_table {
    (
        #[doc = $about:literal]
        $name:ident {
            $( $(#[doc = $doc:literal])+ $field:ident = $key:literal: $type:ty, )+
        }
    ) => {
        #[doc = $about]
        #[derive(Debug, Clone, Default)]
        pub(super) struct $name {
            $( $(#[doc = $doc])+ pub(super) $field: Option<Located<$type>>, )+
        }

        impl $crate::spec::Raw for $name {
            fn read(
                value: &::toml::de::DeValue<'_>,
                place: &$crate::spec::Place,
                reader: &mut $crate::spec::Reader<'_>,
            ) -> Option<Self> {
                let table = reader.table(value, place, &[$($key),+])?;
                Some(Self { $( $field: reader.field(table, $key, place), )+ })
            }

            fn over(self, below: Self) -> Self {
                Self { $( $field: $crate::spec::inherit(self.$field, below.$field), )+ }
            }
        }

        impl ::schemars::JsonSchema for $name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).trim_start_matches("Raw").into()
            }

            fn json_schema(generator: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                let mut properties = ::serde_json::Map::new();
                $(
                    let mut property = generator.subschema_for::<$type>();
                    property.insert(
                        "description".to_owned(),
                        concat!($($doc),+).trim().into(),
                    );
                    properties.insert($key.to_owned(), property.into());
                )+
                ::schemars::json_schema!({
                    "type": "object",
                    "description": $about.trim(),
                    "properties": properties,
                    "additionalProperties": false,
                })
            }
        }
    };
}
pub(crate) use raw_table;

/// In the schema a located value is the value.
impl<T: schemars::JsonSchema> schemars::JsonSchema for Located<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}
