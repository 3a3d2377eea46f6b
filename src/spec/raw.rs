//! The tables as they are written, before defaults and rules.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use toml::de::DeValue;

use super::model::{Compat, Parser};
use super::reader::{Located, Place, Raw, Reader, raw_table};
use super::units;

type Strings = Vec<Located<String>>;

raw_table! {
    /// One environment of one repository version.
    RawSpec {
        /// A file beside this one whose values hold where this one is silent; without it, `_defaults.toml`.
        inherits = "inherits": String,
        /// `owner/name`; `pypi/<package>` for release pairs.
        repo = "repo": String,
        /// The version, which is the file's name without `.toml`. Never inherited.
        version = "version": String,
        /// Name of the base image, defined by `images/<base>.toml`.
        base = "base": String,
        /// Python `X.Y`, which must be what the base gives. There is no default.
        python = "python": String,
        /// Debian packages on top of the base's.
        system_packages = "system-packages": Strings,
        /// The source whose metadata and requirement files are read when locking. Never inherited.
        setup = "setup": RawSetup,
        /// What goes into the environment besides the project.
        dependencies = "dependencies": RawDependencies,
        /// Shell commands, each run by `sh -c` in `/testbed`, without a network.
        commands = "commands": RawCommands,
        /// How tests run and are read.
        test = "test": RawTest,
        /// Environment variables of the image.
        env = "env": BTreeMap<String, Located<String>>,
        /// Limits of a run.
        limits = "limits": RawLimits,
        /// Whose paths and commands the image answers to besides its own: `swebench`, or `none` (the default).
        compat = "compat": Compat,
    }
}

raw_table! {
    /// The source whose metadata and requirement files are read when locking: a commit, or an sdist.
    RawSetup {
        /// A commit of the repository, 40 hex digits.
        commit = "commit": String,
        /// File name of the base sdist of a release pair.
        sdist = "sdist": String,
        /// The sdist's SHA-256, 64 hex digits.
        sha256 = "sha256": String,
        /// The sdist's length in bytes.
        size = "size": Count,
    }
}

raw_table! {
    /// What goes into the environment besides the project.
    RawDependencies {
        /// PEP 508 requirements, without URLs. Default: none.
        requirements = "requirements": Strings,
        /// Requirement files of the repository, read at the setup source. Default: none.
        requirement_files = "requirement-files": Strings,
        /// Extras of the project. Default: none.
        extras = "extras": Strings,
        /// Dependency groups (PEP 735) of the project. Default: none.
        groups = "groups": Strings,
        /// PEP 508 constraints: versions for packages that are needed anyway. Default: none.
        constraints = "constraints": Strings,
        /// Whether the project's own dependencies and build requirements are locked too. Default: true.
        project = "project": bool,
        /// Packages that are built from their sdist even where a wheel fits. Default: none.
        no_binary = "no-binary": Strings,
        /// Files uploaded at or after this time do not exist. RFC 3339, UTC.
        exclude_newer = "exclude-newer": Date,
        /// The same for single packages, whose upload dates lie; `false` lifts the cut.
        exclude_newer_package = "exclude-newer-package": BTreeMap<String, Located<DateOrFalse>>,
    }
}

raw_table! {
    /// Shell commands, each run by `sh -c` in `/testbed`, without a network.
    RawCommands {
        /// Before the install. Default: none.
        pre_install = "pre-install": Strings,
        /// The install of the project; `[]` where tests need none.
        install = "install": Strings,
        /// After patches are applied and before tests. Default: none.
        rebuild = "rebuild": Strings,
    }
}

raw_table! {
    /// How tests run and are read.
    RawTest {
        /// The test command, one string per argument; test files are appended.
        command = "command": Strings,
        /// Test files: `"test-patch"` (the default), an array of paths, or `"none"`.
        files = "files": Files,
        /// Who reads the results. Default: `pytest`.
        parser = "parser": Parser,
        /// Whether pytest goes on when a module does not import. Default: false.
        continue_on_collection_errors = "continue-on-collection-errors": bool,
    }
}

raw_table! {
    /// Limits of a run.
    RawLimits {
        /// Cores. Default: 1.
        cpus = "cpus": Cores,
        /// Memory, such as `"4 GiB"` (the default), or bytes.
        memory = "memory": Size,
        /// Processes and threads. Default: 4,096.
        pids = "pids": Count,
        /// Size of /dev/shm. Default: `"64 MiB"`.
        shm = "shm": Size,
        /// Wall time of the test command, such as `"30 min"` (the default), or seconds.
        timeout = "timeout": Duration,
        /// Wall time of one test. Default: `"5 min"`.
        test_timeout = "test-timeout": Duration,
    }
}

raw_table! {
    /// A base image: an operating system and its Python.
    RawBase {
        /// Debian suite, by its code name.
        suite = "suite": String,
        /// An image of a registry that is taken as it is: `registry.example/repository@sha256:...`. Default: none, the base is
        /// bootstrapped from the suite's packages.
        registry = "registry": String,
        /// Debian packages besides Essential and apt, where the base is bootstrapped. Default: none.
        packages = "packages": Strings,
        /// Who provides Python. Default: `debian`, the suite's python3.
        interpreter = "interpreter": String,
    }
}

/// A point in time: RFC 3339 with `Z`, as a string or as TOML's own date-time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Date(pub(super) Timestamp);

const DATE_HINT: &str = "write RFC 3339 in UTC: \"2023-05-07T00:00:00Z\"";
const DATE_PATTERN: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?Z$";

/// Reads strict RFC 3339: digits in full, capital `T` and `Z`, nothing else.
fn date(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let shape = b"dddd-dd-ddTdd:dd:dd";
    let fits = bytes.len() > shape.len()
        && shape
            .iter()
            .zip(bytes)
            .all(|(want, got)| if *want == b'd' { got.is_ascii_digit() } else { want == got });
    let rest = text.get(shape.len()..)?.strip_suffix('Z')?;
    let fraction = rest.strip_prefix('.').map_or(rest.is_empty(), |rest| {
        (1..=9).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_digit())
    });
    // Jiff reads second 60 as 59; such an instant cannot be stated exactly, so it is refused.
    (fits && fraction && &text[17..19] != "60").then(|| text.parse().ok()).flatten()
}

impl Raw for Date {
    fn read(value: &DeValue<'_>, place: &Place, reader: &mut Reader<'_>) -> Option<Self> {
        let read = match value {
            DeValue::String(text) => date(text),
            DeValue::Datetime(datetime) => date(&datetime.to_string()),
            _ => {
                reader.wrong_type(value, place, "a date-time", DATE_HINT);
                return None;
            }
        };
        if read.is_none() {
            reader.fault(place, "this is not a full date and time in UTC", DATE_HINT);
        }
        read.map(Self)
    }
}

impl JsonSchema for Date {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Date".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time", "pattern": DATE_PATTERN })
    }
}

/// A cut for one package: a date, or `false` for none.
#[derive(Debug, Clone, Copy)]
pub(super) struct DateOrFalse(pub(super) Option<Timestamp>);

impl Raw for DateOrFalse {
    fn read(value: &DeValue<'_>, place: &Place, reader: &mut Reader<'_>) -> Option<Self> {
        match value {
            DeValue::Boolean(false) => Some(Self(None)),
            DeValue::Boolean(true) => {
                let hint = "write `false` for no cut, or a date";
                reader.fault(place, "`true` says nothing here", hint);
                None
            }
            _ => Date::read(value, place, reader).map(|date| Self(Some(date.0))),
        }
    }
}

impl JsonSchema for DateOrFalse {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DateOrFalse".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<Date>(), { "const": false }] })
    }
}

/// Which test files the command is given.
#[derive(Debug, Clone)]
pub(super) enum Files {
    TestPatch,
    Listed(Strings),
    None,
}

impl Raw for Files {
    fn read(value: &DeValue<'_>, place: &Place, reader: &mut Reader<'_>) -> Option<Self> {
        const HINT: &str = "write \"test-patch\", \"none\", or an array of paths";
        match value {
            DeValue::String(text) if text == "test-patch" => Some(Self::TestPatch),
            DeValue::String(text) if text == "none" => Some(Self::None),
            DeValue::String(text) => {
                let hint = format!("{HINT}: [{:?}]", text.as_ref());
                reader.fault(place, format!("test files are not {:?}", text.as_ref()), hint);
                None
            }
            DeValue::Array(_) => Strings::read(value, place, reader).map(Self::Listed),
            _ => {
                reader.wrong_type(value, place, "a string or an array of paths", HINT);
                None
            }
        }
    }
}

impl JsonSchema for Files {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Files".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "enum": ["test-patch", "none"] }, generator.subschema_for::<Strings>()]
        })
    }
}

impl Raw for Parser {
    fn read(value: &DeValue<'_>, place: &Place, reader: &mut Reader<'_>) -> Option<Self> {
        let word = String::read(value, place, reader)?;
        let found = Self::ALL.into_iter().find(|parser| parser.as_str() == word);
        if found.is_none() {
            let message = format!("there is no parser {word:?}");
            let hint = "the parsers are: pytest, unittest, django, sympy, tox, junit";
            reader.fault(place, message, hint);
        }
        found
    }
}

impl Raw for Compat {
    fn read(value: &DeValue<'_>, place: &Place, reader: &mut Reader<'_>) -> Option<Self> {
        let word = String::read(value, place, reader)?;
        match word.as_str() {
            "none" => Some(Self::None),
            "swebench" => Some(Self::Swebench),
            _ => {
                let hint = "write \"swebench\" for `/opt/miniconda3` and `conda activate testbed`, or \"none\"";
                reader.fault(place, format!("images know no {word:?}"), hint);
                None
            }
        }
    }
}

/// Bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size(pub(super) u64);

impl Raw for Size {
    fn read(value: &DeValue<'_>, place: &Place, reader: &mut Reader<'_>) -> Option<Self> {
        match value {
            DeValue::Integer(_) => Count::read(value, place, reader).map(|count| Self(count.0)),
            DeValue::String(text) => match units::size(text) {
                Ok(bytes) => Some(Self(bytes)),
                Err(hint) => {
                    reader.fault(place, format!("{:?} is not a size", text.as_ref()), hint);
                    None
                }
            },
            _ => {
                let hint = "write a number and a unit in quotes, such as \"4 GiB\"";
                reader.wrong_type(value, place, "a size", hint);
                None
            }
        }
    }
}

impl JsonSchema for Size {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "integer", "minimum": 0 },
            { "type": "string", "pattern": units::SIZE_PATTERN },
        ] })
    }
}

/// Seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Duration(pub(crate) f64);

impl Raw for Duration {
    fn read(value: &DeValue<'_>, place: &Place, reader: &mut Reader<'_>) -> Option<Self> {
        match value {
            DeValue::Integer(_) | DeValue::Float(_) => number(value, place, reader).map(Self),
            DeValue::String(text) => match units::seconds(text) {
                Ok(seconds) => Some(Self(seconds)),
                Err(hint) => {
                    reader.fault(place, format!("{:?} is not a duration", text.as_ref()), hint);
                    None
                }
            },
            _ => {
                let hint = "write a number and a unit in quotes, such as \"30 min\"";
                reader.wrong_type(value, place, "a duration", hint);
                None
            }
        }
    }
}

impl JsonSchema for Duration {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "number", "minimum": 0 },
            { "type": "string", "pattern": units::TIME_PATTERN },
        ] })
    }
}

/// Cores; fractions are shares of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cores(pub(super) f64);

impl Raw for Cores {
    fn read(value: &DeValue<'_>, place: &Place, reader: &mut Reader<'_>) -> Option<Self> {
        match value {
            DeValue::Integer(_) | DeValue::Float(_) => number(value, place, reader).map(Self),
            _ => {
                reader.wrong_type(value, place, "a number", "write a number of cores, such as 2");
                None
            }
        }
    }
}

impl JsonSchema for Cores {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cores".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "exclusiveMinimum": 0 })
    }
}

/// A whole number, not negative.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Count(pub(crate) u64);

impl Raw for Count {
    fn read(value: &DeValue<'_>, place: &Place, reader: &mut Reader<'_>) -> Option<Self> {
        let DeValue::Integer(integer) = value else {
            reader.wrong_type(value, place, "an integer", "write a whole number without quotes");
            return None;
        };
        let read = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        if read.is_none() {
            reader.fault(
                place,
                "this number is negative or too large",
                "write a whole number from 0",
            );
        }
        read.map(Self)
    }
}

impl JsonSchema for Count {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Count".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 0 })
    }
}

/// A finite number that is not negative.
pub(crate) fn number(value: &DeValue<'_>, place: &Place, reader: &mut Reader<'_>) -> Option<f64> {
    let read: Option<f64> = match value {
        DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse().ok(),
        DeValue::Float(float) => float.as_str().parse().ok(),
        _ => None,
    };
    let read = read.filter(|number| number.is_finite() && *number >= 0.0);
    if read.is_none() {
        reader.fault(place, "this is not a finite, positive number", "write a decimal number");
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_strict_rfc_3339_in_utc() {
        for good in ["2023-05-07T00:00:00Z", "2023-05-07T23:59:59.123456Z"] {
            assert!(date(good).is_some(), "{good}");
        }
        for bad in [
            "2023-05-07",
            "2023-05-07T00:00:00",
            "2023-05-07T00:00:00+00:00",
            "2023-05-07 00:00:00Z",
            "2023-05-07t00:00:00z",
            "2023-05-07T00:00Z",
            "2023-02-30T00:00:00Z",
            "2023-05-07T24:00:00Z",
            "2023-05-07T23:59:60Z",
            "2023-05-07T00:00:00.Z",
            "+02023-05-07T00:00:00Z",
            "",
            "Z",
        ] {
            assert_eq!(date(bad), None, "{bad}");
        }
    }
}
