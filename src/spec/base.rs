//! Base image definitions: `images/<base>.toml`.

use super::check::Checks;
use super::error::SpecErrors;
use super::inherit::SpecFile;
use super::model::{BaseDefinition, Interpreter, RegistryImage};
use super::names::is_file_name;
use super::raw::RawBase;
use super::reader::{Located, Reader};
use super::suite;
use crate::net::registry::Reference;

/// Parses a base definition; the file's stem is its name.
pub fn parse_base(file: &SpecFile) -> Result<BaseDefinition, SpecErrors> {
    let mut reader = Reader::new();
    let (raw, sound): (RawBase, bool) = reader.file(file);
    let definition =
        if sound { Checks { reader: &mut reader }.base_definition(file, raw) } else { None };
    reader.finish(definition)
}

impl Checks<'_, '_> {
    fn base_definition(&mut self, file: &SpecFile, raw: RawBase) -> Option<BaseDefinition> {
        let name = file.file_name().strip_suffix(".toml").unwrap_or(file.file_name()).to_owned();
        if !is_file_name(&name) {
            let hint = "use letters, digits, `.`, `_`, `-` and `+`";
            self.reader.fault(&Reader::start_of(0), format!("{name:?} cannot name a base"), hint);
        }
        let interpreter = match raw.interpreter {
            Some(Located { value, place }) if value != "debian" => {
                let message = format!("there is no interpreter provider {value:?}");
                self.reader.fault(&place, message, "the providers are: debian");
                None
            }
            _ => Some(Interpreter::Debian),
        };
        if let (Some(_), Some(packages)) = (&raw.registry, &raw.packages) {
            let hint = "leave them out here, and write what else is wanted as `system-packages` of the specs";
            let message = "an image of a registry has its packages".to_owned();
            self.reader.fault(&packages.place, message, hint);
        }
        let mut packages = self.debian_packages(raw.packages, "packages");
        packages.sort();
        let registry = match raw.registry {
            None => None,
            Some(registry) => Some(self.registry_image(&registry)?),
        };
        let suite = self.suite(raw.suite);
        Some(BaseDefinition { name, suite: suite?, packages, interpreter: interpreter?, registry })
    }

    /// The name of an image. A tag alone is refused when locking, where the digest is known that it stands for.
    fn registry_image(&mut self, text: &Located<String>) -> Option<RegistryImage> {
        match Reference::parse(&text.value) {
            Ok(name) => Some(RegistryImage {
                registry: name.registry,
                repository: name.repository,
                tag: name.tag,
                digest: name.digest,
            }),
            Err(error) => {
                let hint = error.hint().unwrap_or_default();
                self.reader.fault(&text.place, error.to_string(), hint);
                None
            }
        }
    }

    fn suite(&mut self, suite: Option<Located<String>>) -> Option<String> {
        let known: Vec<&str> = suite::SUITES.iter().map(|suite| suite.name).collect();
        let Some(Located { value, place }) = suite else {
            let hint = format!("write `suite = \"bookworm\"`; known are {}", known.join(", "));
            self.reader.missing(&Reader::start_of(0), "suite", hint);
            return None;
        };
        if known.contains(&value.as_str()) {
            return Some(value);
        }
        let moves = ["latest", "stable", "oldstable", "oldoldstable", "testing", "unstable", "sid"];
        let message = if moves.contains(&value.as_str()) {
            format!("{value:?} names another suite with time")
        } else {
            format!("the suite {value:?} is not known")
        };
        let hint = format!("write a code name: {}", known.join(", "));
        self.reader.fault(&place, message, hint);
        None
    }
}
