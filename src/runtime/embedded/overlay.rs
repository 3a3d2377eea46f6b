//! The overlay that is `/` of a run. Always `userxattr`, as root too, so that one format of upper and
//! lower folders serves every mode; `volatile`, since an upper is thrown away or read at once.
//!
//! Layers are named by descriptor (`10:11:12`, relative to /proc/self/fd): short enough for as many as
//! overlayfs stacks (500), and the container's /proc/mounts does not show the host's paths.

use std::fmt::Write as _;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::protocol::{During, Failure};

/// Descriptors beside those of the layers.
const SPARE: u64 = 64;

/// Mounts the overlay of `lowers` (bottom first) under `upper` on `target`.
pub(super) fn mount(
    lowers: &[PathBuf],
    upper: &Path,
    work: &Path,
    target: &Path,
    classic: bool,
) -> Result<(), Failure> {
    raise_open_files(lowers.len() as u64 + SPARE)?;
    let open = |path: &Path| {
        rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .during(format!("open the layer {}", path.display()))
    };
    // The kernel wants the top first.
    let lowers = lowers.iter().rev().map(|path| open(path)).collect::<Result<Vec<_>, _>>()?;
    let (upper, work) = (open(upper)?, open(work)?);
    rustix::process::chdir("/proc/self/fd").during("enter /proc/self/fd")?;
    if !classic {
        match with_fsopen(&lowers, &upper, &work) {
            Ok(mount) => {
                return super::root::attach(&mount, target).during("attach the overlay");
            }
            // A kernel (or a filter) without the new calls or without `lowerdir+`.
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => {}
            Err(errno) => return Err(errno).during("stack the layers"),
        }
    }
    with_mount(&lowers, &upper, &work, target)
}

fn raise_open_files(needed: u64) -> Result<(), Failure> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let current = limit.maximum.map_or(needed, |maximum| needed.min(maximum));
        setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: limit.maximum })
            .during("raise the limit of open files")?;
    }
    Ok(())
}

fn name(fd: &OwnedFd) -> String {
    fd.as_raw_fd().to_string()
}

/// The new mount API (5.2) with one call per layer (6.7).
fn with_fsopen(lowers: &[OwnedFd], upper: &OwnedFd, work: &OwnedFd) -> Result<OwnedFd, Errno> {
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for lower in lowers {
        fsconfig_set_string(&context, "lowerdir+", name(lower))?;
    }
    fsconfig_set_string(&context, "upperdir", name(upper))?;
    fsconfig_set_string(&context, "workdir", name(work))?;
    fsconfig_set_flag(&context, "userxattr")?;
    fsconfig_set_flag(&context, "volatile")?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

/// mount(2), whose options have to fit in a page.
fn with_mount(
    lowers: &[OwnedFd],
    upper: &OwnedFd,
    work: &OwnedFd,
    target: &Path,
) -> Result<(), Failure> {
    let mut options = String::from("userxattr,volatile,lowerdir=");
    for (index, lower) in lowers.iter().enumerate() {
        let colon = if index == 0 { "" } else { ":" };
        let _ = write!(options, "{colon}{}", lower.as_raw_fd());
    }
    let _ = write!(options, ",upperdir={},workdir={}", upper.as_raw_fd(), work.as_raw_fd());
    let options = std::ffi::CString::new(options).expect("the options are digits and words");
    rustix::mount::mount("overlay", target, "overlay", MountFlags::empty(), options.as_c_str())
        .during("stack the layers")
}
