//! Delta debugging (Zeller and Hildebrandt, 2002): the fewest of many that still show something, one question at a time.

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step<T> {
    /// Find out whether these show it.
    Ask(Vec<T>),
    /// These show it, and none of them can be left out.
    Done(Vec<T>),
}

/// Goes on with what is known so far. `all` must show it and nothing at all must not; `known` says whether a part shows
/// it, as far as that was found out. Parts keep the order of `all`. Of a property that more elements never
/// take away the result is minimal, after at most `n² + 3n` questions, and about `2 log2 n` where one element is enough.
pub(crate) fn minimize<T: Clone>(all: &[T], known: impl Fn(&[T]) -> Option<bool>) -> Step<T> {
    let mut current = all.to_vec();
    let mut parts = 2;
    while current.len() > 1 {
        match smaller(&current, parts, &known) {
            Err(question) => return Step::Ask(question),
            Ok(Some((kept, fewer))) => {
                current = kept;
                parts = fewer;
            }
            Ok(None) if parts < current.len() => parts = (2 * parts).min(current.len()),
            Ok(None) => break,
        }
    }
    Step::Done(current)
}

/// A part of `current` that shows it, and into how many it is cut next; `None` when no part does, `Err` when it must
/// be asked first.
fn smaller<T: Clone>(
    current: &[T],
    parts: usize,
    known: &impl Fn(&[T]) -> Option<bool>,
) -> Result<Option<(Vec<T>, usize)>, Vec<T>> {
    let borders: Vec<usize> = (0..=parts).map(|part| part * current.len() / parts).collect();
    let cuts = || borders.windows(2).map(|pair| pair[0]..pair[1]);
    for cut in cuts() {
        let part = &current[cut];
        match known(part) {
            None => return Err(part.to_vec()),
            Some(true) => return Ok(Some((part.to_vec(), 2))),
            Some(false) => {}
        }
    }
    // With two parts, each is what the other leaves.
    for cut in cuts().filter(|_| parts > 2) {
        let rest = [&current[..cut.start], &current[cut.end..]].concat();
        match known(&rest) {
            None => return Err(rest),
            Some(true) => return Ok(Some((rest, (parts - 1).max(2)))),
            Some(false) => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// Answers from `shows`; the result and how many different questions it took.
    fn solve(all: &[u32], shows: impl Fn(&[u32]) -> bool) -> (Vec<u32>, usize) {
        let mut answers: BTreeMap<Vec<u32>, bool> = BTreeMap::new();
        loop {
            match minimize(all, |part| answers.get(part).copied()) {
                Step::Done(result) => return (result, answers.len()),
                Step::Ask(part) => {
                    let answer = shows(&part);
                    assert_eq!(answers.insert(part, answer), None, "asked twice");
                }
            }
        }
    }

    #[test]
    fn one_of_many_is_found_by_halving() {
        let all: Vec<u32> = (0..1024).collect();
        for culprit in [0, 1, 511, 512, 1023] {
            let (found, questions) = solve(&all, |part| part.contains(&culprit));
            assert_eq!(found, [culprit]);
            assert!(questions <= 20, "{questions}");
        }
        assert_eq!(solve(&[7], |_| true), (vec![7], 0));
    }

    proptest::proptest! {
        #[test]
        fn the_result_is_one_of_the_minimal_sets(
            size in 1_u32..60,
            sets in proptest::collection::vec(proptest::collection::btree_set(0_u32..60, 1..5), 1..4),
        ) {
            // Any of some sets of elements shows it: every property that more elements never take away is like that.
            let sets: Vec<BTreeSet<u32>> =
                sets.into_iter().map(|set| set.into_iter().map(|element| element % size).collect()).collect();
            let shows = |part: &[u32]| {
                let part: BTreeSet<u32> = part.iter().copied().collect();
                sets.iter().any(|set| set.is_subset(&part))
            };
            let all: Vec<u32> = (0..size).collect();
            let (found, questions) = solve(&all, shows);
            proptest::prop_assert!(shows(&found));
            proptest::prop_assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
            for left_out in &found {
                let rest: Vec<u32> = found.iter().copied().filter(|one| one != left_out).collect();
                proptest::prop_assert!(!shows(&rest), "{left_out} of {found:?} is not needed");
            }
            let size = size as usize;
            proptest::prop_assert!(questions <= size * size + 3 * size);
        }
    }
}
