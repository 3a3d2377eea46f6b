//! From a profile to what a container is asked for.
//!
//! Each setting changes one thing and leaves the rest as in plain runs: another user keeps `HOME` and owns what a
//! user would own; a moved clock leaves elapsed time alone. What cannot be given is a gap, never skipped in silence.

use std::collections::BTreeSet;
use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};

use super::profile::{Axis, Clock, Cpu, Profile, Setting};
use crate::base::clock;
use crate::runtime::{Account, EntryOrder, FolderCopy, Gap, Mount, Network, RunSpec};

/// The work tree.
const TESTBED: &str = "/testbed";

/// Where git keeps packs: large, and written to by nobody.
const PACKS: &str = ".git/objects/pack";

/// Where the library that moves the clock is inside.
const FAKETIME: &str = "/run/hallmark-faketime.so";

/// Name of a user who is not root.
const USER: &str = "tester";

/// What settings need besides a runtime.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tools {
    /// The library that moves a clock, made for the image's suite.
    pub faketime: Option<PathBuf>,
}

/// Changes a plain `spec` to what `profile` asks for, except for the order of tests and for load. To be called right
/// before the run: a clock that starts at some moment starts now. Returns what there is no tool for; what the
/// host lacks is in the run's log.
pub fn apply(profile: &Profile, spec: &mut RunSpec, tools: &Tools) -> Vec<Gap> {
    let mut gaps = Vec::new();
    for setting in profile.settings() {
        match setting {
            // The runner's, and `with_load`'s.
            Setting::Order { .. } | Setting::Load { .. } => {}
            Setting::HashSeed { seed } => set(spec, "PYTHONHASHSEED", seed.to_string()),
            Setting::Clock { clock } => match &tools.faketime {
                Some(library) => move_clock(spec, offset(*clock), library),
                None => gaps.push(Gap::Clock),
            },
            Setting::Zone { zone } => set(spec, "TZ", zone.clone()),
            Setting::Locale { locale } => set(spec, "LC_ALL", locale.clone()),
            Setting::Cpu { cpu: Cpu::Quota { percent } } => {
                spec.limits.cpus = Some(at_most(spec.limits.cpus, f64::from(*percent) / 100.0));
            }
            Setting::Cpu { cpu: Cpu::OneCore } => {
                spec.limits.processors = Some(1);
                spec.limits.cpus = Some(at_most(spec.limits.cpus, 1.0));
            }
            Setting::User { uid, gid } => become_user(spec, *uid, *gid),
            Setting::SharedMemory { bytes } => spec.limits.shm = *bytes,
            Setting::OpenFiles { limit } => {
                let limit = spec.limits.open_files.map_or(*limit, |own| own.min(*limit));
                spec.limits.open_files = Some(limit);
            }
            Setting::Home { read_only } => {
                if let (true, Some(home)) = (*read_only, home(spec)) {
                    spec.read_only.push(home);
                }
            }
            Setting::DirectoryOrder { descending } => {
                let order =
                    if *descending { EntryOrder::Descending } else { EntryOrder::Ascending };
                copy(spec, TESTBED).order = Some(order);
            }
            Setting::HostName { name } => spec.hostname.clone_from(name),
            Setting::Network { ipv6 } => {
                if !ipv6 && spec.network == Network::None {
                    spec.network = Network::NoneV4;
                }
            }
        }
    }
    gaps
}

/// The axes of a profile whose setting a run did not get.
pub fn not_given(profile: &Profile, gaps: &[Gap]) -> BTreeSet<Axis> {
    let gap = |setting: &Setting| match setting {
        Setting::Clock { .. } => Some(Gap::Clock),
        Setting::Cpu { cpu: Cpu::Quota { .. } } => Some(Gap::CpuLimit),
        Setting::Cpu { cpu: Cpu::OneCore } => Some(Gap::Processors),
        Setting::User { .. } => Some(Gap::User),
        Setting::DirectoryOrder { .. } => Some(Gap::EntryOrder),
        Setting::Network { .. } => Some(Gap::Ipv4Only),
        Setting::Load { .. } => Some(Gap::Load),
        Setting::Order { .. }
        | Setting::HashSeed { .. }
        | Setting::Zone { .. }
        | Setting::Locale { .. }
        | Setting::SharedMemory { .. }
        | Setting::OpenFiles { .. }
        | Setting::Home { .. }
        | Setting::HostName { .. } => None,
    };
    let missing = |setting: &&Setting| gap(setting).is_some_and(|gap| gaps.contains(&gap));
    profile.settings().iter().filter(missing).map(Setting::axis).collect()
}

fn set(spec: &mut RunSpec, name: &str, value: String) {
    spec.env.insert(name.to_owned(), value);
}

fn at_most(own: Option<f64>, limit: f64) -> f64 {
    own.map_or(limit, |own| own.min(limit))
}

/// Seconds between the host's clock and the wanted one. A difference holds for every process of the run alike;
/// a moment would be where each of them starts.
fn offset(clock: Clock) -> i64 {
    match clock {
        Clock::Shifted { days } => i64::from(days) * 86_400,
        Clock::At { epoch } => epoch.saturating_sub(clock::now().as_second()),
    }
}

fn move_clock(spec: &mut RunSpec, seconds: i64, library: &Path) {
    set(spec, "FAKETIME", format!("{seconds:+}"));
    // Elapsed time is real: limits and waits are what they are.
    set(spec, "FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned());
    // Read once a process, so that a test that clears its environment does not move its clock back.
    set(spec, "FAKETIME_CACHE_DURATION", i32::MAX.to_string());
    let preload = match spec.env.get("LD_PRELOAD") {
        Some(own) if !own.is_empty() => format!("{FAKETIME}:{own}"),
        _ => FAKETIME.to_owned(),
    };
    set(spec, "LD_PRELOAD", preload);
    spec.mounts.push(Mount {
        source: library.to_owned(),
        target: FAKETIME.to_owned(),
        writable: false,
    });
}

/// `HOME`, where it is a folder that can be mounted on.
fn home(spec: &RunSpec) -> Option<String> {
    let home = spec.env.get("HOME")?.trim_end_matches('/');
    let plain = home.starts_with('/') && !home.split('/').any(|part| matches!(part, "." | ".."));
    plain.then(|| home.to_owned())
}

/// The copy of a folder, made if it is the first wish about it.
fn copy<'a>(spec: &'a mut RunSpec, path: &str) -> &'a mut FolderCopy {
    if let Some(at) = spec.copies.iter().position(|copy| copy.path == path) {
        return &mut spec.copies[at];
    }
    let in_place = if path == TESTBED { vec![PACKS.to_owned()] } else { Vec::new() };
    spec.copies.push(FolderCopy { path: path.to_owned(), order: None, owner: None, in_place });
    spec.copies.last_mut().expect("it was just pushed")
}

/// The user has a name, and owns the work tree, the home folder and what is given to write to.
fn become_user(spec: &mut RunSpec, uid: u32, gid: u32) {
    (spec.uid, spec.gid) = (uid, gid);
    if uid == 0 {
        return;
    }
    let home = home(spec);
    let name = spec.env.get("HOME").filter(|home| !home.contains([':', '\n'])).cloned();
    spec.account =
        Some(Account { name: USER.to_owned(), home: name.unwrap_or_else(|| "/".to_owned()) });
    copy(spec, TESTBED).owner = Some((uid, gid));
    if let Some(home) = home.filter(|home| !Path::new(home).starts_with(TESTBED)) {
        copy(spec, &home).owner = Some((uid, gid));
    }
    for mount in &spec.mounts {
        // Files alone may be shared with other runs.
        if mount.writable || mount.source.is_dir() {
            give_away(&mount.source, uid, gid);
        }
    }
}

/// Where it cannot be done there is one id only, and the run is root's after all.
fn give_away(path: &Path, uid: u32, gid: u32) {
    for entry in walkdir::WalkDir::new(path).into_iter().filter_map(Result::ok) {
        if let Err(error) = lchown(entry.path(), Some(uid), Some(gid)) {
            tracing::debug!(path = %entry.path().display(), %error, "the owner stays");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> RunSpec {
        let mut spec = RunSpec::new(["x"], Path::new("/output"));
        spec.limits.cpus = Some(2.0);
        spec
    }

    fn applied(settings: impl IntoIterator<Item = Setting>, tools: &Tools) -> (RunSpec, Vec<Gap>) {
        let mut spec = spec();
        let gaps = apply(&Profile::of(settings), &mut spec, tools);
        (spec, gaps)
    }

    #[test]
    fn plain_changes_nothing() {
        assert_eq!(applied([], &Tools::default()), (spec(), Vec::new()));
    }

    #[test]
    fn a_setting_changes_what_it_names() {
        let none = Tools::default();
        let (seeded, _) = applied([Setting::HashSeed { seed: 7 }], &none);
        let mut expected = spec();
        set(&mut expected, "PYTHONHASHSEED", "7".to_owned());
        assert_eq!(seeded, expected);

        let (limited, _) = applied(
            [
                Setting::Cpu { cpu: Cpu::Quota { percent: 50 } },
                Setting::OpenFiles { limit: 64 },
                Setting::SharedMemory { bytes: 1 << 20 },
            ],
            &none,
        );
        assert_eq!(
            (limited.limits.cpus, limited.limits.open_files, limited.limits.shm),
            (Some(0.5), Some(64), 1 << 20)
        );
        let (one, _) = applied([Setting::Cpu { cpu: Cpu::OneCore }], &none);
        assert_eq!((one.limits.cpus, one.limits.processors), (Some(1.0), Some(1)));
    }

    #[test]
    fn settings_of_one_folder_meet_in_one_copy() {
        let (spec, gaps) = applied(
            [
                Setting::User { uid: 5, gid: 6 },
                Setting::Home { read_only: true },
                Setting::DirectoryOrder { descending: true },
            ],
            &Tools::default(),
        );
        assert_eq!(gaps, []);
        let owner = Some((5, 6));
        let testbed = FolderCopy {
            path: "/testbed".to_owned(),
            order: Some(EntryOrder::Descending),
            owner,
            in_place: vec![PACKS.to_owned()],
        };
        let home =
            FolderCopy { path: "/root".to_owned(), order: None, owner, in_place: Vec::new() };
        assert_eq!(spec.copies, [testbed, home]);
        assert_eq!((spec.uid, spec.gid, spec.read_only), (5, 6, vec!["/root".to_owned()]));
        assert_eq!(spec.account.unwrap().home, "/root");
    }

    #[test]
    fn a_clock_needs_its_library() {
        let shifted = [Setting::Clock { clock: Clock::Shifted { days: -400 } }];
        let (without, gaps) = applied(shifted.clone(), &Tools::default());
        assert_eq!((without, gaps.as_slice()), (spec(), &[Gap::Clock][..]));
        let profile = Profile::of(shifted.clone());
        assert_eq!(not_given(&profile, &gaps), [Axis::Clock].into());
        assert_eq!(not_given(&profile, &[Gap::User, Gap::MemoryLimit]), BTreeSet::new());

        let tools = Tools { faketime: Some("/store/library".into()) };
        let (with, gaps) = applied(shifted, &tools);
        assert_eq!((with.env["FAKETIME"].as_str(), gaps), ("-34560000", Vec::new()));
        assert_eq!(with.env["LD_PRELOAD"], with.mounts[0].target);
        let (at, _) = applied([Setting::Clock { clock: Clock::At { epoch: 0 } }], &tools);
        assert!(at.env["FAKETIME"].starts_with('-'), "{:?}", at.env);
    }

    #[test]
    fn odd_homes_are_left_alone() {
        for (value, expected) in
            [("/root/", Some("/root")), ("/", None), ("relative", None), ("/a/../b", None)]
        {
            let mut spec = spec();
            set(&mut spec, "HOME", value.to_owned());
            assert_eq!(home(&spec).as_deref(), expected, "{value}");
        }
    }
}
