//! The four combined runs: every axis at once, each level at least once.
//!
//! | axis | A | B | C | D |
//! | --- | --- | --- | --- | --- |
//! | order | files reversed | shuffled | the same backwards | |
//! | hash seed | 1 | 2 | 3 | 4 |
//! | clock | +400 days | | DST edge | -400 days |
//! | zone | | +14 | CET | -11 |
//! | locale | C | C | | |
//! | cpu | half a core | | one core | |
//! | load | | | | 2 copies |
//! | user | | | 1000 | 1000 |
//! | shared memory | 1 MiB | | | 1 MiB |
//! | open files | 64 | | 64 | |
//! | home | | read-only | read-only | |
//! | directory order | | Z to A | | A to Z |
//! | host name | another | another | another | another |
//! | network | | no IPv6 | | no IPv6 |
//!
//! Axes of one level lie in pairs of runs of their own (host name: in all), so that a test that fails in two runs names
//! its axis; axes of several levels leave out different runs. Of any two tests each comes before the other in B or in C. D keeps
//! the collected order, A has the real zone, B the real clock: what depends on one of these
//! does not hide the others there.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::verify::profile::{Axis, Clock, Cpu, Profile, Setting, TestOrder};

/// More than a year, so that the year differs too, whatever the day.
const DAYS: i32 = 400;
/// 2025-03-30T00:59:50Z: ten seconds before Central Europe sets its clocks an hour ahead.
const EDGE: i64 = 1_743_296_390;
/// Central Europe, without the need for zone files.
const CENTRAL_EUROPE: &str = "CET-1CEST,M3.5.0,M10.5.0/3";
/// The earliest zone there is.
const EAST: &str = "<+14>-14";
/// Nearly the latest zone; the other side of the date line from `EAST`.
const WEST: &str = "<-11>11";
const HALF_A_CORE: u32 = 50;
const COPIES: u32 = 2;
const USER: u32 = 1000;
/// Enough for semaphores, not for data.
const SHARED_MEMORY: u64 = 1 << 20;
/// Enough for Python and its imports, not for leaks.
const OPEN_FILES: u64 = 64;
/// With a dash and a digit, longer than the plain one.
const HOST_NAME: &str = "runner-7f3a9";
/// The seed of the shuffles.
const SEED: u64 = 1;

/// The profiles of the four combined runs, as far as they vary these axes; those that are plain then, or twice
/// there, are left out.
pub fn combined_runs(axes: &BTreeSet<Axis>) -> Vec<Profile> {
    static ALL: LazyLock<[Profile; 4]> =
        LazyLock::new(|| [run_a(), run_b(), run_c(), run_d()].map(Profile::of));
    let mut profiles = Vec::new();
    for whole in ALL.iter() {
        let profile = whole.only(axes);
        if !profile.is_plain() && !profiles.contains(&profile) {
            profiles.push(profile);
        }
    }
    profiles
}

/// The profile of the second collection.
pub(crate) fn second_collection(axes: &BTreeSet<Axis>) -> Profile {
    Profile::of([Setting::HashSeed { seed: 1 }]).only(axes)
}

/// A setting that shows nothing without the other: they are tried together.
pub(crate) fn companion(setting: &Setting) -> Option<Setting> {
    match setting {
        Setting::Clock { clock: Clock::At { epoch: EDGE } } => Some(zone(CENTRAL_EUROPE)),
        _ => None,
    }
}

/// By how much a run may take longer under a profile than in plain conditions with this many cores.
pub fn wall_factor(profile: &Profile, cpus: f64) -> f64 {
    let cores = match profile.get(Axis::Cpu) {
        Some(Setting::Cpu { cpu: Cpu::Quota { percent } }) => f64::from((*percent).max(1)) / 100.0,
        Some(Setting::Cpu { cpu: Cpu::OneCore }) => 1.0,
        _ => cpus,
    };
    let copies = match profile.get(Axis::Load) {
        Some(Setting::Load { copies }) => f64::from((*copies).max(1)),
        _ => 1.0,
    };
    (cpus / cores).max(1.0) * copies
}

fn order(order: TestOrder) -> Setting {
    Setting::Order { order }
}

fn clock(clock: Clock) -> Setting {
    Setting::Clock { clock }
}

fn zone(zone: &str) -> Setting {
    Setting::Zone { zone: zone.to_owned() }
}

fn host_name() -> Setting {
    Setting::HostName { name: HOST_NAME.to_owned() }
}

fn locale() -> Setting {
    Setting::Locale { locale: "C".to_owned() }
}

fn user() -> Setting {
    Setting::User { uid: USER, gid: USER }
}

fn run_a() -> Vec<Setting> {
    vec![
        order(TestOrder::ReversedFiles),
        Setting::HashSeed { seed: 1 },
        clock(Clock::Shifted { days: DAYS }),
        locale(),
        Setting::Cpu { cpu: Cpu::Quota { percent: HALF_A_CORE } },
        Setting::SharedMemory { bytes: SHARED_MEMORY },
        Setting::OpenFiles { limit: OPEN_FILES },
        host_name(),
    ]
}

fn run_b() -> Vec<Setting> {
    vec![
        order(TestOrder::Shuffled { seed: SEED }),
        Setting::HashSeed { seed: 2 },
        zone(EAST),
        locale(),
        Setting::Home { read_only: true },
        Setting::DirectoryOrder { descending: true },
        host_name(),
        Setting::Network { ipv6: false },
    ]
}

fn run_c() -> Vec<Setting> {
    vec![
        order(TestOrder::ShuffledBackwards { seed: SEED }),
        Setting::HashSeed { seed: 3 },
        clock(Clock::At { epoch: EDGE }),
        zone(CENTRAL_EUROPE),
        Setting::Cpu { cpu: Cpu::OneCore },
        user(),
        Setting::OpenFiles { limit: OPEN_FILES },
        Setting::Home { read_only: true },
        host_name(),
    ]
}

fn run_d() -> Vec<Setting> {
    vec![
        Setting::HashSeed { seed: 4 },
        clock(Clock::Shifted { days: -DAYS }),
        zone(WEST),
        Setting::Load { copies: COPIES },
        user(),
        Setting::SharedMemory { bytes: SHARED_MEMORY },
        Setting::DirectoryOrder { descending: false },
        host_name(),
        Setting::Network { ipv6: false },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_runs_vary_every_axis_and_pairs_tell_axes_apart() {
        let runs = combined_runs(&Axis::ALL.into());
        assert_eq!(runs.len(), 4);
        let mut patterns = BTreeSet::new();
        for axis in Axis::ALL {
            let pattern: Vec<bool> = runs.iter().map(|run| run.get(axis).is_some()).collect();
            assert!(pattern.contains(&true), "{axis}");
            let levels: BTreeSet<&Setting> = runs.iter().filter_map(|run| run.get(axis)).collect();
            if levels.len() == 1 && axis != Axis::Load {
                assert!(patterns.insert(pattern), "{axis} lies as another axis does");
            }
        }
        // One run keeps the order, one the zone, one the clock.
        for axis in [Axis::Order, Axis::Zone, Axis::Clock] {
            assert_eq!(runs.iter().filter(|run| run.get(axis).is_none()).count(), 1, "{axis}");
        }
    }

    #[test]
    fn fewer_axes_make_fewer_runs() {
        assert_eq!(combined_runs(&BTreeSet::new()), Vec::new());
        assert_eq!(combined_runs(&[Axis::Locale].into()).len(), 1);
        assert_eq!(combined_runs(&[Axis::HashSeed, Axis::Locale].into()).len(), 4);
        assert_eq!(second_collection(&[Axis::Locale].into()), Profile::plain());
    }

    #[test]
    fn less_processor_takes_longer() {
        let runs = combined_runs(&Axis::ALL.into());
        let mut factors: Vec<f64> = runs.iter().map(|run| wall_factor(run, 2.0)).collect();
        factors.extend([wall_factor(&Profile::plain(), 2.0), wall_factor(&runs[2], 0.5)]);
        assert_eq!(factors, [4.0, 1.0, 2.0, 2.0, 1.0, 1.0]);
    }

    #[test]
    fn the_edge_is_where_it_is_said_to_be() {
        let edge: jiff::Timestamp = "2025-03-30T00:59:50Z".parse().unwrap();
        assert_eq!(edge.as_second(), EDGE);
    }
}
