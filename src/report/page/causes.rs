//! What tests of the split depend on, counted.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use crate::report::{ReportInput, words};

/// The section; nothing where all tests are stable.
pub(super) fn section(input: &ReportInput) -> Markup {
    let mut tests: BTreeMap<String, (usize, usize, BTreeSet<&str>)> = BTreeMap::new();
    for instance in &input.instances {
        let verdict = &instance.facts.verdict;
        let aside: BTreeSet<&str> = verdict.quarantined.iter().map(String::as_str).collect();
        for test in &verdict.unstable {
            for kind in words::cause_kinds(&test.cause) {
                let entry = tests.entry(kind).or_default();
                entry.0 += 1;
                entry.1 += usize::from(aside.contains(test.id.as_str()));
                entry.2.insert(&instance.facts.id);
            }
        }
    }
    if tests.is_empty() {
        return html! {};
    }
    let most = tests.values().map(|(count, ..)| *count).max().unwrap_or(1).max(1);
    html! {
        section aria-labelledby="causes" {
            h2 #causes { "Causes of instability" }
            p.note { "A test that is sensitive to several conditions at once counts under each." }
            div.wide tabindex="0" role="region" aria-labelledby="causes" {
                table.sortable {
                    thead {
                        tr {
                            th scope="col" { "Cause" }
                            th.n scope="col" { "Tests" }
                            th.n scope="col" { "Set aside" }
                            th.n scope="col" { "Instances" }
                            th scope="col" { "Share" }
                        }
                    }
                    tbody {
                        @for (kind, (count, aside, instances)) in &tests {
                            tr {
                                th scope="row" { (kind) }
                                td.n { (count) }
                                td.n { (aside) }
                                td.n { (instances.len()) }
                                td data-v=(count) {
                                    svg.share viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
                                        rect x="0" y="0" width=(count * 100 / most) height="8" {}
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        "\n"
    }
}
