//! What a container's pid 1 is asked, from a run's spec.

use rustix::process::{Resource, getrlimit};

use super::super::shared::{Processors, hosts, resolv_conf};
use super::super::{EntryOrder, Error, FolderCopy, Network, Root, RunSpec};
use super::request::{self, Request};

/// The request for a run over `root`; `folders` says of each mount whether it is a folder, `filters` how long each
/// seccomp program is, `mark` how both streams end.
pub(super) fn request(
    root: Root<'_>,
    spec: &RunSpec,
    folders: &[bool],
    processors: &Processors,
    filters: &[usize],
    mark: &str,
) -> Result<Request, Error> {
    let mounts = spec.mounts.iter().zip(folders).map(|(mount, folder)| request::Mount {
        target: mount.target.clone(),
        writable: mount.writable,
        folder: *folder,
    });
    Ok(Request {
        directory: matches!(root, Root::Directory(_)),
        argv: spec.argv.clone(),
        env: spec.env.iter().map(|(name, value)| format!("{name}={value}")).collect(),
        working_dir: spec.working_dir.clone(),
        uid: spec.uid,
        gid: spec.gid,
        hostname: spec.hostname.clone(),
        network: match spec.network {
            Network::None => request::Network::BlackHole,
            Network::NoneV4 => request::Network::BlackHoleV4,
            Network::Unreachable => request::Network::Loopback,
            Network::Host => request::Network::Host,
        },
        account: spec.account.as_ref().map(|account| (account.name.clone(), account.home.clone())),
        copies: spec.copies.iter().map(copy).collect(),
        copy_size: spec.limits.memory,
        read_only: spec.read_only.clone(),
        mounts: mounts.collect(),
        hosts: hosts(spec)?,
        resolv_conf: resolv_conf(spec)?,
        processors: processors.next(spec.limits.processors),
        open_files: open_files(spec.limits.open_files),
        file_size: spec.limits.disk,
        filters: filters.to_vec(),
        mark: mark.to_owned(),
    })
}

fn copy(copy: &FolderCopy) -> request::Copy {
    request::Copy {
        path: copy.path.clone(),
        descending: copy.order.map(|order| order == EntryOrder::Descending),
        owner: copy.owner,
        in_place: copy.in_place.clone(),
    }
}

/// Soft and hard limit. Without a wish they are hallmark's own, as they are for the embedded runtime's runs; a daemon's
/// may be a thousand times larger, and programs go through all of them.
fn open_files(wanted: Option<u64>) -> (u64, u64) {
    if let Some(wanted) = wanted {
        return (wanted, wanted);
    }
    let own = getrlimit(Resource::Nofile);
    let (soft, hard) = (own.current.unwrap_or(u64::MAX), own.maximum.unwrap_or(u64::MAX));
    (soft, hard)
}
