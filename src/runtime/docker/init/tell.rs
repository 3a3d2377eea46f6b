//! Writes a report.

use std::fmt::Write as _;

use super::report::Report;

impl Report {
    /// As hallmark reads it.
    pub(crate) fn encode(&self) -> String {
        let mut text = String::new();
        if let Some((errno, doing)) = &self.failed {
            let _ = writeln!(text, "failed {errno} {}", doing.replace('\n', " "));
        }
        if let Some(status) = self.status {
            let _ = writeln!(text, "status {status}\nnanoseconds {}", self.nanoseconds);
        }
        if let Some((packets, lookups)) = self.attempts {
            let _ = writeln!(text, "attempts {packets} {lookups}");
        }
        for (word, value) in
            [("oom-kills", self.oom_kills), ("cpu", self.cpu), ("peak", self.peak_memory)]
        {
            if let Some(value) = value {
                let _ = writeln!(text, "{word} {value}");
            }
        }
        for gap in &self.gaps {
            let _ = writeln!(text, "gap {gap}");
        }
        text
    }
}
