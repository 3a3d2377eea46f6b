//! Ids that are almost the expected one: datasets clip ids at spaces, trim them, or change white space.

use std::collections::BTreeSet;

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
    /// One of both has a duration behind it: `test_x (0.12s)`, `test_x 3ms`.
    Duration,
    /// The amount or kind of white space inside.
    Whitespace,
    /// An address in memory: `<object at 0x7f12>`.
    Address,
    /// Upper and lower case.
    Case,
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

/// The nearest of `known` to `expected`, and the id that it can only mean: the single one that differs by
/// clipping or trimming and that the instance does not expect under its own name.
pub(crate) fn near_misses(
    expected: &str,
    known: &BTreeSet<&str>,
    listed: &BTreeSet<&str>,
) -> (Vec<NearMiss>, Option<String>) {
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let squeezed = squeeze(expected);
    let mut near: Vec<NearMiss> = known
        .iter()
        .filter_map(|id| {
            let how = if id.trim() == expected.trim() {
                Nearness::Trimmed
            } else if !expected.contains(char::is_whitespace)
                && id.strip_prefix(expected).is_some_and(|rest| rest.starts_with(' '))
            {
                Nearness::Clipped
            } else if squeeze(id) == squeezed {
                Nearness::Whitespace
            } else if id.to_lowercase() == expected.to_lowercase() {
                Nearness::Case
            } else {
                return None;
            };
            Some(NearMiss { how, id: (*id).to_owned() })
        })
        .collect();
    near.sort();
    let sure: Vec<&NearMiss> = near
        .iter()
        .filter(|miss| matches!(miss.how, Nearness::Trimmed | Nearness::Clipped))
        .collect();
    let taken = match sure[..] {
        [only] if !listed.contains(only.id.as_str()) => Some(only.id.clone()),
        _ => None,
    };
    near.truncate(SHOWN);
    (near, taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipped_ids_are_taken_only_when_one_is_meant() {
        let known: BTreeSet<&str> =
            ["t::a[x y]", "t::b[x y]", "t::b[x z]", "t::c[1] ", "t::D", "t::e[a  b]"].into();
        let none = BTreeSet::new();
        let near = |id: &str| near_misses(id, &known, &none);
        assert_eq!(near("t::a[x").1.as_deref(), Some("t::a[x y]"));
        let (misses, taken) = near("t::b[x");
        assert_eq!((misses.len(), taken), (2, None));
        assert_eq!(near("t::c[1]").1.as_deref(), Some("t::c[1] "));
        assert_eq!(near("t::d").0[0].how, Nearness::Case);
        assert_eq!(near("t::d").1, None);
        assert_eq!(near("t::e[a b]").0[0].how, Nearness::Whitespace);
        assert_eq!(near("t::gone"), (Vec::new(), None));
        let listed: BTreeSet<&str> = ["t::a[x y]"].into();
        assert_eq!(near_misses("t::a[x", &known, &listed).1, None);
    }
}
