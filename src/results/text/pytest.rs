//! Reads what pytest prints, from 3 to 8: the lines of a verbose run (`-v`, also through xdist, rerunfailures and
//! subtests), the short summary (`-rA`), and the line of totals.
//!
//! A run has up to three parts: progress, sections with what was captured, the short summary with the totals.
//! Captured output can hold all of this again, so progress ends at the first section and the last summary counts.

use std::collections::BTreeSet;

use super::super::Outcome;
use super::lines::lines;
use super::model::{TextReport, Totals};

/// Titles of the sections that follow the progress.
const SECTIONS: [&str; 8] = [
    "ERRORS",
    "FAILURES",
    "PASSES",
    "XPASSES",
    "XFAILURES",
    "short test summary info",
    "warnings summary",
    "pytest-warning summary",
];

/// Bytes of the longest id that is looked for in a line with a message.
const LONGEST_ID: usize = 2000;

/// What a word in a result line means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Result(Outcome),
    Subtest(bool),
    Rerun,
}

fn word(text: &str) -> Option<Word> {
    Some(match text {
        "PASSED" => Word::Result(Outcome::Passed),
        "FAILED" | "FAIL" => Word::Result(Outcome::Failed),
        "ERROR" => Word::Result(Outcome::Error),
        "SKIPPED" | "SKIP" => Word::Result(Outcome::Skipped),
        "XFAIL" | "xfail" => Word::Result(Outcome::Xfailed),
        "XPASS" => Word::Result(Outcome::Xpassed),
        "SUBFAIL" | "SUBFAILED" => Word::Subtest(false),
        "SUBPASS" | "SUBPASSED" | "SUBSKIP" | "SUBSKIPPED" | "SUBXFAIL" => Word::Subtest(true),
        "RERUN" => Word::Rerun,
        _ => return None,
    })
}

/// Reads the output of one pytest session.
pub(super) fn parse(bytes: &[u8]) -> TextReport {
    let mut reader = Reader::default();
    for line in lines(bytes) {
        reader.line(&line);
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    totals: Option<Totals>,
    totals_lines: u64,
    progress: TextReport,
    summary: TextReport,
    in_sections: bool,
    in_summary: bool,
    /// In the first section, which is that of errors, before anything that was captured.
    in_errors: bool,
    /// A test whose result is not on its line.
    pending: Option<String>,
}

impl Reader {
    fn line(&mut self, line: &str) {
        if line.starts_with('=') && self.header(line) {
            return;
        }
        if let Some(totals) = totals_of(line) {
            self.totals = Some(totals);
            self.totals_lines += 1;
            self.in_summary = false;
        } else if self.in_summary {
            self.summary_line(line);
        } else if !self.in_sections {
            self.progress_line(line);
        } else if line.starts_with("---") && line.contains(" Captured ") {
            self.in_errors = false;
        } else if self.in_errors
            && let Some(module) = collecting(line)
            && self.progress.collection_errors.insert(module.to_owned())
        {
            self.progress.count("error", 1);
        }
    }

    /// A title between bars.
    fn header(&mut self, line: &str) -> bool {
        let title = line.trim_matches('=').trim();
        if title == "short test summary info" {
            self.in_summary = true;
            self.summary = TextReport::default();
        }
        let known = SECTIONS.contains(&title) || title.starts_with("slowest ");
        if known {
            self.in_errors = title == "ERRORS" && !self.in_sections;
            self.in_sections = true;
            self.in_summary = title == "short test summary info";
        }
        known
    }

    fn progress_line(&mut self, line: &str) {
        let Some((id, word, subtest_of)) = progress_of(line) else {
            if let Some(id) = start_of(line) {
                self.pending = Some(id.to_owned());
            } else if let Some(Word::Result(outcome)) = alone(line)
                && let Some(id) = self.pending.take()
            {
                self.progress.add(&id, outcome);
                self.progress.count(count_word(outcome), 1);
            }
            return;
        };
        self.pending = None;
        match word {
            Word::Result(outcome) => {
                self.progress.add(id, outcome);
                self.progress.count(count_word(outcome), 1);
            }
            Word::Subtest(passed) => {
                self.progress.subtests = true;
                if !passed && let Some(id) = subtest_of {
                    self.progress.add(id, Outcome::Failed);
                    self.progress.count("failed", 1);
                }
            }
            Word::Rerun => {}
        }
    }

    fn summary_line(&mut self, line: &str) {
        let (first, rest) = match line.split_once(' ') {
            // `(value=1) SUBFAIL id`, `[text] (value=1) SUBFAIL id`
            Some((first, _)) if first.starts_with(['(', '[']) => {
                let Some((before, rest)) = line.split_once(" SUBFAIL ") else { return };
                if before.contains("::") {
                    return;
                }
                ("SUBFAIL", rest)
            }
            Some(parts) => parts,
            None => return,
        };
        if rest.starts_with(' ') {
            return;
        }
        match word(first) {
            Some(Word::Result(Outcome::Skipped)) => {
                // `SKIPPED [2] path:line: reason` has no id.
                let count = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
                if let Some(Ok(count)) = count.map(|(count, _)| count.parse()) {
                    self.summary.count("skipped", count);
                }
            }
            Some(Word::Result(outcome)) => {
                let id = self.id_of(rest, outcome);
                let (id, outcome) = (id.to_owned(), outcome);
                if id.contains("::") {
                    self.summary.add(&id, outcome);
                } else if outcome == Outcome::Error {
                    self.summary.collection_errors.insert(id);
                } else if self.progress.tests.contains_key(&id) {
                    self.summary.add(&id, outcome);
                } else {
                    return;
                }
                self.summary.count(count_word(outcome), 1);
            }
            Some(Word::Subtest(false)) => {
                let id = self.id_of(rest, Outcome::Failed).to_owned();
                self.summary.subtests = true;
                self.summary.add(&id, Outcome::Failed);
                self.summary.count("failed", 1);
            }
            _ => {}
        }
    }

    /// The id at the start of a line of the summary, where a message may follow: one that was seen in the
    /// progress, else what stands before the first ` - ` outside brackets.
    fn id_of<'a>(&self, rest: &'a str, outcome: Outcome) -> &'a str {
        let known = |id: &str| self.progress.tests.contains_key(id);
        if known(rest) || outcome == Outcome::Passed {
            return rest;
        }
        let ends = rest.match_indices(' ').map(|(at, _)| &rest[..at]);
        // Each place costs a look-up: nobody's id is longer.
        let mut ends = ends.rev().skip_while(|id| id.len() > LONGEST_ID);
        if let Some(id) = ends.find(|id| known(id)) {
            return id;
        }
        if let Some(end) = message_at(rest) {
            return &rest[..end];
        }
        // Before pytest 8 the reason of an unexpected pass follows a space.
        if outcome == Outcome::Xpassed {
            &rest[..outside_brackets(rest, " ").unwrap_or(rest.len())]
        } else {
            rest
        }
    }

    fn finish(self) -> TextReport {
        let Self { totals, totals_lines, progress, summary, pending, .. } = self;
        let mut report = TextReport { totals, totals_lines, ..TextReport::default() };
        for (id, outcome) in progress.tests.iter().chain(&summary.tests) {
            report.add(id, *outcome);
        }
        report.subtests = progress.subtests || summary.subtests;
        report.collection_errors =
            progress.collection_errors.union(&summary.collection_errors).cloned().collect();
        let words: BTreeSet<&String> =
            progress.counted.keys().chain(summary.counted.keys()).collect();
        for word in words {
            let [one, two] =
                [&progress, &summary].map(|part| part.counted.get(word).copied().unwrap_or(0));
            let total = report.totals.as_ref().and_then(|totals| totals.get(word)).copied();
            // Either part may lack lines (no -v, no -rA): the whole one is confirmed by the total.
            let count = if total == Some(one) || total == Some(two) {
                total.unwrap_or(0)
            } else {
                one.max(two)
            };
            report.count(word, count);
        }
        // Skipped modules and, without -rs, all that is known of them is the total.
        if let Some(total) =
            report.totals.as_ref().and_then(|totals| totals.get("skipped")).copied()
            && report.counted.get("skipped").is_none_or(|count| *count < total)
        {
            report.counted.insert("skipped".to_owned(), total);
        }
        if let Some(id) = pending
            && report.totals.is_none()
            && !report.tests.contains_key(&id)
        {
            report.unfinished.insert(id);
        }
        report
    }
}

fn count_word(outcome: Outcome) -> &'static str {
    outcome.as_str()
}

/// `____ ERROR collecting tests/test_a.py ____`
fn collecting(line: &str) -> Option<&str> {
    line.strip_prefix('_')?.trim_matches('_').trim().strip_prefix("ERROR collecting ")
}

/// A line of a verbose run: id, word, and for a part of a test the id of the test.
fn progress_of(line: &str) -> Option<(&str, Word, Option<&str>)> {
    if let Some(rest) = line.strip_prefix("[gw") {
        // `[gw0] [ 33%] FAILED id`, before 3.? without the share.
        let (_, rest) = rest.split_once("] ")?;
        let rest = match rest.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            Some((share, rest)) if is_share(share) => rest,
            _ => rest,
        };
        let (first, id) = rest.split_once(' ')?;
        return result(id.trim_end(), word(first)?);
    }
    if !line.contains("::") && !line.contains('.') {
        return None;
    }
    let mut text = line.trim_end();
    if let Some((before, share)) = text.strip_suffix(']').and_then(|text| text.rsplit_once(" ["))
        && is_share(share)
    {
        text = before.trim_end();
    }
    if let Some((id, last)) = text.rsplit_once(' ')
        && let Some(word) = word(last)
    {
        return result(id.trim_end(), word);
    }
    // `id SKIPPED (reason)`, where the reason may be cut.
    let reasons = ["SKIPPED", "XFAIL", "XPASS", "xfail"];
    let reason = reasons.iter().filter_map(|name| {
        text.match_indices(name)
            .filter(|(at, _)| {
                text[..*at].ends_with(' ') && text[at + name.len()..].starts_with(" (")
            })
            .map(|(at, _)| (at, *name))
            .next()
    });
    if let Some((at, name)) = reason.min() {
        return result(text[..at].trim_end(), word(name)?);
    }
    // Other output glued to the word: `id PASSEDPicked up ...`.
    let glued = ["PASSED", "FAILED", "ERROR", "SKIPPED", "XFAIL", "XPASS"];
    let (at, name) = glued
        .iter()
        .filter_map(|name| text.rfind(&format!(" {name}")).map(|at| (at, *name)))
        .max()?;
    let id = text[..at].trim_end();
    let id = &id[..outside_brackets(id, " <- ").unwrap_or(id.len())];
    // Only a line that is one id and no sentence.
    if id.contains("::") && outside_brackets(id, " ").is_none() {
        result(id, word(name)?)
    } else {
        None
    }
}

fn result(id: &str, word: Word) -> Option<(&str, Word, Option<&str>)> {
    // `id <- file`, where a test is not defined in the file that it is collected from.
    let id = &id[..outside_brackets(id, " <- ").unwrap_or(id.len())];
    let start = id.split("::").next().unwrap_or_default();
    if start.is_empty() || (!id.contains("::") && (!id.contains('.') || id.contains(' '))) {
        return None;
    }
    let test = matches!(word, Word::Subtest(_)).then(|| {
        let cut = [" (", " ["].iter().filter_map(|cut| id.find(cut)).min();
        &id[..cut.unwrap_or(id.len())]
    });
    Some((id, word, test))
}

/// `33%`, `3/7`, `1.2s`: what stands in brackets at the end of a line.
fn is_share(text: &str) -> bool {
    let text = text.trim();
    let digits = text.trim_end_matches(['%', 's', 'm']);
    !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || ".:/ ".contains(c))
}

/// A line that is a result and nothing else, where the output of the test came in between.
fn alone(line: &str) -> Option<Word> {
    let text = line.trim();
    let text = match text.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
        Some((before, share)) if is_share(share) => before.trim_end(),
        _ => text,
    };
    word(text)
}

/// The id that a line begins with.
fn start_of(line: &str) -> Option<&str> {
    let id = &line[..outside_brackets(line, " ").unwrap_or(line.len())];
    let (file, name) = id.split_once("::")?;
    let is_file = !file.is_empty() && file.contains('.') && !name.is_empty();
    is_file.then_some(id)
}

/// Where a needle stands outside brackets.
fn outside_brackets(text: &str, needle: &str) -> Option<usize> {
    let mut depth = 0_i64;
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ if depth <= 0 && text[at..].starts_with(needle) => return Some(at),
            _ => {}
        }
    }
    None
}

/// Where ` - message` begins: at the first ` - ` outside brackets, else after the first bracket that is followed by
/// it, else at the first.
fn message_at(text: &str) -> Option<usize> {
    outside_brackets(text, " - ")
        .or_else(|| text.find("] - ").map(|at| at + 1))
        .or_else(|| text.find(" - "))
}

/// `===== 3 failed, 2 passed in 0.12s =====`, with `-q` without the bars, before pytest 5 `in 0.12 seconds`.
pub(super) fn totals_of(line: &str) -> Option<Totals> {
    if !line.contains(" in ") {
        return None;
    }
    let inner = if line.starts_with('=') {
        // Other output may be glued to the end.
        let inner = line.trim_start_matches('=').trim_start();
        inner.split(" =").next().unwrap_or(inner).trim_end()
    } else {
        line.trim()
    };
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
            "pytest-warnings" => "pytest-warning",
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
            "pytest-warning",
            "rerun",
        ];
        if !known.contains(&word) && !word.starts_with("subtests ") {
            return None;
        }
        let held = totals.entry(word.to_owned()).or_default();
        *held = held.saturating_add(count.parse().ok()?);
    }
    Some(totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(line: &str) -> Option<Vec<(String, u64)>> {
        parse(line.as_bytes()).totals.map(|totals| totals.into_iter().collect())
    }

    fn tests(text: &[u8]) -> Vec<(String, Outcome)> {
        parse(text).tests.into_iter().collect()
    }

    fn expect(pairs: &[(&str, Outcome)]) -> Vec<(String, Outcome)> {
        pairs.iter().map(|(id, outcome)| ((*id).to_owned(), *outcome)).collect()
    }

    #[test]
    fn the_file_of_a_definition_is_no_part_of_an_id() {
        let text = b"test_i.py::T::test_x <- base.py PASSED   [ 20%]\n\
            test_i.py::T::test_y[a <- b] FAILED   [ 40%]\n\
            test_i.py::T::test_z <- ../lib/base.py SKIPPED (not <- here) [ 60%]\n\
            [gw0] [ 80%] PASSED test_i.py::T::test_w <- base.py \n\
            test_i.py::T::test_v <- base.py PASSEDnoise\n\
            test_i.py::T::test_u <- base.py output\nPASSED\n";
        let expected = [
            ("test_i.py::T::test_u", Outcome::Passed),
            ("test_i.py::T::test_v", Outcome::Passed),
            ("test_i.py::T::test_w", Outcome::Passed),
            ("test_i.py::T::test_x", Outcome::Passed),
            ("test_i.py::T::test_y[a <- b]", Outcome::Failed),
            ("test_i.py::T::test_z", Outcome::Skipped),
        ];
        assert_eq!(tests(text), expect(&expected));
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
            (
                "= 1 passed, 2 pytest-warnings in 0.01 seconds =",
                expect(&[("passed", 1), ("pytest-warning", 2)]),
            ),
            ("3 passed, 1 rerun in 0.02s", expect(&[("passed", 3), ("rerun", 1)])),
            (
                "= 1 failed, 2 passed, 5 subtests passed in 0.02s =",
                expect(&[("failed", 1), ("passed", 2), ("subtests passed", 5)]),
            ),
            ("\x1b[32m== \x1b[1m1 passed\x1b[0m in 0.01s ==\x1b[0m\r", expect(&[("passed", 1)])),
            ("==== no tests ran in 0.00s ====", expect(&[])),
            ("progress\r== 4 passed in 1.00s ==", expect(&[("passed", 4)])),
            ("== 4 passed in 1.00s ==Exception ignored in: <x>", expect(&[("passed", 4)])),
            ("3 things in 2 boxes", None),
            ("3 passed", None),
            ("3 passed in time", None),
            ("4 apples in 2s", None),
            ("18446744073709551616 passed in 1s", None),
        ] {
            assert_eq!(totals(line), expected, "{line:?}");
        }
    }

    #[test]
    fn the_last_summary_and_the_last_totals_count() {
        let text = b"PASSED forged.py::outside\n\
            ===== PASSES =====\nt.py::forged PASSED\n\
            ===== short test summary info =====\nPASSED t.py::phantom\n== 9 passed in 0.01s ==\n\
            \xff\xfe binary \x00\n\
            ===== short test summary info =====\r\n\
            PASSED t.py::a[x - y z]\r\n\
            FAILED t.py::b[p - q] - assert 1 == 2 - really\r\n\
            \x1b[31mERROR\x1b[0m t.py::c - boom\r\n\
            ERROR broken.py - ImportError: x\r\n\
            ERROR    root:logging.py:12 not an id\r\n\
            XFAIL t.py::d\r\n  reason: [NOTRUN] x\r\n\
            XPASS t.py::e[a b] known\r\n\
            SKIPPED [2] t.py:3: no\r\n\
            PASSED t.py::\xc3\xa4\r\n\
            == 1 failed, 2 passed, 1 xfailed, 1 xpassed, 2 skipped, 2 error in 0.01s ==";
        let report = parse(text);
        assert_eq!(report.totals_lines, 2);
        assert_eq!(report.totals, Some(report.counted.clone()));
        assert_eq!(
            tests(text),
            expect(&[
                ("t.py::a[x - y z]", Outcome::Passed),
                ("t.py::b[p - q]", Outcome::Failed),
                ("t.py::c", Outcome::Error),
                ("t.py::d", Outcome::Xfailed),
                ("t.py::e[a b]", Outcome::Xpassed),
                ("t.py::\u{e4}", Outcome::Passed),
            ])
        );
        assert_eq!(report.collection_errors, BTreeSet::from(["broken.py".to_owned()]));
    }

    #[test]
    fn verbose_lines_are_read_in_every_form() {
        for (line, id, outcome) in [
            ("t.py::a PASSED", "t.py::a", Outcome::Passed),
            ("t.py::a PASSED                      [ 33%]", "t.py::a", Outcome::Passed),
            ("t.py::a[x y] FAILED [  3/10]", "t.py::a[x y]", Outcome::Failed),
            ("t.py::a SKIPPED (could not import 'b') [ 5%]", "t.py::a", Outcome::Skipped),
            ("t.py::a SKIPPED (could not...) [ 5%]", "t.py::a", Outcome::Skipped),
            ("t.py::a XFAIL ([NOTRUN] not run)  [ 29%]", "t.py::a", Outcome::Xfailed),
            ("t.py::a xfail", "t.py::a", Outcome::Xfailed),
            ("README.rst::README.rst PASSED", "README.rst::README.rst", Outcome::Passed),
            ("README.rst PASSED", "README.rst", Outcome::Passed),
            ("[gw0] [ 66%] FAILED t.py::a[b c] ", "t.py::a[b c]", Outcome::Failed),
            ("[gw11] PASSED t.py::a ", "t.py::a", Outcome::Passed),
            ("t.py::a[PASSED b] FAILED [10%]", "t.py::a[PASSED b]", Outcome::Failed),
            ("t.py::a PASSEDPicked up JAVA_TOOL_OPTIONS: x", "t.py::a", Outcome::Passed),
            ("t.py::a[b c] PASSEDWARNING: x", "t.py::a[b c]", Outcome::Passed),
            ("t.py::a some output\nmore\nPASSED", "t.py::a", Outcome::Passed),
            ("t.py::a\nFAILED       [100%]", "t.py::a", Outcome::Failed),
            ("t.py::a PASSED [ 1%]\nt.py::a ERROR [ 1%]", "t.py::a", Outcome::Error),
            ("t.py::a FAILED [ 1%]\nt.py::a ERROR [ 1%]", "t.py::a", Outcome::Failed),
            ("t.py::a RERUN [ 1%]\nt.py::a PASSED [ 1%]", "t.py::a", Outcome::Passed),
            ("t.py::a (i=1) SUBFAIL [ 1%]\nt.py::a PASSED [ 1%]", "t.py::a", Outcome::Failed),
            ("t.py::a (i=1) SUBPASS [ 1%]\nt.py::a PASSED [ 1%]", "t.py::a", Outcome::Passed),
            ("t.py::a[\\xe4\\u6f22-e::f] PASSED", "t.py::a[\\xe4\\u6f22-e::f]", Outcome::Passed),
        ] {
            assert_eq!(tests(line.as_bytes()), expect(&[(id, outcome)]), "{line:?}");
        }
        for line in ["we PASSED", "a.b said it PASSED", "::x PASSED", "x::y", "PASSED"] {
            assert_eq!(tests(line.as_bytes()), [], "{line:?}");
        }
    }

    #[test]
    fn the_progress_knows_where_an_id_ends() {
        let text = b"t.py::a[b] - c] FAILED [ 50%]\nt.py::x XPASS\n\
            === short test summary info ===\nXPASS t.py::x known\nFAILED t.py::a[b] - c] - assert 0\n\
            === 1 failed, 1 xpassed in 1s ===\n";
        let expected = [("t.py::a[b] - c]", Outcome::Failed), ("t.py::x", Outcome::Xpassed)];
        assert_eq!(tests(text), expect(&expected));
    }

    #[test]
    fn what_broke_off_is_unfinished() {
        let report = parse(b"t.py::a PASSED\nt.py::b[c d] out");
        assert_eq!(report.unfinished, BTreeSet::from(["t.py::b[c d]".to_owned()]));
        assert_eq!(report.totals, None);
    }

    #[test]
    fn a_total_that_no_line_confirms_is_seen() {
        let report = parse(b"t.py ....  [100%]\n== 4 passed in 1s ==");
        assert_eq!(report.totals.unwrap()["passed"], 4);
        assert_eq!(report.counted.get("passed"), None);
    }
}
