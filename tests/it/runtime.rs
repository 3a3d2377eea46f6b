//! Tests of `runtime`.
