//! Verdicts by the preset `benchmark`: each unstable test is found with its cause, and no stable one is accused.

use std::fmt::Write as _;

use serde_json::Value;

use super::compare::faults;
use super::corpus::{Case, Tree, expected};
use super::land::{Instance, Land};

/// An instance of several kinds and as many stable tests as it takes for those to be few.
pub(super) fn instance(
    land: &Land,
    name: &str,
    kinds: &[&str],
    stable: &[impl AsRef<str>],
) -> (Instance, Vec<Case>) {
    let mut tree = Tree::land().with_stable(stable);
    let mut cases = Vec::new();
    for kind in kinds {
        tree = tree.with_kind(kind, land.scratch());
        cases.extend(expected().remove(*kind).unwrap());
    }
    (Instance::new(name, tree), cases)
}

/// One line about what a verdict cost and came to.
pub(super) fn line(name: &str, verdict: &Value) -> String {
    format!(
        "{name}: {} after {} runs of {:.1} s in all: {}",
        verdict["status"],
        verdict["cost"]["runs"],
        verdict["cost"]["wall"].as_f64().unwrap_or_default(),
        verdict["reasons"][0]["text"],
    )
}

/// Verifies and compares; what is wrong, for people.
pub(super) fn compared(land: &Land, parts: &[(Instance, Vec<Case>)]) -> String {
    let (verdicts, said) = land.verify(&["--policy", "benchmark"]);
    let mut wrong = String::new();
    for (instance, cases) in parts {
        let Some(verdict) = verdicts.get(&instance.name) else {
            writeln!(wrong, "{}: no verdict: {said}", instance.name).unwrap();
            continue;
        };
        crate::support::say(&line(&instance.name, verdict));
        for fault in faults(verdict, cases) {
            writeln!(wrong, "{}: {fault}", instance.name).unwrap();
        }
    }
    wrong
}

const CONDITIONS: [&str; 15] = [
    "hash-seed",
    "set-ids",
    "time-bomb",
    "dst-edge",
    "time-zone",
    "locale",
    "network-use",
    "connect-timeout",
    "ipv6-loopback",
    "root-only",
    "shm-size",
    "open-files",
    "directory-order",
    "read-only-home",
    "host-name",
];

#[test]
fn full_causes_are_found_and_nobody_else_is_accused() {
    let Some(land) = Land::new() else { return };
    let quick = [
        "test_clock.py",
        "test_hashing.py",
        "test_ledgers.py",
        "test_state.py",
        "test_text.py",
        "test_zones.py",
    ];
    let parts = [
        instance(&land, "order", &["order-polluter", "missing-setter"], &["test_temporary.py"]),
        instance(&land, "leftover", &["tmp-leftover"], &["test_threads.py"]),
        instance(&land, "conditions", &CONDITIONS, &quick),
        instance(&land, "refusing", &["non-root-only"], &["test_sockets.py"]),
    ];
    let instances: Vec<Instance> = parts.iter().map(|(instance, _)| instance.clone()).collect();
    land.settle(&instances, "");
    let wrong = compared(&land, &parts);
    assert!(wrong.is_empty(), "\n{wrong}");
}
