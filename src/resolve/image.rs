//! Bases that are images of a registry: what the name stands for, and the suite's index for further packages.

use super::{Error, debian};
use crate::base::progress::Task;
use crate::base::{Arch, Cancel, SharedReporter};
use crate::image::registry::find;
use crate::lock::{BaseLock, LockedBlob, LockedImage};
use crate::net::Client;
use crate::net::registry::Reference;
use crate::spec::BaseDefinition;

/// Locks a base of either kind.
pub fn lock_base(
    client: &Client,
    definition: &BaseDefinition,
    arch: Arch,
    reporter: &SharedReporter,
    cancel: &Cancel,
) -> Result<BaseLock, Error> {
    let Some(source) = &definition.registry else {
        return debian::lock_base(client, definition, arch, reporter, cancel);
    };
    let task = Task::start(reporter, "lock", definition.name.clone(), None);
    let name = source.reference();
    let client = client.with_cancel(cancel);
    let found = find(&client, &name, arch)?;
    if name.digest.is_none() {
        let pinned = Reference { digest: Some(found.digest), ..name.clone() };
        return Err(Error::NotPinned { name: name.to_string(), pinned: pinned.to_string() });
    }
    let blob =
        |held: &crate::image::registry::Held| LockedBlob { sha256: held.digest, size: held.size };
    let image = LockedImage {
        repository: source.repository.clone(),
        digest: found.digest,
        manifest: found.manifest,
        config: blob(&found.config),
        layers: found.layers.iter().map(blob).collect(),
    };
    let lock =
        BaseLock { image: Some(image), ..debian::lock_suite(&client, definition, arch, cancel)? };
    task.done_with(format!("{} layers, packages as of {}", found.layers.len(), lock.as_of));
    Ok(lock)
}
