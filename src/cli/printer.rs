//! The only place that writes to stdout and stderr: data to stdout, everything else to stderr.

#![expect(clippy::print_stderr, reason = "this is the printer")]

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};

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
    /// How stdout looks to people.
    pub(crate) screen: Screen,
}

/// What stdout can show.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Screen {
    /// Whether it has colours.
    pub(crate) color: bool,
    /// Columns of a line; nothing where lines may be of any length.
    pub(crate) width: Option<usize>,
}

impl Screen {
    /// What stdout is now. `environment` says what the user wants: `NO_COLOR`, `TERM=dumb`.
    pub(crate) fn of_stdout(environment: &BTreeMap<String, String>) -> Self {
        if !std::io::stdout().is_terminal() {
            return Self::default();
        }
        let set = |name| environment.get(name).is_some_and(|value: &String| !value.is_empty());
        let dumb = environment.get("TERM").is_none_or(|term| term == "dumb");
        let size = rustix::termios::tcgetwinsize(std::io::stdout());
        let width = size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
        Self { color: !set("NO_COLOR") && !dumb, width }
    }
}

impl Printer {
    /// A line of data for people; nothing with `--json`.
    pub(crate) fn line(self, text: &str) {
        if !self.json {
            // A closed pipe (`hallmark ... | head`) is no error.
            let _ = writeln!(std::io::stdout(), "{text}");
        }
    }

    /// Data that is lines already; nothing with `--json`.
    pub(crate) fn lines(self, text: &str) {
        if !self.json {
            let _ = std::io::stdout().write_all(text.as_bytes());
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
