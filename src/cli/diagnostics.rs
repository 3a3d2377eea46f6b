//! Errors for people: the chain of causes, the hint last, and the exit code.

use std::fmt::Write as _;

use super::exit;
use crate::pipeline::{self, Kind};

/// `error: what`, causes that say something new, and `hint: way out`.
pub(crate) fn render(error: &anyhow::Error) -> String {
    let mut said = error.to_string();
    // Faults of specs come rendered, each with its own title.
    let title = if said.starts_with("error: ") { "" } else { "error: " };
    let mut text = format!("{title}{said}");
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !said.contains(&cause) {
            let _ = write!(text, "\n  because {cause}");
            said.push_str(&cause);
        }
    }
    if let Some(hint) = error.downcast_ref::<pipeline::Error>().and_then(pipeline::Error::hint) {
        let _ = write!(text, "\nhint: {hint}");
    }
    text
}

/// The exit code for an error that ends a verb.
pub(crate) fn exit_code(error: &anyhow::Error) -> u8 {
    error.downcast_ref::<pipeline::Error>().map_or(exit::INTERNAL, |error| code_of(error.kind()))
}

/// The exit code for a kind of error.
pub(crate) fn code_of(kind: Kind) -> u8 {
    match kind {
        Kind::Input => exit::BAD_INPUT,
        Kind::Build => exit::BUILD_FAILED,
        Kind::Fetch => exit::FETCH_FAILED,
        Kind::Host => exit::HOST,
        Kind::Daemon => exit::DAEMON,
        Kind::Check => exit::CHECK_FAILED,
        Kind::Interrupted => exit::INTERRUPTED,
        Kind::Internal => exit::INTERNAL,
    }
}
