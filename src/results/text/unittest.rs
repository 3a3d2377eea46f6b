//! Reads what unittest's verbose runner prints, and Django's, which is the same with more in between.
//!
//! ```text
//! test_a (module.Class) ... ok
//! test_b (module.Class)
//! First line of the docstring ... FAIL
//! test_c (module.Class) ... other output
//! ok
//! ```
//!
//! The lines of the summary (`FAIL: test_b (module.Class)`) name what failed once more.

use std::collections::BTreeSet;

use super::super::Outcome;
use super::lines::lines;
use super::model::{TextReport, Totals};

/// Reads the output of one run.
pub(super) fn parse(bytes: &[u8]) -> TextReport {
    let mut reader = Reader::default();
    for line in lines(bytes) {
        reader.line(&line);
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    report: TextReport,
    /// The id on the line before, which may be followed by its docstring.
    named: Option<String>,
    /// The id whose result has not come, and the last line since.
    pending: Option<(String, String)>,
    /// The id of the last result.
    last: Option<String>,
    after_bar: bool,
    ran: Option<u64>,
    /// Tests of which a part was skipped: that is their result where they have no other.
    skipped_parts: BTreeSet<String>,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let trimmed = line.trim_end();
        let named = self.named.take();
        let after_bar = std::mem::take(&mut self.after_bar);
        if is_bar(trimmed) {
            self.settle();
            self.after_bar = true;
            return;
        }
        if after_bar && let Some((outcome, id)) = section_of(trimmed) {
            self.section(id, outcome);
            return;
        }
        if let Some(ran) = ran_of(trimmed) {
            self.settle();
            self.ran = Some(ran);
            return;
        }
        if let Some(ran) = self.ran
            && let Some(mut totals) = totals_of(trimmed)
        {
            totals.insert("run".to_owned(), ran);
            self.report.set_totals(totals);
            return;
        }
        if let Some((before, status)) = result_of(trimmed) {
            let indented = before.starts_with("  ");
            if let Some(id) = id_at_end(before) {
                self.settle();
                if indented && before.trim_start() == id {
                    self.part(id, status);
                } else {
                    self.result(id, status);
                }
            } else if let Some(id) = named {
                self.settle();
                self.describe(&id, before);
                self.result(&id, status);
            } else if let Some((id, _)) =
                indented.then(|| id_at_start(before.trim_start())).flatten()
            {
                // `  test_a (module.Class) (i=1) ... FAIL`
                self.part(id, status);
            } else if let Some((id, _)) = self.pending.take() {
                self.result(&id, status);
            }
            return;
        }
        // The result did not follow: other output did.
        if let Some((before, rest)) = trimmed
            .split_once(" ... ")
            .or_else(|| trimmed.strip_suffix(" ...").map(|before| (before, "")))
        {
            if let Some(id) = id_at_end(before) {
                let (id, rest) = (id.to_owned(), rest.to_owned());
                self.settle();
                self.pending = Some((id, rest));
                return;
            }
            if let Some(id) = named {
                self.settle();
                self.describe(&id, before);
                self.pending = Some((id, rest.to_owned()));
                return;
            }
        }
        if let Some(outcome) = status_of(trimmed)
            && let Some((id, _)) = self.pending.take()
        {
            self.result(&id, outcome);
            return;
        }
        if let Some((id, "")) = id_at_start(trimmed) {
            self.named = Some(id.to_owned());
        }
        if let Some((_, last)) = &mut self.pending {
            // An empty line says nothing of how the output ended.
            if !trimmed.is_empty() {
                trimmed.clone_into(last);
            }
        }
    }

    /// A result that did not come on a line of its own may be glued to the last output.
    fn settle(&mut self) {
        let Some((id, last)) = self.pending.take() else { return };
        let glued = [
            ("expected failure", Outcome::Xfailed),
            ("unexpected success", Outcome::Xpassed),
            ("ok", Outcome::Passed),
            ("FAIL", Outcome::Failed),
            ("ERROR", Outcome::Error),
        ];
        match glued.into_iter().find(|(word, _)| last.ends_with(word)) {
            Some((_, outcome)) => self.result(&id, outcome),
            None => {
                self.report.unfinished.insert(id);
            }
        }
    }

    fn describe(&mut self, id: &str, description: &str) {
        self.report.descriptions.insert(id.to_owned(), description.to_owned());
    }

    fn result(&mut self, id: &str, outcome: Outcome) {
        if is_fixture(id) {
            self.fixture(id, outcome);
            return;
        }
        self.report.add(id, outcome);
        // A test whose tear-down fails, too, has two lines.
        if self.last.as_deref() != Some(id) {
            self.report.count("run", 1);
        }
        self.last = Some(id.to_owned());
        self.report.count(outcome.as_str(), 1);
    }

    fn part(&mut self, id: &str, outcome: Outcome) {
        self.report.subtests = true;
        if matches!(outcome, Outcome::Failed | Outcome::Error) {
            self.report.add(id, outcome);
        } else if outcome == Outcome::Skipped {
            self.skipped_parts.insert(id.to_owned());
        }
    }

    fn fixture(&mut self, id: &str, outcome: Outcome) {
        if matches!(outcome, Outcome::Failed | Outcome::Error)
            && self.report.collection_errors.insert(id.to_owned())
        {
            self.report.count(outcome.as_str(), 1);
        } else if outcome == Outcome::Skipped {
            self.report.count("skipped", 1);
        }
    }

    /// What failed, named again below the run, which may be all there is of it.
    fn section(&mut self, id: &str, outcome: Outcome) {
        if is_fixture(id) {
            self.fixture(id, outcome);
            return;
        }
        let seen = self.report.tests.contains_key(id);
        if self.report.unfinished.remove(id) || !seen {
            self.report.count("run", 1);
            self.report.count(outcome.as_str(), 1);
        } else if self.report.tests.get(id).is_some_and(|held| *held != outcome) {
            // A second one of the same test: its tear-down, or a part of it.
            let held = self.report.tests.get(id).copied();
            if matches!(held, Some(Outcome::Failed | Outcome::Error)) {
                self.report.count(outcome.as_str(), 1);
            } else {
                self.report.subtests = true;
            }
        }
        self.report.add(id, outcome);
    }

    fn finish(mut self) -> TextReport {
        self.settle();
        for id in std::mem::take(&mut self.skipped_parts) {
            if !self.report.tests.contains_key(&id) {
                self.report.unfinished.remove(&id);
                self.report.add(&id, Outcome::Skipped);
                self.report.count("run", 1);
            }
        }
        if let Some(totals) = &self.report.totals {
            // What skips a class or module whole has no line in some versions.
            let total = totals.get("skipped").copied().unwrap_or(0);
            let held = self.report.counted.entry("skipped".to_owned()).or_default();
            *held = (*held).max(total);
        }
        self.report
    }
}

fn is_fixture(id: &str) -> bool {
    ["setUpClass (", "tearDownClass (", "setUpModule (", "tearDownModule ("]
        .iter()
        .any(|name| id.starts_with(name))
}

fn is_bar(line: &str) -> bool {
    line.len() >= 60
        && (line.bytes().all(|byte| byte == b'=') || line.bytes().all(|byte| byte == b'-'))
}

/// `... status` at the end of a line: what stands before it.
fn result_of(line: &str) -> Option<(&str, Outcome)> {
    let (before, rest) = line.rsplit_once(" ... ")?;
    if let Some(outcome) = status_of(rest.trim_start()) {
        return Some((before, outcome));
    }
    // A reason may hold the dots, too.
    let at = line.find(" ... skipped '").or_else(|| line.find(" ... skipped \""))?;
    Some((&line[..at], Outcome::Skipped))
}

/// A whole status.
fn status_of(text: &str) -> Option<Outcome> {
    Some(match text {
        "ok" | "OK" => Outcome::Passed,
        "FAIL" => Outcome::Failed,
        "ERROR" => Outcome::Error,
        "expected failure" => Outcome::Xfailed,
        "unexpected success" => Outcome::Xpassed,
        _ if text.starts_with("skipped '")
            || text.starts_with("skipped \"")
            || text == "skipped" =>
        {
            Outcome::Skipped
        }
        _ => return None,
    })
}

/// The id that a line begins with, and what follows it.
fn id_at_start(text: &str) -> Option<(&str, &str)> {
    let open = text.find(" (")?;
    let close = open + text[open..].find(')')?;
    let id = &text[..=close];
    is_id(&text[..open], &text[open + 2..close]).then(|| (id, &text[close + 1..]))
}

/// The id that a text ends with; other output may be glued to its front.
fn id_at_end(text: &str) -> Option<&str> {
    let open = text.strip_suffix(')')?.rfind(" (")?;
    let place = &text[open + 2..text.len() - 1];
    let name_at = text[..open]
        .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
        .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    // A name with other characters is taken whole where nothing is in front of it.
    let name_at = if is_id(&text[..open], place) { 0 } else { name_at };
    // In the middle of a text, less is too little to tell an id from words.
    let is_telling = name_at == 0 || place.contains('.');
    (is_telling && is_id(&text[name_at..open], place)).then(|| &text[name_at..])
}

/// Whether these are the two parts of `name (module.Class)`.
fn is_id(name: &str, place: &str) -> bool {
    let place_is_dotted = !place.is_empty()
        && place.split('.').all(|part| {
            !part.is_empty()
                && (part == "<locals>" || part.chars().all(|c| c.is_alphanumeric() || c == '_'))
                && !part.starts_with(|c: char| c.is_ascii_digit())
        });
    place_is_dotted
        && !name.is_empty()
        && !name.contains(char::is_whitespace)
        && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && !name.contains("...")
        && !name.ends_with(':')
}

/// `FAIL: test_a (module.Class)`, of which a part of the test may follow.
fn section_of(line: &str) -> Option<(Outcome, &str)> {
    let (word, rest) = line.split_once(": ")?;
    let outcome = match word {
        "FAIL" => Outcome::Failed,
        "ERROR" => Outcome::Error,
        "UNEXPECTED SUCCESS" => Outcome::Xpassed,
        _ => return None,
    };
    Some((outcome, id_at_start(rest)?.0))
}

/// `Ran 14 tests in 2.017s`
fn ran_of(line: &str) -> Option<u64> {
    let (count, time) = line.strip_prefix("Ran ")?.split_once(" in ")?;
    let count = count.strip_suffix(" tests").or_else(|| count.strip_suffix(" test"))?;
    time.strip_suffix('s')?.parse::<f64>().ok()?;
    count.parse().ok()
}

/// `OK`, `OK (skipped=2)`, `FAILED (failures=1, errors=2, expected failures=3)`, `NO TESTS RAN`
fn totals_of(line: &str) -> Option<Totals> {
    let mut totals = Totals::new();
    if matches!(line, "OK" | "FAILED" | "NO TESTS RAN") {
        return Some(totals);
    }
    let counts = ["OK (", "FAILED (", "NO TESTS RAN ("]
        .iter()
        .find_map(|start| line.strip_prefix(start))?
        .strip_suffix(')')?;
    for part in counts.split(", ") {
        let (word, count) = part.split_once('=')?;
        let word = match word {
            "failures" => "failed",
            "errors" => "error",
            "skipped" => "skipped",
            "expected failures" => "xfailed",
            "unexpected successes" => "xpassed",
            _ => return None,
        };
        totals.insert(word.to_owned(), count.parse().ok()?);
    }
    Some(totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests(text: &str) -> Vec<(String, Outcome)> {
        parse(text.as_bytes()).tests.into_iter().collect()
    }

    #[test]
    fn results_are_read_in_every_form() {
        let a = "test_a (m.C)";
        for (text, id, outcome) in [
            ("test_a (m.C) ... ok", a, Outcome::Passed),
            ("test_a (m.C) ... ok\r\n", a, Outcome::Passed),
            ("test_a (m.C.test_a) ... ok", "test_a (m.C.test_a)", Outcome::Passed),
            ("test_a (m.f.<locals>.C) ... ok", "test_a (m.f.<locals>.C)", Outcome::Passed),
            ("test_a (m.C) ... FAIL", a, Outcome::Failed),
            ("test_a (m.C) ... ERROR", a, Outcome::Error),
            ("test_a (m.C) ... skipped 'no ... way'", a, Outcome::Skipped),
            ("test_a (m.C) ... skipped \"it's\"", a, Outcome::Skipped),
            ("test_a (m.C) ... expected failure", a, Outcome::Xfailed),
            ("test_a (m.C) ... unexpected success", a, Outcome::Xpassed),
            ("test_a (m.C)\nThe docstring ... with dots. ... ok", a, Outcome::Passed),
            ("test_a (m.C) ... System check\nmore\nok", a, Outcome::Passed),
            ("test_a (m.C)\nDoc. ... noise\nskipped 'no'", a, Outcome::Skipped),
            ("test_a (m.C) ... noiseok\ntest_b (m.C) ... noise", a, Outcome::Passed),
            ("  Applying sites.0002...test_a (m.C) ... ok", a, Outcome::Passed),
            ("test_a (m.C) ...  OK", a, Outcome::Passed),
            (
                "test_a (m.C) ... \n  test_a (m.C) (i=1) ... FAIL\n  test_a (m.C) [x] (i=2) ... FAIL",
                a,
                Outcome::Failed,
            ),
        ] {
            let read = tests(text);
            assert_eq!(read.first(), Some(&(id.to_owned(), outcome)), "{text:?} {read:?}");
        }
        for text in ["it works (mostly) ... ok", "a (b c) ... ok", "Applying x.0001... OK", "ok"] {
            assert_eq!(tests(text), [], "{text:?}");
        }
    }

    #[test]
    fn a_docstring_goes_with_its_id() {
        let report = parse(b"test_a (m.C)\nSays what. ... ok\n");
        assert_eq!(report.descriptions["test_a (m.C)"], "Says what.");
    }

    #[test]
    fn totals_are_the_cross_check() {
        let bar = "=".repeat(70);
        let line = "-".repeat(70);
        let text = format!(
            "test_a (m.C) ... ok\ntest_b (m.C) ... Traceback\nFAIL\ntest_c (m.C) ... skipped 'x'\n\
             setUpClass (m.D) ... ERROR\n\n{bar}\nERROR: setUpClass (m.D)\n{line}\nx\n\n\
             {bar}\nFAIL: test_b (m.C)\nDoc\n{line}\nTraceback\n\n{line}\nRan 3 tests in 0.010s\n\n\
             FAILED (failures=1, errors=1, skipped=1)\nDestroying test database\n"
        );
        let report = parse(text.as_bytes());
        let totals = report.totals.unwrap();
        for word in ["run", "failed", "error", "skipped", "xfailed"] {
            assert_eq!(totals.get(word), report.counted.get(word), "{word}");
        }
        assert_eq!(totals["run"], 3);
        assert!(report.collection_errors.contains("setUpClass (m.D)"));
        assert_eq!(report.tests.len(), 3);
    }

    #[test]
    fn a_test_whose_parts_were_skipped_is_skipped() {
        let text = "test_a (m.C) ... \n  test_a (m.C) (i=1) ... skipped 'no'\n\
                    test_b (m.C) ... \n  test_b (m.C) (i=1) ... skipped 'no'\n  \
                    test_b (m.C) (i=2) ... FAIL\ntest_c (m.C) ... skipped 'no'\n\
                    \nRan 3 tests in 1s\n\nFAILED (failures=1, skipped=3)\n";
        let report = parse(text.as_bytes());
        let read: Vec<_> = report.tests.iter().map(|(id, one)| (id.as_str(), *one)).collect();
        let expected = [
            ("test_a (m.C)", Outcome::Skipped),
            ("test_b (m.C)", Outcome::Failed),
            ("test_c (m.C)", Outcome::Skipped),
        ];
        assert_eq!(read, expected);
        assert!(!report.unfinished.contains("test_a (m.C)"));
    }

    #[test]
    fn what_broke_off_is_unfinished() {
        let report = parse(b"test_a (m.C) ... ok\ntest_b (m.C) ... out");
        assert!(report.unfinished.contains("test_b (m.C)"));
    }

    #[test]
    fn a_quiet_run_names_what_failed() {
        let bar = "=".repeat(70);
        let text = format!(
            ".F\n{bar}\nFAIL: test_b (m.C)\n{}\nx\nRan 2 tests in 1s\n\nFAILED (failures=1)",
            "-".repeat(70)
        );
        let report = parse(text.as_bytes());
        assert_eq!(report.tests["test_b (m.C)"], Outcome::Failed);
        assert_eq!((report.totals.unwrap()["run"], report.counted["run"]), (2, 1));
    }
}
