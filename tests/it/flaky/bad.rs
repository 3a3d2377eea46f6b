//! Tests that attack whoever runs them, and patches that are wrong: each is refused, or harmless, for its own reason, in one
//! line that says what to do.

use std::collections::BTreeMap;

use serde_json::Value;

use super::corpus::{Tree, bad, gold_patch};
use super::land::{Instance, Land};

/// Limits that end a hang soon.
const LIMITS: &str = "timeout = \"12 s\"\ntest-timeout = \"2 s\"\npids = 32\n";

/// A case: the name of its file in `bad/`, the rule that refuses it, and what its line must say.
type Case = (&'static str, &'static str, &'static [&'static str]);

/// What takes time without end. A timeout counts once it was confirmed alone, so these need a whole ladder.
const ENDLESS: [Case; 3] = [
    ("hang", "pass-to-pass-fails-after", &["test_sleeps", "timeout: the test ran longer than 2 s"]),
    ("hang_on_import", "broken-after", &["wall limit", "limits.timeout"]),
    ("fork_bomb", "pass-to-pass-fails-after", &["test_bomb", "timeout"]),
];

const FILES: [Case; 9] = [
    ("flood", "broken-after", &["printed more than 1 GiB"]),
    ("delete", "pass-to-pass-fails-after", &["test_needs"]),
    ("kill_runner", "pass-to-pass-fails-after", &["test_kills", "signal 9"]),
    ("clock", "pass-to-pass-fails-after", &["test_sets", "Operation not permitted"]),
    ("forge", "pass-to-pass-fails-after", &["test_fails", "assert False"]),
    ("forge_summary", "broken-after", &["cannot be trusted", "its process with 0"]),
    ("exit_zero", "broken-after", &["broke before the first test", "exit code 0"]),
    ("broken_import", "broken-after", &["No module named 'flakyland.nothing_of_this_name'"]),
    ("no_tests", "broken-after", &["no test was collected"]),
];

/// What harms nobody.
const HARMLESS: [&str; 2] = ["binary", "kill_parent"];

/// Changes of the gold patch, as those above.
const PATCHES: [(&str, &str, &str, &str, &[&str]); 2] = [
    (
        "stale",
        "(cents + \"00\")",
        "(cents + \"0\")",
        "broken-after",
        &["the gold patch does not apply at hunk 1 of flakyland/ledger.py", "base commit"],
    ),
    (
        "skips",
        "return sum(parse(entry) for entry in entries)",
        "import pytest; pytest.skip(\"not here\")",
        "fail-to-pass-fails-after",
        &["skipped"],
    ),
];

/// Whole gold patches that are none.
const NO_PATCHES: [(&str, &str, &str, &[&str]); 2] = [
    ("nothing", "", "fail-to-pass-fails-after", &["the gold patch is empty"]),
    (
        "words",
        "Fixes the total.\n",
        "broken-after",
        &["the gold patch does not apply: it changes no file"],
    ),
];

/// The ids of a test file's functions.
fn ids(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.strip_prefix("def ")?.split('(').next());
    names
        .filter(|name| name.starts_with("test_"))
        .map(|name| format!("tests/test_bad.py::{name}"))
        .collect()
}

fn instance(name: &str) -> Instance {
    let text = bad(name);
    let ids = ids(&text);
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let tree = Tree::land().with_file("tests/test_bad.py", &text, &ids);
    let mut instance = Instance::new(name.replace('_', "-"), tree);
    if name == "no_tests" {
        // And no other file has one.
        instance.test = instance.test.replace("def test_", "def no_test_");
    }
    instance
}

fn check(verdict: &Value, rule: &str, words: &[&str]) -> Option<String> {
    let reasons = verdict["reasons"].as_array().unwrap();
    let reason = reasons.iter().find(|one| one["effect"] == "rejects" && one["rule"] == rule);
    let text = reason.and_then(|one| one["text"].as_str()).unwrap_or_default();
    let right = !text.contains('\n') && words.iter().all(|word| text.contains(word));
    (!right || verdict["status"] != "rejected").then(|| format!("{rule} {words:?}:\n{reasons:#?}"))
}

/// What is wrong with verdicts, for people.
fn wrong(
    verdicts: &BTreeMap<String, Value>,
    said: &str,
    cases: impl IntoIterator<Item = (String, &'static str, &'static [&'static str])>,
) -> Vec<String> {
    cases
        .into_iter()
        .filter_map(|(name, rule, words)| match verdicts.get(&name) {
            Some(verdict) => check(verdict, rule, words).map(|fault| format!("{name}: {fault}")),
            None => Some(format!("{name}: no verdict: {said}")),
        })
        .collect()
}

#[test]
fn full_what_never_ends_is_refused_with_its_reason() {
    let Some(land) = Land::new() else { return };
    land.settle(&ENDLESS.map(|(name, ..)| instance(name)), LIMITS);
    let (verdicts, said) = land.verify(&["--policy", "quick"]);
    let cases = ENDLESS.map(|(name, rule, words)| (name.replace('_', "-"), rule, words));
    let wrong = wrong(&verdicts, &said, cases);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn full_bad_input_is_refused_with_its_reason() {
    let Some(land) = Land::new() else { return };
    let mut cases: Vec<(String, &'static str, &'static [&'static str])> = Vec::new();
    let mut instances: Vec<Instance> = HARMLESS.iter().map(|name| instance(name)).collect();
    for (name, rule, words) in FILES {
        cases.push((name.replace('_', "-"), rule, words));
        instances.push(instance(name));
    }
    let changed = PATCHES.map(|(name, from, to, rule, words)| {
        assert!(gold_patch().contains(from));
        (name, gold_patch().replace(from, to), rule, words)
    });
    let whole = NO_PATCHES.map(|(name, gold, rule, words)| (name, gold.to_owned(), rule, words));
    for (name, gold, rule, words) in changed.into_iter().chain(whole) {
        cases.push((name.to_owned(), rule, words));
        let mut instance = Instance::new(name, Tree::land());
        instance.gold = gold;
        instances.push(instance);
    }
    land.settle(&instances, "");
    let (verdicts, said) = land.verify(&["--runs", "1"]);
    let mut faults = wrong(&verdicts, &said, cases);
    for name in HARMLESS.map(|name| name.replace('_', "-")) {
        if verdicts[&name]["status"] != "provisional" {
            faults.push(format!("{name}: {:#}", verdicts[&name]["reasons"]));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn full_tests_named_by_the_clock_have_unstable_ids() {
    let Some(land) = Land::new() else { return };
    land.settle(&[instance("by_the_clock")], LIMITS);
    let (verdicts, said) = land.verify(&["--policy", "quick"]);
    let verdict = verdicts.get("by-the-clock").unwrap_or_else(|| panic!("{said}"));
    let fault = check(verdict, "pass-to-pass-fails-after", &["1 PASS_TO_PASS test", "near"]);
    assert_eq!(fault, None);
    let unstable = verdict["unstable"].as_array().unwrap();
    let kinds: Vec<&Value> = unstable.iter().map(|one| &one["cause"]["kind"]).collect();
    assert!(kinds.iter().any(|kind| *kind == "unstable-id"), "{unstable:#?}");
}
