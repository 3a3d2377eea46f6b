//! What runs on a base use besides its image, from the package index that the base was locked from.

use super::Index;
use super::lock::fetch_locked_index;
use crate::base::SharedReporter;
use crate::base::progress::Task;
use crate::lock::{BaseLock, ToolsLock};
use crate::net;
use crate::resolve::Error;

/// The library that moves a run's clock. What it depends on, the C library, is in every base.
const FAKETIME: &str = "libfaketime";

/// Locks the tools of a base.
pub fn lock_tools(
    client: &net::Client,
    base: &BaseLock,
    reporter: &SharedReporter,
) -> Result<ToolsLock, Error> {
    let task = Task::start(reporter, "lock", format!("tools of {}", base.suite), None);
    let index = Index::parse(&base.suite, &fetch_locked_index(client, base)?)?;
    let package = index.package(FAKETIME).ok_or_else(|| Error::Archive {
        suite: base.suite.clone(),
        file: "Packages".to_owned(),
        problem: format!("it has no package {FAKETIME}"),
    })?;
    let lock = ToolsLock {
        arch: base.arch,
        suite: base.suite.clone(),
        as_of: base.as_of,
        packages_index: base.packages_index,
        debs: vec![package.file.clone()],
    };
    task.done();
    Ok(lock)
}
