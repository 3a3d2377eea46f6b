//! Tests of `quickstart`.
