//! The seeded corpus of unstable tests (`tests/fixtures/flaky/`, docs/flaky-corpus.md): verdicts on instances made of it.

mod fixtures;
pub(crate) mod corpus;
pub(crate) mod land;
