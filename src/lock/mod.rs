//! What a spec resolved to: the lock's formats and pure rules. A lock is complete, sorted, byte-stable
//! and host-free. No effects: callers read and write the files.

mod base;
mod check;
mod diff;
mod env;
mod error;
mod files;
mod model;
pub mod paths;
mod pylock;
mod text;
mod tools;

pub use base::{parse_base, write_base};
pub use check::{Stale, check_base, check_env, check_tools};
pub use diff::{Change, diff_base, diff_env};
pub use env::{EnvTexts, parse_env, write_env};
pub use error::Error;
pub use files::{base_files, deb_files, env_files, tools_files};
pub use model::{
    BaseLock, BuildEnvironment, BuiltWheel, Deb, EnvLock, FileRef, LockedBlob, LockedImage, Origin,
    PythonFile, PythonPackage, ToolsLock,
};
pub use pylock::{parse_pylock, write_pylock};
pub use tools::{parse_tools, write_tools};
