//! What the container's cgroups have counted, of both versions: opened before /sys/fs/cgroup is taken from the run's
//! eyes, read at the end.

use std::fs::File;
use std::io::{Read as _, Seek as _};

use super::report::Report;

/// Files of a v2 hierarchy, then of a v1 one.
const EVENTS: [&str; 2] = ["memory.events", "memory/memory.oom_control"];
const PEAK: [&str; 2] = ["memory.peak", "memory/memory.max_usage_in_bytes"];
const CPU: [&str; 3] = ["cpu.stat", "cpuacct/cpuacct.usage", "cpu,cpuacct/cpuacct.usage"];

/// Open files, where there are such.
pub(super) struct Groups {
    events: Option<File>,
    peak: Option<File>,
    cpu: Option<File>,
}

fn open(names: &[&str]) -> Option<File> {
    names.iter().find_map(|name| File::open(format!("/sys/fs/cgroup/{name}")).ok())
}

/// The number behind a name, of `name value` lines, or the only number there is.
fn number(text: &str, name: &str) -> Option<u64> {
    let named = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    named.or_else(|| text.trim().parse().ok())
}

impl Groups {
    pub(super) fn open() -> Self {
        Self { events: open(&EVENTS), peak: open(&PEAK), cpu: open(&CPU) }
    }

    /// Fills in what is known.
    pub(super) fn read(self, report: &mut Report) {
        let read = |file: Option<File>| {
            let mut file = file?;
            let mut text = String::new();
            file.rewind().ok()?;
            file.read_to_string(&mut text).ok()?;
            Some(text)
        };
        report.oom_kills = read(self.events).and_then(|text| number(&text, "oom_kill "));
        report.peak_memory = read(self.peak).and_then(|text| number(&text, "peak "));
        report.cpu = read(self.cpu).and_then(|text| {
            // v2 counts microseconds, v1 nanoseconds.
            let v2 = text.contains("usage_usec");
            number(&text, "usage_usec ").map(|count| if v2 { count } else { count / 1000 })
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_both_versions() {
        assert_eq!(number("oom 3\noom_kill 2\noom_group_kill 0\n", "oom_kill "), Some(2));
        let v1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n";
        assert_eq!(number(v1, "oom_kill "), Some(1));
        assert_eq!(number("123456\n", "usage_usec "), Some(123_456));
        assert_eq!(number("low 0\n", "oom_kill "), None);
    }
}
