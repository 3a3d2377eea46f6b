//! Ids that are almost the expected one: datasets clip ids at spaces, cut folders off, trim them, change white space, or keep
//! the time that a test took.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::LazyLock;

use regex_lite::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many near misses are shown for one id.
const SHOWN: usize = 5;

/// In what an id differs from the expected one.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Nearness {
    /// White space at its ends.
    Trimmed,
    /// The expected one ends where this one has its first space.
    Clipped,
    /// The parameter is a path, and the expected one has only its last part: `test_x[/a/b]` is `test_x[/b]`.
    Shortened,
    /// One of both has a duration behind it: `test_x (0.12s)`, `test_x 3ms`.
    Duration,
    /// The amount or kind of white space inside.
    Whitespace,
    /// An address in memory: `<object at 0x7f12>`.
    Address,
    /// Upper and lower case.
    Case,
}

impl Nearness {
    /// Whether such an id can be taken for the expected one, where it is the only one.
    fn is_sure(self) -> bool {
        self.is_cut() || matches!(self, Self::Trimmed | Self::Duration)
    }

    /// Whether the expected id was cut by whoever read the log for the dataset: then it was made of every test that comes
    /// out like it, and stands for all of them.
    fn is_cut(self) -> bool {
        matches!(self, Self::Clipped | Self::Shortened)
    }
}

/// An id that is almost the expected one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NearMiss {
    /// In what it differs.
    pub how: Nearness,
    /// The id.
    pub id: String,
}

/// A form of an id that those have in common that differ in one way.
type Form = fn(&str) -> String;

/// The forms, in the order in which they are tried; clipping is not one of them.
const FORMS: [(Nearness, Form); 5] = [
    (Nearness::Trimmed, |id| id.trim().to_owned()),
    (Nearness::Duration, without_duration),
    (Nearness::Whitespace, |id| id.split_whitespace().collect::<Vec<_>>().join(" ")),
    (Nearness::Address, without_addresses),
    (Nearness::Case, str::to_lowercase),
];

/// Known ids by their forms, made once for all ids that are looked for.
pub(crate) struct NearIndex<'a> {
    known: &'a BTreeSet<&'a str>,
    forms: Vec<BTreeMap<String, Vec<&'a str>>>,
    shortened: BTreeMap<String, Vec<&'a str>>,
}

impl<'a> NearIndex<'a> {
    pub(crate) fn new(known: &'a BTreeSet<&'a str>) -> Self {
        let by_form = |form: Form| {
            let mut ids: BTreeMap<String, Vec<&str>> = BTreeMap::new();
            for id in known {
                ids.entry(form(id)).or_default().push(id);
            }
            ids
        };
        let mut shortened: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for id in known {
            if let Some(short) = without_folders(id) {
                shortened.entry(short).or_default().push(id);
            }
        }
        Self { known, forms: FORMS.iter().map(|(_, form)| by_form(*form)).collect(), shortened }
    }

    /// The nearest to `expected`, and the ids that it stands for: the only one that differs by a cut, trimming or a duration,
    /// or all where all differ by a cut. An id that the instance expects under its own name is never meant.
    pub(crate) fn near(
        &self,
        expected: &str,
        listed: &BTreeSet<&str>,
    ) -> (Vec<NearMiss>, Vec<String>) {
        let mut found: BTreeMap<&str, Nearness> = BTreeMap::new();
        let mut note = |id: &'a str, how: Nearness| {
            let held = found.entry(id).or_insert(how);
            *held = how.min(*held);
        };
        for ((how, form), ids) in FORMS.iter().zip(&self.forms) {
            for id in ids.get(&form(expected)).into_iter().flatten() {
                note(id, *how);
            }
        }
        if !expected.is_empty() && !expected.contains(char::is_whitespace) {
            let clipped = format!("{expected} ");
            let from = (Bound::Included(clipped.as_str()), Bound::Unbounded);
            let starting = self.known.range::<str, _>(from);
            for id in starting.take_while(|id| id.starts_with(&clipped)) {
                note(id, Nearness::Clipped);
            }
        }
        for id in self.shortened.get(expected).into_iter().flatten() {
            note(id, Nearness::Shortened);
        }
        let mut near: Vec<NearMiss> =
            found.into_iter().map(|(id, how)| NearMiss { how, id: id.to_owned() }).collect();
        near.sort();
        let sure: Vec<&NearMiss> = near.iter().filter(|miss| miss.how.is_sure()).collect();
        let one_meaning = sure.len() == 1 || sure.iter().all(|miss| miss.how.is_cut());
        let taken = if one_meaning && !sure.iter().any(|miss| listed.contains(miss.id.as_str())) {
            sure.iter().map(|miss| miss.id.clone()).collect()
        } else {
            Vec::new()
        };
        near.truncate(SHOWN);
        (near, taken)
    }
}

/// An id without the time that the test took.
fn without_duration(id: &str) -> String {
    static DURATION: LazyLock<Regex> = LazyLock::new(|| {
        // Brackets as a pair only: the last word of `[wait 5 s]` is part of a parameter.
        let time = r"[0-9]+(\.[0-9]+)?\s*(ns|us|\x{b5}s|ms|s|sec|secs|second|seconds|m|min)";
        Regex::new(&format!(r"^(.*[^\s(\[])\s+(\(\s*{time}\s*\)|\[\s*{time}\s*\]|{time})\s*$"))
            .expect("a constant expression")
    });
    DURATION.captures(id).map_or_else(|| id.trim().to_owned(), |parts| parts[1].to_owned())
}

/// An id whose parameter is an absolute path, with the last part of it alone; the parsers of the field cut requests' ids so.
fn without_folders(id: &str) -> Option<String> {
    let (name, parameter) = id.split_once('[')?;
    let path = parameter.strip_suffix(']')?;
    let (folders, last) = path.rsplit_once('/')?;
    let cut = !folders.is_empty() && folders.starts_with('/') && !path.starts_with("//");
    (cut && !path.contains('*')).then(|| format!("{name}[/{last}]"))
}

/// An id with all addresses made equal.
fn without_addresses(id: &str) -> String {
    static ADDRESS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new("0x[0-9a-fA-F]+").expect("a constant expression"));
    ADDRESS.replace_all(id, "0x").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_ids_are_taken_for_all_that_they_can_mean() {
        let known: BTreeSet<&str> =
            ["t::a[x y]", "t::b[x y]", "t::b[x z]", "t::c[1] ", "t::D", "t::e[a  b]"].into();
        let none = BTreeSet::new();
        let index = NearIndex::new(&known);
        let near = |id: &str| index.near(id, &none);
        assert_eq!(near("t::a[x").1, ["t::a[x y]"]);
        let (misses, taken) = near("t::b[x");
        assert_eq!(misses.len(), 2);
        assert_eq!(taken, ["t::b[x y]", "t::b[x z]"]);
        assert_eq!(near("t::c[1]").1, ["t::c[1] "]);
        assert_eq!(near("t::d").0[0].how, Nearness::Case);
        assert!(near("t::d").1.is_empty());
        assert_eq!(near("t::e[a b]").0[0].how, Nearness::Whitespace);
        assert_eq!(near("t::gone"), (Vec::new(), Vec::new()));
        assert_eq!(near(""), (Vec::new(), Vec::new()));
        // One of those is expected under its own name: what the cut one means is not known.
        let listed: BTreeSet<&str> = ["t::a[x y]", "t::b[x z]"].into();
        assert!(index.near("t::a[x", &listed).1.is_empty());
        assert!(index.near("t::b[x", &listed).1.is_empty());
        // A cut and a trimmed one are two meanings.
        let known: BTreeSet<&str> = ["t::f[x ", "t::f[x y]"].into();
        assert!(NearIndex::new(&known).near("t::f[x", &none).1.is_empty());
    }

    #[test]
    fn paths_are_known_by_their_last_part() {
        let known: BTreeSet<&str> = [
            "t::a[/b/c.py]",
            "t::d[/b/x]",
            "t::d[/c/x]",
            "t::e[//b/c]",
            "t::f[/b/*/c]",
            "t::g[b/c]",
        ]
        .into();
        let index = NearIndex::new(&known);
        let none = BTreeSet::new();
        let near = |id: &str| index.near(id, &none);
        assert_eq!(near("t::a[/c.py]").0[0].how, Nearness::Shortened);
        assert_eq!(near("t::a[/c.py]").1, ["t::a[/b/c.py]"]);
        assert_eq!(near("t::d[/x]").1, ["t::d[/b/x]", "t::d[/c/x]"]);
        // Another folder is another test; and these are not cut so.
        for id in ["t::a[/d/c.py]", "t::e[/c]", "t::f[/c]", "t::g[/c]"] {
            assert_eq!(near(id), (Vec::new(), Vec::new()), "{id}");
        }
    }

    #[test]
    fn durations_and_addresses_are_seen_through() {
        let known: BTreeSet<&str> =
            ["t::a", "t::b [12 ms]", "t::c[<o at 0x7f00>]", "t::d 5"].into();
        let none = BTreeSet::new();
        let index = NearIndex::new(&known);
        for expected in ["t::a (0.12s)", "t::a 3ms", "t::a [ 1.5 sec ]", "t::a (2 \u{b5}s)"] {
            let (near, taken) = index.near(expected, &none);
            assert_eq!(near[0].how, Nearness::Duration, "{expected}");
            assert_eq!(taken, ["t::a"], "{expected}");
        }
        assert_eq!(index.near("t::b (0.01s)", &none).1, ["t::b [12 ms]"]);
        let (near, taken) = index.near("t::c[<o at 0x7fa8>]", &none);
        assert_eq!((near[0].how, taken), (Nearness::Address, Vec::new()));
        // Nor is a parameter that ends in one taken for another.
        let known: BTreeSet<&str> = ["t::w[wait 10 s]", "t::w[wait (10 s)]"].into();
        let parameters = NearIndex::new(&known);
        assert_eq!(parameters.near("t::w[wait 5 s]", &none), (Vec::new(), Vec::new()));
        assert_eq!(parameters.near("t::w[wait (5 s)]", &none), (Vec::new(), Vec::new()));
        // A number is no duration.
        assert_eq!(index.near("t::d 6", &none), (Vec::new(), Vec::new()));
    }
}
