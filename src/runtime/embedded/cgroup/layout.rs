//! Where this process's cgroups are, read from the text of /proc/self/cgroup and
//! /proc/self/mountinfo.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What hallmark limits or counts by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Controller {
    Memory,
    Pids,
    Cpu,
    CpuAccounting,
}

impl Controller {
    pub(super) const ALL: [Self; 4] = [Self::Memory, Self::Pids, Self::Cpu, Self::CpuAccounting];

    /// Its name in v1; in v2 `cpuacct` is part of every cgroup.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
            Self::CpuAccounting => "cpuacct",
        }
    }
}

/// The folders of this process's own cgroups.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// v1, by controller.
    pub(super) v1: BTreeMap<Controller, PathBuf>,
    /// v2.
    pub(super) v2: Option<V2>,
}

/// The v2 tree as this process sees it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct V2 {
    /// The topmost cgroup that can be seen.
    pub(super) top: PathBuf,
    /// This process's own.
    pub(super) own: PathBuf,
}

/// Reads both texts. What does not parse is left out.
pub(super) fn parse(cgroup: &str, mountinfo: &str) -> Layout {
    let mut layout = Layout::default();
    for mount in mountinfo.lines().filter_map(parse_mount) {
        let own = |wanted: &dyn Fn(&str) -> bool| {
            let path = cgroup.lines().find_map(|line| {
                let mut fields = line.splitn(3, ':');
                let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
                wanted(controllers).then_some(path)
            })?;
            Some(below(&mount, path))
        };
        if mount.kind == "cgroup2" {
            if let Some(own) = own(&str::is_empty) {
                layout.v2.get_or_insert(V2 { top: mount.point.clone(), own });
            }
            continue;
        }
        for controller in Controller::ALL {
            let name = controller.name();
            if !mount.options.split(',').any(|option| option == name) {
                continue;
            }
            if let Some(own) = own(&|controllers| controllers.split(',').any(|one| one == name)) {
                layout.v1.entry(controller).or_insert(own);
            }
        }
    }
    layout
}

struct CgroupMount<'a> {
    root: &'a str,
    point: PathBuf,
    kind: &'a str,
    options: &'a str,
}

/// proc(5): id, parent, device, root, mount point, options, optional fields, `-`, type, source, options.
fn parse_mount(line: &str) -> Option<CgroupMount<'_>> {
    let (left, right) = line.split_once(" - ")?;
    let mut right = right.split(' ');
    let (kind, _, options) = (right.next()?, right.next()?, right.next()?);
    if kind != "cgroup" && kind != "cgroup2" {
        return None;
    }
    let mut left = left.split(' ').skip(3);
    let (root, point) = (left.next()?, left.next()?);
    Some(CgroupMount { root, point: PathBuf::from(point), kind, options })
}

/// The folder of cgroup `path` under a mount of a part of the hierarchy.
fn below(mount: &CgroupMount<'_>, path: &str) -> PathBuf {
    let inside = Path::new(path).strip_prefix(mount.root).unwrap_or(Path::new(""));
    if inside.as_os_str().is_empty() { mount.point.clone() } else { mount.point.join(inside) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hybrid_hosts_have_both() {
        let cgroup = "5:cpu,cpuacct:/\n4:memory:/a/b\n3:pids:/\n1:name=systemd:/\n0::/\n";
        let mounts = "\
30 24 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755
31 30 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:5 - cgroup cgroup rw,cpu,cpuacct
33 30 0:29 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
        let cpu = PathBuf::from("/sys/fs/cgroup/cpu,cpuacct");
        assert_eq!(
            parse(cgroup, mounts),
            Layout {
                v1: [
                    (Controller::Memory, PathBuf::from("/sys/fs/cgroup/memory/a/b")),
                    (Controller::Cpu, cpu.clone()),
                    (Controller::CpuAccounting, cpu),
                ]
                .into(),
                v2: Some(V2 {
                    top: "/sys/fs/cgroup/unified".into(),
                    own: "/sys/fs/cgroup/unified".into()
                }),
            }
        );
    }

    #[test]
    fn a_container_sees_a_part() {
        let mounts = "9 8 0:1 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup rw,nsdelegate\n";
        let layout = parse("0::/docker/x/y\n", mounts);
        let v2 = layout.v2.unwrap();
        assert_eq!(v2.own, PathBuf::from("/sys/fs/cgroup/y"));
        assert_eq!(v2.top, PathBuf::from("/sys/fs/cgroup"));
        assert_eq!(parse("", "garbage\n - cgroup2 x\n"), Layout::default());
    }
}
