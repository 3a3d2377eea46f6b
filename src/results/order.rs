//! The orders that tests are run in: pure functions of the collected ids.

use std::collections::BTreeMap;

/// The files of the tests in reverse, the tests of a file as they were. Files stand where their first test
/// does.
pub fn reversed_files(ids: &[String]) -> Vec<String> {
    let mut places = BTreeMap::new();
    let mut files: Vec<Vec<&String>> = Vec::new();
    for id in ids {
        let place = *places.entry(file_of(id)).or_insert_with(|| {
            files.push(Vec::new());
            files.len() - 1
        });
        files[place].push(id);
    }
    files.into_iter().rev().flatten().cloned().collect()
}

/// A permutation that depends on `ids` and `seed` only, on every machine and in every later version: from
/// the last place to the second, each is swapped with one of the places up to it (Fisher and Yates), drawn by
/// SplitMix64 as the upper half of the 128-bit product of a number and the count of places.
pub fn shuffled(ids: &[String], seed: u64) -> Vec<String> {
    let mut shuffled = ids.to_vec();
    let mut state = seed;
    for at in (1..shuffled.len()).rev() {
        let places = at as u128 + 1;
        let drawn = (u128::from(next(&mut state)) * places) >> 64;
        shuffled.swap(at, usize::try_from(drawn).expect("below the count of places"));
    }
    shuffled
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The file or module of a test by its id, as far as the id tells:
///
/// | id | file |
/// | --- | --- |
/// | `tests/test_a.py::TestB::test_c[d::e]` | `tests/test_a.py` |
/// | `README.rst` (a collector that is a test) | `README.rst` |
/// | `test_a (package.module.Class)` | `package.module` |
/// | `test_a (package.module.Class.test_a)` (unittest since Python 3.11) | `package.module` |
/// | `package.module.Class.test_a` | `package.module` |
/// | `test_a` (SymPy) | empty |
pub fn file_of(id: &str) -> &str {
    if let Some((file, _)) = id.split_once("::") {
        return file;
    }
    if let Some((name, place)) = id.strip_suffix(')').and_then(|id| id.rsplit_once(" (")) {
        let class = place.strip_suffix(name).and_then(|class| class.strip_suffix('.'));
        return parent(class.unwrap_or(place));
    }
    let is_file = id.contains('/')
        || [".py", ".rst", ".txt", ".md"].iter().any(|suffix| id.ends_with(suffix));
    if is_file { id } else { parent(parent(id)) }
}

fn parent(dotted: &str) -> &str {
    dotted.rsplit_once('.').map_or("", |(parent, _)| parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_file_is_found_in_every_syntax() {
        for (id, file) in [
            ("tests/test_a.py::TestB::test_c[d::e]", "tests/test_a.py"),
            ("a b.py::test[(x)]", "a b.py"),
            ("docs/index.txt", "docs/index.txt"),
            ("README.rst", "README.rst"),
            ("test_a (package.module.Class)", "package.module"),
            ("test_a (package.module.Class.test_a)", "package.module"),
            ("test_a (Class)", ""),
            ("package.module.Class.test_a", "package.module"),
            ("test_a", ""),
            ("", ""),
        ] {
            assert_eq!(file_of(id), file, "{id}");
        }
    }

    #[test]
    fn files_are_reversed_and_their_tests_are_not() {
        let given = ids("a.py::1 a.py::2 b.py::1 c.py::1 a.py::3 c.py::2");
        let expected = ids("c.py::1 c.py::2 b.py::1 a.py::1 a.py::2 a.py::3");
        assert_eq!(reversed_files(&given), expected);
        assert_eq!(reversed_files(&[]), Vec::<String>::new());
    }

    #[test]
    fn a_seed_gives_the_same_order_for_ever() {
        // The published first numbers for seed 1234567.
        let mut state = 1_234_567;
        let numbers: Vec<u64> = (0..3).map(|_| next(&mut state)).collect();
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
        let given = ids("a b c d e f g h i j");
        assert_eq!(shuffled(&given, 0), ids("e j c f b h g a d i"));
        assert_eq!(shuffled(&given, 1), ids("j a b e i c d h g f"));
        assert_eq!(shuffled(&[], 1), Vec::<String>::new());
    }

    #[test]
    fn every_place_is_as_likely() {
        let given = ids("a b c d");
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for seed in 0..24_000 {
            *counts.entry(shuffled(&given, seed).concat()).or_default() += 1;
        }
        assert_eq!(counts.len(), 24);
        // 1,000 each: five standard deviations.
        assert!(counts.values().all(|count| (845..1155).contains(count)), "{counts:?}");
    }

    proptest::proptest! {
        #[test]
        fn orders_are_permutations(mut given in proptest::collection::vec("[ab]\\.py::[0-9]", 0..40), seed: u64) {
            let mut one = reversed_files(&given);
            let mut two = shuffled(&given, seed);
            one.sort();
            two.sort();
            given.sort();
            proptest::prop_assert_eq!(&one, &given);
            proptest::prop_assert_eq!(&two, &given);
        }
    }
}
