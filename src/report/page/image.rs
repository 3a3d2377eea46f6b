//! Image sizes by layer.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::instance::Context;
use crate::base::Digest;
use crate::report::text::{byte_size, counted, thousands};
use crate::report::{LayerSize, Part, ReportInput};

/// Width of a bar in its own units.
const BAR: u64 = 1000;

/// What a split's images take: layers that instances share count once.
pub(super) fn split_section(input: &ReportInput) -> Markup {
    let mut unique: BTreeMap<Digest, LayerSize> = BTreeMap::new();
    let mut all = 0;
    for layer in input.instances.iter().flat_map(|one| &one.facts.layers) {
        all += layer.size;
        unique.entry(layer.diff_id).or_insert(*layer);
    }
    if unique.is_empty() {
        return html! {};
    }
    let layers: Vec<LayerSize> = unique.into_values().collect();
    let total: u64 = layers.iter().map(|layer| layer.size).sum();
    html! {
        section aria-labelledby="images" {
            h2 #images { "Images" }
            p.prose {
                (counted(input.instances.len(), "image takes ", "images take ")) (byte_size(total)) " in "
                (counted(layers.len(), "layer", "layers")) ", " (byte_size(all)) " if nothing were shared."
            }
            (bar(&layers))
            (by_part(&layers))
        }
        "\n"
    }
}

/// An instance's image.
pub(super) fn section(context: Context<'_>) -> Markup {
    let layers = &context.instance.facts.layers;
    if layers.is_empty() {
        return html! {};
    }
    let most = context.scale.named;
    let mut largest: Vec<&LayerSize> = layers.iter().collect();
    largest.sort_by_key(|layer| std::cmp::Reverse(layer.size));
    let least = largest.get(most - 1).map_or(0, |layer| layer.size);
    let named = layers.iter().filter(|layer| layer.size >= least).take(most);
    html! {
        h3 { "Image" }
        (bar(layers))
        (by_part(layers))
        details {
            summary { (counted(layers.len(), "layer", "layers")) }
            div.wide tabindex="0" role="region" aria-label="Layers" {
                table {
                    thead { tr {
                        th scope="col" { "Layer" }
                        th scope="col" { "Part" }
                        th.n scope="col" { "Size" }
                        th.n scope="col" { "Compressed" }
                    } }
                    tbody {
                        @for layer in named {
                            tr {
                                th scope="row" { code { (layer.diff_id.short()) } }
                                td { (layer.part.as_str()) }
                                td.n { (byte_size(layer.size)) }
                                td.n { @if let Some(size) = layer.compressed { (byte_size(size)) } @else { "–" } }
                            }
                        }
                    }
                }
            }
            @if layers.len() > most { p.note { "the " (most) " largest" } }
        }
    }
}

/// Bytes and layers of each part.
fn parts(layers: &[LayerSize]) -> Vec<(Part, usize, u64, Option<u64>)> {
    Part::ALL
        .into_iter()
        .map(|part| {
            let of_it = || layers.iter().filter(move |layer| layer.part == part);
            let compressed = of_it().map(|layer| layer.compressed).sum();
            (part, of_it().count(), of_it().map(|layer| layer.size).sum(), compressed)
        })
        .filter(|(_, count, ..)| *count > 0)
        .collect()
}

/// The parts' shares; the table below says the same in numbers.
fn bar(layers: &[LayerSize]) -> Markup {
    let parts = parts(layers);
    let total: u64 = parts.iter().map(|(.., size, _)| size).sum();
    if total == 0 {
        return html! {};
    }
    let said: Vec<String> = parts
        .iter()
        .map(|(part, _, size, _)| format!("{} {}", part.as_str(), byte_size(*size)))
        .collect();
    // Layers of sizes beyond a petabyte would overflow; shares need no more than this.
    let share = |size: u64| {
        u64::try_from(u128::from(size) * u128::from(BAR) / u128::from(total)).unwrap_or(BAR)
    };
    let mut before = 0;
    let rects: Vec<(Part, u64, u64)> = parts
        .iter()
        .map(|(part, _, size, _)| {
            let from = share(before);
            before += size;
            (*part, from, share(before) - from)
        })
        .collect();
    html! {
        svg.bar viewBox={ "0 0 " (BAR) " 14" } preserveAspectRatio="none" role="img" {
            title { "Image size by part" }
            desc { (said.join(", ")) }
            @for (part, from, width) in rects {
                rect class=(class(part)) x=(from) y="0" width=(width) height="14" {}
            }
        }
    }
}

fn by_part(layers: &[LayerSize]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Image size by part" {
            table.small {
                thead { tr {
                    th scope="col" { "Part" }
                    th.n scope="col" { "Layers" }
                    th.n scope="col" { "Size" }
                    th.n scope="col" { "Compressed" }
                } }
                tbody {
                    @for (part, count, size, compressed) in parts(layers) {
                        tr {
                            th scope="row" { span.key { i class=(class(part)) {} " " (part.as_str()) } }
                            td.n { (thousands(count)) }
                            td.n { (byte_size(size)) }
                            td.n { @if let Some(size) = compressed { (byte_size(size)) } @else { "–" } }
                        }
                    }
                }
            }
        }
    }
}

fn class(part: Part) -> &'static str {
    match part {
        Part::Base => "k0",
        Part::Environment => "k2",
        Part::Instance => "k3",
    }
}
