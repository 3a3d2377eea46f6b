//! What a daemon is asked to make for a run, and that it goes away again.

use std::path::Path;
use std::time::Duration;

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig,
    Mount as BindMount, MountBindOptions, MountBindOptionsPropagationEnum, MountType,
    ResourcesUlimits,
};
use bollard::query_parameters::RemoveContainerOptions;
use rustix::process::{Resource, getrlimit};

use super::super::shared::{MASKED, READ_ONLY};
use super::super::{Limits, Network};
use super::engine::Engine;
use super::reaper::Labels;
use super::request::FOLDER;
use crate::base::Cancel;

/// How long is waited for a container to be removed. The daemon goes on when nobody waits any more.
const REMOVAL: Duration = Duration::from_secs(10);

/// Docker's default capabilities, which the command keeps; Podman's are fewer.
const KEPT: [&str; 14] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FSETID",
    "FOWNER",
    "MKNOD",
    "NET_RAW",
    "SETGID",
    "SETUID",
    "SETFCAP",
    "SETPCAP",
    "NET_BIND_SERVICE",
    "SYS_CHROOT",
    "KILL",
    "AUDIT_WRITE",
];

/// What pid 1 needs to mount and to make the network, and drops before the command starts.
const SET_UP: [&str; 2] = ["SYS_ADMIN", "NET_ADMIN"];

/// Our own filters stand in for the daemon's, which differ from version to version; profiles of AppArmor and SELinux would keep
/// pid 1 from mounting.
const SECURITY: [&str; 3] = ["seccomp=unconfined", "apparmor=unconfined", "label=disable"];

/// A folder or file of the host and where the container has it.
pub(super) struct Bind {
    pub(super) source: String,
    /// Below [`FOLDER`], empty for itself.
    pub(super) name: String,
    pub(super) read_only: bool,
}

impl Bind {
    /// Of a path without links.
    pub(super) fn new(source: &Path, name: impl Into<String>, read_only: bool) -> Self {
        Self { source: source.to_string_lossy().into_owned(), name: name.into(), read_only }
    }

    fn mount(&self) -> BindMount {
        let target = format!("{FOLDER}/{}", self.name);
        BindMount {
            target: Some(target.trim_end_matches('/').to_owned()),
            source: Some(self.source.clone()),
            typ: Some(MountType::BIND),
            read_only: Some(self.read_only),
            bind_options: Some(MountBindOptions {
                propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
                ..MountBindOptions::default()
            }),
            ..BindMount::default()
        }
    }
}

/// The container of a run.
pub(super) fn body(
    image: &str,
    labels: &Labels,
    limits: &Limits,
    network: Network,
    binds: &[Bind],
) -> ContainerCreateBody {
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let network_mode = if network == Network::Host { "host" } else { "none" };
    let host = HostConfig {
        mounts: Some(binds.iter().map(Bind::mount).collect()),
        network_mode: Some(network_mode.to_owned()),
        sysctls: Some(switches(network).into_iter().collect()),
        memory: limits.memory.map(number),
        // No swap on top.
        memory_swap: limits.memory.map(number),
        // One more for pid 1.
        pids_limit: limits.pids.map(|count| number(count.saturating_add(1))),
        nano_cpus: limits.cpus.map(nano_cpus),
        shm_size: Some(number(limits.shm.max(4096))),
        ulimits: Some(ulimits()),
        ipc_mode: Some("private".to_owned()),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        // Where a daemon shifts ids, owners in the host's folders would be strangers'.
        userns_mode: Some("host".to_owned()),
        cap_drop: words(&["ALL"]),
        cap_add: Some(KEPT.iter().chain(&SET_UP).map(|name| (*name).to_owned()).collect()),
        security_opt: words(&SECURITY),
        masked_paths: words(&MASKED),
        readonly_paths: words(&READ_ONLY),
        // The output goes through the connection alone, not to the daemon's disk as well.
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        ..HostConfig::default()
    };
    ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: Some(vec![format!("{FOLDER}/init")]),
        cmd: Some(Vec::new()),
        user: Some("0:0".to_owned()),
        working_dir: Some("/".to_owned()),
        tty: Some(false),
        open_stdin: Some(false),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        labels: Some(labels.to_map().into_iter().collect()),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    }
}

/// Hallmark's own, which pid 1 lowers as asked. Podman would raise them as far as it knows, which not every host lets it; of
/// processes, it has itself no more than there can be.
fn ulimits() -> Vec<ResourcesUlimits> {
    let most = fs_err::read_to_string("/proc/sys/kernel/pid_max");
    let most = most.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX);
    [("nofile", Resource::Nofile, u64::MAX), ("nproc", Resource::Nproc, most)]
        .map(|(name, resource, most)| {
            let own = getrlimit(resource);
            // -1 is no limit.
            let number =
                |value: Option<u64>| i64::try_from(value.map_or(most, |own| own.min(most)));
            ResourcesUlimits {
                name: Some(name.to_owned()),
                soft: Some(number(own.current).unwrap_or(-1)),
                hard: Some(number(own.maximum).unwrap_or(-1)),
            }
        })
        .into()
}

/// Daemons switch IPv6 off where no network of theirs has it. A kernel without it knows no such switch.
fn switches(network: Network) -> Vec<(String, String)> {
    if network == Network::Host || !Path::new("/proc/sys/net/ipv6").exists() {
        return Vec::new();
    }
    let switches = ["net.ipv6.conf.all.disable_ipv6", "net.ipv6.conf.default.disable_ipv6"];
    switches.map(|name| (name.to_owned(), "0".to_owned())).into()
}

#[expect(clippy::cast_possible_truncation, reason = "a number of processors has few digits")]
fn nano_cpus(cpus: f64) -> i64 {
    (cpus * 1e9).round() as i64
}

/// A container that was made, removed when dropped, whatever it does.
pub(super) struct Container<'a> {
    pub(super) engine: &'a Engine,
    pub(super) id: String,
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        remove(self.engine, &self.id);
    }
}

/// Kills and removes a container, its anonymous volumes too. What cannot be removed now is the next start's.
pub(super) fn remove(engine: &Engine, id: &str) {
    let options = RemoveContainerOptions { v: true, force: true, link: false };
    // The end that was asked for is no reason to leave it.
    let (doing, cancel) = ("remove a container", Cancel::new());
    let removal = engine.docker().remove_container(id, Some(options));
    if let Err(error) = engine.call(doing, REMOVAL, &cancel, removal) {
        tracing::warn!(%error, id, "a container stays until the next start");
    }
}
