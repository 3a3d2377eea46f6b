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
    /// Cases of pytest's that are a failed tear-down: it counts none where the test failed, too, two where it
    /// passed, and older versions count one.
    tear_downs: u64,
}

struct Case {
    id: String,
    is_module: bool,
    is_pytest: bool,
    is_tear_down: bool,
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
                let is_module = is_pytest && class.is_empty();
                let case = Case { id, is_module, is_pytest, is_tear_down: false };
                self.case = Some((case, Outcome::Passed));
                if empty {
                    self.end_case();
                }
            }
            child => {
                let Some((case, outcome)) = &mut self.case else { return };
                let text = |name: &str| attribute(name).unwrap_or_default();
                let said = match child {
                    "failure" => Outcome::Failed,
                    "error" => Outcome::Error,
                    "skipped" if text("type") == "pytest.xfail" => Outcome::Xfailed,
                    "skipped" => Outcome::Skipped,
                    _ => return,
                };
                let message = text("message");
                case.is_tear_down |= case.is_pytest
                    && said == Outcome::Error
                    && ["failed on teardown", "test teardown failure"]
                        .iter()
                        .any(|start| message.starts_with(start));
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
        self.tear_downs += u64::from(case.is_tear_down && outcome == Outcome::Error);
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
            let counted = self.report.counted.entry("run".to_owned()).or_default();
            if let Some(run) = totals.get("run")
                && run.abs_diff(*counted) <= self.tear_downs
            {
                *counted = *run;
            }
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
    fn a_tear_down_that_fails_is_counted_as_pytest_counts_it() {
        let case = |name: &str, child: &str| {
            format!("<testcase classname=\"test_a\" name=\"{name}\">{child}</testcase>")
        };
        let error = "<error message=\"failed on teardown with &quot;x&quot;\"/>";
        let [one, two, three] = [
            case("test_p", error),
            case("test_f", "<failure/>") + &case("test_f", error),
            case("test_s", "<error message=\"failed on setup with &quot;x&quot;\"/>"),
        ];
        for (cases, tests, counted) in [
            // Passed and not: two; failed and failed again: one.
            (&one, 2, 2),
            (&two, 1, 1),
            (&(one.clone() + &two), 3, 3),
            (&three, 2, 1),
            (&one, 3, 1),
        ] {
            let text = format!("<testsuite name=\"pytest\" tests=\"{tests}\">{cases}</testsuite>");
            assert_eq!(parse(text.as_bytes()).counted["run"], counted, "{text}");
        }
        let report = parse(format!("<testsuite name=\"pytest\">{two}</testsuite>").as_bytes());
        assert_eq!(report.tests["test_a.py::test_f"], Outcome::Failed);
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
