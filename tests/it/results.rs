//! Tests of `results`.
