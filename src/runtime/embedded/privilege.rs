//! Takes root's powers from the command.

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets};

use super::super::shared::KEPT;

fn kept() -> CapabilitySet {
    KEPT.iter().map(|number| CapabilitySet::from_bits_retain(1 << number)).collect()
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
