//! Reads what SymPy's `bin/test --verbose` prints.
//!
//! ```text
//! sympy/a/tests/test_b.py[3]
//! test_c ok
//! test_d F
//! test_e Timeout T                                                        [FAIL]
//! ```

use super::super::Outcome;
use super::lines::lines;
use super::model::{TextReport, Totals};

/// Reads the output of one run.
pub(super) fn parse(bytes: &[u8]) -> TextReport {
    let mut report = TextReport::default();
    let mut pending: Option<String> = None;
    let mut in_sections = false;
    // The line of totals may be broken where the terminal ends.
    let mut tail = String::new();
    for line in lines(bytes) {
        let text = line.trim();
        if text.contains("tests finished: ") || !tail.is_empty() {
            tail.push_str(text.trim_matches('=').trim());
            tail.push(' ');
            if tail.contains(" seconds") {
                if let Some(totals) = totals_of(&tail) {
                    report.set_totals(totals);
                }
                tail.clear();
            } else if tail.len() > 400 {
                tail.clear();
            }
            continue;
        }
        // What failed is told again, with sources that look like anything.
        in_sections = in_sections || text.starts_with("____");
        if in_sections {
            continue;
        }
        let end = text.find("[OK]").or_else(|| text.find("[FAIL]")).unwrap_or(text.len());
        let (text, is_end) = (text[..end].trim_end(), end < text.len());
        if is_end && text.ends_with("[?]   Failed to import") {
            let file = text.split('[').next().unwrap_or_default();
            if report.collection_errors.insert(file.to_owned()) {
                report.count("error", 1);
            }
            continue;
        }
        if let Some(name) = name_of(text) {
            if let Some(id) = pending.take() {
                report.unfinished.insert(id);
            }
            match text.rsplit_once(' ').and_then(|(_, last)| status_of(last)) {
                Some(outcome) => add(&mut report, name, outcome),
                None => pending = Some(name.to_owned()),
            }
        } else if let Some(outcome) = status_of(text.rsplit(' ').next().unwrap_or_default())
            && let Some(id) = pending.take()
        {
            add(&mut report, &id, outcome);
        }
    }
    report.unfinished.extend(pending);
    report
}

fn add(report: &mut TextReport, id: &str, outcome: Outcome) {
    report.add(id, outcome);
    report.count(outcome.as_str(), 1);
}

/// The test that a line begins with.
fn name_of(line: &str) -> Option<&str> {
    let name = line.split(' ').next().unwrap_or_default();
    let is_name =
        name.starts_with("test_") && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then_some(name)
}

fn status_of(word: &str) -> Option<Outcome> {
    Some(match word {
        "ok" => Outcome::Passed,
        "F" => Outcome::Failed,
        "E" => Outcome::Error,
        "f" => Outcome::Xfailed,
        "X" => Outcome::Xpassed,
        // Skipped; slow; over its limit; interrupted.
        "s" | "w" | "T" | "K" => Outcome::Skipped,
        _ => return None,
    })
}

/// `tests finished: 32 passed, 1 expected to fail, in 7.96 seconds`
fn totals_of(text: &str) -> Option<Totals> {
    let (_, counts) = text.split_once("tests finished: ")?;
    let (counts, _) = counts.rsplit_once(" in ").or_else(|| counts.rsplit_once("in "))?;
    let mut totals = Totals::new();
    for part in counts.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (count, word) = part.split_once(' ')?;
        let word = match word {
            "passed" => "passed",
            "failed" => "failed",
            "skipped" => "skipped",
            "expected to fail" => "xfailed",
            "expected to fail but passed" => "xpassed",
            "exceptions" => "error",
            _ => return None,
        };
        let held = totals.entry(word.to_owned()).or_default();
        *held = held.saturating_add(count.parse().ok()?);
    }
    Some(totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read() {
        let text = b"sympy/a/tests/test_b.py[8] \ntest_a ok\ntest_b F\ntest_c E\ntest_d f\ntest_e X\n\
            test_f Slow w\ntest_g some output\nok\ntest_h not here s        [FAIL]\n\n\
            sympy/x.py[?]   Failed to import      [FAIL]\n\
            ____ sympy/a/tests/test_b.py:test_c ____\ntest_b is in a traceback\n\
            ======== tests finished: 2 passed, 1 failed, 2 skipped, 1 expected to fail, \n\
            1 expected to fail but passed, 2 exceptions, in 7.96 seconds ========\nDO *NOT* COMMIT!\n";
        let report = parse(text);
        let tests: Vec<_> = report.tests.iter().map(|(id, o)| (id.as_str(), *o)).collect();
        assert_eq!(
            tests,
            [
                ("test_a", Outcome::Passed),
                ("test_b", Outcome::Failed),
                ("test_c", Outcome::Error),
                ("test_d", Outcome::Xfailed),
                ("test_e", Outcome::Xpassed),
                ("test_f", Outcome::Skipped),
                ("test_g", Outcome::Passed),
                ("test_h", Outcome::Skipped),
            ]
        );
        assert_eq!(report.totals, Some(report.counted.clone()));
        assert!(report.collection_errors.contains("sympy/x.py"));
    }
}
