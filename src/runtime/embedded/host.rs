//! What a host can lack, and the way out: for errors and for `hallmark doctor`.

use std::io;
use std::path::Path;

use super::super::Error;
use super::super::error::of_setup;
use super::namespace;

const RAISE: &str = "raise it: `sysctl -w user.max_user_namespaces=15000`";

/// A host switch that turns user namespaces off, and what to say about it.
const SWITCHES: [(&str, &str, &str); 3] = [
    ("/proc/sys/user/max_user_namespaces", "0", RAISE),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "allow it: `sysctl -w kernel.unprivileged_userns_clone=1`, or run as root",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "allow it: `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, or give hallmark an \
         AppArmor profile with the rule `userns`, or run as root",
    ),
];

/// The switch that stands in the way: its file and the way out.
pub(super) fn namespaces_off(root: bool) -> Option<(&'static str, &'static str)> {
    SWITCHES.iter().find_map(|(file, off, hint)| {
        let privileged = root && !file.ends_with("max_user_namespaces");
        let value = fs_err::read_to_string(file).unwrap_or_default();
        (!privileged && value.trim() == *off).then_some((*file, *hint))
    })
}

/// Whether this process is in a container already (Docker, Podman, systemd-nspawn, Kubernetes).
pub(super) fn container() -> Option<&'static str> {
    if Path::new("/.dockerenv").exists() {
        return Some("Docker");
    }
    if Path::new("/run/.containerenv").exists() {
        return Some("Podman");
    }
    None
}

const NESTED: &str = "start the outer container with `--privileged`, or with `--security-opt \
    seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined`";

/// An error at once where nothing can run at all.
pub(super) fn check() -> Result<(), Error> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let reason = namespace::failure().unwrap_or("this process is in no user namespace");
    let hint = namespaces_off(false).map_or("run as root", |(_, hint)| hint);
    Err(Error::Host {
        reason: format!("no user namespace could be made ({reason})"),
        hint: hint.to_owned(),
    })
}

/// What a failed step of the set-up says about the host.
pub(super) fn explain(doing: String, errno: i32) -> Error {
    let source = io::Error::from_raw_os_error(errno);
    let namespaces = doing == "make namespaces" && errno == libc::ENOSPC;
    let refused = matches!(errno, libc::EPERM | libc::EACCES | libc::ENOSPC | libc::ENOSYS);
    let hint = if let Some((_, hint)) = namespaces_off(rustix::process::geteuid().is_root()) {
        Some(hint)
    } else if refused && container().is_some() {
        Some(NESTED)
    } else if doing == "stack the layers" && errno == libc::EINVAL {
        Some(
            "keep the scratch folder on a local filesystem that overlayfs can write to (ext4, xfs with \
             ftype=1, btrfs, tmpfs), not on an overlay or a network filesystem: `--scratch`",
        )
    } else {
        None
    };
    if namespaces {
        // The kernel says that the device is full.
        return Error::Host {
            reason: "no more user namespaces can be made".to_owned(),
            hint: hint.unwrap_or(RAISE).to_owned(),
        };
    }
    match hint {
        Some(hint) if refused || errno == libc::EINVAL => {
            Error::Host { reason: format!("cannot {doing}: {source}"), hint: hint.to_owned() }
        }
        _ => of_setup(doing, source),
    }
}
