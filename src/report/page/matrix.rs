//! The matrix of tests by runs: a letter a run, pytest's letters, coloured.
//!
//! A cell of the table holds all runs of a column: letters in a row take one byte each, where a cell each would take twenty, and
//! a table's reader still hears test, column and numbers.

use maud::{Markup, PreEscaped, html};

use super::instance::Context;
use super::parts;
use crate::report::text::{counted, thousands};
use crate::report::{Column, InstanceReport, Row, words};
use crate::verify::ListName;

/// Most rows of an instance; tests beyond are counted.
const ROWS: usize = 80;
/// Most rows of tests that no list names and that the verdict does not mention.
const OTHER_ROWS: usize = 12;

/// The letters, their classes and what they mean. Passed has no element of its own.
const LETTERS: [(u8, &str, &str); 8] = [
    (b'.', "", "passed"),
    (b'F', "f", "failed"),
    (b'E', "e", "error in set-up or tear-down"),
    (b's', "s", "skipped"),
    (b'x', "x", "failed as expected"),
    (b'X', "x", "passed unexpectedly"),
    (b'?', "m", "missing"),
    (b'-', "n", "not asked for"),
];

/// The section.
pub(super) fn section(context: Context<'_>) -> Markup {
    let instance = context.instance;
    if instance.columns.is_empty() {
        return html! {};
    }
    let mut other = 0;
    let (shown, left): (Vec<&Row>, Vec<&Row>) = {
        let mut count = 0;
        instance.rows.iter().partition(|row| {
            let extra = row.list == ListName::Neither && !row.unstable;
            other += usize::from(extra);
            count += 1;
            count <= ROWS && (!extra || other <= OTHER_ROWS)
        })
    };
    let beyond: usize = left.iter().map(|row| row.tests.len()).sum();
    html! {
        h3 id={ (context.anchor) ".matrix" } { "Tests by runs" }
        (legend(instance))
        div.wide tabindex="0" role="region" aria-labelledby={ (context.anchor) ".matrix" } {
            table.matrix {
                thead {
                    tr {
                        th scope="col" { "Tests with the same outcomes" }
                        th scope="col" { "List" }
                        th.n scope="col" { "Not passed after" }
                        @for column in &instance.columns { th scope="col" { (heading(column)) } }
                    }
                    tr aria-hidden="true" {
                        td colspan="3" {}
                        @for column in &instance.columns { td { code.ruler { (ruler(column)) } } }
                    }
                }
                tbody {
                    @for row in shown { (row_of(context, row)) }
                }
            }
        }
        @if !left.is_empty() {
            p.note {
                (counted(left.len(), "more pattern", "more patterns")) " of outcomes, of "
                (counted(beyond, "test", "tests")) ", not shown"
            }
        }
    }
}

/// What the letters of this instance mean.
fn legend(instance: &InstanceReport) -> Markup {
    let used = |letter: u8| {
        instance
            .rows
            .iter()
            .flat_map(|row| &row.cells)
            .any(|cells| cells.as_bytes().contains(&letter))
    };
    html! {
        p.legend {
            @for (letter, class, meaning) in LETTERS.iter().filter(|(letter, ..)| used(*letter)) {
                span { code.c { i class=(class) { (char::from(*letter)) } } " " (meaning) } " "
            }
        }
    }
}

fn heading(column: &Column) -> Markup {
    let conditions = if column.plain { "plain" } else { "other conditions" };
    let last = column.first + column.runs - 1;
    html! {
        (words::phase(column.phase)) ", " (conditions)
        @if !column.series.is_empty() { ", again" }
        br;
        @if column.runs == 1 { "run " (last) } @else { "runs " (column.first) "–" (last) }
    }
}

/// Marks every fifth run, and every tenth by its number's tens.
fn ruler(column: &Column) -> String {
    (column.first..column.first + column.runs)
        .map(|number| match number % 10 {
            0 => char::from_digit(u32::try_from(number / 10 % 10).expect("a digit"), 10)
                .expect("a digit"),
            5 => '+',
            _ => '·',
        })
        .collect()
}

fn row_of(context: Context<'_>, row: &Row) -> Markup {
    let what =
        if row.failures == 0 && row.runs > 0 { "tests that always passed after" } else { "tests" };
    html! {
        "\n"
        tr class=[(row.failures > 0).then_some("bad")] {
            th scope="row" {
                @if let [one] = row.tests.as_slice() {
                    (crate::report::text::Id(one))
                } @else {
                    details {
                        summary { (thousands(row.tests.len())) " " (what) }
                        (parts::id_list(&row.tests, context.scale.listed))
                    }
                }
            }
            td {
                (words::list(row.list))
                @if row.quarantined { br; span.note { "set aside" } }
                @else if row.unstable { br; span.note { "unstable" } }
            }
            td.n { (row.failures) "/" (row.runs) }
            @for (column, cells) in context.instance.columns.iter().zip(&row.cells) {
                td { code.c { (letters(context, column, cells)) } }
            }
        }
    }
}

/// A column's letters: passed ones bare, others in coloured spans; those of runs with an excerpt link to it.
fn letters(context: Context<'_>, column: &Column, cells: &str) -> PreEscaped<String> {
    let mut out = String::with_capacity(cells.len() + 16);
    let bytes = cells.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let letter = bytes[at];
        let class = class(letter);
        let number = column.first + at;
        let linkable = matches!(letter, b'F' | b'E' | b'?');
        let linked = linkable && context.has_excerpt(number);
        let same = bytes[at..]
            .iter()
            .zip(number..)
            .take_while(|(next, number)| {
                **next == letter && !(linkable && context.has_excerpt(*number))
            })
            .count()
            .max(1);
        let text = &cells[at..at + same];
        // Letters, classes and anchors are ours and need no escape.
        if class.is_empty() {
            out.push_str(text);
        } else if linked {
            let link = context.run_link(number);
            out.push_str(&format!(
                "<a class={class} href=\"{link}\" title=\"run {number}\">{text}</a>"
            ));
        } else {
            out.push_str(&format!("<i class={class}>{text}</i>"));
        }
        at += same;
    }
    PreEscaped(out)
}

fn class(letter: u8) -> &'static str {
    LETTERS.iter().find(|(known, ..)| *known == letter).map_or("n", |(_, class, _)| class)
}
