//! Files that the container finds in place of the image's: writable where the image's would be, and gone with the run.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::request::{FOLDER, Network, Request};
use super::root::place;
use super::sys;
use super::{During as _, Failure};

/// Where the C library looks for the number of processors.
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// Makes them all.
pub(super) fn make(request: &Request, made: &mut Vec<String>) -> Result<(), Failure> {
    // In memory: a run is not told where the host keeps things.
    let folder = Path::new(FOLDER).join("files");
    fs::create_dir(&folder)
        .and_then(|()| sys::mount_memory(&folder, "mode=0755,size=1m", 0))
        .during("make files for /etc")?;
    for (number, (target, text)) in contents(request).iter().enumerate() {
        let source = folder.join(number.to_string());
        write(&source, text).during(format!("write {target}"))?;
        place(target, false, made)?;
        let mut flags = sys::NOSUID | sys::NODEV | sys::NOEXEC;
        if *target == ONLINE {
            flags |= sys::RDONLY;
        }
        let target = Path::new(target);
        sys::bind(&source, target)
            .and_then(|()| sys::restrict(target, flags, false))
            .during(format!("mount {}", target.display()))?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}

fn contents(request: &Request) -> Vec<(&'static str, String)> {
    let mut files = vec![
        ("/etc/hosts", request.hosts.clone()),
        ("/etc/resolv.conf", request.resolv_conf.clone()),
        ("/etc/hostname", format!("{}\n", request.hostname)),
    ];
    if let Some((name, home)) = &request.account {
        let (uid, gid) = (request.uid, request.gid);
        let user = format!("{name}:x:{uid}:{gid}::{home}:/bin/sh\n");
        for (target, id, line) in
            [("/etc/passwd", uid, user), ("/etc/group", gid, format!("{name}:x:{gid}:\n"))]
        {
            // An image without the file has no users either.
            let text = fs::read_to_string(target).unwrap_or_default();
            files.extend(with_line(text, id, &line).map(|text| (target, text)));
        }
    }
    // With the host's network the embedded runtime has no /sys.
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
