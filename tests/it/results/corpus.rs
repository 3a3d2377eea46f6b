//! Real logs of the field, with what its official parsers read from them: our compatibility mode reads the same, and
//! every difference of our own reading is explained in `tests/fixtures/results/differences.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::PathBuf;

use hallmark::results::Outcome;
use hallmark::results::text::{compat, parse, test_output};
use hallmark::spec::Parser;

struct Log {
    name: String,
    text: String,
    parser: String,
    outcomes: BTreeMap<String, String>,
}

fn corpus() -> Option<Vec<Log>> {
    #[expect(clippy::disallowed_methods, reason = "how a test finds what is not in the repository")]
    let Some(folder) = std::env::var_os("HALLMARK_CORPUS") else {
        crate::support::say_skipped("HALLMARK_CORPUS does not name the folder with the corpus");
        return None;
    };
    let folder = PathBuf::from(folder).join("logs");
    let all: serde_json::Value =
        serde_json::from_slice(&fs_err::read(folder.join("outcomes.json")).unwrap()).unwrap();
    let read = |(name, value): (&String, &serde_json::Value)| {
        let mut bytes = Vec::new();
        let file = fs_err::File::open(folder.join(name)).unwrap();
        flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
        Log {
            name: name.clone(),
            text: String::from_utf8_lossy(&bytes).into_owned(),
            parser: value["parser"].as_str().unwrap().to_owned(),
            outcomes: serde_json::from_value(value["outcomes"].clone()).unwrap(),
        }
    };
    let logs: Vec<Log> = all.as_object().unwrap().iter().map(read).collect();
    assert!(!logs.is_empty());
    Some(logs)
}

/// Who reads a log that their parser of this name reads.
fn ours(parser: &str) -> Parser {
    match parser {
        "parse_log_django" => Parser::Django,
        "parse_log_sympy" => Parser::Sympy,
        "parse_log_sphinx" => Parser::Tox,
        _ => Parser::Pytest,
    }
}

fn their_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "PASSED",
        Outcome::Failed => "FAILED",
        Outcome::Error => "ERROR",
        Outcome::Skipped => "SKIPPED",
        Outcome::Xfailed => "XFAIL",
        Outcome::Xpassed => "XPASS",
        Outcome::Missing => "-",
    }
}

#[test]
fn the_compatibility_mode_reads_what_theirs_reads() {
    let Some(logs) = corpus() else { return };
    for log in logs {
        let read = compat(&log.parser, test_output(&log.text)).unwrap();
        assert_eq!(read, log.outcomes, "{}", log.name);
    }
}

#[test]
fn every_difference_is_explained() {
    let Some(logs) = corpus() else { return };
    let mut found = BTreeSet::new();
    for log in &logs {
        let report = parse(ours(&log.parser), test_output(&log.text).as_bytes());
        let ids: BTreeSet<&String> = report.tests.keys().chain(log.outcomes.keys()).collect();
        for id in ids {
            let theirs = log.outcomes.get(id).map_or("-", String::as_str);
            let ours = report.tests.get(id).map_or("-", |outcome| their_word(*outcome));
            if theirs != ours {
                let id = id.replace('|', "\\|");
                found.insert(format!("| {} | `{id}` | {theirs} | {ours} |", log.name));
            }
        }
    }
    let path = super::fixtures().join("differences.md");
    let table = fs_err::read_to_string(path).unwrap();
    let mut explained = BTreeSet::new();
    for line in table.lines().filter(|line| line.contains(".log.gz |")) {
        // The cells before the last, which says why.
        let (row, why) = line.strip_suffix(" |").unwrap().rsplit_once(" | ").unwrap();
        assert!(why.len() > 10, "no reason: {line}");
        assert!(explained.insert(format!("{row} |")), "twice: {line}");
    }
    let missing: Vec<_> = found.difference(&explained).collect();
    let stale: Vec<_> = explained.difference(&found).collect();
    assert!(missing.is_empty() && stale.is_empty(), "missing: {missing:#?}\nstale: {stale:#?}");
}

#[test]
fn our_reading_agrees_with_the_runners_own_totals() {
    let Some(logs) = corpus() else { return };
    for log in logs {
        let report = parse(ours(&log.parser), test_output(&log.text).as_bytes());
        let totals = report.totals.unwrap_or_else(|| panic!("{}", log.name));
        let first = if totals.contains_key("run") { "run" } else { "passed" };
        for word in [first, "failed", "error", "skipped", "xfailed", "xpassed"] {
            let [counted, total] =
                [&report.counted, &totals].map(|map| map.get(word).copied().unwrap_or(0));
            assert_eq!(counted, total, "{}: {word}", log.name);
        }
        assert!(report.unfinished.is_empty(), "{}: {:?}", log.name, report.unfinished);
    }
}
