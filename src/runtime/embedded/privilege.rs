//! What the command keeps of root's powers, and that it may not run hallmark itself.

use std::ffi::CStr;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

use rustix::thread::{CapabilitySet, CapabilitySets};

/// Docker's default capabilities.
fn kept() -> CapabilitySet {
    CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::FSETID
        | CapabilitySet::FOWNER
        | CapabilitySet::MKNOD
        | CapabilitySet::NET_RAW
        | CapabilitySet::SETGID
        | CapabilitySet::SETUID
        | CapabilitySet::SETFCAP
        | CapabilitySet::SETPCAP
        | CapabilitySet::NET_BIND_SERVICE
        | CapabilitySet::SYS_CHROOT
        | CapabilitySet::KILL
        | CapabilitySet::AUDIT_WRITE
}

/// Shrinks the bounding set: needs a capability, hence while still root.
pub(super) fn drop_bounding() -> io::Result<()> {
    for number in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if kept().contains(capability) {
            continue;
        }
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The kernel's last capability is behind us.
            Err(rustix::io::Errno::INVAL) => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Shrinks the other sets; a user that is not root has none.
pub(super) fn drop_rest(root: bool) -> io::Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    let set = if root { kept() } else { CapabilitySet::empty() };
    // Docker leaves the inheritable set empty since CVE-2022-24769.
    let sets =
        CapabilitySets { effective: set, permitted: set, inheritable: CapabilitySet::empty() };
    rustix::thread::set_capabilities(None, sets)?;
    Ok(())
}

/// How deep a script may name a script as its interpreter.
const INTERPRETERS: usize = 5;

/// Whether running `path` would run this very binary, named through /proc or by an interpreter line. A
/// container that held it open could write to it once it ends (CVE-2019-5736). Nothing of the
/// container runs yet, so the answer cannot change before the execve.
pub(super) fn is_launcher(path: &CStr) -> bool {
    let Ok(own) = fs_err::metadata("/proc/self/exe") else { return true };
    let mut path = std::path::PathBuf::from(path.to_string_lossy().into_owned());
    for _ in 0..INTERPRETERS {
        let Ok(metadata) = fs_err::metadata(&path) else { return false };
        if (metadata.dev(), metadata.ino()) == (own.dev(), own.ino()) {
            return true;
        }
        if !metadata.is_file() {
            return false;
        }
        // Whoever may not read it can run it at most as a user who may not write to hallmark.
        let Ok(mut file) = fs_err::File::open(&path) else { return false };
        let mut start = [0; 256];
        let read = file.read(&mut start).unwrap_or(0);
        let Some(line) = start[..read].strip_prefix(b"#!") else { return false };
        let line = String::from_utf8_lossy(line.split(|byte| *byte == b'\n').next().unwrap_or(b""))
            .into_owned();
        let Some(interpreter) = line.split_whitespace().next() else { return false };
        path = interpreter.into();
    }
    true
}
