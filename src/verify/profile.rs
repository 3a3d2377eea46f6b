//! The conditions of a run: those of the spec, and what is set otherwise, at most one setting an axis.
//!
//! A profile says what is wanted. What a host could not give is in the record's gaps.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that a test may depend on without wanting to.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// The order in which tests run, and which run at all.
    Order,
    /// `PYTHONHASHSEED`.
    HashSeed,
    /// The time of day and the date.
    Clock,
    /// The time zone.
    Zone,
    /// The locale.
    Locale,
    /// How much processor there is.
    Cpu,
    /// What else the machine does at the same time.
    Load,
    /// The user who runs the tests.
    User,
    /// The size of `/dev/shm`.
    SharedMemory,
    /// How many files may be open.
    OpenFiles,
    /// Whether the home folder can be written to.
    Home,
    /// The order in which folders list their entries.
    DirectoryOrder,
    /// The host's name.
    HostName,
    /// What the network is like.
    Network,
}

impl Axis {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Order,
        Self::HashSeed,
        Self::Clock,
        Self::Zone,
        Self::Locale,
        Self::Cpu,
        Self::Load,
        Self::User,
        Self::SharedMemory,
        Self::OpenFiles,
        Self::Home,
        Self::DirectoryOrder,
        Self::HostName,
        Self::Network,
    ];

    /// The word of the stored form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::HashSeed => "hash-seed",
            Self::Clock => "clock",
            Self::Zone => "zone",
            Self::Locale => "locale",
            Self::Cpu => "cpu",
            Self::Load => "load",
            Self::User => "user",
            Self::SharedMemory => "shared-memory",
            Self::OpenFiles => "open-files",
            Self::Home => "home",
            Self::DirectoryOrder => "directory-order",
            Self::HostName => "host-name",
            Self::Network => "network",
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing set otherwise than the spec has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    tag = "axis",
    deny_unknown_fields
)]
pub enum Setting {
    /// Tests in another order than the collected one.
    Order {
        /// Which.
        order: TestOrder,
    },
    /// Another seed than 0.
    HashSeed {
        /// `PYTHONHASHSEED`.
        seed: u32,
    },
    /// Another time than now. Elapsed (monotonic) time is the real one.
    Clock {
        /// Which.
        clock: Clock,
    },
    /// Another time zone than the image's.
    Zone {
        /// `TZ`.
        zone: String,
    },
    /// Another locale than the image's.
    Locale {
        /// `LC_ALL`.
        locale: String,
    },
    /// Less processor.
    Cpu {
        /// How much.
        cpu: Cpu,
    },
    /// The same command runs several times at once, each in its own container.
    Load {
        /// How many times, this one included.
        copies: u32,
    },
    /// Another user than root.
    User {
        /// User id.
        uid: u32,
        /// Group id.
        gid: u32,
    },
    /// Another size of `/dev/shm`.
    SharedMemory {
        /// In bytes.
        bytes: u64,
    },
    /// Fewer open files.
    OpenFiles {
        /// Soft and hard limit of a process.
        limit: u64,
    },
    /// The home folder cannot be written to.
    Home {
        /// Always true: the axis has one setting.
        read_only: bool,
    },
    /// Folders below `/testbed` list their entries by name.
    DirectoryOrder {
        /// From Z to A.
        descending: bool,
    },
    /// Another host name.
    HostName {
        /// Which.
        name: String,
    },
    /// Another network.
    Network {
        /// Always false: loopback has no IPv6.
        ipv6: bool,
    },
}

impl Setting {
    /// What it sets.
    pub fn axis(&self) -> Axis {
        match self {
            Self::Order { .. } => Axis::Order,
            Self::HashSeed { .. } => Axis::HashSeed,
            Self::Clock { .. } => Axis::Clock,
            Self::Zone { .. } => Axis::Zone,
            Self::Locale { .. } => Axis::Locale,
            Self::Cpu { .. } => Axis::Cpu,
            Self::Load { .. } => Axis::Load,
            Self::User { .. } => Axis::User,
            Self::SharedMemory { .. } => Axis::SharedMemory,
            Self::OpenFiles { .. } => Axis::OpenFiles,
            Self::Home { .. } => Axis::Home,
            Self::DirectoryOrder { .. } => Axis::DirectoryOrder,
            Self::HostName { .. } => Axis::HostName,
            Self::Network { .. } => Axis::Network,
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Order { order: TestOrder::ReversedFiles } => f.write_str("files reversed"),
            Self::Order { order: TestOrder::Shuffled { seed } } => write!(f, "shuffled by {seed}"),
            Self::Order { order: TestOrder::ShuffledBackwards { seed } } => {
                write!(f, "shuffled by {seed}, backwards")
            }
            Self::Order { order: TestOrder::Only { tests } } => {
                write!(f, "{} chosen tests", tests.len())
            }
            Self::HashSeed { seed } => write!(f, "hash seed {seed}"),
            Self::Clock { clock: Clock::Shifted { days } } => write!(f, "clock {days:+} days"),
            Self::Clock { clock: Clock::At { epoch } } => write!(f, "clock from epoch {epoch}"),
            Self::Zone { zone } => write!(f, "zone {zone}"),
            Self::Locale { locale } => write!(f, "locale {locale}"),
            Self::Cpu { cpu: Cpu::Quota { percent } } => write!(f, "{percent} % of a core"),
            Self::Cpu { cpu: Cpu::OneCore } => f.write_str("one core"),
            Self::Load { copies } => write!(f, "{copies} copies at once"),
            Self::User { uid, .. } => write!(f, "user {uid}"),
            Self::SharedMemory { bytes } => write!(f, "{bytes} bytes of /dev/shm"),
            Self::OpenFiles { limit } => write!(f, "{limit} open files"),
            Self::Home { .. } => f.write_str("read-only home"),
            Self::DirectoryOrder { descending: false } => f.write_str("folders from A to Z"),
            Self::DirectoryOrder { descending: true } => f.write_str("folders from Z to A"),
            Self::HostName { name } => write!(f, "host name {name}"),
            Self::Network { .. } => f.write_str("no IPv6"),
        }
    }
}

/// In which order tests run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum TestOrder {
    /// The last file first; within a file as collected.
    ReversedFiles,
    /// All tests in an order drawn from a seed.
    Shuffled {
        /// The seed.
        seed: u64,
    },
    /// The same backwards: of any two tests, each comes before the other in one of both.
    ShuffledBackwards {
        /// The seed.
        seed: u64,
    },
    /// These tests in this order, and no other.
    Only {
        /// Their ids.
        tests: Vec<String>,
    },
}

/// What time it is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum Clock {
    /// So many days later (or earlier, below zero) than it is.
    Shifted {
        /// Days of 86,400 seconds.
        days: i32,
    },
    /// The clock starts at this moment and goes on.
    At {
        /// Seconds since 1970-01-01T00:00:00Z.
        epoch: i64,
    },
}

/// How much processor there is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum Cpu {
    /// A share of one core.
    Quota {
        /// In hundredths of a core.
        percent: u32,
    },
    /// One core: whoever asks how many there are is told one.
    OneCore,
}

/// The conditions of a run: sorted by axis, one setting an axis.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Profile(Vec<Setting>);

impl Profile {
    /// The conditions of the spec.
    pub fn plain() -> Self {
        Self::default()
    }

    /// These settings; of several on one axis the last counts.
    pub fn of(settings: impl IntoIterator<Item = Setting>) -> Self {
        let by_axis: std::collections::BTreeMap<Axis, Setting> =
            settings.into_iter().map(|setting| (setting.axis(), setting)).collect();
        Self(by_axis.into_values().collect())
    }

    /// Whether nothing is set otherwise.
    pub fn is_plain(&self) -> bool {
        self.0.is_empty()
    }

    /// The settings, by axis.
    pub fn settings(&self) -> &[Setting] {
        &self.0
    }

    /// The setting of an axis.
    pub fn get(&self, axis: Axis) -> Option<&Setting> {
        self.0.iter().find(|setting| setting.axis() == axis)
    }

    /// The axes that are set.
    pub fn axes(&self) -> BTreeSet<Axis> {
        self.0.iter().map(Setting::axis).collect()
    }

    /// The settings on these axes only.
    #[must_use]
    pub fn only(&self, axes: &BTreeSet<Axis>) -> Self {
        Self(self.0.iter().filter(|setting| axes.contains(&setting.axis())).cloned().collect())
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_plain() {
            return f.write_str("plain");
        }
        for (at, setting) in self.0.iter().enumerate() {
            write!(f, "{}{setting}", if at > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_setting_an_axis_sorted_and_stable_in_json() {
        let profile = Profile::of([
            Setting::Zone { zone: "UTC".to_owned() },
            Setting::HashSeed { seed: 1 },
            Setting::HashSeed { seed: 2 },
            Setting::Clock { clock: Clock::Shifted { days: -400 } },
        ]);
        assert_eq!(profile.to_string(), "hash seed 2, clock -400 days, zone UTC");
        let text = serde_json::to_string(&profile).unwrap();
        assert_eq!(
            text,
            r#"[{"axis":"hash-seed","seed":2},{"axis":"clock","clock":{"kind":"shifted","days":-400}},{"axis":"zone","zone":"UTC"}]"#
        );
        assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), profile);
        assert_eq!(profile.only(&[Axis::Zone].into()).settings().len(), 1);
        assert_eq!(
            (Profile::plain().to_string().as_str(), Profile::plain().is_plain()),
            ("plain", true)
        );
    }

    #[test]
    fn words_are_those_of_the_stored_form() {
        for axis in Axis::ALL {
            assert_eq!(serde_json::to_string(&axis).unwrap(), format!("\"{axis}\""));
        }
    }
}
