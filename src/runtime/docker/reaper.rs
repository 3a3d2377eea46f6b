//! Whose a container is, and the end of those whose hallmark died.

use std::collections::BTreeMap;
use std::time::Duration;

use bollard::models::{ContainerSummary, ContainerSummaryStateEnum};
use bollard::query_parameters::ListContainersOptions;

use super::super::Error;
use super::super::error::system;
use super::container::remove;
use super::engine::Engine;
use crate::base::{Cancel, Owner};

/// Unique for each run.
const RUN: &str = "hallmark.run";
/// The process that made it, as [`Owner`] writes it.
const OWNER: &str = "hallmark.owner";
/// The boot of that process's machine.
const BOOT: &str = "hallmark.boot";

/// How long a daemon may take to list containers.
const LISTING: Duration = Duration::from_mins(1);

/// What is written on a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Labels {
    run: String,
    owner: String,
    boot: String,
}

impl Labels {
    /// For the n-th run of this process.
    pub(super) fn new(number: u64) -> Result<Self, Error> {
        let owner = Owner::own().map_err(system("name this process"))?.to_string();
        Ok(Self { run: format!("{owner}-{number}"), owner, boot: boot()? })
    }

    pub(super) fn to_map(&self) -> BTreeMap<String, String> {
        let pairs = [(RUN, &self.run), (OWNER, &self.owner), (BOOT, &self.boot)];
        pairs.map(|(name, value)| (name.to_owned(), value.clone())).into()
    }
}

fn boot() -> Result<String, Error> {
    let text = fs_err::read_to_string("/proc/sys/kernel/random/boot_id");
    Ok(text.map_err(system("name this boot"))?.trim().to_owned())
}

/// Removes the containers of dead processes.
pub(super) fn reap(engine: &Engine, cancel: &Cancel) -> Result<(), Error> {
    let options = ListContainersOptions {
        all: true,
        filters: Some([("label".to_owned(), vec![RUN.to_owned()])].into()),
        ..ListContainersOptions::default()
    };
    let listing = engine.docker().list_containers(Some(options));
    let containers = engine.call("list containers", LISTING, cancel, listing)?;
    let boot = boot()?;
    for container in containers {
        let Some(id) = &container.id else { continue };
        if is_left(&container, &boot) {
            tracing::info!(id, "a container that a dead run left is removed");
            remove(engine, id);
        }
    }
    Ok(())
}

/// Whether nobody waits for it any more: its process is known to be dead, or it stands still and was made before this
/// machine started. What runs for another machine's hallmark is left alone.
fn is_left(container: &ContainerSummary, boot: &str) -> bool {
    let label = |name: &str| container.labels.as_ref()?.get(name).map(String::as_str);
    let Some(owner) = label(OWNER).and_then(Owner::parse) else { return false };
    if label(BOOT) == Some(boot) {
        return owner.is_dead();
    }
    matches!(
        container.state,
        Some(ContainerSummaryStateEnum::EXITED | ContainerSummaryStateEnum::DEAD)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_waits_for_is_left() {
        let own = Owner::own().unwrap().to_string();
        let namespace = own.split('-').next().unwrap();
        let dead = format!("{namespace}-4294967295-5");
        let boot = boot().unwrap();
        let running = ContainerSummaryStateEnum::RUNNING;
        let exited = ContainerSummaryStateEnum::EXITED;
        for (owner, at, state, left) in [
            (own.as_str(), boot.as_str(), running, false),
            (&own, &boot, exited, false),
            (&dead, &boot, running, true),
            (&dead, &boot, exited, true),
            (&dead, "another", running, false),
            (&own, "another", exited, true),
            ("unreadable", "another", exited, false),
        ] {
            let labels =
                [(RUN, "x"), (OWNER, owner), (BOOT, at)].map(|(n, v)| (n.to_owned(), v.to_owned()));
            let container = ContainerSummary {
                labels: Some(labels.into()),
                state: Some(state),
                ..ContainerSummary::default()
            };
            assert_eq!(is_left(&container, &boot), left, "{owner} {at} {state:?}");
        }
    }
}
