//! What several sections are made of.

use maud::{Markup, PreEscaped, html};

use crate::report::text::{Id, render_name, thousands};
use crate::report::{InstanceReport, words};
use crate::verify::Status;

/// Ids in folded lists of a whole report; spread over its instances.
const ALL_LISTED: usize = 25_000;
/// A list shows at least so many.
const LISTED: usize = 20;
/// With more instances than this, details are told shorter.
const MANY: usize = 100;

/// What differs with the size of a report.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    /// How many ids a folded list shows.
    pub(super) listed: usize,
    /// How many layers are named, and how many failing tests of a run.
    pub(super) named: usize,
    /// Whether every run of chosen tests names them.
    pub(super) details: bool,
}

impl Scale {
    /// For so many instances.
    pub(super) fn of(instances: usize) -> Self {
        Self {
            listed: (ALL_LISTED / instances.max(1)).max(LISTED),
            named: if instances > MANY { 4 } else { 12 },
            details: instances <= MANY,
        }
    }
}

/// The name under which an instance is linked: its id where that is a plain word, else its place.
pub(super) fn anchor(at: usize, id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if id.len() <= 120 && !id.is_empty() && id.chars().all(plain) {
        format!("i-{id}")
    } else {
        format!("i{}", at + 1)
    }
}

/// The name under which a run of an instance is linked.
pub(super) fn run_anchor(anchor: &str, number: usize) -> String {
    format!("{anchor}.{number}")
}

/// The word of a verdict, with its colour and sign.
pub(super) fn status(status: Status) -> Markup {
    html! { span class={ "st " (class(status)) } { (words::status(status)) } }
}

/// The class of a verdict's colour.
pub(super) fn class(status: Status) -> &'static str {
    match status {
        Status::Admitted => "ok",
        Status::AdmittedWithQuarantine => "qu",
        Status::Provisional => "pr",
        Status::Rejected => "no",
    }
}

/// Ids, one a line; at most `listed` of them. Those that stand together and have all up to the last `::` in common are indented under
/// it.
pub(super) fn id_list(ids: &[String], listed: usize) -> Markup {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for id in ids.iter().take(listed) {
        let (prefix, name) = id.split_at(prefix_length(id));
        match groups.last_mut() {
            Some((last, names)) if *last == prefix => names.push(name),
            _ => groups.push((prefix, vec![name])),
        }
    }
    html! {
        pre.ids { (lines(&groups)) }
        @if ids.len() > listed {
            p.note { "and " (thousands(ids.len() - listed)) " more, which the manifest names" }
        }
    }
}

fn lines(groups: &[(&str, Vec<&str>)]) -> PreEscaped<String> {
    // A first line feed of the element is not shown.
    let mut out = "\n".to_owned();
    for (prefix, names) in groups {
        let apart = !prefix.is_empty() && names.len() > 1;
        if apart {
            render_name(&mut out, prefix);
            out.push('\n');
        }
        for name in names {
            out.push_str(if apart { "  " } else { "" });
            if !apart {
                render_name(&mut out, prefix);
            }
            // It escapes by itself.
            render_name(&mut out, name);
            out.push('\n');
        }
    }
    out.pop();
    PreEscaped(out)
}

/// Where the test's own name begins: after the last `::` before its parameters.
fn prefix_length(id: &str) -> usize {
    let end = id.find('[').unwrap_or(id.len());
    id[..end].rfind("::").map_or(0, |at| at + 2)
}

/// A few ids open, more of them folded.
pub(super) fn ids(ids: &[String], listed: usize, what: &str) -> Markup {
    html! {
        @if let [one] = ids {
            (Id(one))
        } @else if ids.len() <= 3 {
            (id_list(ids, listed))
        } @else {
            details { summary { (thousands(ids.len())) " " (what) } (id_list(ids, listed)) }
        }
    }
}

/// How many rows of a table were left out.
pub(super) fn beyond(all: usize, shown: usize) -> Markup {
    html! {
        @if all > shown { p.note { "and " (thousands(all - shown)) " more, which the manifest names" } }
    }
}

/// How many expected tests an instance has, by list.
pub(super) fn list_sizes(instance: &InstanceReport) -> [usize; 2] {
    let lists = &instance.facts.lists;
    [lists.fail_to_pass.len(), lists.pass_to_pass.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_plain_words() {
        assert_eq!(anchor(0, "a__b-1.0"), "i-a__b-1.0");
        assert_eq!(anchor(1, "\"><script>"), "i2");
        assert_eq!(anchor(2, ""), "i3");
    }

    #[test]
    fn ids_are_grouped_by_their_file_and_class() {
        let ids: Vec<String> =
            ["t.py::A::x", "t.py::A::y[a::b]", "t.py::z<", "plain"].map(str::to_owned).into();
        assert_eq!(
            id_list(&ids, 10).into_string(),
            "<pre class=\"ids\">\nt.py::A::\n  x\n  y[a::b]\nt.py::z&lt;\nplain</pre>"
        );
        assert!(id_list(&ids, 1).into_string().contains("and 3 more"));
    }
}
