//! Tests of `build_base`.
