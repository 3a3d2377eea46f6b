//! Tests of `spec`.
