//! Everything that is mounted: the files of /etc, copies, read-only folders, what the run was given; then the way in is
//! taken from sight.

use std::fs;
use std::path::Path;

use super::request::{FOLDER, Mount, Request};
use super::{During as _, Failure};
use super::{copy, files, sys};

/// What the daemon mounted for the container, seen under the new root too.
const KERNELS: [&str; 3] = ["/proc", "/sys", "/dev"];

/// What daemons put into a root that is not of the image.
const MARKS: [&str; 3] = ["/.dockerenv", "/run/.containerenv", "/dev/core"];

/// Sets all up and says what had to be made to mount on, in order.
pub(super) fn set_up(request: &Request, gaps: &mut Vec<String>) -> Result<Vec<String>, Failure> {
    let mut made = Vec::new();
    // The embedded runtime shows no cgroups; they may be there twice.
    while sys::detach(Path::new("/sys/fs/cgroup")).is_ok() {}
    enter(request, &mut made)?;
    files::make(request, &mut made)?;
    if !copy::make(request, &mut made)? {
        gaps.push("entry-order".to_owned());
    }
    for folder in &request.read_only {
        place(folder, true, &mut made)?;
        let path = Path::new(folder);
        sys::bind(path, path)
            .and_then(|()| sys::restrict(path, sys::RDONLY, false))
            .during(format!("make {folder} read-only"))?;
    }
    for (number, mount) in request.mounts.iter().enumerate() {
        attach(number, mount, &mut made)?;
    }
    std::env::set_current_dir("/").during("enter the root")?;
    sys::detach(Path::new(FOLDER)).during("unmount the way in")?;
    // The daemon made it, in the memory filesystem of /dev.
    fs::remove_dir(FOLDER).during("remove the way in")?;
    Ok(made)
}

/// Switches to the new root: the folder that was given, or the image under an upper dir of our own. The daemon's own upper
/// dir is no use: not every daemon shows it, and it holds what the daemon itself made.
fn enter(request: &Request, made: &mut Vec<String>) -> Result<(), Failure> {
    let root = format!("{FOLDER}/root");
    for mark in MARKS {
        // Not every daemon makes every one.
        let _ = fs::remove_file(mark);
    }
    if request.directory {
        sys::restrict(Path::new(&root), sys::NODEV, false).during("disallow devices")?;
    } else {
        let options = format!(
            "lowerdir=/:{FOLDER}/targets:{FOLDER}/skeleton,upperdir={FOLDER}/upper,workdir={FOLDER}/work,userxattr,volatile"
        );
        sys::mount_overlay(Path::new(&root), &options).during("stack an upper dir on the image")?;
    }
    for path in KERNELS {
        let inner = format!("{root}{path}");
        let mut one = Vec::new();
        place(&inner, true, &mut one)?;
        made.extend(one.iter().filter_map(|path| path.strip_prefix(&root)).map(str::to_owned));
        sys::bind(Path::new(path), Path::new(&inner)).during(format!("mount {path}"))?;
    }
    std::env::set_current_dir(&root)
        .and_then(|()| sys::pivot_here())
        .during("switch to the new root")?;
    sys::detach(Path::new(".")).during("leave the daemon's root")?;
    std::env::set_current_dir("/").during("enter the new root")
}

fn attach(number: usize, mount: &Mount, made: &mut Vec<String>) -> Result<(), Failure> {
    let source = format!("{FOLDER}/m{number}");
    let target = Path::new(&mount.target);
    place(&mount.target, mount.folder, made)?;
    let mut flags = sys::NOSUID | sys::NODEV;
    if !mount.writable {
        flags |= sys::RDONLY;
    }
    sys::bind(Path::new(&source), target)
        .and_then(|()| sys::restrict(target, flags, true))
        .during(format!("mount {}", mount.target))
}

/// Makes sure that there is something at `path` to mount on, and notes what was made.
pub(super) fn place(path: &str, folder: bool, made: &mut Vec<String>) -> Result<(), Failure> {
    super::place::place(path, folder, made).map_err(|(here, error)| Failure {
        doing: format!("make {} to mount on", here.display()),
        error,
    })
}

/// Removes from a given folder what was made to mount on, unless something came into it.
pub(super) fn tidy(request: &Request, made: &[String]) {
    for mount in request.mounts.iter().rev() {
        let _ = sys::detach(Path::new(&mount.target));
    }
    for path in made.iter().rev() {
        let path = Path::new(path);
        while sys::detach(path).is_ok() {}
        let Ok(metadata) = fs::symlink_metadata(path) else { continue };
        // A folder that is not empty stays, which is what should happen.
        let _ = if metadata.is_dir() {
            fs::remove_dir(path)
        } else if metadata.is_file() && metadata.len() == 0 {
            fs::remove_file(path)
        } else {
            Ok(())
        };
    }
}
