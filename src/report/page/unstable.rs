//! Unstable tests with their causes, tests set aside, groups that fail together.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::instance::Context;
use super::parts;
use crate::report::text::{Id, percent};
use crate::report::{cause, remedy, words};
use crate::results::Outcome;
use crate::verify::{Cause, OrderCause, UnstableTest};

/// Most rows.
const ROWS: usize = 100;
/// Most runs that a row points at.
const EVIDENCE: usize = 4;

/// The section.
pub(super) fn section(context: Context<'_>) -> Markup {
    let verdict = &context.instance.facts.verdict;
    html! {
        @if !verdict.unstable.is_empty() {
            h3 id={ (context.anchor) ".unstable" } { "Unstable tests" }
            div.wide tabindex="0" role="region" aria-labelledby={ (context.anchor) ".unstable" } {
                table {
                    thead { tr {
                        th scope="col" { "Test" }
                        th scope="col" { "List" }
                        th scope="col" { "Cause" }
                        th scope="col" { "What is done" }
                        th.n scope="col" { "Failed, plain" }
                        th.n scope="col" { "Rate below" }
                        th scope="col" { "Runs" }
                    } }
                    tbody { @for test in verdict.unstable.iter().take(ROWS) { (row(context, test)) } }
                }
            }
            (parts::beyond(verdict.unstable.len(), ROWS))
        }
        @if !verdict.groups.is_empty() {
            h4 { "Tests that always fail in the same runs" }
            ol.groups {
                @for group in verdict.groups.iter().take(ROWS) {
                    li { (parts::ids(group, context.scale.listed, "tests")) }
                }
            }
            (parts::beyond(verdict.groups.len(), ROWS))
        }
        @if !verdict.quarantined.is_empty() {
            h4 { "Set aside" }
            div.tests { (parts::ids(&verdict.quarantined, context.scale.listed, "tests")) }
        }
    }
}

fn row(context: Context<'_>, test: &UnstableTest) -> Markup {
    html! {
        "\n"
        tr {
            th scope="row" { (Id(&test.id)) }
            td { (words::list(test.list)) }
            td { (cause(&test.cause)) (order(context, &test.cause)) }
            td { (remedy(test.remedy)) }
            td.n title=(outcomes(&test.outcomes)) { (test.plain.failures) "/" (test.plain.runs) }
            td.n { (percent(test.plain.bound)) }
            td { (evidence(context, test)) }
        }
    }
}

/// The whole of the tests that an order cause names, where the line above cannot.
fn order(context: Context<'_>, cause: &Cause) -> Markup {
    let tests = match cause {
        Cause::Sensitive {
            order: Some(OrderCause::Polluter { tests } | OrderCause::MissingSetter { tests }),
            ..
        } if tests.len() > 3 => tests.as_slice(),
        _ => &[],
    };
    html! {
        @if !tests.is_empty() { (parts::ids(tests, context.scale.listed, "tests in all")) }
    }
}

fn outcomes(outcomes: &BTreeMap<Outcome, u64>) -> String {
    let said: Vec<String> =
        outcomes.iter().map(|(outcome, count)| format!("{outcome} {count}")).collect();
    said.join(", ")
}

/// The runs in which it did not pass, by number; those with an excerpt are links.
fn evidence(context: Context<'_>, test: &UnstableTest) -> Markup {
    let runs = &context.instance.runs;
    let numbers: Vec<usize> = test
        .evidence
        .iter()
        .filter_map(|key| runs.iter().position(|run| run.key == *key))
        .map(|at| at + 1)
        .collect();
    html! {
        @for (at, number) in numbers.iter().take(EVIDENCE).enumerate() {
            @if at > 0 { ", " }
            @if context.has_excerpt(*number) { a href=(context.run_link(*number)) { (number) } }
            @else { (number) }
        }
        @if numbers.len() > EVIDENCE { " and " (numbers.len() - EVIDENCE) " more" }
    }
}
