//! Tests of `build_python`.
