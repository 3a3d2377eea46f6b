//! The ends of the logs of runs that failed.

use maud::{Markup, html};

use super::instance::Context;
use super::parts;
use crate::report::text::byte_size;
use crate::report::words;

/// The section.
pub(super) fn section(context: Context<'_>) -> Markup {
    let instance = context.instance;
    let mut told: Vec<usize> = instance.excerpts.iter().map(|excerpt| excerpt.run).collect();
    told.dedup();
    html! {
        @if !told.is_empty() {
            h3 { "Ends of logs" }
            @for number in told { (run(context, number)) }
        }
    }
}

fn run(context: Context<'_>, number: usize) -> Markup {
    let Some(line) = number.checked_sub(1).and_then(|at| context.instance.runs.get(at)) else {
        return html! {};
    };
    html! {
        "\n"
        details.log open {
            summary {
                "Run " (number) ": " (words::phase(line.phase)) " the gold patch, "
                (crate::report::visible(&line.profile.to_string())) ", " (line.outcome)
            }
            div id=(parts::run_anchor(context.anchor, number)) {
                p.note { "run " code { (line.key.short()) } }
                @for excerpt in context.instance.excerpts.iter().filter(|excerpt| excerpt.run == number) {
                    p.note {
                        (excerpt.stream.as_str()) ", " (byte_size(excerpt.log.size))
                        @if excerpt.cut { ", its last lines" }
                    }
                    @match &excerpt.text {
                        Ok(text) => { pre.log tabindex="0" { "\n" (text) } }
                        Err(why) => { p.notice { (why) } }
                    }
                }
            }
        }
    }
}
