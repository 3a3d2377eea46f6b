//! Text to [`Spec`]: one environment of one repository version, read from TOML with every error at
//! once and a caret under each. No effects: callers read the files.

mod model;

pub use model::{
    BaseDefinition, Commands, Dependencies, Interpreter, PackageDate, Parser, RunLimits, Setup,
    Spec, Test, TestFiles,
};
