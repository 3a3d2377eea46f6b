//! The dataset's lists beside those that the runs give, and near misses of ids that no run knows.

use maud::{Markup, html};

use super::instance::Context;
use super::parts;
use crate::report::text::{Id, counted};
use crate::report::words;
use crate::verify::Difference;

/// Most missing ids with their near misses.
const ROWS: usize = 100;

/// The section; nothing where both agree.
pub(super) fn section(context: Context<'_>) -> Markup {
    let verdict = &context.instance.facts.verdict;
    let comparison = &verdict.comparison;
    let differ =
        [("FAIL_TO_PASS", &comparison.fail_to_pass), ("PASS_TO_PASS", &comparison.pass_to_pass)];
    let agrees = differ.iter().all(|(_, one)| one.missing.is_empty() && one.unexpected.is_empty());
    html! {
        @if !agrees || !verdict.missing.is_empty() {
            h3 { "Comparison with the dataset" }
            @for (list, difference) in differ { (differences(context, list, difference)) }
            @if !verdict.missing.is_empty() { (missing(context)) }
        }
    }
}

fn differences(context: Context<'_>, list: &str, difference: &Difference) -> Markup {
    let sides = [
        (&difference.missing, "named by the dataset and not found by the runs"),
        (&difference.unexpected, "found by the runs and not named by the dataset"),
    ];
    html! {
        @for (tests, what) in sides {
            @if !tests.is_empty() {
                p { (list) ": " (counted(tests.len(), "test", "tests")) " " (what) }
                div.tests { (parts::ids(tests, context.scale.listed, "tests")) }
            }
        }
    }
}

fn missing(context: Context<'_>) -> Markup {
    let missing = &context.instance.facts.verdict.missing;
    html! {
        h4 id={ (context.anchor) ".missing" } { "Expected ids that no run knows" }
        div.wide tabindex="0" role="region" aria-labelledby={ (context.anchor) ".missing" } {
            table {
                thead { tr {
                    th scope="col" { "Expected" }
                    th scope="col" { "Taken for" }
                    th scope="col" { "Near misses" }
                } }
                tbody {
                    @for test in missing.iter().take(ROWS) {
                        tr {
                            th scope="row" { (Id(&test.id)) }
                            td { @if let Some(taken) = &test.taken_for { (Id(taken)) } @else { "nothing: it counts as failing" } }
                            td {
                                @if test.near.is_empty() { "none" }
                                ul.plain { @for near in &test.near { li { (Id(&near.id)) " " span.note { (words::nearness(near.how)) } } } }
                            }
                        }
                    }
                }
            }
        }
        (parts::beyond(missing.len(), ROWS))
    }
}
