//! Causes, remedies, rules and policies in words.

use std::collections::BTreeMap;

use serde::Serialize;

use super::text::{counted, visible};
use crate::runtime::Gap;
use crate::verify::{
    Axis, Cause, Effect, ListName, Nearness, OrderCause, Phase, Policy, Remedy, Setting, Status,
    Warning,
};

/// How many tests a cause names; the rest is counted.
const NAMED: usize = 3;

/// The word of a value's stored form.
pub(super) fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// A verdict's word for people.
pub(super) fn status(status: Status) -> &'static str {
    match status {
        Status::Admitted => "admitted",
        Status::AdmittedWithQuarantine => "admitted with quarantine",
        Status::Provisional => "provisional",
        Status::Rejected => "rejected",
    }
}

/// A list by the field's short name for it.
pub(super) fn list(list: ListName) -> &'static str {
    match list {
        ListName::FailToPass => "F2P",
        ListName::PassToPass => "P2P",
        ListName::Neither => "neither",
    }
}

/// A phase for people.
pub(super) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Collect => "collect",
        Phase::Pre => "before",
        Phase::Post => "after",
    }
}

/// What a rule does to the verdict.
pub(super) fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Rejects => "rejects",
        Effect::Quarantines => "quarantines",
        Effect::HoldsBack => "holds back",
        Effect::Admits => "admits",
        Effect::Pins => "pins",
    }
}

/// What is done about an unstable test.
pub fn remedy(remedy: Remedy) -> &'static str {
    match remedy {
        Remedy::Pin => "condition pinned",
        Remedy::Quarantine => "test set aside",
        Remedy::Reject => "instance refused",
    }
}

/// Why a test is unstable, in one line.
pub fn cause(cause: &Cause) -> String {
    match cause {
        Cause::Flaky => "flaky: it fails now and then under the same conditions".to_owned(),
        Cause::Sensitive { settings, order } => {
            let mut text =
                format!("sensitive to {}: fails with {}", axes(settings), list_of(settings));
            match order {
                Some(OrderCause::Polluter { tests }) => {
                    text = format!("{text}; polluted by {}", names(tests));
                }
                Some(OrderCause::MissingSetter { tests }) => {
                    text = format!("{text}; needs {} before it", names(tests));
                }
                Some(OrderCause::NotFound) => {
                    text.push_str("; on which tests it depends was not found");
                }
                None => {}
            }
            text
        }
        Cause::Needs { settings } => {
            format!(
                "needs {}: fails in plain conditions, passes with {}",
                axes(settings),
                list_of(settings)
            )
        }
        Cause::NotIsolated { settings } => {
            format!(
                "fails under a combination that was not isolated further: {}",
                list_of(settings)
            )
        }
        Cause::UnstableId => "its id is another in every collection".to_owned(),
    }
}

/// The headings under which a cause is counted.
pub(super) fn cause_kinds(cause: &Cause) -> Vec<String> {
    match cause {
        Cause::Flaky => vec!["flaky".to_owned()],
        Cause::Sensitive { settings, .. } | Cause::Needs { settings } => {
            settings.iter().map(|setting| axis(setting.axis())).collect()
        }
        Cause::NotIsolated { .. } => vec!["not isolated".to_owned()],
        Cause::UnstableId => vec!["unstable id".to_owned()],
    }
}

/// The axis of a heading, for people.
fn axis(axis: Axis) -> String {
    axis.as_str().replace('-', " ")
}

fn axes(settings: &[Setting]) -> String {
    let axes: Vec<String> = settings.iter().map(|setting| axis(setting.axis())).collect();
    if axes.is_empty() { "nothing known".to_owned() } else { axes.join(", ") }
}

fn list_of(settings: &[Setting]) -> String {
    let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
    if settings.is_empty() {
        "plain conditions".to_owned()
    } else {
        visible(&settings.join(", ")).into_owned()
    }
}

/// Some tests by name. Long ids are for the tables.
fn names(tests: &[String]) -> String {
    const LONG: usize = 160;
    let mut named: Vec<String> = tests
        .iter()
        .take(NAMED)
        .map(|test| {
            let end = test.floor_char_boundary(LONG);
            format!("{}{}", visible(&test[..end]), if end < test.len() { "…" } else { "" })
        })
        .collect();
    if tests.len() > NAMED {
        named.push(format!("{} more", tests.len() - NAMED));
    }
    if named.is_empty() { "tests that were not found".to_owned() } else { named.join(", ") }
}

/// In what a near miss differs.
pub(super) fn nearness(nearness: Nearness) -> &'static str {
    match nearness {
        Nearness::Trimmed => "white space at its ends",
        Nearness::Clipped => "clipped at a space",
        Nearness::Shortened => "folders cut off its parameter",
        Nearness::Whitespace => "white space inside",
        Nearness::Case => "upper and lower case",
        Nearness::Duration => "a duration at its end",
        Nearness::Address => "an address in it",
    }
}

/// What a host could not give.
pub(super) fn gap(gap: &Gap) -> String {
    match gap {
        Gap::MemoryLimit => "no memory limit".to_owned(),
        Gap::PidsLimit => "no limit of processes".to_owned(),
        Gap::CpuLimit => "no processor share".to_owned(),
        Gap::BlackHole => "no black hole: connects fail at once".to_owned(),
        Gap::SingleId => "one user id only".to_owned(),
        Gap::Seccomp => "no seccomp filter".to_owned(),
        Gap::User => "no other user than root".to_owned(),
        Gap::Processors => "no smaller set of processors".to_owned(),
        Gap::EntryOrder => "no folder entries in a wanted order".to_owned(),
        Gap::Ipv4Only => "no loopback without IPv6".to_owned(),
        Gap::Clock => "no moved clock".to_owned(),
        Gap::Load => "no other copies of the run beside it".to_owned(),
    }
}

/// A warning, and the tests it names.
pub(super) fn warning(warning: &Warning) -> (String, &[String]) {
    let runs = |runs: u64| counted(usize::try_from(runs).unwrap_or(usize::MAX), "run", "runs");
    match warning {
        Warning::FailToPassIsEverything => (
            "every expected test is FAIL_TO_PASS: perhaps one import error ended the whole run before the fix"
                .to_owned(),
            &[],
        ),
        Warning::PassesBefore { tests } => {
            ("FAIL_TO_PASS tests that pass before the gold patch already".to_owned(), tests)
        }
        Warning::Skipped { tests } => {
            ("expected tests that were skipped in every run: coverage lost".to_owned(), tests)
        }
        Warning::InfraErrors { runs: count } => {
            (format!("{} ended by hallmark's own failure: they count for nothing", runs(*count)), &[])
        }
        Warning::CutBefore { runs: count } => (
            format!("{} before the gold patch did not complete; the tests they lack count as failing", runs(*count)),
            &[],
        ),
        Warning::Network { runs: count } => {
            (format!("{} tried to reach the network", runs(*count)), &[])
        }
        Warning::SlowUnderLoad { runs: count } => (
            format!("{} ran out of time, and did not when nothing else ran on the machine", runs(*count)),
            &[],
        ),
        Warning::UnstableBefore { tests } => {
            ("tests whose outcome changes between runs before the gold patch".to_owned(), tests)
        }
        Warning::NotCollected { reason } => (
            format!("the tests could not be collected in a run of their own ({}): ids and orders are not examined", visible(reason)),
            &[],
        ),
        Warning::CollectionOrder { tests } => {
            (format!("two collections found the same tests in different orders: {tests} stand elsewhere"), &[])
        }
        Warning::NotVaried { axes } => {
            let axes: Vec<String> = axes.iter().map(|one| axis(*one)).collect();
            (format!("the host or the test runner could not vary {}: nothing is known of it", axes.join(", ")), &[])
        }
        Warning::SearchCut { probes } => (
            format!("the search for causes ended after {}, as `max-probes` says: some causes are not known", runs(*probes)),
            &[],
        ),
        Warning::Reruns { tests } => (
            "tests that the runner ran again before it reported them: failures may be hidden".to_owned(),
            tests,
        ),
    }
}

/// A policy in sentences.
pub fn policy(policy: &Policy) -> Vec<String> {
    let mut said = vec![format!(
        "{} after the gold patch and {} before it, bounds at {:.0} % confidence.",
        counted(policy.runs as usize, "clean plain run", "clean plain runs"),
        policy.pre_runs,
        policy.confidence * 100.0,
    )];
    if policy.provisional {
        said.push("No verdict is better than provisional.".to_owned());
    }
    said.push(if policy.axes.is_empty() {
        "No other conditions are tried.".to_owned()
    } else {
        let axes: Vec<String> = policy.axes.iter().map(|one| axis(*one)).collect();
        format!(
            "Combined runs vary {}; at most {} to find causes.",
            axes.join(", "),
            counted(policy.max_probes as usize, "run", "runs")
        )
    });
    said.push(format!(
        "A flaky PASS_TO_PASS test: {}. A flaky FAIL_TO_PASS test, or one sensitive to what is not pinned: {}.",
        remedy(policy.flaky),
        remedy(policy.flaky_fail_to_pass),
    ));
    let mut by_remedy: BTreeMap<Remedy, Vec<String>> = BTreeMap::new();
    for (one, remedy) in &policy.sensitive {
        by_remedy.entry(*remedy).or_default().push(axis(*one));
    }
    let sensitive: Vec<String> = by_remedy
        .iter()
        .map(|(how, axes)| format!("{}: {}", axes.join(", "), remedy(*how)))
        .collect();
    if !sensitive.is_empty() {
        said.push(format!("A sensitive test, by what it depends on: {}.", sensitive.join("; ")));
    }
    said.push(format!(
        "At most {:.0} % of PASS_TO_PASS may be set aside.",
        policy.max_quarantined * 100.0
    ));
    if let Some(budget) = policy.time_budget {
        said.push(format!("No new run of an instance after {}.", super::text::seconds(budget)));
    }
    if policy.require_memory_limit {
        said.push("Without a memory limit a verdict is provisional.".to_owned());
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::{Rule, TestOrder};

    #[test]
    fn causes_in_one_line() {
        let order = |order| Cause::Sensitive {
            settings: vec![Setting::Order { order: TestOrder::Shuffled { seed: 3 } }],
            order: Some(order),
        };
        let tests = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let cases = [
            (
                Cause::Sensitive {
                    settings: vec![
                        Setting::HashSeed { seed: 7 },
                        Setting::Zone { zone: "a\nb".to_owned() },
                    ],
                    order: None,
                },
                "sensitive to hash seed, zone: fails with hash seed 7, zone a\\nb",
            ),
            (
                order(OrderCause::Polluter { tests: tests(&["t::a\u{202e}"]) }),
                "sensitive to order: fails with shuffled by 3; polluted by t::a\\u{202e}",
            ),
            (
                order(OrderCause::MissingSetter { tests: tests(&["a", "b", "c", "d", "e"]) }),
                "sensitive to order: fails with shuffled by 3; needs a, b, c, 2 more before it",
            ),
            (
                order(OrderCause::NotFound),
                "sensitive to order: fails with shuffled by 3; on which tests it depends was not found",
            ),
            (
                Cause::NotIsolated { settings: vec![Setting::Load { copies: 2 }] },
                "fails under a combination that was not isolated further: 2 copies at once",
            ),
        ];
        for (given, expected) in cases {
            assert_eq!(cause(&given), expected);
        }
        assert!(
            cause(&order(OrderCause::Polluter { tests: tests(&["x".repeat(1 << 20).as_str()]) }))
                .len()
                < 400
        );
    }

    #[test]
    fn words_come_from_the_stored_form() {
        assert_eq!(word(&Rule::FailToPassIsFlaky), "fail-to-pass-is-flaky");
    }

    #[test]
    fn a_policy_in_sentences() {
        let said = policy(&Policy::quick()).join(" ");
        for part in [
            "3 clean plain runs after",
            "95 % confidence",
            "provisional",
            "hash seed",
            "at most 60 runs",
            "10 % of PASS_TO_PASS",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
