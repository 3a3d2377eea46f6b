//! Without root: the whole process moves into a user namespace, before it has a second thread.
//!
//! With subordinate ids (`/etc/subuid`, `/etc/subgid`) 0 is the user and 1 to 65,535 are theirs; the set-uid
//! programs `newuidmap` and `newgidmap` write such maps, from outside, which is why a helper is
//! started first. Else 0 is the user and there is nobody else.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;

use super::sys;

/// The hidden first argument that makes this binary the helper.
pub(super) const MAPPER: &str = "@map-ids";

/// Most subordinate ids taken: with the user's own, 65,536.
const SUBORDINATE: u64 = 65_535;

/// Why the move failed, kept for whoever needs a runtime.
static FAILURE: OnceLock<String> = OnceLock::new();

/// Why this process could not enter a user namespace, if it tried to.
pub(super) fn failure() -> Option<&'static str> {
    FAILURE.get().map(String::as_str)
}

/// Moves this process, and remembers a failure instead of returning it: much of hallmark needs no
/// containers.
pub(super) fn try_enter() {
    if let Err(error) = enter() {
        let words = match error.raw_os_error() {
            // The kernel says that the device is full.
            Some(libc::ENOSPC) => "the limit of user namespaces is reached".to_owned(),
            _ => error.to_string(),
        };
        let _ = FAILURE.set(words);
    }
}

fn enter() -> io::Result<()> {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let name = user_name(uid);
    let ranges = |file| {
        let text = fs_err::read_to_string(file).unwrap_or_default();
        subordinate(&text, name.as_deref(), uid)
    };
    let (uids, gids) = (ranges("/etc/subuid"), ranges("/etc/subgid"));
    let helper = if uids.is_empty() || gids.is_empty() {
        None
    } else {
        let child = Command::new("/proc/self/exe")
            .arg(MAPPER)
            .arg(std::process::id().to_string())
            .args([arguments(uid, &uids), arguments(gid, &gids)])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Some(child)
    };
    sys::unshare_user()?;
    // Else the kernel gives this process's own files in /proc to a user that is nobody here.
    sys::set_dumpable(true)?;
    if let Some(mut helper) = helper {
        // A helper that has already gone is seen by its exit status.
        let _ = helper.stdin.take().map(|mut pipe| pipe.write_all(b"g"));
        if helper.wait()?.success() {
            return Ok(());
        }
    }
    // Without newuidmap, or where it refuses: one id. What it has already written stays.
    if is_unmapped("/proc/self/uid_map")? {
        fs_err::write("/proc/self/uid_map", format!("0 {uid} 1\n"))?;
    }
    if is_unmapped("/proc/self/gid_map")? {
        // The kernel's condition for a map without privilege.
        fs_err::write("/proc/self/setgroups", "deny")?;
        fs_err::write("/proc/self/gid_map", format!("0 {gid} 1\n"))?;
    }
    Ok(())
}

fn is_unmapped(file: &str) -> io::Result<bool> {
    Ok(fs_err::read_to_string(file)?.trim().is_empty())
}

/// The helper: `@map-ids PID "UID MAP" "GID MAP"`, told to go on by a byte.
pub(super) fn map_ids() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(2).filter_map(|argument| argument.into_string().ok()).collect();
    let [pid, uids, gids] = arguments.as_slice() else { return ExitCode::FAILURE };
    if io::stdin().read_exact(&mut [0]).is_err() {
        return ExitCode::FAILURE;
    }
    for (program, map) in [("newuidmap", uids), ("newgidmap", gids)] {
        let status = Command::new(program).arg(pid).args(map.split(' ')).status();
        if !status.is_ok_and(|status| status.success()) {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Whether the programs that write maps are there.
pub(super) fn has_map_programs() -> bool {
    ["newuidmap", "newgidmap"].iter().all(|program| {
        ["/usr/bin", "/bin", "/usr/sbin", "/usr/local/bin"]
            .iter()
            .any(|folder| Path::new(folder).join(program).exists())
    })
}

/// newuidmap's arguments: inside, outside, count; triples in one text.
fn arguments(own: u32, ranges: &[(u64, u64)]) -> String {
    let mut text = format!("0 {own} 1");
    let mut next = 1;
    for (start, count) in ranges {
        let count = (*count).min(SUBORDINATE + 1 - next);
        if count == 0 {
            break;
        }
        text = format!("{text} {next} {start} {count}");
        next += count;
    }
    text
}

fn user_name(uid: u32) -> Option<String> {
    let text = fs_err::read_to_string("/etc/passwd").ok()?;
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

/// The ranges of a user, by name or number: subuid(5).
fn subordinate(text: &str, name: Option<&str>, uid: u32) -> Vec<(u64, u64)> {
    let uid = uid.to_string();
    text.lines()
        .filter_map(|line| {
            let mut fields = line.trim().split(':');
            let user = fields.next()?;
            let (start, count) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
            (Some(user) == name || user == uid).then_some((start, count))
        })
        .collect()
}

/// Whether the calling user has ranges of both kinds.
pub(super) fn has_ranges(uid: u32) -> bool {
    let name = user_name(uid);
    ["/etc/subuid", "/etc/subgid"].iter().all(|file| {
        let text = fs_err::read_to_string(file).unwrap_or_default();
        !subordinate(&text, name.as_deref(), uid).is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found_by_name_or_number_and_cut_at_65536() {
        let text = "a:100000:65536\n# c\nb:1:2\n1000:300000:10\nbroken:x:1\n";
        assert_eq!(subordinate(text, Some("a"), 1000), [(100_000, 65_536), (300_000, 10)]);
        assert_eq!(subordinate(text, None, 7), []);
        assert_eq!(arguments(1000, &[(100_000, 65_536)]), "0 1000 1 1 100000 65535");
        assert_eq!(arguments(7, &[(50, 10), (90, 70_000)]), "0 7 1 1 50 10 11 90 65525");
        assert_eq!(arguments(7, &[]), "0 7 1");
    }
}
