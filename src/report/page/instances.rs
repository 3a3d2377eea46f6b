//! The table of instances.

use maud::{Markup, html};

use super::parts;
use crate::report::text::{byte_size, percent, seconds, thousands, visible};
use crate::report::{InstanceReport, ReportInput};

/// Longest reason in the table; the instance's own section has all of it.
const REASON: usize = 160;

/// The section.
pub(super) fn section(input: &ReportInput) -> Markup {
    html! {
        section aria-labelledby="instances" {
            h2 #instances tabindex="-1" { "Instances" }
            p.filter hidden {
                label { "Show only " input #filter type="search" placeholder="id, verdict or reason" autocomplete="off"; }
                span #shown role="status" {}
            }
            p.note {
                "Before and after: runs without and with the gold patch that count. Bound: upper limit of the rate of failing gold runs. F2P, P2P: FAIL_TO_PASS and PASS_TO_PASS tests."
            }
            div.wide tabindex="0" role="region" aria-labelledby="instances" {
                table.sortable #table {
                    thead {
                        tr {
                            th scope="col" { "Instance" }
                            th scope="col" { "Verdict" }
                            th.n scope="col" { "Before" }
                            th.n scope="col" { "After" }
                            th.n scope="col" { "Failed" }
                            th.n scope="col" { "Bound" }
                            th.n scope="col" { abbr title="FAIL_TO_PASS" { "F2P" } }
                            th.n scope="col" { abbr title="PASS_TO_PASS" { "P2P" } }
                            th.n scope="col" { "Set aside" }
                            th.n scope="col" { "Unstable" }
                            th.n scope="col" { "Slowest run" }
                            th.n scope="col" { "Image" }
                            th scope="col" { "Why" }
                        }
                    }
                    tbody {
                        @for (at, instance) in input.instances.iter().enumerate() {
                            (row(at, instance))
                        }
                    }
                }
            }
        }
        "\n"
    }
}

fn row(at: usize, instance: &InstanceReport) -> Markup {
    let facts = &instance.facts;
    let verdict = &facts.verdict;
    let [fail, pass] = parts::list_sizes(instance);
    let slowest = instance.slowest_run();
    html! {
        "\n"
        tr {
            th scope="row" { a href={ "#" (parts::anchor(at, &facts.id)) } { (name(&facts.id)) } }
            td data-v=(verdict.status as u8) { (parts::status(verdict.status)) }
            td.n { (verdict.pre_runs) }
            td.n { (verdict.runs) }
            td.n { (verdict.failures) }
            td.n { (percent(verdict.bound)) }
            td.n { (fail) }
            td.n { (pass) }
            td.n { (verdict.quarantined.len()) }
            td.n { (verdict.unstable.len()) }
            td.n data-v=(format!("{:.3}", slowest.unwrap_or_default())) { @if let Some(slowest) = slowest { (seconds(slowest)) } @else { "–" } }
            td.n data-v=(instance.image_size()) { (byte_size(instance.image_size())) }
            td.why { (reason(instance)) }
        }
    }
}

/// An instance's id, clipped where it is no name any more.
pub(super) fn name(id: &str) -> String {
    clip(&visible(id), 100)
}

fn reason(instance: &InstanceReport) -> String {
    let text = instance.facts.verdict.reasons.first().map(|reason| reason.text.as_str());
    clip(&visible(text.unwrap_or_default()), REASON)
}

fn clip(text: &str, length: usize) -> String {
    let end = text.floor_char_boundary(length);
    if end == text.len() { text.to_owned() } else { format!("{}…", &text[..end]) }
}

/// The head line of an instance's section: how many tests in each list.
pub(super) fn sizes(instance: &InstanceReport) -> String {
    let [fail, pass] = parts::list_sizes(instance);
    format!("{} F2P, {} P2P", thousands(fail), thousands(pass))
}
