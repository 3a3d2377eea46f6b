//! One instance: a folded section of its own, which a link to it opens.

use maud::{Markup, html};

use super::parts::{self, Scale};
use super::{comparison, durations, image, instances, logs, matrix, runs, unstable};
use crate::report::text::{byte_size, counted, percent, seconds, visible};
use crate::report::{InstanceReport, ReportInput, words};
use crate::verify::{Effect, Reason};

/// What the sections of an instance share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) instance: &'a InstanceReport,
    /// Under which name it is linked.
    pub(super) anchor: &'a str,
    pub(super) scale: Scale,
}

impl Context<'_> {
    /// Whether the run with this number has an excerpt to link to.
    pub(super) fn has_excerpt(&self, number: usize) -> bool {
        self.instance.excerpts.iter().any(|excerpt| excerpt.run == number)
    }

    /// A link to the excerpt of a run.
    pub(super) fn run_link(&self, number: usize) -> String {
        format!("#{}", parts::run_anchor(self.anchor, number))
    }
}

/// All of them.
pub(super) fn sections(input: &ReportInput) -> Markup {
    let scale = Scale::of(input.instances.len());
    html! {
        @for (at, instance) in input.instances.iter().enumerate() {
            (section(at, instance, scale, input.instances.len() == 1))
            "\n"
        }
    }
}

fn section(at: usize, instance: &InstanceReport, scale: Scale, open: bool) -> Markup {
    let facts = &instance.facts;
    let anchor = parts::anchor(at, &facts.id);
    let context = Context { instance, anchor: &anchor, scale };
    html! {
        details.instance open[open] {
            summary {
                h2 { (instances::name(&facts.id)) }
                " " (parts::status(facts.verdict.status))
                " " span.note { (instances::sizes(instance)) }
            }
            // The link's target stands inside, so that the browser unfolds the section.
            div.body id=(anchor) {
                (head(instance))
                (reasons(context))
                (unstable::section(context))
                (matrix::section(context))
                (runs::section(context))
                (durations::section(context))
                (comparison::section(context))
                (logs::section(context))
                (image::section(context))
                p.up { a href="#instances" { "Back to the instances" } }
            }
        }
    }
}

fn head(instance: &InstanceReport) -> Markup {
    let facts = &instance.facts;
    let verdict = &facts.verdict;
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    html! {
        dl.facts {
            div { dt { "Environment" } dd { (visible(&facts.environment)) } }
            div { dt { "Failed" } dd { (verdict.failures) " of " (counted(count(verdict.runs), "run", "runs")) } }
            div { dt { "Rate of failing runs below" } dd { (percent(verdict.bound)) } }
            div { dt { "Runs before" } dd { (verdict.pre_runs) } }
            div { dt { "All runs" } dd { (verdict.cost.runs) ", " (seconds(verdict.cost.wall)) } }
            @if let Some(timeout) = verdict.proposed_timeout {
                div { dt { "Proposed wall limit" } dd { (seconds(timeout)) } }
            }
            div { dt { "Image" } dd { (byte_size(instance.image_size())) } }
        }
    }
}

/// Every rule that decided, and what else to know.
fn reasons(context: Context<'_>) -> Markup {
    let verdict = &context.instance.facts.verdict;
    html! {
        h3 { "Reasons" }
        ul.reasons {
            @for reason in &verdict.reasons {
                li {
                    span class={ "ef " (effect_class(reason)) } { (words::effect(reason.effect)) }
                    " " (visible(&reason.text)) " " span.note { (words::word(&reason.rule)) }
                    (tests(&reason.tests, context.scale))
                }
            }
            @for warning in &verdict.warnings {
                @let (text, named) = words::warning(warning);
                li {
                    span.ef.wa { "note" } " " (text)
                    (tests(named, context.scale))
                }
            }
        }
        @if !context.instance.facts.absent.is_empty() {
            p.notice {
                (counted(context.instance.facts.absent.len(), "run is", "runs are"))
                " not shown below: "
                (visible(&context.instance.facts.absent[0].1))
                @if context.instance.facts.absent.len() > 1 { " (the first of them)" }
                "."
            }
        }
    }
}

fn tests(tests: &[String], scale: Scale) -> Markup {
    html! {
        @if !tests.is_empty() {
            div.tests { (parts::ids(tests, scale.listed, "tests")) }
        }
    }
}

fn effect_class(reason: &Reason) -> &'static str {
    match reason.effect {
        Effect::Rejects => "no",
        Effect::Quarantines | Effect::Pins => "qu",
        Effect::HoldsBack => "pr",
        Effect::Admits => "ok",
    }
}
