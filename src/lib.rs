//! Hallmark compiles declarative specs of repository environments into layered OCI images with pinned
//! digests, proves by repeated gold runs that each task instance is stable, and exports an
//! evaluation manifest in which every file that influenced a verdict has a digest.
//!
//! # Goals, in order
//!
//! 1. *Same inputs, same digests*: on another machine, another day, another user, root or rootless.
//! 2. *Nothing trusted that was not checked*: every byte from outside passes a size and a digest.
//! 3. *Offline after the lock*: builds and runs read the bundle and nothing else.
//! 4. *Honest verdicts*: every run is kept, every bound is printed, what a host cannot give is recorded.
//!
//! # Rooms
//!
//! Data flows down this list; a room imports only rooms above it, and only what their `mod.rs` shows.
//! `tests/it/layering.rs` reads the `use` lines and fails on an upward import.

// The order is the architecture: keep it.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod base;
pub mod net;
pub mod spec;
pub mod dataset;
pub mod lock;
pub mod bundle;
pub mod image;
pub mod runtime;
pub mod resolve;
pub mod build;
pub mod results;
pub mod verify;
pub mod manifest;
pub mod export;
pub mod report;
pub mod pipeline;
pub mod cli;
