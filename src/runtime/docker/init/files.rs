//! Files that the container finds in place of the image's: writable where the image's would be, and gone with the run.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::etc_files::{EtcFiles, ONLINE};
use super::request::{FOLDER, Network, Request};
use super::root::place;
use super::sys;
use super::{During as _, Failure};

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
    // With the host's network the embedded runtime has no /sys.
    let hidden = request.network == Network::Host;
    let files = EtcFiles {
        hosts: &request.hosts,
        resolv_conf: &request.resolv_conf,
        hostname: &request.hostname,
        account: request.account.as_ref().map(|(name, home)| (&**name, &**home)),
        uid: request.uid,
        gid: request.gid,
        processors: if hidden { &[] } else { &request.processors },
    };
    files.contents(|path| fs::read_to_string(path).unwrap_or_default())
}
