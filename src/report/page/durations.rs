//! How long runs and tests take: a plot of wall times, and the slowest tests.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::instance::Context;
use crate::report::text::{Id, counted, seconds};
use crate::verify::Phase;

/// The plot's inner size in its own units.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 100.0;
/// Room for the axis' words.
const LEFT: f64 = 56.0;
const BELOW: f64 = 18.0;
/// Room above, so that the highest mark is whole.
const ABOVE: f64 = 6.0;

/// What is drawn alike.
struct Series {
    class: &'static str,
    name: &'static str,
    /// Numbers of runs and wall times.
    points: Vec<(usize, f64)>,
}

/// The section.
pub(super) fn section(context: Context<'_>) -> Markup {
    let runs = &context.instance.runs;
    if runs.is_empty() {
        return html! {};
    }
    // With nothing for plain, both belong.
    let kinds = [
        ("k0", "collect", Phase::Collect, None),
        ("k1", "before", Phase::Pre, None),
        ("k2", "after, plain", Phase::Post, Some(true)),
        ("k3", "after, other conditions", Phase::Post, Some(false)),
    ];
    let series: Vec<Series> = kinds
        .into_iter()
        .map(|(class, name, phase, plain)| Series {
            class,
            name,
            points: (1..)
                .zip(runs)
                .filter(|(_, run)| {
                    run.phase == phase && plain.is_none_or(|plain| plain == run.profile.is_plain())
                })
                .map(|(number, run)| (number, run.wall))
                .collect(),
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    html! {
        h3 { "Durations" }
        figure {
            (plot(&series, runs.len()))
            figcaption {
                @for one in &series { span.key { i class=(one.class) {} " " (one.name) } " " }
            }
        }
        details {
            summary { "Wall times in numbers" }
            dl.numbers {
                @for one in &series {
                    dt { (one.name) }
                    dd { (numbers(&one.points)) }
                }
            }
        }
        (slowest(context))
    }
}

fn numbers(points: &[(usize, f64)]) -> String {
    let mut out = String::new();
    for (at, (_, wall)) in points.iter().enumerate() {
        if at == 0 {
            let last = points[points.len() - 1].0;
            let _ = write!(out, "runs {}–{last}, in seconds:", points[0].0);
        }
        let _ = write!(out, " {wall:.2}");
    }
    out
}

/// One mark a run, by number and wall time, from zero.
fn plot(series: &[Series], runs: usize) -> Markup {
    let top = ceiling(
        series.iter().flat_map(|one| &one.points).map(|(_, wall)| *wall).fold(0.0, f64::max),
    );
    let step = WIDTH / count(runs.max(1));
    let x = |number: usize| LEFT + (count(number) - 0.5) * step;
    let y = |wall: f64| ABOVE + HEIGHT - wall / top * HEIGHT;
    let size = [LEFT + WIDTH, ABOVE + HEIGHT + BELOW];
    let said: Vec<String> = series
        .iter()
        .map(|one| {
            let most = one.points.iter().map(|(_, wall)| *wall).fold(0.0, f64::max);
            let least = one.points.iter().map(|(_, wall)| *wall).fold(f64::INFINITY, f64::min);
            format!("{}: {} to {}", one.name, seconds(least), seconds(most))
        })
        .collect();
    html! {
        svg.plot viewBox={ "0 0 " (size[0]) " " (size[1]) } role="img" {
            title { "Wall time of " (counted(runs, "run", "runs")) }
            desc { (said.join("; ")) }
            @for share in [0.0, 0.5, 1.0] {
                path.grid d={ "M" (LEFT) " " (y(top * share)) "H" (size[0]) } {}
                text.end x=(LEFT - 6.0) y=(y(top * share) + 4.0) { (axis(top * share)) }
            }
            text x=(format!("{:.0}", x(1) - 4.0)) y=(size[1] - 3.0) { "1" }
            @if runs > 4 { text.end x=(format!("{:.0}", x(runs) + 4.0)) y=(size[1] - 3.0) { (runs) } }
            @for one in series {
                path class=(one.class) d=(marks(&one.points, x, y)) {}
            }
        }
    }
}

/// Points as strokes of no length, which round caps make visible.
fn marks(points: &[(usize, f64)], x: impl Fn(usize) -> f64, y: impl Fn(f64) -> f64) -> String {
    let mut path = String::new();
    for (number, wall) in points {
        let _ = write!(path, "M{:.0} {:.0}h0", x(*number), y(*wall));
    }
    path
}

/// The next round number: 1, 2 or 5 times a power of ten.
fn ceiling(most: f64) -> f64 {
    if !most.is_finite() || most <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(most.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|step| step * power)
        .into_iter()
        .find(|top| *top >= most)
        .unwrap_or(most)
}

/// A round number of seconds.
fn axis(value: f64) -> String {
    if value > 0.0 && value < 0.095 {
        format!("{value:.2} s")
    } else if value < 9.5 {
        format!("{value:.1} s")
    } else {
        format!("{value:.0} s")
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of runs are far below 2^53")]
fn count(value: usize) -> f64 {
    value as f64
}

/// The slowest tests.
fn slowest(context: Context<'_>) -> Markup {
    let tests = &context.instance.slowest;
    html! {
        @if !tests.is_empty() {
            details {
                summary { "Slowest tests" }
                div.wide tabindex="0" role="region" aria-label="Slowest tests" {
                    table {
                        thead { tr {
                            th scope="col" { "Test" }
                            th.n scope="col" { "Median" }
                            th.n scope="col" { "Longest" }
                        } }
                        tbody {
                            @for test in tests.iter().take(context.scale.named) {
                                tr {
                                    th scope="row" { (Id(&test.id)) }
                                    td.n { (seconds(test.median)) }
                                    td.n { (seconds(test.max)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        let tops = [0.0, 0.03, 0.9, 1.0, 1.2, 4.9, 70.0, 2500.0, f64::INFINITY]
            .map(|most| axis(ceiling(most)));
        assert_eq!(
            tops,
            ["1.0 s", "0.05 s", "1.0 s", "1.0 s", "2.0 s", "5.0 s", "100 s", "5000 s", "1.0 s"]
        );
    }
}
