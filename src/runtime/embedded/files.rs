//! Files that the container finds in place of the image's, in a memory filesystem of their own: writable where the
//! image's would be, and gone with the run.

use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountAttrFlags, UnmountFlags, unmount};

use super::super::{Account, Network};
use super::protocol::{During, Failure, Request};
use super::root::{QUIET, attach, clone_tree, new_mount, place};
use super::sys;

/// Where the C library looks for the number of processors.
const ONLINE: &str = "/sys/devices/system/cpu/online";

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
    let mut files = vec![
        ("/etc/hosts", request.hosts.clone()),
        ("/etc/resolv.conf", request.resolv_conf.clone()),
        ("/etc/hostname", format!("{}\n", request.hostname)),
    ];
    if let Some(Account { name, home }) = &request.account {
        let (uid, gid) = (request.uid, request.gid);
        let user = format!("{name}:x:{uid}:{gid}::{home}:/bin/sh\n");
        for (target, id, line) in
            [("/etc/passwd", uid, user), ("/etc/group", gid, format!("{name}:x:{gid}:\n"))]
        {
            // An image without the file has no users either.
            let text = fs_err::read_to_string(target).unwrap_or_default();
            files.extend(with_line(text, id, &line).map(|text| (target, text)));
        }
    }
    // With the host's network there is no /sys.
    if !request.processors.is_empty() && request.network != Network::Host {
        let list: Vec<String> = request.processors.iter().map(ToString::to_string).collect();
        files.push((ONLINE, format!("{}\n", list.join(","))));
    }
    files
}

/// The text with a line for `id` at its end, unless it has one.
fn with_line(mut text: String, id: u32, line: &str) -> Option<String> {
    let id = id.to_string();
    if text.lines().any(|line| line.split(':').nth(2) == Some(&id)) {
        return None;
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_added_once() {
        let add = |text: &str| with_line(text.to_owned(), 1000, "me:x:1000:\n");
        assert_eq!(add("root:x:0:\n").as_deref(), Some("root:x:0:\nme:x:1000:\n"));
        assert_eq!(add("root:x:0:").as_deref(), Some("root:x:0:\nme:x:1000:\n"));
        assert_eq!(add("").as_deref(), Some("me:x:1000:\n"));
        assert_eq!(add("root:x:0:\nyou:x:1000:\n"), None);
    }
}
