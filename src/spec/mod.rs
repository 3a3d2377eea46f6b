//! Text to [`Spec`]: one environment of one repository version, read from TOML with every error at
//! once and a caret under each. The parser has no effects; `load` reads the files.
//!
//! ```text
//! specs/_defaults.toml                         inherited by every spec
//! specs/<owner>__<name>/_defaults.toml         inherited by the specs beside it
//! specs/<owner>__<name>/<version>.toml         one spec
//! images/<base>.toml                           one base image
//! ```
//!
//! The format is described for people in `docs/spec.md` and for editors in `docs/schema/`.

mod base;
mod check;
mod command;
mod error;
mod inherit;
mod load;
mod marker;
mod model;
mod names;
mod parse;
mod raw;
mod reader;
mod requirement;
mod schema;
mod suite;
mod test_command;
mod units;

pub use base::parse_base;
pub use error::{Error, SpecError, SpecErrors};
pub use inherit::SpecFile;
pub use load::{load, load_all, load_base};
pub use model::{
    BaseDefinition, Commands, Compat, Dependencies, Interpreter, PackageDate, Parser,
    RegistryImage, RunLimits, Setup, Spec, Test, TestFiles,
};
pub use names::{is_file_name, normalize_package_name};
pub use parse::parse;
pub use schema::{base_schema, schema};
pub(crate) use test_command::base_name;
pub use test_command::{Starts, TestCommand};

// Other files that people write in TOML are read in the same way.
pub(crate) use names::nearest;
pub(crate) use raw::{Count, Duration, number};
pub(crate) use reader::{Located, Place, Raw, Reader, inherit, raw_table};
pub(crate) use schema::generate;
