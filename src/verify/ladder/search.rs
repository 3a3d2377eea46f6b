//! Which settings make a test fail (or pass), from what it did under every profile: suspects are the settings of a run
//! with a hit that are in no run without one; they are tried alone or by halves. Where no single setting is left, an
//! interaction is reduced by delta debugging.
//!
//! A hit must be seen twice before it is followed: a profile with hits and misses is chance.

use std::collections::{BTreeMap, BTreeSet};

use super::array::companion;
use super::minimize::{Step, minimize};
use crate::verify::profile::{Axis, Profile, Setting};

/// What a test did under one profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Tally {
    pub(crate) hits: u32,
    pub(crate) misses: u32,
}

/// What a test did under every profile that was not plain. In plain conditions it is always a miss.
pub(crate) type Trials<'a> = BTreeMap<&'a Profile, Tally>;

/// What is known of the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Search {
    /// No hit.
    Nothing,
    /// A hit that did not come again.
    Chance,
    /// These settings together make it, and none of them can be left out.
    Found(Vec<Setting>),
    /// This run would tell.
    Try(Profile),
    /// Runs with some of these would tell; with how likely each is.
    Suspects(Vec<(Setting, u32)>),
}

/// Goes on with what is known so far. The second value is what the cause lies within.
pub(crate) fn search(trials: &Trials<'_>) -> (Search, Vec<Setting>) {
    if trials.values().any(|tally| tally.hits > 0 && tally.misses > 0) {
        return (Search::Chance, Vec::new());
    }
    let hits: Vec<(&Profile, u32)> = trials
        .iter()
        .filter(|(_, tally)| tally.hits > 0)
        .map(|(profile, tally)| (*profile, tally.hits))
        .collect();
    let misses: Vec<&Profile> =
        trials.iter().filter(|(_, tally)| tally.hits == 0).map(|(profile, _)| *profile).collect();
    let cleared: BTreeSet<&Setting> = misses.iter().flat_map(|miss| miss.settings()).collect();
    let suspects_of = |profile: &Profile| -> Vec<Setting> {
        profile.settings().iter().filter(|one| !cleared.contains(one)).cloned().collect()
    };
    // The narrowest hit: the fewest suspects, but any rather than none, then the fewest settings.
    let narrowest = hits.iter().min_by_key(|(profile, _)| {
        let suspects = suspects_of(profile).len();
        (suspects == 0, suspects, profile.settings().len(), *profile)
    });
    let Some((narrowest, times)) = narrowest.copied() else {
        return (Search::Nothing, Vec::new());
    };
    let again = || Search::Try(narrowest.clone());
    let suspects = suspects_of(narrowest);
    let within = if suspects.is_empty() { narrowest.settings().to_vec() } else { suspects.clone() };
    if let [only] = narrowest.settings() {
        let seen: u32 = hits
            .iter()
            .filter(|(profile, _)| profile.settings().contains(only))
            .map(|(_, times)| times)
            .sum();
        // Where a wider run with it had no hit, something else hid it there.
        let enough = if suspects.is_empty() { times } else { seen };
        return if enough >= 2 {
            (Search::Found(vec![only.clone()]), within)
        } else {
            (again(), within)
        };
    }
    let total: u32 = hits.iter().map(|(_, times)| times).sum();
    if times < 2 && (total < 2 || !one_axis_explains(&hits, &cleared)) {
        return (again(), within);
    }
    let next = match suspects.as_slice() {
        [] if times < 2 => again(),
        [] => interaction(narrowest, &hits, &misses),
        [only] => Search::Try(Profile::of([only.clone()])),
        _ => {
            let weighed: Vec<(Setting, u32)> =
                suspects.iter().map(|one| (one.clone(), weight(one, &hits))).collect();
            let whole: u32 = weighed.iter().map(|(_, weight)| weight).sum();
            let (likely, most) = weighed
                .iter()
                .rev()
                .max_by_key(|(_, weight)| *weight)
                .expect("there are at least two");
            if weighed.len() == 2 || 2 * most >= whole {
                let both = with_companion(likely);
                let known = trials.contains_key(&both);
                Search::Try(if known { Profile::of([likely.clone()]) } else { both })
            } else {
                Search::Suspects(weighed)
            }
        }
    };
    (next, within)
}

/// Whether every hit has a suspect on one and the same axis.
fn one_axis_explains(hits: &[(&Profile, u32)], cleared: &BTreeSet<&Setting>) -> bool {
    Axis::ALL.iter().any(|axis| {
        hits.iter().all(|(profile, _)| {
            profile.get(*axis).is_some_and(|setting| !cleared.contains(setting))
        })
    })
}

/// How likely a suspect is: most of all when it is in every run with a hit, and there are several.
fn weight(setting: &Setting, hits: &[(&Profile, u32)]) -> u32 {
    let everywhere = hits.iter().all(|(profile, _)| profile.settings().contains(setting));
    let axis = hits.iter().all(|(profile, _)| profile.get(setting.axis()).is_some());
    match (hits.len() > 1, everywhere, axis) {
        (true, true, _) => 8,
        (true, false, true) => 3,
        _ => 1,
    }
}

/// A profile with a setting and what it shows nothing without.
pub(crate) fn with_companion(setting: &Setting) -> Profile {
    Profile::of(companion(setting).into_iter().chain([setting.clone()]))
}

/// No single setting does it: the fewest of those of a hit that do together.
fn interaction(hit: &Profile, hits: &[(&Profile, u32)], misses: &[&Profile]) -> Search {
    let contains = |all: &Profile, part: &[Setting]| {
        part.iter().all(|setting| all.settings().contains(setting))
    };
    let known = |part: &[Setting]| {
        if hits.iter().any(|(profile, _)| profile.settings() == part) {
            return Some(true);
        }
        // What has no hit has none with less.
        misses.iter().any(|miss| contains(miss, part)).then_some(false)
    };
    match minimize(hit.settings(), known) {
        Step::Done(settings) => Search::Found(settings),
        Step::Ask(settings) => Search::Try(Profile::of(settings)),
    }
}

/// What a test may mind, with how likely each is, and what it is known not to mind.
pub(crate) type Suspected = (Vec<(Setting, u32)>, BTreeSet<Setting>);

/// One run that tells as much as possible to all of these: settings are added while they narrow the suspects of more
/// tests. A test
/// learns nothing from a run with settings of which it is not known whether it minds them.
pub(crate) fn best_probe(searches: &[Suspected]) -> Option<Profile> {
    let all: BTreeSet<&Setting> =
        searches.iter().flat_map(|(suspects, _)| suspects.iter().map(|(one, _)| one)).collect();
    let mut best = (0, Profile::plain());
    loop {
        let (gain, profile) = best.clone();
        for setting in &all {
            if profile.get(setting.axis()).is_some() {
                continue;
            }
            let added = Profile::of(
                profile
                    .settings()
                    .iter()
                    .cloned()
                    .chain(with_companion(setting).settings().to_vec()),
            );
            let told = searches.iter().map(|one| told(&added, one)).sum();
            if told > best.0 {
                best = (told, added);
            }
        }
        if best.0 == gain {
            break;
        }
    }
    (best.0 > 0).then_some(best.1)
}

/// What a run tells one test: the smaller of both parts that it cuts its suspects into, in millionths.
fn told(profile: &Profile, (suspects, harmless): &Suspected) -> u64 {
    const WHOLE: u64 = 1_000_000;
    let mut inside = 0;
    let mut whole = 0;
    for (setting, weight) in suspects {
        whole += u64::from(*weight);
        if profile.settings().contains(setting) {
            inside += u64::from(*weight);
        }
    }
    let minds = |setting: &Setting| {
        !harmless.contains(setting) && !suspects.iter().any(|(suspect, _)| suspect == setting)
    };
    if profile.settings().iter().any(minds) {
        return 0;
    }
    inside.min(whole - inside) * WHOLE / whole.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::ladder::array::combined_runs;

    /// Follows the search with runs that hit when `hits` says so; the result, and how many runs it took.
    fn follow(hits: impl Fn(&Profile) -> bool) -> (Search, usize) {
        let mut made: Vec<(Profile, bool)> = combined_runs(&Axis::ALL.into())
            .into_iter()
            .map(|profile| {
                let hit = hits(&profile);
                (profile, hit)
            })
            .collect();
        for probes in 0..60 {
            let mut trials = Trials::new();
            for (profile, hit) in &made {
                let tally = trials.entry(profile).or_default();
                if *hit { tally.hits += 1 } else { tally.misses += 1 }
            }
            let profile = match search(&trials).0 {
                Search::Try(profile) => profile,
                Search::Suspects(suspects) => {
                    let harmless = trials
                        .iter()
                        .filter(|(_, tally)| tally.hits == 0)
                        .flat_map(|(profile, _)| profile.settings().to_vec());
                    best_probe(&[(suspects, harmless.collect())]).unwrap()
                }
                done => return (done, probes),
            };
            let hit = hits(&profile);
            made.push((profile, hit));
        }
        panic!("the search does not end")
    }

    #[test]
    fn every_single_setting_is_found_in_a_few_runs() {
        let runs = combined_runs(&Axis::ALL.into());
        let settings: BTreeSet<&Setting> = runs.iter().flat_map(Profile::settings).collect();
        let mut worst = 0;
        for setting in settings {
            let (found, probes) = follow(|profile| profile.settings().contains(setting));
            assert_eq!(found, Search::Found(vec![setting.clone()]));
            worst = worst.max(probes);
        }
        assert!(worst <= 5, "{worst}");
        // Any setting of an axis.
        for axis in Axis::ALL {
            let (found, probes) = follow(|profile| profile.get(axis).is_some());
            let Search::Found(found) = found else { panic!("{axis}: {found:?}") };
            assert_eq!((found.len(), found[0].axis()), (1, axis));
            assert!(probes <= 4, "{axis}: {probes}");
        }
        assert_eq!(follow(|_| false), (Search::Nothing, 0));
    }

    #[test]
    fn every_pair_of_settings_is_found() {
        let runs = combined_runs(&Axis::ALL.into());
        let mut worst = 0;
        for run in &runs {
            for (at, one) in run.settings().iter().enumerate() {
                for other in &run.settings()[at + 1..] {
                    let both = |profile: &Profile| {
                        profile.settings().contains(one) && profile.settings().contains(other)
                    };
                    let (found, probes) = follow(both);
                    assert_eq!(found, Search::Found(vec![one.clone(), other.clone()]));
                    worst = worst.max(probes);
                }
            }
        }
        assert!(worst <= 30, "{worst}");
        // The edge of summer time needs a moment and a zone, and is tried as a pair.
        let edge = |profile: &Profile| {
            profile.get(Axis::Clock).and_then(companion) == profile.get(Axis::Zone).cloned()
                && profile.get(Axis::Zone).is_some()
        };
        let (found, probes) = follow(edge);
        let Search::Found(found) = found else { panic!("{found:?}") };
        assert_eq!(found.iter().map(Setting::axis).collect::<Vec<_>>(), [Axis::Clock, Axis::Zone]);
        assert!(probes <= 9, "{probes}");
    }

    #[test]
    fn what_does_not_come_again_is_chance() {
        let runs = combined_runs(&Axis::ALL.into());
        let mut trials: Trials<'_> =
            runs.iter().map(|run| (run, Tally { hits: 0, misses: 1 })).collect();
        trials.insert(&runs[1], Tally { hits: 1, misses: 0 });
        assert_eq!(search(&trials).0, Search::Try(runs[1].clone()));
        trials.insert(&runs[1], Tally { hits: 1, misses: 1 });
        assert_eq!(search(&trials).0, Search::Chance);
        // Two runs that nothing explains together: the narrowest is made again first.
        for run in &runs {
            trials.insert(run, Tally { hits: 0, misses: 1 });
        }
        trials.insert(&runs[0], Tally { hits: 1, misses: 0 });
        trials.insert(&runs[3], Tally { hits: 1, misses: 0 });
        assert!(matches!(search(&trials).0, Search::Suspects(_) | Search::Try(_)));
    }

    #[test]
    fn one_run_serves_many_tests() {
        let runs = combined_runs(&Axis::ALL.into());
        let axes = [Axis::Clock, Axis::Zone, Axis::Order];
        let searches: Vec<_> = axes
            .iter()
            .map(|axis| {
                let hit = &runs[2];
                let suspects: Vec<(Setting, u32)> =
                    hit.settings().iter().map(|one| (one.clone(), 1)).collect();
                assert!(hit.get(*axis).is_some());
                (suspects, BTreeSet::new())
            })
            .collect();
        let probe = best_probe(&searches).unwrap();
        let half = runs[2].settings().len() / 2;
        assert!((half..=half + 1).contains(&probe.settings().len()), "{probe}");
    }
}
