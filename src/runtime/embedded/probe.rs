//! What this host can give, tried out: the rows of `hallmark doctor`.

use std::path::Path;
use std::time::Duration;

use rustix::fs::{StatVfsMountFlags, statvfs};
use serde::Serialize;

use super::super::{Error, ExitStatus, Gap, Root, RunLog, RunSpec, Runtime};
use super::{Embedded, host, namespace};
use crate::base::{Cancel, Store};

/// How a row ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Runs work, but do without something, which is recorded.
    Gap,
    /// Runs do not work.
    Missing,
    /// Nothing to judge.
    Note,
}

/// One thing a host can have or lack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Row {
    /// What.
    pub name: &'static str,
    /// How it is.
    pub status: Status,
    /// What was found.
    pub detail: String,
    /// The way out, where there is something to mend.
    pub fix: Option<String>,
}

/// Room for the images of a small split; less is worth a word.
const ROOM: u64 = 10 << 30;

fn row(name: &'static str, status: Status, detail: impl Into<String>, fix: &str) -> Row {
    let fix = (!fix.is_empty()).then(|| fix.to_owned());
    Row { name, status, detail: detail.into(), fix }
}

/// Tries everything once. `launcher` as for [`Embedded::new`].
pub fn probe(store: &Store, launcher: &Path) -> Vec<Row> {
    let mut rows = vec![kernel(), users()];
    match Embedded::new(store, launcher.to_owned()) {
        Ok(embedded) => {
            let result = trial(&embedded, store);
            rows.push(container(&result));
            rows.extend(cgroups(&embedded));
            rows.push(black_hole(&result));
        }
        Err(error) => rows.push(container(&Err(error))),
    }
    rows.push(seccomp());
    rows.extend(scratch(store.scratch()));
    rows.extend(surroundings());
    rows
}

/// A container over no layers at all, whose command is not found: everything but the command works.
pub fn trial(runtime: &dyn Runtime, store: &Store) -> Result<RunLog, Error> {
    let output = store.scratch_dir("doctor")?;
    let mut spec = RunSpec::new(["/none"], output.path());
    spec.limits.wall = Duration::from_secs(20);
    let log = runtime.run(Root::Layers(&[]), &spec, &Cancel::new())?;
    if log.status == ExitStatus::Exited(127) {
        return Ok(log);
    }
    let words = fs_err::read_to_string(&log.stderr).unwrap_or_default();
    Err(Error::Launcher { message: format!("{:?}: {}", log.status, words.trim()) })
}

fn container(result: &Result<RunLog, Error>) -> Row {
    match result {
        Ok(_) => row("container", Status::Ok, "namespaces, overlay, mounts and filters work", ""),
        Err(error) => {
            row("container", Status::Missing, error.to_string(), error.hint().unwrap_or_default())
        }
    }
}

fn kernel() -> Row {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy().into_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    // mount_setattr; overlayfs in user namespaces is one release older.
    if version >= (5, 12) {
        row("kernel", Status::Ok, release, "")
    } else {
        row("kernel", Status::Missing, release, "use Linux 5.12 or newer")
    }
}

fn users() -> Row {
    let map = fs_err::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let ids = super::idmap::count(&map);
    let detail = format!("{ids} user ids");
    if ids > 1 {
        return row("user ids", Status::Ok, detail, "");
    }
    let own = map.split_whitespace().nth(1).and_then(|id| id.parse().ok()).unwrap_or(0);
    let fix = if !namespace::has_map_programs() {
        "install newuidmap (Debian: `apt-get install uidmap`)"
    } else if namespace::has_ranges(own) {
        "newuidmap refused: see that it is set-uid root and not on a nosuid mount"
    } else {
        "give the user ids: `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER`"
    };
    row(
        "user ids",
        Status::Gap,
        format!("{detail}: owners are flattened, no base can be built"),
        fix,
    )
}

fn cgroups(embedded: &Embedded) -> Vec<Row> {
    let found = embedded.cgroups();
    let root =
        fs_err::read_to_string("/proc/self/uid_map").unwrap_or_default().contains("4294967295");
    let fix = if root {
        "mount the cgroup filesystem writable (in Docker: `--privileged --cgroupns=private`)"
    } else {
        "on a cgroup v2 host start it as `systemd-run --user --scope -p Delegate=yes hallmark ...`; \
         on v1 run as root"
    };
    [
        ("memory limit", Gap::MemoryLimit),
        ("process limit", Gap::PidsLimit),
        ("processor share", Gap::CpuLimit),
    ]
    .into_iter()
    .map(|(name, gap)| {
        if embedded.gaps().contains(&gap) {
            row(name, Status::Gap, format!("cgroups: {found}"), fix)
        } else {
            row(name, Status::Ok, format!("cgroups: {found}"), "")
        }
    })
    .collect()
}

fn black_hole(result: &Result<RunLog, Error>) -> Row {
    match result {
        Ok(log) if log.gaps.contains(&Gap::BlackHole) => row(
            "black hole",
            Status::Gap,
            "neither a TUN nor a veth device can be made: connects fail at once",
            "load a module (`modprobe veth` or `modprobe tun`)",
        ),
        Ok(_) => row("black hole", Status::Ok, "connects time out and are counted", ""),
        Err(_) => row("black hole", Status::Note, "not tried, since no container runs", ""),
    }
}

fn seccomp() -> Row {
    let actions =
        fs_err::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    if actions.contains("errno") {
        row("seccomp", Status::Ok, "filters are available", "")
    } else {
        row("seccomp", Status::Missing, "no filters", "use a kernel with CONFIG_SECCOMP_FILTER")
    }
}

fn scratch(folder: &Path) -> Vec<Row> {
    let mut rows = Vec::new();
    let Ok(stat) = statvfs(folder) else {
        let detail = format!("{} cannot be looked at", folder.display());
        return vec![row("scratch", Status::Missing, detail, "")];
    };
    let elsewhere = "choose another folder with `--scratch`";
    let place = folder.display();
    if stat.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        let detail = format!("{place} is mounted noexec: nothing written in a run can be run");
        rows.push(row("scratch", Status::Missing, detail, elsewhere));
    } else {
        rows.push(row("scratch", Status::Ok, place.to_string(), ""));
    }
    let free = stat.f_bavail * stat.f_frsize;
    let detail = format!("{} GiB free", free >> 30);
    rows.push(if free < ROOM {
        row("disk", Status::Gap, detail, "free some, or choose another folder with `--scratch`")
    } else {
        row("disk", Status::Ok, detail, "")
    });
    let attribute = || {
        let file = tempfile::NamedTempFile::new_in(folder)?;
        xattr::set(file.path(), "user.hallmark", b"x")
    };
    rows.push(match attribute() {
        Ok(()) => row("extended attributes", Status::Ok, "user.* can be set", ""),
        Err(error) => row("extended attributes", Status::Missing, error.to_string(), elsewhere),
    });
    rows
}

/// Where hallmark itself runs.
fn surroundings() -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(name) = host::container() {
        rows.push(row("nested", Status::Note, format!("this is inside a container ({name})"), ""));
    }
    let version = fs_err::read_to_string("/proc/version").unwrap_or_default();
    if version.to_lowercase().contains("microsoft") {
        rows.push(row(
            "WSL",
            Status::Note,
            "this is WSL: keep store and scratch on its own disk, not under /mnt",
            "",
        ));
    }
    rows
}
