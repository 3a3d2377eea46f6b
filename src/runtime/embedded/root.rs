//! Everything that is mounted: `/`, /proc, /sys, /dev, the three files of /etc and the extra mounts; then
//! the host's tree goes away.
//!
//! Mounts are made detached from the host's paths first, then the root is switched, and only then they
//! are attached by the paths that the container sees: a symbolic link in the image can lead nowhere
//! but into the image.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount,
    fsopen, mount_change, move_mount, open_tree, unmount,
};

use super::super::shared::{MASKED, READ_ONLY};
use super::super::{Gap, Network};
use super::protocol::{During, Failure, MountRequest, Request, RootRequest};
use super::sys;
use super::{copy, files, overlay};

/// Device nodes of the host that every container has.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Symbolic links in /dev.
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

pub(super) const QUIET: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// A mount that has no place yet.
struct Detached {
    tree: OwnedFd,
    target: String,
    folder: bool,
}

/// What came of the set-up.
#[derive(Default)]
pub(super) struct Outcome {
    /// What had to be made in the root to mount on, in order.
    pub(super) made: Vec<String>,
    /// What was asked for and could not be had.
    pub(super) gaps: Vec<Gap>,
}

/// Switches to the new root.
pub(super) fn set_up(request: &Request) -> Result<Outcome, Failure> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .during("make mounts private")?;
    // All of these need paths, or a view of /proc and /sys, that the new root does not have.
    let extra = request.mounts.iter().map(detach).collect::<Result<Vec<_>, _>>()?;
    let devices = DEVICES
        .iter()
        .map(|name| clone_tree(format!("/dev/{name}"), false).map(|tree| (*name, tree)))
        .collect::<Result<Vec<_>, _>>()?;
    let proc = new_mount("proc", &[], QUIET)?;
    // The kernel shows sysfs of a network namespace to its owner alone: with the host's network
    // there is none.
    let sys = if request.network == Network::Host {
        None
    } else {
        Some(new_mount("sysfs", &[], QUIET | MountAttrFlags::MOUNT_ATTR_RDONLY)?)
    };
    enter(&request.root)?;

    let Outcome { mut made, mut gaps } = Outcome::default();
    place("/proc", true, &mut made)?;
    attach(&proc, Path::new("/proc")).during("mount /proc")?;
    place("/sys", true, &mut made)?;
    if let Some(sys) = sys {
        attach(&sys, Path::new("/sys")).during("mount /sys")?;
    }
    place("/dev", true, &mut made)?;
    files::make(request, &mut made)?;
    dev(request, devices)?;
    hide()?;
    if !copy::make(request, &mut made)? {
        gaps.push(Gap::EntryOrder);
    }
    for folder in &request.read_only {
        place(folder, true, &mut made)?;
        protect(folder)?;
    }
    for mount in extra {
        place(&mount.target, mount.folder, &mut made)?;
        attach(&mount.tree, Path::new(&mount.target)).during(format!("mount {}", mount.target))?;
    }
    Ok(Outcome { made, gaps })
}

/// Makes the new root `/` and drops the old one.
fn enter(root: &RootRequest) -> Result<(), Failure> {
    let target = match root {
        RootRequest::Layers { lowers, upper, work, target, classic } => {
            overlay::mount(lowers, upper, work, target, *classic)?;
            target
        }
        RootRequest::Directory(folder) => {
            let tree = clone_tree(folder, true)?;
            sys::set_tree_attributes(&tree, MountAttrFlags::MOUNT_ATTR_NODEV.bits().into())
                .during("disallow devices")?;
            attach(&tree, folder).during(format!("mount {}", folder.display()))?;
            folder
        }
    };
    rustix::process::chdir(target).during(format!("enter {}", target.display()))?;
    rustix::process::pivot_root(".", ".").during("switch to the new root")?;
    unmount(".", UnmountFlags::DETACH).during("leave the host's tree")?;
    rustix::process::chdir("/").during("enter the new root")
}

/// Puts a detached mount at a path.
pub(super) fn attach(tree: &OwnedFd, target: &Path) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_SYMLINKS;
    move_mount(tree.as_fd(), "", CWD, target, flags)
}

/// A detached copy of the mount at `path`.
pub(super) fn clone_tree(path: impl AsRef<Path>, recursive: bool) -> Result<OwnedFd, Failure> {
    let path = path.as_ref();
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    if recursive {
        // Also what the kernel demands where the host has mounted over a part of it.
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    open_tree(CWD, path, flags).during(format!("open {}", path.display()))
}

/// A detached mount of one file of a folder.
pub(super) fn clone_tree_at(folder: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
    open_tree(folder, name, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC)
}

/// Mounts a folder over itself, read-only, with whatever is mounted below it as it is.
fn protect(path: &str) -> Result<(), Failure> {
    let tree = clone_tree(path, true)?;
    sys::set_mount_attributes(&tree, MountAttrFlags::MOUNT_ATTR_RDONLY.bits().into())
        .during(format!("make {path} read-only"))?;
    attach(&tree, Path::new(path)).during(format!("make {path} read-only"))
}

fn detach(mount: &MountRequest) -> Result<Detached, Failure> {
    let tree = clone_tree(&mount.source, mount.folder)?;
    let mut set = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    if !mount.writable {
        set |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    sys::set_tree_attributes(&tree, set.bits().into())
        .during(format!("restrict the mount of {}", mount.source.display()))?;
    Ok(Detached { tree, target: mount.target.clone(), folder: mount.folder })
}

/// A new filesystem, detached.
pub(super) fn new_mount(
    kind: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> Result<OwnedFd, Failure> {
    let make = || {
        let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (key, value) in options {
            if value.is_empty() {
                fsconfig_set_flag(&context, *key)?;
            } else {
                fsconfig_set_string(&context, *key, *value)?;
            }
        }
        fsconfig_create(&context)?;
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    make().during(format!("make a {kind} filesystem"))
}

/// Makes sure that there is something at `path` to mount on, and notes what was made.
pub(super) fn place(path: &str, folder: bool, made: &mut Vec<String>) -> Result<(), Failure> {
    super::super::shared::place(path, folder, made).map_err(|(here, error)| Failure {
        doing: format!("make {} to mount on", here.display()),
        source: error,
    })
}

fn dev(request: &Request, devices: Vec<(&str, OwnedFd)>) -> Result<(), Failure> {
    let no_exec = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let dev = new_mount("tmpfs", &[("mode", "0755"), ("size", "64m")], no_exec)?;
    for name in DEVICES {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&dev, name, flags, Mode::from_raw_mode(0o666))
            .during(format!("make /dev/{name}"))?;
    }
    for name in ["pts", "shm", "mqueue"] {
        rustix::fs::mkdirat(&dev, name, Mode::from_raw_mode(0o755))
            .during(format!("make /dev/{name}"))?;
    }
    for (name, target) in LINKS {
        rustix::fs::symlinkat(target, &dev, name).during(format!("make /dev/{name}"))?;
    }
    attach(&dev, Path::new("/dev")).during("mount /dev")?;
    for (name, tree) in devices {
        attach(&tree, Path::new(&format!("/dev/{name}"))).during(format!("mount /dev/{name}"))?;
    }
    let mut options = vec![("newinstance", ""), ("ptmxmode", "0666"), ("mode", "0620")];
    // The group tty, where it is mapped.
    if super::idmap::count(&request.gid_map) > 5 {
        options.push(("gid", "5"));
    }
    let no_run = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let pts = new_mount("devpts", &options, no_run)?;
    attach(&pts, Path::new("/dev/pts")).during("mount /dev/pts")?;
    let size = request.shm.to_string();
    let shm = new_mount("tmpfs", &[("mode", "1777"), ("size", &size)], QUIET)?;
    attach(&shm, Path::new("/dev/shm")).during("mount /dev/shm")?;
    let queues = new_mount("mqueue", &[], QUIET)?;
    attach(&queues, Path::new("/dev/mqueue")).during("mount /dev/mqueue")
}

/// Masks and write-protects what OCI runtimes do.
fn hide() -> Result<(), Failure> {
    for path in READ_ONLY {
        let tree = match open_tree(
            CWD,
            path,
            OpenTreeFlags::OPEN_TREE_CLONE
                | OpenTreeFlags::OPEN_TREE_CLOEXEC
                | OpenTreeFlags::AT_RECURSIVE,
        ) {
            Ok(tree) => tree,
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(errno).during(format!("open {path}")),
        };
        sys::set_tree_attributes(&tree, MountAttrFlags::MOUNT_ATTR_RDONLY.bits().into())
            .during(format!("make {path} read-only"))?;
        attach(&tree, Path::new(path)).during(format!("make {path} read-only"))?;
    }
    let mut masked: Vec<CString> =
        MASKED.iter().map(|path| CString::new(*path).expect("no NUL in a constant")).collect();
    masked.extend(thermal_throttles());
    for path in masked {
        let Ok(stat) = rustix::fs::statat(CWD, &path, AtFlags::empty()) else { continue };
        let name = path.to_string_lossy().into_owned();
        let folder = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir();
        let cover = if folder {
            let attributes = QUIET | MountAttrFlags::MOUNT_ATTR_RDONLY;
            new_mount("tmpfs", &[("mode", "0755"), ("size", "4k")], attributes)?
        } else {
            clone_tree("/dev/null", false)?
        };
        attach(&cover, Path::new(&name)).during(format!("hide {name}"))?;
    }
    Ok(())
}

fn thermal_throttles() -> Vec<CString> {
    let Ok(cpus) = fs_err::read_dir("/sys/devices/system/cpu") else { return Vec::new() };
    cpus.filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("cpu"))
        .map(|entry| entry.path().join("thermal_throttle"))
        .filter(|path| path.exists())
        .filter_map(|path| CString::new(path.to_string_lossy().into_owned()).ok())
        .collect()
}
