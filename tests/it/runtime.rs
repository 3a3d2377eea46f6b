//! Tests of `runtime`: what a run gets and gives, and attacks on each guarantee from inside.
//!
//! They run as root on a Debian-like host; elsewhere they say that they are skipped.

mod attacks;
mod basics;
mod clock;
mod conditions;
mod conformance;
mod contract;
pub(crate) mod daemon;
mod killed;
mod limits;
mod network;
mod rootless;
pub(crate) mod scaffold;
