//! A verdict beside what is known of its tests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::corpus::{Case, Expected};

/// What is wrong with a verdict, for people; nothing if it says what it must.
pub(crate) fn faults(verdict: &Value, cases: &[Case]) -> Vec<String> {
    let unstable = unstable(verdict);
    let network: BTreeSet<&str> =
        list(&verdict["network"]).iter().filter_map(|one| one["id"].as_str()).collect();
    let mut faults = Vec::new();
    for case in cases {
        let found = unstable.get(case.id.as_str()).copied();
        let problem = match case.cause {
            Expected::Stable | Expected::Network if found.is_some() => {
                Some("is accused".to_owned())
            }
            Expected::Network if !network.contains(case.id.as_str()) => {
                Some("is not listed as trying the network".to_owned())
            }
            Expected::Stable | Expected::Network => None,
            Expected::UnstableId => {
                let right = found.is_some_and(|one| one["cause"]["kind"] == "unstable-id");
                (!right).then(|| "has no unstable id".to_owned())
            }
            Expected::Sensitive => sensitive(case, found),
            Expected::Fails => fails(case, verdict, found),
        };
        faults.extend(problem.map(|problem| format!("{}: {problem}: {}", case.id, shown(found))));
    }
    let known: BTreeSet<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    for (id, found) in unstable {
        if !known.contains(id) {
            faults.push(format!("{id}: is accused: {}", shown(Some(found))));
        }
    }
    faults
}

/// The tests that a verdict calls unstable and that are expected at all.
pub(crate) fn unstable(verdict: &Value) -> BTreeMap<&str, &Value> {
    list(&verdict["unstable"])
        .iter()
        .filter(|one| one["list"] != "neither")
        .map(|one| (one["id"].as_str().unwrap(), one))
        .collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn shown(found: Option<&Value>) -> String {
    found.map_or_else(|| "it is not in the verdict".to_owned(), |one| one["cause"].to_string())
}

fn axes(found: &Value) -> Vec<&str> {
    list(&found["cause"]["settings"]).iter().filter_map(|one| one["axis"].as_str()).collect()
}

fn sensitive(case: &Case, found: Option<&Value>) -> Option<String> {
    let Some(found) = found else { return Some("is not found".to_owned()) };
    if found["cause"]["kind"] != "sensitive" || axes(found) != case.axes {
        return Some(format!("is not sensitive to {:?}", case.axes));
    }
    let order = &found["cause"]["order"];
    for (kind, tests) in [("polluter", &case.polluter), ("missing-setter", &case.setter)] {
        if !tests.is_empty()
            && (order["kind"] != kind || order["tests"] != serde_json::json!(tests))
        {
            return Some(format!("has not the {kind} {tests:?}"));
        }
    }
    None
}

/// A test that plain conditions fail: the verdict refuses the instance, names the test, and says what it lacks.
fn fails(case: &Case, verdict: &Value, found: Option<&Value>) -> Option<String> {
    let refused = list(&verdict["reasons"]).iter().any(|reason| {
        reason["effect"] == "rejects"
            && list(&reason["tests"]).iter().any(|test| test.as_str() == Some(&case.id))
    });
    if !refused {
        return Some("is not refused".to_owned());
    }
    let right = found.is_some_and(|found| axes(found) == case.axes);
    (!right).then(|| format!("is not said to need {:?}", case.axes))
}
