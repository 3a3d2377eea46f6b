//! Tests of `image`: trees, layers, archives and OCI layouts.

mod commit;
mod full_disk;
mod hostile;
mod layout;
mod memory;
mod overlay;
mod property;
pub(crate) mod support;
mod tree_digest;
