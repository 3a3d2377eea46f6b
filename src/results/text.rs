//! Reads the text that pytest prints: its line of totals and the lines of its short summary (`-rA`).
//!
//! The second source: ids are cut where a message may begin, and a test can print lines that look the
//! same. Works on bytes: ANSI sequences are removed, lines end at LF or CRLF, the part before a lone CR was
//! overwritten, and bytes that are not UTF-8 are replaced after lines are cut.

use std::collections::BTreeMap;

use super::Outcome;

/// How many of each outcome, by pytest's words: `passed`, `failed`, `error`, `skipped`, `xfailed`,
/// `xpassed`, `deselected`, `warning`, `rerun`.
pub type Totals = BTreeMap<String, u64>;

/// What the text says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextReport {
    /// The last line of totals.
    pub totals: Option<Totals>,
    /// How many lines of totals there are: more than one says that tests print some, too.
    pub totals_lines: u64,
    /// Outcome per id of the last short summary. Skipped tests have no id there.
    pub tests: BTreeMap<String, Outcome>,
}

/// Reads the standard output of a pytest run.
pub fn parse_text(bytes: &[u8]) -> TextReport {
    let mut report = TextReport::default();
    let mut in_summary = false;
    for line in bytes.split(|byte| *byte == b'\n') {
        let line = clean(line);
        if let Some(totals) = totals_of(&line) {
            report.totals = Some(totals);
            report.totals_lines += 1;
            in_summary = false;
        } else if line.starts_with("===") && line.contains(" short test summary info ") {
            in_summary = true;
            report.tests.clear();
        } else if in_summary && let Some((outcome, id)) = summary_of(&line) {
            let held = report.tests.entry(id.to_owned()).or_insert(outcome);
            *held = outcome.max(*held);
        }
    }
    report
}

/// One line without ANSI sequences and without what a carriage return overwrote.
fn clean(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.rsplit(|byte| *byte == b'\r').next().unwrap_or(line);
    let mut out = Vec::with_capacity(line.len());
    let mut bytes = line.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != 0x1b {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            // CSI: parameters and intermediates, then one final byte.
            Some(b'[') => while bytes.next().is_some_and(|byte| !(0x40..=0x7e).contains(&byte)) {},
            // OSC: to BEL or ESC \.
            Some(b']') => {
                while let Some(byte) = bytes.next() {
                    if byte == 0x07 {
                        break;
                    }
                    if byte == 0x1b {
                        bytes.next();
                        break;
                    }
                }
            }
            // Any other sequence is two bytes.
            _ => {}
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// `===== 3 failed, 2 passed in 0.12s =====`, with `-q` without the bars, before pytest 5 `in 0.12 seconds`.
fn totals_of(line: &str) -> Option<Totals> {
    let inner = line.trim_matches('=').trim();
    let (counts, time) = inner.rsplit_once(" in ")?;
    let time = time.strip_suffix(" seconds").or_else(|| time.split_once('s').map(|(t, _)| t))?;
    time.trim().parse::<f64>().ok()?;
    if matches!(counts, "no tests ran" | "no tests collected") {
        return Some(Totals::new());
    }
    let mut totals = Totals::new();
    for part in counts.split(", ") {
        let (count, word) = part.split_once(' ')?;
        let word = match word {
            "errors" => "error",
            "warnings" => "warning",
            other => other,
        };
        let known = [
            "passed",
            "failed",
            "error",
            "skipped",
            "xfailed",
            "xpassed",
            "deselected",
            "warning",
            "rerun",
        ];
        if !known.contains(&word)
            && !word.starts_with("subtests ")
            && !word.starts_with("pytest-warning")
        {
            return None;
        }
        totals.insert(word.to_owned(), count.parse().ok()?);
    }
    Some(totals)
}

/// A line of the short summary.
fn summary_of(line: &str) -> Option<(Outcome, &str)> {
    let (word, rest) = line.split_once(' ')?;
    let outcome = match word {
        "PASSED" => return Some((Outcome::Passed, rest)),
        "FAILED" => Outcome::Failed,
        "ERROR" => Outcome::Error,
        "XFAIL" => Outcome::Xfailed,
        "XPASS" => Outcome::Xpassed,
        _ => return None,
    };
    let id = &rest[..end_of_id(rest)];
    // Lines of collection errors name a file; captured log records begin with ERROR, too.
    id.contains("::").then_some((outcome, id))
}

/// Where ` - message` begins: at the first ` - ` outside brackets, else at the first, else at the end.
fn end_of_id(text: &str) -> usize {
    let mut depth = 0_i32;
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ' ' if depth <= 0 && text[at..].starts_with(" - ") => return at,
            _ => {}
        }
    }
    text.find("] - ").map(|at| at + 1).or_else(|| text.find(" - ")).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(line: &str) -> Option<Vec<(String, u64)>> {
        parse_text(line.as_bytes()).totals.map(|totals| totals.into_iter().collect())
    }

    #[test]
    fn totals_are_read_in_every_form() {
        let expect = |pairs: &[(&str, u64)]| {
            Some(pairs.iter().map(|(a, b)| ((*a).to_owned(), *b)).collect())
        };
        for (line, expected) in [
            ("==== 2 failed, 3 passed in 0.12s ====", expect(&[("failed", 2), ("passed", 3)])),
            (
                "=== 1 passed, 2 errors in 61.02s (0:01:01) ===",
                expect(&[("error", 2), ("passed", 1)]),
            ),
            (
                "== 1 passed, 3 warnings in 0.02 seconds ==",
                expect(&[("passed", 1), ("warning", 3)]),
            ),
            ("3 passed, 1 rerun in 0.02s", expect(&[("passed", 3), ("rerun", 1)])),
            ("\x1b[32m== \x1b[1m1 passed\x1b[0m in 0.01s ==\x1b[0m\r", expect(&[("passed", 1)])),
            ("==== no tests ran in 0.00s ====", expect(&[])),
            ("progress\r== 4 passed in 1.00s ==", expect(&[("passed", 4)])),
            ("3 things in 2 boxes", None),
            ("3 passed", None),
            ("3 passed in time", None),
            ("4 apples in 2s", None),
        ] {
            assert_eq!(totals(line), expected, "{line:?}");
        }
    }

    #[test]
    fn the_last_summary_and_the_last_totals_count() {
        let text = b"PASSED forged.py::outside\n\
            ===== short test summary info =====\nPASSED t.py::phantom\n== 9 passed in 0.01s ==\n\
            \xff\xfe binary \x00\n\
            ===== short test summary info =====\r\n\
            PASSED t.py::a[x - y z]\r\n\
            FAILED t.py::b[p - q] - assert 1 == 2 - really\r\n\
            \x1b[31mERROR\x1b[0m t.py::c - boom\r\n\
            ERROR    root:logging.py:12 not an id\r\n\
            XFAIL t.py::d\r\n\
            SKIPPED [1] t.py:3: no\r\n\
            PASSED t.py::\xc3\xa4\r\n\
            == 1 failed, 2 passed, 1 xfailed, 1 skipped, 1 error in 0.01s ==";
        let report = parse_text(text);
        assert_eq!(report.totals_lines, 2);
        assert_eq!(report.totals.unwrap()["passed"], 2);
        let tests: Vec<_> = report.tests.iter().map(|(id, o)| (id.as_str(), *o)).collect();
        assert_eq!(
            tests,
            [
                ("t.py::a[x - y z]", Outcome::Passed),
                ("t.py::b[p - q]", Outcome::Failed),
                ("t.py::c", Outcome::Error),
                ("t.py::d", Outcome::Xfailed),
                ("t.py::ä", Outcome::Passed),
            ]
        );
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400)) {
            let _ = parse_text(&bytes);
        }
    }
}
