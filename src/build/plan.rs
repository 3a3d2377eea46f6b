//! Which distributions share a layer.

use std::collections::{BTreeMap, BTreeSet};

/// Ordered groups of distribution names; each group becomes one cached layer, the first at the bottom. Names that the
/// environment does not have are skipped; distributions that no group names go together on top. The plan changes how bytes are
/// cut into layers, never what is in the image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerPlan {
    /// The groups, by normalised names.
    pub groups: Vec<Vec<String>>,
}

impl LayerPlan {
    /// `items` by group, in the plan's order, without empty groups.
    pub(crate) fn split<T>(&self, items: impl IntoIterator<Item = (String, T)>) -> Vec<Vec<T>> {
        let mut left: BTreeMap<String, T> = items.into_iter().collect();
        let mut groups = Vec::new();
        for group in &self.groups {
            let names: BTreeSet<&String> = group.iter().collect();
            groups.push(names.into_iter().filter_map(|name| left.remove(name)).collect());
        }
        groups.push(left.into_values().collect::<Vec<_>>());
        groups.retain(|group| !group.is_empty());
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_in_exactly_one_group() {
        let items = || ["a", "b", "c", "d"].map(|name| (name.to_owned(), name));
        let names = |groups: &[&[&str]]| {
            let groups = groups.iter().map(|group| group.iter().map(ToString::to_string).collect());
            LayerPlan { groups: groups.collect() }.split(items())
        };
        assert_eq!(names(&[]), [vec!["a", "b", "c", "d"]]);
        assert_eq!(
            names(&[&["c", "a"], &["x"], &["a", "d"]]),
            [vec!["a", "c"], vec!["d"], vec!["b"]]
        );
        assert_eq!(names(&[&["d", "c", "b", "a"]]), [vec!["a", "b", "c", "d"]]);
    }
}
