//! The contract between hallmark and whatever runs containers (DESIGN.md section 6).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Error;
use crate::base::Cancel;
use crate::image::Layer;

/// Runs commands in fresh containers.
pub trait Runtime: Send + Sync {
    /// Runs `spec.argv` in a fresh container over `root` and waits for its end. Whatever happens, nothing of
    /// the run is left: no process, mount, cgroup or network; of files, only what the log names (those in scratch go
    /// soon after, see [`crate::base::Store::settle`]).
    ///
    /// A command that fails, is killed or times out is `Ok`; `Err` is always the runtime's own fault.
    /// Once `cancel` is set, the run is killed within a second and `Err(Cancelled)` returned.
    fn run(&self, root: Root<'_>, spec: &RunSpec, cancel: &Cancel) -> Result<RunLog, Error>;

    /// What this host cannot give, found by probing once.
    fn gaps(&self) -> &[Gap];

    /// What makes the containers, as records name it: [`EMBEDDED`], or a daemon with its version.
    fn name(&self) -> &str;
}

/// The name of the embedded runtime.
pub const EMBEDDED: &str = "embedded";

/// What the container sees as `/`.
#[derive(Debug, Clone, Copy)]
pub enum Root<'a> {
    /// Unpacked layers from the store, bottom first, under a fresh upper dir.
    Layers(&'a [Layer]),
    /// A folder itself, writable in place: to bootstrap a base.
    Directory(&'a Path),
}

/// What to run and under which conditions. Nothing is inherited from the host.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSpec {
    /// The command; `argv[0]` is looked up in `PATH` of `env`.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    /// Working directory inside.
    pub working_dir: String,
    /// User id inside.
    pub uid: u32,
    /// Group id inside.
    pub gid: u32,
    /// Host name inside.
    pub hostname: String,
    /// Resource limits.
    pub limits: Limits,
    /// Network.
    pub network: Network,
    /// An entry for `uid` and `gid` in /etc/passwd and /etc/group, where the image has none.
    pub account: Option<Account>,
    /// Folders that the run sees as copies in memory, in order.
    pub copies: Vec<FolderCopy>,
    /// Folders that cannot be written to, whoever tries; other mounts below them are left as they are.
    pub read_only: Vec<String>,
    /// Extra mounts, in order.
    pub mounts: Vec<Mount>,
    /// Whether the changes to `/` are kept as [`RunLog::upper`] (only with [`Root::Layers`]).
    pub keep_upper: bool,
    /// Where `stdout` and `stderr` are written: two files of these names in this folder, which must exist.
    pub output: PathBuf,
}

impl RunSpec {
    /// `argv` as root in `/` with a minimal environment, default limits and no network.
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>, output: &Path) -> Self {
        let env = [
            ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
            ("HOME", "/root"),
            ("LC_ALL", "C.UTF-8"),
            ("TZ", "UTC"),
        ];
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            working_dir: "/".to_owned(),
            uid: 0,
            gid: 0,
            hostname: "hallmark".to_owned(),
            limits: Limits::default(),
            network: Network::None,
            account: None,
            copies: Vec::new(),
            read_only: Vec::new(),
            mounts: Vec::new(),
            keep_upper: false,
            output: output.to_owned(),
        }
    }
}

/// A user as /etc/passwd has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Account {
    /// Name of the user and of the group.
    pub name: String,
    /// Home folder.
    pub home: String,
}

/// A folder of the root that is replaced, before the command starts, by a copy in a memory filesystem: modes, owners,
/// times, symbolic and hard links are kept. What is in it counts as memory of the run, and changes to it
/// are not in [`RunLog::upper`]. As on any mount, links and renames do not cross its border.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FolderCopy {
    /// The folder, absolute; made when missing.
    pub path: String,
    /// The order in which its folders list what they hold; `None` keeps the order there is.
    pub order: Option<EntryOrder>,
    /// The user and group that own everything in it; `None` keeps the owners there are.
    pub owner: Option<(u32, u32)>,
    /// Folders below it, relative, whose large files are mounted from the root instead of copied: they keep their
    /// owner and cannot be removed. For packs of git, which nobody writes to.
    pub in_place: Vec<String>,
}

/// An order of folder entries, by the bytes of their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryOrder {
    /// The smallest first.
    Ascending,
    /// The largest first.
    Descending,
}

/// Resource limits of a run. `None` means no limit of ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Limits {
    /// Processor time per wall time, in cores.
    pub cpus: Option<f64>,
    /// How many processors the run sees and starts on, of those that hallmark itself may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<u32>,
    /// Memory in bytes, page cache of the run included.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// Size of /dev/shm in bytes.
    pub shm: u64,
    /// Open files per process; never raised above the host's hard limit.
    pub open_files: Option<u64>,
    /// Bytes the run may write to `/` and to writable mounts.
    pub disk: Option<u64>,
    /// Bytes the run may print: standard output and standard error together.
    pub output: Option<u64>,
    /// Wall time after which the run is killed.
    #[serde(with = "crate::runtime::contract::seconds")]
    #[schemars(with = "f64")]
    pub wall: Duration,
}

impl Default for Limits {
    /// 4 GiB of memory, 4,096 processes, 64 MiB of /dev/shm (Docker's default), 16 GiB of disk, 1 GiB of output, one hour.
    fn default() -> Self {
        Self {
            cpus: None,
            processors: None,
            memory: Some(4 << 30),
            pids: Some(4096),
            shm: 64 << 20,
            open_files: None,
            disk: Some(16 << 30),
            output: Some(1 << 30),
            wall: Duration::from_hours(1),
        }
    }
}

/// Durations as seconds in JSON.
pub(crate) mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        value: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(value.as_secs_f64())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(deserializer)?)
            .map_err(serde::de::Error::custom)
    }
}

/// The network device of [`Network::None`]: whatever is sent through it is swallowed.
pub const BLACK_HOLE_DEVICE: &str = "eth0";

/// The network a run sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// Loopback (v4 and v6), an empty resolv.conf, and a default route into a black hole, so that a
    /// connect times out as behind a firewall. For runs.
    None,
    /// As `None`, on a machine without IPv6: `::1` can be neither bound nor reached, though it is in /etc/hosts.
    NoneV4,
    /// Loopback only: a connect fails at once. For build steps.
    Unreachable,
    /// The host's own. For `resolve` only.
    Host,
}

impl Network {
    /// Whether there is to be a black hole behind the default route.
    pub(super) fn has_black_hole(self) -> bool {
        matches!(self, Self::None | Self::NoneV4)
    }
}

/// A file or folder of the host inside the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Host path, absolute.
    pub source: PathBuf,
    /// Absolute path inside; made when missing.
    pub target: String,
    /// Whether the run may write to it.
    pub writable: bool,
}

/// What a run did. Times and sizes are measured by the kernel from outside.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "limits are reached one by one, and several at once"
)]
pub struct RunLog {
    /// How the command ended.
    pub status: ExitStatus,
    /// Whether it was killed for its wall limit.
    pub timed_out: bool,
    /// Whether the kernel killed something in it for its memory limit.
    pub oom_killed: bool,
    /// Whether it was killed for its disk limit.
    pub disk_full: bool,
    /// Whether it was killed for its limit of output.
    pub output_full: bool,
    /// Wall time of the command.
    pub wall: Duration,
    /// User and system time of everything in it, where known.
    pub cpu: Option<Duration>,
    /// Peak memory in bytes, where known.
    pub peak_memory: Option<u64>,
    /// Tries to leave the container by network, where counted.
    pub network_attempts: Option<NetworkAttempts>,
    /// The file that holds all of standard output.
    pub stdout: PathBuf,
    /// The file that holds all of standard error.
    pub stderr: PathBuf,
    /// The changes to `/`, in overlayfs form, where asked for: a folder in scratch that the caller removes.
    pub upper: Option<PathBuf>,
    /// What this run had to do without.
    pub gaps: Vec<Gap>,
}

impl RunLog {
    /// Whether the command exited with 0 and was not killed.
    pub fn success(&self) -> bool {
        self.status == ExitStatus::Exited(0)
            && !self.timed_out
            && !self.oom_killed
            && !self.disk_full
            && !self.output_full
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExitStatus {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
}

/// Packets that went into the black hole, by kind.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub struct NetworkAttempts {
    /// Packets sent towards other machines.
    pub packets: u64,
    /// Name look-ups (datagrams to a closed port of loopback).
    pub lookups: u64,
}

/// Something the host cannot give; recorded with each run it touched.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Gap {
    /// No memory limit: verdicts are provisional.
    MemoryLimit,
    /// No limit of processes.
    PidsLimit,
    /// No processor share.
    CpuLimit,
    /// No black hole: connects fail at once instead of timing out.
    BlackHole,
    /// Only one user id: file owners are flattened.
    SingleId,
    /// No seccomp filter.
    Seccomp,
    /// No other user than root: the command ran as root.
    User,
    /// No smaller set of processors.
    Processors,
    /// No folder entries in a wanted order.
    EntryOrder,
    /// No loopback without IPv6.
    Ipv4Only,
    /// No moved clock.
    Clock,
    /// No other copies of the run beside it.
    Load,
}

#[cfg(target_os = "linux")]
impl Gap {
    /// Whether a gap of the host touches a run with this spec.
    pub(super) fn concerns(&self, spec: &RunSpec) -> bool {
        match self {
            Self::MemoryLimit => spec.limits.memory.is_some(),
            Self::PidsLimit => spec.limits.pids.is_some(),
            Self::CpuLimit => spec.limits.cpus.is_some(),
            Self::SingleId | Self::Seccomp => true,
            // Found by each run itself, or by its caller.
            Self::BlackHole
            | Self::User
            | Self::Processors
            | Self::EntryOrder
            | Self::Ipv4Only
            | Self::Clock
            | Self::Load => false,
        }
    }

    /// By its name in records.
    pub(super) fn named(name: &str) -> Option<Self> {
        serde_json::from_value(serde_json::Value::String(name.to_owned())).ok()
    }
}
