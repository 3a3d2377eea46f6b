//! What a stage that runs containers needs, in one value.

use super::Runtime;
use crate::base::{Cancel, SharedReporter, Store};

/// The store, a runtime, where progress goes and who may stop it. Shared by all threads of a stage.
#[derive(Clone, Copy)]
pub struct Workbench<'a> {
    /// Where blobs, layers and step results are.
    pub store: &'a Store,
    /// What runs containers.
    pub runtime: &'a dyn Runtime,
    /// Takes progress events.
    pub reporter: &'a SharedReporter,
    /// Asks for the end.
    pub cancel: &'a Cancel,
}
