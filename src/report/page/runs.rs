//! Runs by phase and conditions. Runs that went the same way are one line.

use maud::{Markup, html};

use super::instance::Context;
use super::parts;
use crate::report::text::{Id, byte_size, counted, seconds, visible};
use crate::report::{RunLine, words};
use crate::verify::{Axis, Phase, RunOutcome, Setting, TestOrder};

/// Of a run of chosen tests, so many are named.
const CHOSEN: usize = 100;
/// Lines of one instance; runs beyond are counted.
const LINES: usize = 120;

/// Runs in a row that went the same way.
struct Group<'a> {
    first: usize,
    runs: Vec<&'a RunLine>,
}

/// The section.
pub(super) fn section(context: Context<'_>) -> Markup {
    let instance = context.instance;
    if instance.runs.is_empty() {
        return html! {};
    }
    let groups = groups(context);
    let left: usize = groups.iter().skip(LINES).map(|group| group.runs.len()).sum();
    html! {
        h3 id={ (context.anchor) ".runs" } { "Runs" }
        div.wide tabindex="0" role="region" aria-labelledby={ (context.anchor) ".runs" } {
            table {
                thead {
                    tr {
                        th scope="col" { "Runs" }
                        th scope="col" { "Gold patch" }
                        th scope="col" { "Conditions" }
                        th scope="col" { "How it went" }
                        th.n scope="col" { "Wall" }
                        th.n scope="col" { "CPU" }
                        th.n scope="col" { "Peak memory" }
                    }
                }
                tbody { @for group in groups.iter().take(LINES) { (line(context, group)) } }
            }
        }
        @if left > 0 { p.note { (counted(left, "more run", "more runs")) " not shown" } }
        (conditions(context))
        (network(context))
    }
}

/// Whether two runs can share a line.
fn alike(a: &RunLine, b: &RunLine) -> bool {
    let same = |a: &RunLine, b: &RunLine| {
        (a.phase, &a.series, &a.profile, a.alone, a.outcome)
            == (b.phase, &b.series, &b.profile, b.alone, b.outcome)
    };
    same(a, b)
        && (a.failed, a.counted, a.tests) == (b.failed, b.counted, b.tests)
        && (&a.explanation, &a.reasons, &a.gaps, a.network)
            == (&b.explanation, &b.reasons, &b.gaps, b.network)
}

fn groups(context: Context<'_>) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (number, run) in (1..).zip(&context.instance.runs) {
        // A line with an excerpt links to it.
        let linked = |number| context.has_excerpt(number);
        match groups.last_mut() {
            Some(last) if alike(last.runs[0], run) && !linked(number) && !linked(number - 1) => {
                last.runs.push(run);
            }
            _ => groups.push(Group { first: number, runs: vec![run] }),
        }
    }
    groups
}

fn line(context: Context<'_>, group: &Group<'_>) -> Markup {
    let run = group.runs[0];
    let last = group.first + group.runs.len() - 1;
    html! {
        "\n"
        tr class=[run.is_telling().then_some("bad")] {
            th scope="row" {
                @if context.has_excerpt(group.first) {
                    a href=(context.run_link(group.first)) { (group.first) }
                } @else {
                    (group.first) @if last > group.first { "–" (last) }
                }
            }
            td { (words::phase(run.phase)) }
            td.conditions { (conditions_of(context, run)) }
            td.story { (story(context, run)) }
            td.n { (range(&group.runs, |run| Some(run.wall), |wall| seconds(*wall))) }
            td.n { (range(&group.runs, |run| run.cpu, |cpu| seconds(*cpu))) }
            td.n { (range(&group.runs, |run| run.peak_memory, |memory| byte_size(*memory))) }
        }
    }
}

/// The conditions in words, and which tests were chosen, where only some were.
fn conditions_of(context: Context<'_>, run: &RunLine) -> Markup {
    let mut also = Vec::new();
    if run.alone {
        also.push("alone on the machine".to_owned());
    }
    if !run.series.is_empty() {
        also.push(format!("verified again: {}", visible(&run.series)));
    }
    also.extend(run.gaps.iter().map(words::gap));
    let chosen = match run.profile.get(Axis::Order) {
        Some(Setting::Order { order: TestOrder::Only { tests } }) => tests.as_slice(),
        _ => &[],
    };
    html! {
        (visible(&run.profile.to_string()))
        @if !chosen.is_empty() && context.scale.details {
            details { summary { "which" } (parts::id_list(chosen, CHOSEN)) }
        }
        @if !also.is_empty() { br; span.note { (also.join("; ")) } }
    }
}

fn story(context: Context<'_>, run: &RunLine) -> Markup {
    let completed = run.outcome == RunOutcome::Completed.as_str();
    let tests = counted(run.tests, "test", "tests");
    html! {
        @if completed { (tests) } @else { b { (run.outcome) } ", " (tests) }
        @match run.phase {
            Phase::Collect => " collected",
            Phase::Pre => { ", " (counted(run.failed, "expected one fails", "expected ones fail")) }
            Phase::Post => {
                @if run.failed > 0 { ", " b { (counted(run.failed, "expected one fails", "expected ones fail")) } }
                @else if completed { ", all expected ones pass" }
                @if run.failed > run.counted { " (" (run.failed - run.counted) " set aside)" }
            }
        }
        @if let Some(explanation) = &run.explanation { br; (visible(explanation)) }
        @if !run.reasons.is_empty() {
            ul.why {
                @for (id, reason) in run.reasons.iter().take(context.scale.named) { li { (Id(id)) ": " (visible(reason)) } }
            }
        }
        @if let Some((packets, lookups)) = run.network.filter(|network| *network != (0, 0)) {
            br; span.note { "network: " (packets) " packets, " (lookups) " look-ups" }
        }
    }
}

/// The smallest and the largest of what is known.
fn range<T: PartialOrd>(
    runs: &[&RunLine],
    value: impl Fn(&RunLine) -> Option<T>,
    text: impl Fn(&T) -> String,
) -> String {
    let mut ends: Option<(T, T)> = None;
    for run in runs {
        let (Some(low), Some(high)) = (value(run), value(run)) else { continue };
        ends = Some(match ends {
            None => (low, high),
            Some((least, most)) => {
                (if low < least { low } else { least }, if high > most { high } else { most })
            }
        });
    }
    ends.map_or_else(|| "–".to_owned(), |(low, high)| between(&text(&low), &text(&high)))
}

/// Two texts with units; a common unit is written once.
fn between(low: &str, high: &str) -> String {
    if low == high {
        return low.to_owned();
    }
    match (low.rsplit_once(' '), high.rsplit_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number}–{high}"),
        _ => format!("{low} – {high}"),
    }
}

/// What ran under other conditions, as the verdict counts it; told where the host lacked something.
fn conditions(context: Context<'_>) -> Markup {
    let lacking: Vec<_> = context
        .instance
        .facts
        .verdict
        .conditions
        .iter()
        .filter(|condition| !condition.unavailable.is_empty())
        .collect();
    html! {
        @if !lacking.is_empty() {
            h4 { "Conditions that the host could not give whole" }
            ul {
                @for condition in lacking {
                    li {
                        (visible(&condition.profile.to_string())) ": "
                        (condition.unavailable.iter().map(words::gap).collect::<Vec<_>>().join("; "))
                    }
                }
            }
        }
    }
}

/// Tests that tried to reach the network.
fn network(context: Context<'_>) -> Markup {
    let tests = &context.instance.facts.verdict.network;
    html! {
        @if !tests.is_empty() {
            h4 id={ (context.anchor) ".net" } { "Tests that tried to reach the network" }
            div.wide tabindex="0" role="region" aria-labelledby={ (context.anchor) ".net" } {
                table {
                    thead { tr {
                        th scope="col" { "Test" }
                        th.n scope="col" { "Packets" }
                        th.n scope="col" { "Name look-ups" }
                    } }
                    tbody {
                        @for test in tests.iter().take(context.scale.listed.min(100)) {
                            tr {
                                th scope="row" { (Id(&test.id)) }
                                td.n { (test.packets) }
                                td.n { (test.lookups) }
                            }
                        }
                    }
                }
            }
            (parts::beyond(tests.len(), context.scale.listed.min(100)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_unit_is_written_once() {
        assert_eq!(between("1.20 s", "1.20 s"), "1.20 s");
        assert_eq!(between("1.20 s", "1.31 s"), "1.20–1.31 s");
        assert_eq!(between("9.9 s", "12 min"), "9.9 s – 12 min");
    }
}
