//! Tests of `image`: trees, layers, archives and OCI layouts.

mod commit;
mod support;
