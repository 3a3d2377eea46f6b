//! The rules of a spec. Each reports what it finds to the reader and goes on.

mod dependencies;
mod identity;
mod rules;
mod run;

pub(super) use rules::Checks;
use rules::{Strings, short};
