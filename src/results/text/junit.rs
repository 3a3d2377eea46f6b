//! Reads JUnit XML, as pytest (`--junitxml`, both families), unittest-xml-reporting and others write it.
//!
//! An id is made of what a test case tells: with `file`, or in a suite of pytest's, `file::Class::name`; else
//! `name (classname)`, as unittest has it. pytest's newer family has no `file`: its module ends before the first
//! part of the dotted name that begins with a capital letter.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::super::Outcome;
use super::model::{TextReport, Totals};

/// Reads a whole document; what comes before it (other output) is passed over, and a broken rest ends it.
pub(super) fn parse(bytes: &[u8]) -> TextReport {
    let start = bytes.windows(5).position(|window| window == b"<?xml" || window == b"<test");
    let text = String::from_utf8_lossy(&bytes[start.unwrap_or(bytes.len())..]);
    let mut reader = Reader::from_str(&text);
    let mut state = State::default();
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) => state.open(&tag, false),
            Ok(Event::Empty(tag)) => state.open(&tag, true),
            Ok(Event::End(tag)) => state.close(tag.name().as_ref()),
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
    state.finish()
}

#[derive(Default)]
struct State {
    report: TextReport,
    suites: Vec<String>,
    /// The test case that is open, and its outcome so far.
    case: Option<(Case, Outcome)>,
    totals: Option<Totals>,
}

struct Case {
    id: String,
    is_module: bool,
}

impl State {
    fn open(&mut self, tag: &BytesStart<'_>, empty: bool) {
        let attribute = |name: &str| -> Option<String> {
            tag.attributes().flatten().find(|one| one.key.as_ref() == name).map(|one| {
                match one.normalized_value(XmlVersion::Implicit1_0) {
                    Ok(value) => value.into_owned(),
                    // An entity that nobody defined.
                    Err(_) => one.value.into_owned(),
                }
            })
        };
        match tag.name().as_ref() {
            "testsuite" => {
                let count =
                    |name: &str| attribute(name).and_then(|value| value.trim().parse::<u64>().ok());
                let mut totals = Totals::new();
                for (name, word) in [
                    ("tests", "run"),
                    ("failures", "failed"),
                    ("errors", "error"),
                    ("skipped", "skipped"),
                    ("skips", "skipped"),
                ] {
                    if let Some(count) = count(name) {
                        totals.insert(word.to_owned(), count);
                    }
                }
                // The counts of a suite are of the suites in it, too.
                if self.suites.is_empty() && totals.contains_key("run") {
                    for (word, count) in totals {
                        let held = self.totals.get_or_insert_default().entry(word).or_default();
                        *held = held.saturating_add(count);
                    }
                }
                if !empty {
                    self.suites.push(attribute("name").unwrap_or_default());
                }
            }
            "testcase" => {
                let name = attribute("name").unwrap_or_default();
                let class = attribute("classname").unwrap_or_default();
                let is_pytest = self.suites.last().is_some_and(|suite| suite == "pytest");
                let id = id_of(&class, &name, attribute("file").as_deref(), is_pytest);
                let case = Case { id, is_module: is_pytest && class.is_empty() };
                self.case = Some((case, Outcome::Passed));
                if empty {
                    self.end_case();
                }
            }
            child => {
                let Some((_, outcome)) = &mut self.case else { return };
                let text = |name: &str| attribute(name).unwrap_or_default();
                let said = match child {
                    "failure" => Outcome::Failed,
                    "error" => Outcome::Error,
                    "skipped" if text("type") == "pytest.xfail" => Outcome::Xfailed,
                    "skipped" => Outcome::Skipped,
                    _ => return,
                };
                *outcome = said.max(*outcome);
            }
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "testcase" => self.end_case(),
            "testsuite" => {
                self.suites.pop();
            }
            _ => {}
        }
    }

    fn end_case(&mut self) {
        let Some((case, outcome)) = self.case.take() else { return };
        self.report.count("run", 1);
        // An expected failure is written, and counted, as skipped.
        let word = if outcome == Outcome::Xfailed { "skipped" } else { outcome.as_str() };
        self.report.count(word, 1);
        if case.is_module {
            // A module that was not collected, or skipped whole.
            if matches!(outcome, Outcome::Error | Outcome::Failed) {
                self.report.collection_errors.insert(case.id);
            }
        } else {
            self.report.add(&case.id, outcome);
        }
    }

    fn finish(mut self) -> TextReport {
        if let Some((case, _)) = self.case.take() {
            self.report.unfinished.insert(case.id);
        }
        // A document that broke off holds its totals at the start, and they are not met.
        if let Some(totals) = self.totals.take() {
            self.report.set_totals(totals);
        }
        self.report
    }
}

fn id_of(class: &str, name: &str, file: Option<&str>, is_pytest: bool) -> String {
    if class.is_empty() {
        return name.to_owned();
    }
    if let Some(file) = file {
        let module = file.strip_suffix(".py").unwrap_or(file).replace('/', ".");
        if let Some(rest) = class.strip_prefix(&module) {
            let classes = rest.trim_start_matches('.').replace('.', "::");
            let classes = if classes.is_empty() { classes } else { format!("{classes}::") };
            return format!("{file}::{classes}{name}");
        }
    }
    if !is_pytest {
        return format!("{name} ({class})");
    }
    let parts: Vec<&str> = class.split('.').collect();
    let is_class = |part: &&str| part.starts_with(|c: char| c.is_uppercase());
    let modules = parts.iter().position(is_class).unwrap_or(parts.len()).max(1);
    let mut id = format!("{}.py", parts[..modules].join("/"));
    for class in &parts[modules..] {
        id.push_str("::");
        id.push_str(class);
    }
    format!("{id}::{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_of_pytest_are_read() {
        let text = br#"other output
<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" errors="1" failures="1" skipped="2" tests="6">
<testcase classname="tests.test_a" name="test_b[x &amp; &quot;y&quot; &#xe4;]" time="0.1"/>
<testcase classname="tests.test_a.TestC" name="test_d"><failure message="m">text &lt;skipped/&gt;</failure></testcase>
<testcase classname="tests.test_a" name="test_e"><skipped type="pytest.xfail" message="m"/></testcase>
<testcase classname="tests.test_a" name="test_f"><skipped type="pytest.skip" message="m"></skipped></testcase>
<testcase classname="tests.test_a.TestC" file="tests/test_a.py" line="3" name="test_g"><system-out>x</system-out></testcase>
<testcase classname="" name="tests.test_broken"><error message="collection failure">x</error></testcase>
</testsuite></testsuites>"#;
        let report = parse(text);
        let tests: Vec<_> = report.tests.iter().map(|(id, o)| (id.as_str(), *o)).collect();
        assert_eq!(
            tests,
            [
                ("tests/test_a.py::TestC::test_d", Outcome::Failed),
                ("tests/test_a.py::TestC::test_g", Outcome::Passed),
                ("tests/test_a.py::test_b[x & \"y\" \u{e4}]", Outcome::Passed),
                ("tests/test_a.py::test_e", Outcome::Xfailed),
                ("tests/test_a.py::test_f", Outcome::Skipped),
            ]
        );
        assert!(report.collection_errors.contains("tests.test_broken"));
        for (word, count) in report.totals.unwrap() {
            assert_eq!(report.counted[&word], count, "{word}");
        }
    }

    #[test]
    fn unittests_writers_are_read() {
        let text = br#"<testsuite name="m.C-2020" tests="2" failures="0" errors="1">
            <testcase classname="m.C" name="test_a"/>
            <testcase classname="m.C" name="test_b"><error type="E"/></testcase></testsuite>"#;
        let report = parse(text);
        assert_eq!(report.tests["test_a (m.C)"], Outcome::Passed);
        assert_eq!(report.tests["test_b (m.C)"], Outcome::Error);
    }

    #[test]
    fn a_document_that_breaks_off_does_not_meet_its_totals() {
        let report = parse(b"<testsuite tests=\"2\"><testcase classname=\"m.C\" name=\"test_a\"/><testcase classname=\"m.C\" name=\"te");
        assert_eq!((report.totals.unwrap()["run"], report.counted["run"]), (2, 1));
    }
}
