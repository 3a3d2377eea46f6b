//! What goes on top of a base: solved by apt itself, in the finished base, against the pinned index, offline.
//!
//! The index is the one that the base was locked from (its digest is in the lock), so an environment's
//! packages fit the base's whatever the archive has become since.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Index;
use super::lock::fetch_locked_index;
use crate::base::Store;
use crate::image::Image;
use crate::lock::{BaseLock, Deb};
use crate::net;
use crate::resolve::Error;
use crate::runtime::{Mount, Network, Root, RunSpec, Workbench};
use crate::spec::BaseDefinition;

/// The packages that `packages` need besides the base's, sorted by name; no recommends.
pub fn lock_packages(
    bench: Workbench<'_>,
    client: &net::Client,
    base: &Image,
    lock: &BaseLock,
    packages: &[String],
) -> Result<Vec<Deb>, Error> {
    if packages.is_empty() {
        return Ok(Vec::new());
    }
    let index = locked_index(bench.store, client, lock)?;
    let index = Index::parse(&lock.suite, &index)?;
    for name in packages {
        if index.package(name).is_none() {
            return Err(Error::NoPackage {
                suite: lock.suite.clone(),
                name: name.clone(),
                similar: index.similar(name),
            });
        }
    }
    let plan = simulate(bench, base, lock, "", packages)?;
    let held: BTreeMap<&str, &Deb> = lock.debs.iter().map(|deb| (deb.name.as_str(), deb)).collect();
    let mut debs = Vec::new();
    for (name, version) in plan {
        if let Some(deb) = held.get(name.as_str()) {
            return Err(solver(lock, format!("{name} {} would become {version}", deb.version)));
        }
        let package = index
            .find(&name, &version)
            .ok_or_else(|| solver(lock, format!("{name} {version} is not in the index")))?;
        debs.push(package.file.clone());
    }
    debs.sort();
    Ok(debs)
}

/// Whether apt, run in the base against the pinned index with nothing installed, chooses the packages that the
/// base was locked with.
pub fn check_closure(
    bench: Workbench<'_>,
    client: &net::Client,
    definition: &BaseDefinition,
    base: &Image,
    lock: &BaseLock,
) -> Result<(), Error> {
    locked_index(bench.store, client, lock)?;
    let mut roots = vec!["?essential".to_owned(), "apt".to_owned()];
    roots.extend(definition.packages.iter().cloned());
    let plan: BTreeSet<String> =
        simulate(bench, base, lock, "-o Dir::State::status=/tmp/status", &roots)?
            .into_iter()
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
    let ours: BTreeSet<String> =
        lock.debs.iter().map(|deb| format!("{} {}", deb.name, deb.version)).collect();
    if plan == ours {
        return Ok(());
    }
    Err(Error::Closure {
        suite: lock.suite.clone(),
        missing: plan.difference(&ours).cloned().collect(),
        extra: ours.difference(&plan).cloned().collect(),
    })
}

/// The index that a base was locked from: from the store, else from the network (the snapshot service, once the
/// suite has moved) and then kept there.
pub fn locked_index(store: &Store, client: &net::Client, lock: &BaseLock) -> Result<String, Error> {
    if store.has_blob(&lock.packages_index) {
        let bytes = store.read_blob(&lock.packages_index)?;
        return String::from_utf8(bytes).map_err(|_| Error::Archive {
            suite: lock.suite.clone(),
            file: "Packages".to_owned(),
            problem: "it is not UTF-8 text".to_owned(),
        });
    }
    let text = fetch_locked_index(client, lock)?;
    store.put_blob(text.as_bytes())?;
    Ok(text)
}

/// Runs `apt-get -s install`; returns the names and versions that it would install. Nothing is fetched: the
/// index is a file of the sandbox.
fn simulate(
    bench: Workbench<'_>,
    base: &Image,
    lock: &BaseLock,
    options: &str,
    packages: &[String],
) -> Result<Vec<(String, String)>, Error> {
    const SCRIPT: &str = r#"
set -e
options=$1
shift
mkdir -p /tmp/lists/partial /tmp/cache/archives/partial
: > /tmp/status
echo 'deb [trusted=yes] file:/.hallmark/repo ./' > /tmp/sources.list
apt() {
    apt-get -o Dir::Etc::SourceList=/tmp/sources.list -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists=/tmp/lists -o Dir::Cache=/tmp/cache -o APT::Sandbox::User=root \
        -o Acquire::Languages=none -o APT::Install-Recommends=0 -o Dir::Log=/tmp $options "$@"
}
apt -qq update >&2
apt -qq -s install "$@"
"#;
    let scratch = bench.store.scratch_dir("apt")?;
    let mut spec = RunSpec::new(["sh", "-c", SCRIPT, "sh", options], scratch.path());
    spec.argv.extend(packages.iter().cloned());
    spec.network = Network::Unreachable;
    spec.mounts = vec![Mount {
        source: bench.store.blob_path(&lock.packages_index),
        target: "/.hallmark/repo/Packages".to_owned(),
        writable: false,
    }];
    let log = bench.runtime.run(Root::Layers(&base.layers), &spec, bench.cancel)?;
    if !log.success() {
        let said = read(&log.stderr)?;
        let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("E:")).collect();
        return Err(solver(lock, if lines.is_empty() { said } else { lines.join("\n") }));
    }
    parse_plan(&read(&log.stdout)?).map_err(|line| solver(lock, format!("apt says {line:?}")))
}

/// `Inst gcc (4:12.2.0-3 localhost [amd64])`; what is not new (`Inst x [1] (2 ...)`, `Remv`) is an error.
fn parse_plan(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut plan = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            ["Inst", name, version, ..] if version.starts_with('(') => {
                let name = name.split_once(':').map_or(*name, |(name, _)| name);
                plan.push((name.to_owned(), version[1..].to_owned()));
            }
            ["Inst" | "Remv" | "Purg", ..] => return Err(line.to_owned()),
            _ => {}
        }
    }
    Ok(plan)
}

fn solver(lock: &BaseLock, problem: String) -> Error {
    Error::Solver { suite: lock.suite.clone(), problem }
}

fn read(path: &Path) -> Result<String, Error> {
    let bytes = fs_err::read(path).map_err(crate::base::Error::from)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_hold_new_packages_only() {
        let text = "NOTE: This is only a simulation!\nInst gcc (4:12.2.0-3 localhost [amd64]) []\n\
            Inst libc6-dev:amd64 (2.36-9 localhost [amd64])\nConf gcc (4:12.2.0-3 localhost [amd64])\n";
        let plan = parse_plan(text).unwrap();
        assert_eq!(
            plan,
            [
                ("gcc".to_owned(), "4:12.2.0-3".to_owned()),
                ("libc6-dev".to_owned(), "2.36-9".to_owned())
            ]
        );
        for line in ["Inst libc6 [2.36-8] (2.36-9 localhost [amd64])", "Remv git [1:2]"] {
            assert_eq!(parse_plan(line).unwrap_err(), line);
        }
    }
}
