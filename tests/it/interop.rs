//! The field's own clients on our images and rows, run for real: what they find is what we found.

mod agent;
mod conda;
mod harness;
mod long;
mod place;
