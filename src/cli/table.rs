//! The table of verdicts: a line an instance, and under it a line an unstable test. On a terminal lines are as long as it is wide
//! and coloured; elsewhere they are whole.

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::printer::{Printer, Screen};
use crate::pipeline::InstanceVerdict;
use crate::report::{cause, remedy, visible};
use crate::verify::{Status, UnstableTest};

/// Most unstable tests of an instance; the report has all of them.
const UNSTABLE: usize = 20;
/// Of a test's line, its id takes at most so many columns ...
const ID: usize = 120;
/// ... and on a terminal at most this share.
const ID_SHARE: usize = 2;

/// Prints one line an instance, aligned, with the rule that weighed most, and one line an unstable test.
pub(crate) fn verdicts(printer: Printer, verdicts: &[InstanceVerdict]) {
    let screen = printer.screen;
    for row in verdicts {
        printer.record("verdict", row);
    }
    let lines: Vec<[String; 6]> = verdicts.iter().map(cells).collect();
    let head = ["instance", "verdict", "pre+post", "f2p/p2p", "bound", "why"].map(str::to_owned);
    let mut widths = [0; 6];
    for line in lines.iter().chain([&head]) {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.width().max(*width);
        }
    }
    // A terminal's instances may not leave nothing for the rest.
    if let Some(columns) = screen.width {
        widths[0] = widths[0].min(columns / 3).max("instance".len());
    }
    printer.line(&paint(screen, &row(screen, &head, widths), Style::new().bold(), None));
    for (verdict, line) in verdicts.iter().zip(&lines) {
        let text = row(screen, line, widths);
        printer.line(&paint(
            screen,
            &text,
            color(verdict.verdict.status),
            Some((&line[1], widths[0])),
        ));
        for test in verdict.verdict.unstable.iter().take(UNSTABLE) {
            printer.line(&unstable(screen, test));
        }
        let more = verdict.verdict.unstable.len().saturating_sub(UNSTABLE);
        if more > 0 {
            printer.line(&format!("    and {more} more unstable tests"));
        }
    }
    // One policy judges a table.
    if let Some(first) = verdicts.first() {
        let confidence = first.verdict.policy.confidence * 100.0;
        let note = format!(
            "bound: upper limit of the rate of failing gold runs, {confidence} % confidence, one-sided"
        );
        printer.line(&clip(&note, screen.width));
    }
}

fn cells(row: &InstanceVerdict) -> [String; 6] {
    let verdict = &row.verdict;
    [
        visible(&row.instance).into_owned(),
        verdict.status.as_str().to_owned(),
        format!("{}+{}", verdict.pre_runs, verdict.runs),
        format!("{}/{}", row.lists.fail_to_pass.len(), row.lists.pass_to_pass.len()),
        format!("{:.1}%", verdict.bound * 100.0),
        visible(verdict.reasons.first().map_or("", |reason| reason.text.as_str())).into_owned(),
    ]
}

/// Columns side by side: words to the left, numbers to the right, the last one as long as there is room.
fn row(screen: Screen, cells: &[String; 6], widths: [usize; 6]) -> String {
    let mut line = String::new();
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
        if at > 0 {
            line.push_str("  ");
        }
        if at == cells.len() - 1 {
            line.push_str(cell);
            break;
        }
        let cell = clip(cell, Some(width));
        let room = " ".repeat(width - cell.width());
        let right = matches!(at, 2..=4);
        line.extend(if right { [room.as_str(), &cell] } else { [&cell, room.as_str()] });
    }
    clip(line.trim_end(), screen.width)
}

/// One unstable test: how often it failed in plain conditions, why it is unstable, what is done.
fn unstable(screen: Screen, test: &UnstableTest) -> String {
    let most = screen.width.map_or(ID, |columns| (columns / ID_SHARE).min(ID));
    let line = format!(
        "    {}  {}/{} failed  {}; {}",
        clip(&visible(&test.id), Some(most)),
        test.plain.failures,
        test.plain.runs,
        cause(&test.cause),
        remedy(test.remedy)
    );
    paint(screen, &clip(&line, screen.width), Style::new().dimmed(), None)
}

/// The text cut to so many columns, with a mark where something was cut off.
fn clip(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut clipped = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide + 1 > columns {
            break;
        }
        used += wide;
        clipped.push(c);
    }
    clipped.push('…');
    clipped
}

fn color(status: Status) -> Style {
    let color = match status {
        Status::Admitted => AnsiColor::Green,
        Status::AdmittedWithQuarantine => AnsiColor::Cyan,
        Status::Provisional => AnsiColor::Yellow,
        Status::Rejected => AnsiColor::Red,
    };
    color.on_default()
}

/// The line in a style, or only a word of it: the first at or after a column.
fn paint(screen: Screen, line: &str, style: Style, word: Option<(&str, usize)>) -> String {
    if !screen.color {
        return line.to_owned();
    }
    let (from, to) = match word {
        None => (0, line.len()),
        Some((word, column)) => {
            let start = line.floor_char_boundary(column);
            match line[start..].find(word) {
                Some(at) => (start + at, start + at + word.len()),
                None => return line.to_owned(),
            }
        }
    };
    format!("{}{style}{}{style:#}{}", &line[..from], &line[from..to], &line[to..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_columns_not_bytes() {
        assert_eq!(clip("abc", Some(3)), "abc");
        assert_eq!(clip("abcd", Some(3)), "ab…");
        assert_eq!(clip("日本語", Some(5)), "日本…");
        assert_eq!(clip("日本語", Some(4)), "日…");
        assert_eq!(clip("abcd", None), "abcd");
        assert_eq!(clip("abcd", Some(0)), "…");
    }

    #[test]
    fn only_the_verdict_is_coloured_and_only_on_request() {
        let screen = Screen { color: true, width: None };
        let green = color(Status::Admitted);
        assert_eq!(
            paint(screen, "admitted  admitted  why", green, Some(("admitted", 8))),
            "admitted  \u{1b}[32madmitted\u{1b}[0m  why"
        );
        assert_eq!(paint(Screen::default(), "admitted", green, Some(("admitted", 0))), "admitted");
        // Cut off: nothing to colour.
        assert_eq!(paint(screen, "i…", green, Some(("admitted", 8))), "i…");
    }

    #[test]
    fn columns_are_aligned_and_no_wider_than_the_screen() {
        let cells =
            ["日本", "admitted", "3+29", "1/20", "9.8%", "a long reason"].map(str::to_owned);
        let widths = [8, 11, 8, 9, 6, 13];
        assert_eq!(
            row(Screen::default(), &cells, widths),
            "日本      admitted         3+29       1/20    9.8%  a long reason"
        );
        let narrow = Screen { color: false, width: Some(30) };
        assert_eq!(row(narrow, &cells, widths).width(), 30);
    }
}
