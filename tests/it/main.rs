//! Integration tests, one binary.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod build_base;
mod build_python;
mod bundle;
mod cli;
mod dataset;
mod docker;
mod flaky;
mod image;
mod interop;
mod layering;
mod lock;
mod manifest;
mod net;
mod quickstart;
mod registry;
mod report;
mod results;
mod rows;
mod runtime;
mod spec;
mod support;
mod verify;
