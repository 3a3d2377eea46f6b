//! The seeded corpus of unstable tests (`tests/fixtures/flaky/`, docs/flaky-corpus.md): verdicts on instances made of it.

mod bad;
mod causes;
mod compare;
mod fixtures;
mod long;
pub(crate) mod corpus;
pub(crate) mod land;
