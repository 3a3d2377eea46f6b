//! What the command keeps of root's powers, and that it may not run hallmark itself. Of the standard library alone: pid 1
//! of a daemon's container has nothing else.

use std::ffi::{CStr, OsStr};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// Docker's default capabilities by number: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP,
/// NET_BIND_SERVICE, NET_RAW, SYS_CHROOT, MKNOD, AUDIT_WRITE, SETFCAP.
pub(crate) const KEPT: [u32; 14] = [0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31];

/// How deep a script may name a script as its interpreter.
const INTERPRETERS: usize = 5;

/// Whether running `path` would run this very program, named through /proc or by an interpreter line. A
/// container that held it open could write to it once it ends (CVE-2019-5736). Nothing of the
/// container runs yet, so the answer cannot change before the execve.
#[expect(clippy::disallowed_methods, reason = "without crates")]
pub(crate) fn runs_this_program(path: &CStr) -> bool {
    let Ok(own) = fs::metadata("/proc/self/exe") else { return true };
    let mut path = PathBuf::from(OsStr::from_bytes(path.to_bytes()));
    for _ in 0..INTERPRETERS {
        let Ok(metadata) = fs::metadata(&path) else { return false };
        if (metadata.dev(), metadata.ino()) == (own.dev(), own.ino()) {
            return true;
        }
        if !metadata.is_file() {
            return false;
        }
        // Whoever may not read it can run it at most as a user who may not write to hallmark.
        let Ok(mut file) = File::open(&path) else { return false };
        let mut start = [0; 256];
        let read = file.read(&mut start).unwrap_or(0);
        let Some(line) = start[..read].strip_prefix(b"#!") else { return false };
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or(b"");
        let line = String::from_utf8_lossy(line).into_owned();
        let Some(interpreter) = line.split_whitespace().next() else { return false };
        path = interpreter.into();
    }
    true
}
