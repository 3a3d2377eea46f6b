//! Files that the container finds in place of the image's, in a memory filesystem of their own: writable where the
//! image's would be, and gone with the run.

use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountAttrFlags, UnmountFlags, unmount};

use super::super::shared::{EtcFiles, ONLINE};
use super::super::{Account, Network};
use super::protocol::{During, Failure, Request};
use super::root::{QUIET, attach, clone_tree, new_mount, place};
use super::sys;

/// Makes them all. The memory filesystem stands at /dev for a moment, since single files can be taken only
/// from a mount that has a place.
pub(super) fn make(request: &Request, made: &mut Vec<String>) -> Result<(), Failure> {
    let folder = new_mount("tmpfs", &[("mode", "0755"), ("size", "1m")], QUIET)?;
    let files = contents(request);
    for (number, (target, text)) in files.iter().enumerate() {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o644);
        let file = rustix::fs::openat(&folder, number.to_string(), flags, mode)
            .during(format!("write {target}"))?;
        // Whatever the process's umask is.
        rustix::fs::fchmod(&file, mode).during(format!("write {target}"))?;
        rustix::io::write(&file, text.as_bytes()).during(format!("write {target}"))?;
    }
    attach(&folder, Path::new("/dev")).during("mount files for /etc")?;
    for (number, (target, _)) in files.iter().enumerate() {
        place(target, false, made)?;
        let tree = clone_tree(format!("/dev/{number}"), false)?;
        if *target == ONLINE {
            sys::set_mount_attributes(&tree, MountAttrFlags::MOUNT_ATTR_RDONLY.bits().into())
                .during(format!("make {target} read-only"))?;
        }
        attach(&tree, Path::new(target)).during(format!("mount {target}"))?;
    }
    unmount("/dev", UnmountFlags::DETACH).during("unmount files for /etc")
}

fn contents(request: &Request) -> Vec<(&'static str, String)> {
    // With the host's network there is no /sys.
    let hidden = request.network == Network::Host;
    let files = EtcFiles {
        hosts: &request.hosts,
        resolv_conf: &request.resolv_conf,
        hostname: &request.hostname,
        account: request.account.as_ref().map(|Account { name, home }| (&**name, &**home)),
        uid: request.uid,
        gid: request.gid,
        processors: if hidden { &[] } else { &request.processors },
    };
    files.contents(|path| fs_err::read_to_string(path).unwrap_or_default())
}
