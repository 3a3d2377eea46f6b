//! The cgroups of one run: its limits going in, its accounts coming out.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::super::{Gap, Limits};
use super::layout::Controller;
use super::remove;

/// Length of a scheduling period, the kernel's and Docker's default.
const PERIOD: u64 = 100_000;

/// Removed when dropped; by then nothing may run in it.
#[derive(Debug, Default)]
pub(in super::super) struct Group {
    pub(super) v1: Vec<PathBuf>,
    pub(super) v2: Option<PathBuf>,
    pub(super) places: BTreeMap<Controller, Place>,
}

/// A controller's folder and dialect.
#[derive(Debug, Clone)]
pub(super) enum Place {
    V1(PathBuf),
    V2(PathBuf),
}

impl Group {
    /// v1 folders.
    pub(in super::super) fn v1(&self) -> &[PathBuf] {
        &self.v1
    }

    /// The v2 folder.
    pub(in super::super) fn v2(&self) -> Option<&Path> {
        self.v2.as_deref()
    }

    /// Sets limits; returns those that could not be set.
    pub(in super::super) fn limit(&self, limits: &Limits) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let mut set = |gap: Gap, done: io::Result<()>| {
            if let Err(error) = done {
                tracing::debug!(?gap, %error, "a limit cannot be set");
                gaps.push(gap);
            }
        };
        if let Some(bytes) = limits.memory {
            set(Gap::MemoryLimit, self.limit_memory(bytes));
        }
        if let Some(count) = limits.pids {
            // Pid 1 is ours.
            let done = self.write(Controller::Pids, "pids.max", "pids.max", count + 1);
            set(Gap::PidsLimit, done);
        }
        if let Some(cores) = limits.cpus {
            set(Gap::CpuLimit, self.limit_cpu(cores));
        }
        gaps
    }

    fn limit_memory(&self, bytes: u64) -> io::Result<()> {
        self.write(Controller::Memory, "memory.limit_in_bytes", "memory.max", bytes)?;
        // Swap would stretch the limit. Kernels without swap accounting have no such file.
        let swap = match self.places.get(&Controller::Memory) {
            Some(Place::V1(folder)) => write(&folder.join("memory.memsw.limit_in_bytes"), bytes),
            Some(Place::V2(folder)) => write(&folder.join("memory.swap.max"), 0),
            None => Ok(()),
        };
        match swap {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cores are few")]
    #[expect(clippy::cast_precision_loss, reason = "the period is small")]
    fn limit_cpu(&self, cores: f64) -> io::Result<()> {
        // The kernel refuses less than a millisecond.
        let quota = ((cores * PERIOD as f64).round() as u64).max(1000);
        match self.places.get(&Controller::Cpu) {
            Some(Place::V1(folder)) => {
                write(&folder.join("cpu.cfs_period_us"), PERIOD)?;
                write(&folder.join("cpu.cfs_quota_us"), quota)
            }
            Some(Place::V2(folder)) => write(&folder.join("cpu.max"), format!("{quota} {PERIOD}")),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn write(&self, controller: Controller, v1: &str, v2: &str, value: u64) -> io::Result<()> {
        match self.places.get(&controller) {
            Some(Place::V1(folder)) => write(&folder.join(v1), value),
            Some(Place::V2(folder)) => write(&folder.join(v2), value),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Whether the kernel killed something in it for want of memory.
    pub(in super::super) fn oom_killed(&self) -> bool {
        let text = match self.places.get(&Controller::Memory) {
            Some(Place::V1(folder)) => fs_err::read_to_string(folder.join("memory.oom_control")),
            Some(Place::V2(folder)) => fs_err::read_to_string(folder.join("memory.events")),
            None => return false,
        };
        field(&text.unwrap_or_default(), "oom_kill").is_some_and(|count| count > 0)
    }

    /// Most memory it ever held, where the kernel says (v2: since 5.19).
    pub(in super::super) fn peak_memory(&self) -> Option<u64> {
        let path = match self.places.get(&Controller::Memory)? {
            Place::V1(folder) => folder.join("memory.max_usage_in_bytes"),
            Place::V2(folder) => folder.join("memory.peak"),
        };
        fs_err::read_to_string(path).ok()?.trim().parse().ok()
    }

    /// Processor time of everything that ever ran in it.
    pub(in super::super) fn cpu(&self) -> Option<Duration> {
        match self.places.get(&Controller::CpuAccounting)? {
            Place::V1(folder) => {
                let text = fs_err::read_to_string(folder.join("cpuacct.usage")).ok()?;
                Some(Duration::from_nanos(text.trim().parse().ok()?))
            }
            Place::V2(folder) => {
                let text = fs_err::read_to_string(folder.join("cpu.stat")).ok()?;
                field(&text, "usage_usec").map(Duration::from_micros)
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in self.v1.iter().chain(&self.v2) {
            remove(folder);
        }
    }
}

fn write(path: &Path, value: impl std::fmt::Display) -> io::Result<()> {
    let mut file = fs_err::OpenOptions::new().write(true).open(path)?;
    file.write_all(value.to_string().as_bytes())
}

/// The number after `name` in `name number` lines.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A v2 folder made of plain files: the dialect is the kernel's, checked against its documentation
    /// (cgroup-v2.rst, "Interface Files").
    #[test]
    fn speaks_v2() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().to_owned();
        for (name, text) in [
            ("memory.max", ""),
            ("memory.swap.max", ""),
            ("pids.max", ""),
            ("cpu.max", ""),
            ("memory.peak", "4096\n"),
            ("memory.events", "low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\noom_group_kill 0\n"),
            ("cpu.stat", "usage_usec 1500000\nuser_usec 1\n"),
        ] {
            fs_err::write(folder.join(name), text).unwrap();
        }
        let places =
            Controller::ALL.map(|controller| (controller, Place::V2(folder.clone()))).into();
        let group = Group { v1: Vec::new(), v2: None, places };
        let limits = Limits { cpus: Some(1.5), ..Limits::default() };
        assert_eq!(group.limit(&limits), Vec::<Gap>::new());
        for (name, text) in [
            ("memory.max", "4294967296"),
            ("memory.swap.max", "0"),
            ("pids.max", "4097"),
            ("cpu.max", "150000 100000"),
        ] {
            assert_eq!(fs_err::read_to_string(folder.join(name)).unwrap(), text, "{name}");
        }
        assert!(group.oom_killed());
        assert_eq!(group.peak_memory(), Some(4096));
        assert_eq!(group.cpu(), Some(Duration::from_millis(1500)));
    }

    #[test]
    fn a_host_without_cgroups_has_gaps() {
        let limits = Limits { cpus: Some(1.0), ..Limits::default() };
        assert_eq!(
            Group::default().limit(&limits),
            [Gap::MemoryLimit, Gap::PidsLimit, Gap::CpuLimit]
        );
    }
}
