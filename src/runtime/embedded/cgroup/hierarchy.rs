//! Finds, once, the cgroups under which runs get theirs.
//!
//! v1: the own cgroup of each controller. v2: as root `hallmark` at the top, where Docker's cgroupfs
//! driver puts `docker`; else the own cgroup, if it was delegated (`systemd-run --user --scope -p
//! Delegate=yes`). v2 allows processes in leaves only, so in a cgroup of its own hallmark first moves
//! those that are there, itself included, one level down.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::group::{Group, Place};
use super::layout::{self, Controller, Layout, V2};
use super::remove;
use crate::base::Owner;

/// Begins the name of every cgroup of a run.
const PREFIX: &str = "hallmark-run-";

/// Where the processes of a v2 cgroup go that must be a branch.
const LEAF: &str = "hallmark-leaf";

/// The folders under which runs get their cgroups.
#[derive(Debug)]
pub(in super::super) struct Hierarchy {
    v1: BTreeMap<Controller, PathBuf>,
    v2: Option<PathBuf>,
    /// Controllers that v2 gives.
    v2_controllers: Vec<Controller>,
    owner: Owner,
}

impl Hierarchy {
    /// Looks at this process's cgroups and prepares what can be.
    pub(in super::super) fn find() -> io::Result<Self> {
        let layout = layout::parse(
            &fs_err::read_to_string("/proc/self/cgroup")?,
            &fs_err::read_to_string("/proc/self/mountinfo")?,
        );
        Self::over(layout)
    }

    fn over(layout: Layout) -> io::Result<Self> {
        let v1: BTreeMap<_, _> =
            layout.v1.into_iter().filter(|(_, folder)| is_writable(folder)).collect();
        let (mut v2, mut v2_controllers) = (None, Vec::new());
        if let Some(tree) = layout.v2 {
            let mut missing = Controller::ALL.to_vec();
            missing.retain(|wanted| !v1.contains_key(wanted));
            if let Some((folder, given)) = prepare(&tree, &missing) {
                (v2, v2_controllers) = (Some(folder), given);
            }
        }
        Ok(Self { v1, v2, v2_controllers, owner: Owner::own()? })
    }

    /// Whether runs can have this controller.
    pub(super) fn has(&self, controller: Controller) -> bool {
        self.v1.contains_key(&controller) || self.v2_controllers.contains(&controller)
    }

    /// Whether memory, processes and processor shares can be limited.
    pub(in super::super) fn limits(&self) -> [bool; 3] {
        [Controller::Memory, Controller::Pids, Controller::Cpu].map(|wanted| self.has(wanted))
    }

    /// In words, for people.
    pub(in super::super) fn describe(&self) -> String {
        let names = |controllers: Vec<Controller>| {
            controllers.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ")
        };
        match (self.v1.is_empty(), &self.v2) {
            (true, None) => "none usable".to_owned(),
            (false, None) => format!("v1: {}", names(self.v1.keys().copied().collect())),
            (true, Some(_)) => format!("v2: {}", names(self.v2_controllers.clone())),
            (false, Some(_)) => format!(
                "v1: {}; v2: {}",
                names(self.v1.keys().copied().collect()),
                names(self.v2_controllers.clone())
            ),
        }
    }

    /// A fresh group for one run.
    pub(in super::super) fn create(&self) -> io::Result<Group> {
        // Of the process, since all of its runtimes share the folders.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", self.owner);
        let mut group = Group::default();
        for (controller, parent) in &self.v1 {
            let folder = parent.join(&name);
            if !group.v1.contains(&folder) {
                fs_err::create_dir(&folder)?;
                group.v1.push(folder.clone());
            }
            group.places.insert(*controller, Place::V1(folder));
        }
        if let Some(parent) = &self.v2 {
            let folder = parent.join(&name);
            fs_err::create_dir(&folder)?;
            for controller in &self.v2_controllers {
                group.places.insert(*controller, Place::V2(folder.clone()));
            }
            group.v2 = Some(folder);
        }
        Ok(group)
    }

    /// Kills and removes what runs of dead processes left.
    pub(in super::super) fn sweep(&self) {
        for parent in self.v1.values().chain(&self.v2) {
            let Ok(entries) = fs_err::read_dir(parent) else { continue };
            for entry in entries.filter_map(Result::ok) {
                let name = entry.file_name();
                let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
                if owner.and_then(Owner::parse).is_some_and(Owner::is_dead) {
                    kill_all(&entry.path());
                    remove(&entry.path());
                }
            }
        }
    }
}

fn kill_all(folder: &Path) {
    let Ok(text) = fs_err::read_to_string(folder.join("cgroup.procs")) else { return };
    for pid in text.lines().filter_map(|line| rustix::process::Pid::from_raw(line.parse().ok()?)) {
        // It may have ended by itself.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// Whether cgroups can be made there: permission bits alone do not tell (read-only mounts, namespaces).
fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Finds a v2 cgroup whose children can have some of `wanted`.
fn prepare(tree: &V2, wanted: &[Controller]) -> Option<(PathBuf, Vec<Controller>)> {
    let given = |folder: &Path, file: &str| {
        let text = fs_err::read_to_string(folder.join(file)).unwrap_or_default();
        let has = |name: &str| text.split_whitespace().any(|one| one == name);
        wanted.iter().copied().filter(|one| has(one.name())).collect::<Vec<_>>()
    };
    let own = if tree.own.file_name().is_some_and(|name| name == LEAF) {
        tree.own.parent()?.to_owned()
    } else {
        tree.own.clone()
    };
    let named = tree.top.join("hallmark");
    // Nothing is made where it would give nothing.
    if is_writable(&tree.top) && !given(&tree.top, "cgroup.controllers").is_empty() {
        let enabled = enable(&tree.top, wanted);
        if enabled
            && (named.is_dir() || fs_err::create_dir(&named).is_ok())
            && enable(&named, wanted)
        {
            let mut controllers = given(&named, "cgroup.subtree_control");
            controllers.extend(accounting(wanted));
            return Some((named, controllers));
        }
    }
    if is_writable(&own) && !given(&own, "cgroup.controllers").is_empty() && enable(&own, wanted) {
        let mut controllers = given(&own, "cgroup.subtree_control");
        controllers.extend(accounting(wanted));
        return Some((own, controllers));
    }
    None
}

/// Every v2 cgroup accounts for time, under no controller's name.
fn accounting(wanted: &[Controller]) -> Option<Controller> {
    wanted.iter().copied().find(|one| *one == Controller::CpuAccounting)
}

/// Gives the children of `folder` the controllers it has. Whether they have at least one.
fn enable(folder: &Path, wanted: &[Controller]) -> bool {
    let mut any = false;
    for controller in wanted.iter().filter(|one| **one != Controller::CpuAccounting) {
        let write = || {
            fs_err::OpenOptions::new()
                .write(true)
                .open(folder.join("cgroup.subtree_control"))
                .and_then(|mut file| {
                    io::Write::write_all(&mut file, format!("+{}", controller.name()).as_bytes())
                })
        };
        let mut result = write();
        let busy = |error: &io::Error| error.kind() == io::ErrorKind::ResourceBusy;
        if result.as_ref().is_err_and(busy) && move_down(folder).is_ok() {
            result = write();
        }
        match result {
            Ok(()) => any = true,
            Err(error) => {
                tracing::debug!(folder = %folder.display(), controller = controller.name(), %error,
                    "a controller cannot be given on");
            }
        }
    }
    any
}

/// Moves the processes of `folder` into a leaf below it.
fn move_down(folder: &Path) -> io::Result<()> {
    let leaf = folder.join(LEAF);
    if !leaf.is_dir() {
        fs_err::create_dir(&leaf)?;
    }
    for pid in fs_err::read_to_string(folder.join("cgroup.procs"))?.lines() {
        let mut file = fs_err::OpenOptions::new().write(true).open(leaf.join("cgroup.procs"))?;
        io::Write::write_all(&mut file, pid.as_bytes())?;
    }
    Ok(())
}
