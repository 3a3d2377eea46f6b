//! What a spec resolved to: the lock's formats and pure rules. A lock is complete, sorted, byte-stable
//! and host-free. No effects: callers read and write the files.

mod model;

pub use model::{
    BaseLock, BuildEnvironment, BuiltWheel, Deb, EnvLock, FileRef, Origin, PythonFile,
    PythonPackage,
};
