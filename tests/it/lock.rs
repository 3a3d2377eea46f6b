//! Tests of `lock`.
