//! Extended attributes: which of them a layer keeps, and what overlayfs writes into its upper dirs.

use std::os::fd::AsFd;

use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr};
use rustix::io::Errno;

use super::entry::Attributes;

/// The mark of an opaque folder in an upper dir mounted with `userxattr`.
pub(super) const OPAQUE: &str = "user.overlay.opaque";

const CAPABILITY: &[u8] = b"security.capability";

/// Magic of `struct vfs_ns_cap_data`: revision 3 carries the root id of a user namespace.
const CAPABILITY_REVISION_3: u8 = 3;
const CAPABILITY_V2_LENGTH: usize = 20;
const CAPABILITY_V3_LENGTH: usize = 24;

/// What the attributes of a file or folder mean for its layer.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// What the layer keeps.
    pub(super) kept: Attributes,
    /// The folder hides what lies below it.
    pub(super) opaque: bool,
    /// The content is elsewhere.
    pub(super) partial: bool,
    /// What must not stay on disk, or must be written again.
    pub(super) stale: Vec<Vec<u8>>,
}

/// Whether an attribute from an archive may be set.
pub(super) fn is_allowed(name: &[u8]) -> bool {
    name == CAPABILITY || (name.starts_with(b"user.") && !name.starts_with(b"user.overlay."))
}

/// Reads the attributes of an open file or folder.
pub(super) fn read(file: impl AsFd) -> Result<Found, Errno> {
    let mut found = Found::default();
    let mut names = vec![0; 256];
    let length = loop {
        match flistxattr(&file, &mut names[..]) {
            Ok(length) => break length,
            Err(Errno::RANGE) => names.resize(names.len() * 4, 0),
            Err(Errno::NOTSUP) => break 0,
            Err(errno) => return Err(errno),
        }
    };
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        if is_allowed(name) {
            let value = value(&file, name)?;
            let canonical = if name == CAPABILITY { capability_v2(&value) } else { None };
            if let Some(canonical) = canonical {
                found.stale.push(name.to_vec());
                found.kept.insert(name.to_vec(), canonical);
            } else {
                found.kept.insert(name.to_vec(), value);
            }
        } else if name == b"user.overlay.opaque" || name == b"trusted.overlay.opaque" {
            // Any other value than `y` says nothing about the layers below.
            let opaque = value(&file, name)? == b"y";
            found.opaque |= opaque;
            if !opaque || name != OPAQUE.as_bytes() {
                found.stale.push(name.to_vec());
            }
        } else {
            found.partial |=
                name.ends_with(b".overlay.redirect") || name.ends_with(b".overlay.metacopy");
            // Labels of security modules are the host's; the kernel looks after them.
            if !name.starts_with(b"security.") {
                found.stale.push(name.to_vec());
            }
        }
    }
    Ok(found)
}

/// Removes what must not stay and writes what `read` changed.
pub(super) fn normalise(file: impl AsFd, found: &Found) -> Result<(), Errno> {
    for name in &found.stale {
        fremovexattr(&file, name)?;
        if let Some(value) = found.kept.get(name) {
            fsetxattr(&file, name, value, XattrFlags::empty())?;
        }
    }
    if found.opaque && found.stale.iter().any(|name| name == b"trusted.overlay.opaque") {
        set_opaque(&file)?;
    }
    Ok(())
}

/// Marks a folder opaque.
pub(super) fn set_opaque(folder: impl AsFd) -> Result<(), Errno> {
    fsetxattr(folder, OPAQUE, b"y", XattrFlags::empty())
}

/// Sets attributes of a new file or folder.
pub(super) fn write(file: impl AsFd, attributes: &Attributes) -> Result<(), Errno> {
    attributes
        .iter()
        .try_for_each(|(name, value)| fsetxattr(&file, name, value, XattrFlags::empty()))
}

fn value(file: impl AsFd, name: &[u8]) -> Result<Vec<u8>, Errno> {
    let mut value = vec![0; 256];
    loop {
        match fgetxattr(&file, name, &mut value[..]) {
            Ok(length) => {
                value.truncate(length);
                return Ok(value);
            }
            Err(Errno::RANGE) => value.resize(value.len() * 16, 0),
            Err(errno) => return Err(errno),
        }
    }
}

/// The same capabilities without the root id of the namespace they were set in, if there is one.
fn capability_v2(value: &[u8]) -> Option<Vec<u8>> {
    (value.len() == CAPABILITY_V3_LENGTH && value[3] == CAPABILITY_REVISION_3).then(|| {
        let mut value = value[..CAPABILITY_V2_LENGTH].to_vec();
        value[3] = 2;
        value
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_lose_the_root_id() {
        let mut v3 = [7_u8; 24];
        v3[..4].copy_from_slice(&[1, 0, 0, 3]);
        let v2 = capability_v2(&v3).unwrap();
        assert_eq!((v2.len(), &v2[..4], &v2[4..]), (20, &[1, 0, 0, 2][..], &v3[4..20]));
        assert_eq!(capability_v2(&v2), None);
    }

    #[test]
    fn the_list_is_explicit() {
        for (name, allowed) in [
            ("user.note", true),
            ("security.capability", true),
            ("security.selinux", false),
            ("security.ima", false),
            ("user.overlay.origin", false),
            ("trusted.overlay.opaque", false),
            ("trusted.x", false),
            ("system.posix_acl_access", false),
        ] {
            assert_eq!(is_allowed(name.as_bytes()), allowed, "{name}");
        }
    }
}
