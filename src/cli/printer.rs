//! The only place that writes to stdout and stderr: data to stdout, everything else to stderr.

#![expect(clippy::print_stderr, reason = "this is the printer")]

use std::io::Write as _;

use serde::Serialize;

/// Version of the JSON lines that `--json` writes.
pub(crate) const JSON_VERSION: u32 = 1;

/// Writes data for people or for programs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Printer {
    /// Whether stdout is JSON lines.
    pub(crate) json: bool,
    /// Whether hints and notes are left out.
    pub(crate) quiet: bool,
}

impl Printer {
    /// A line of data for people; nothing with `--json`.
    pub(crate) fn line(self, text: &str) {
        if !self.json {
            // A closed pipe (`hallmark ... | head`) is no error.
            let _ = writeln!(std::io::stdout(), "{text}");
        }
    }

    /// A record for programs; nothing without `--json`.
    pub(crate) fn record<T: Serialize>(self, kind: &str, value: &T) {
        if self.json {
            let line = serde_json::json!({ "version": JSON_VERSION, "kind": kind, "value": value });
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    }

    /// A note for people, on stderr.
    pub(crate) fn note(self, text: &str) {
        if !self.quiet {
            eprintln!("{text}");
        }
    }

    /// An error, on stderr, whatever the settings.
    pub(crate) fn error(text: &str) {
        eprintln!("{text}");
    }
}
