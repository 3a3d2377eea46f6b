//! The split at a glance: where the report comes from, verdicts counted, the policy, what it cost, what the host lacked.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::parts;
use crate::report::text::{counted, seconds, thousands, visible};
use crate::report::{ReportInput, policy, words};
use crate::verify::Status;

/// All verdicts, best first.
const STATUSES: [Status; 4] =
    [Status::Admitted, Status::AdmittedWithQuarantine, Status::Provisional, Status::Rejected];
/// Width of the bar of verdicts in its own units.
const BAR: usize = 1000;

/// One line under the title.
pub(super) fn origin(input: &ReportInput) -> Markup {
    html! {
        p.origin {
            (input.platform.oci()) " · hallmark " (visible(&input.hallmark))
            @if let Some(digests) = &input.digests {
                " · subject " code title=(digests.subject) { (digests.subject.short()) }
                " · evidence " code title=(digests.evidence) { (digests.evidence.short()) }
            }
        }
    }
}

/// The section.
pub(super) fn section(input: &ReportInput) -> Markup {
    let mut counts: BTreeMap<Status, usize> = BTreeMap::new();
    for instance in &input.instances {
        *counts.entry(instance.facts.verdict.status).or_default() += 1;
    }
    let count = |status: Status| counts.get(&status).copied().unwrap_or(0);
    let runs: u64 = input.instances.iter().map(|one| one.facts.verdict.cost.runs).sum();
    let wall: f64 = input.instances.iter().map(|one| one.facts.verdict.cost.wall).sum();
    let unstable: usize = input.instances.iter().map(|one| one.facts.verdict.unstable.len()).sum();
    html! {
        section aria-labelledby="verdicts" {
            h2 #verdicts { "Verdicts" }
            ul.tiles {
                @for status in STATUSES {
                    li class=(parts::class(status)) {
                        b { (thousands(count(status))) }
                        span { (words::status(status)) }
                    }
                }
            }
            (bar(&counts, input.instances.len()))
            dl.facts {
                div { dt { "Instances" } dd { (thousands(input.instances.len())) } }
                div { dt { "Runs" } dd { (thousands(usize::try_from(runs).unwrap_or(usize::MAX))) } }
                div { dt { "Wall time of all runs" } dd { (seconds(wall)) } }
                div { dt { "Runs at once" } dd { (input.slots) } }
                div { dt { "Unstable tests" } dd { (thousands(unstable)) } }
            }
            @let said = policy(&input.policy);
            details.prose {
                summary {
                    "Policy " b { (visible(&input.policy.name)) } ": "
                    (said.first().map(String::as_str).unwrap_or_default())
                }
                ul { @for sentence in said.iter().skip(1) { li { (sentence) } } }
            }
            @if !input.gaps.is_empty() {
                p.notice {
                    "The host could not give everything to every run: "
                    (input.gaps.iter().map(words::gap).collect::<Vec<_>>().join("; ")) "."
                }
            }
        }
        "\n"
    }
}

/// A bar of the verdicts' shares. The tiles above say the same in numbers.
fn bar(counts: &BTreeMap<Status, usize>, all: usize) -> Markup {
    if all == 0 {
        return html! {};
    }
    let said: Vec<String> = STATUSES
        .iter()
        .filter_map(|status| Some(format!("{} {}", counts.get(status)?, words::status(*status))))
        .collect();
    let mut before = 0;
    let parts: Vec<(Status, usize, usize)> = STATUSES
        .iter()
        .filter_map(|status| {
            let count = *counts.get(status)?;
            let (from, to) = (before * BAR / all, (before + count) * BAR / all);
            before += count;
            Some((*status, from, to - from))
        })
        .collect();
    html! {
        svg.bar viewBox={ "0 0 " (BAR) " 14" } preserveAspectRatio="none" role="img" {
            title { "Verdicts of " (counted(all, "instance", "instances")) }
            desc { (said.join(", ")) }
            @for (status, from, width) in parts {
                rect class=(parts::class(status)) x=(from) y="0" width=(width) height="14" {}
            }
        }
    }
}
