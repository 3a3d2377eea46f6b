//! Base images: Debian, bootstrapped natively from locked packages, offline.
//!
//! A tree gets the files of the few packages that dpkg needs to run; dpkg then installs every package in
//! the sandbox, in any order; what would differ next time is cleaned; the tree becomes one layer. Nothing
//! depends on the order, the clock or the host's name (`notes` in docs/decisions/0010-debian-base.md).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::json;

use super::step::cached_layer;
use super::{Error, command, deb, labels, registry};
use crate::base::{Cancel, Store, canon, clock};
use crate::image::{self, Image, ImageConfig, Layer, PackRules};
use crate::lock::{BaseLock, Deb};
use crate::resolve::debian::{Index, closure_of};
use crate::runtime::{Gap, Mount, Network, Root, RunSpec, Workbench};

/// Raise it whenever the bootstrap, its scripts or the cleaning change what comes out.
const VERSION: u32 = 2;

/// Where blobs and scripts are mounted while packages are installed; no part of the image.
pub(super) const MOUNTS: &str = ".hallmark";

pub(super) const SCRIPTS: [(&str, &str); 5] = [
    ("bootstrap.sh", include_str!("scripts/bootstrap.sh")),
    ("configure.sh", include_str!("scripts/configure.sh")),
    ("install.sh", include_str!("scripts/install.sh")),
    ("compile.py", include_str!("scripts/compile.py")),
    // Takes the place of the tools that compile Python: as a shell script and as Python it does nothing.
    ("nothing", "#!/bin/sh\n"),
];

/// Files that the image has beside those of its packages. No address of the host's may come in through them, and
/// the runtime mounts its own over the first three.
const FILES: [(&str, &str); 4] = [
    ("etc/hostname", ""),
    ("etc/resolv.conf", ""),
    ("etc/hosts", "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"),
    // /testbed belongs to root; tests that run as another user call git there.
    ("etc/gitconfig", "[safe]\n\tdirectory = /testbed\n"),
];

/// Builds a base image from packages (or the layers of an image) that are in the store. Offline; the same lock gives the same image.
pub fn base(bench: Workbench<'_>, lock: &BaseLock) -> Result<Image, Error> {
    if let Some(image) = &lock.image {
        return registry::base(bench, lock, image);
    }
    let inputs = json!({ "step": "base", "version": VERSION, "lock": lock.digest()? });
    let layer = cached_layer(bench, "base", &lock.suite, &inputs, |_| make(bench, lock))?;
    Ok(Image {
        key: canon::digest(&inputs)?,
        arch: lock.arch,
        layers: vec![layer],
        config: config(lock)?,
        created: lock.as_of.as_second(),
    })
}

pub(super) fn config(lock: &BaseLock) -> Result<ImageConfig, Error> {
    let env = [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("LANG", "C.UTF-8"),
    ];
    Ok(ImageConfig {
        env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        working_dir: String::new(),
        // Stated, since some orchestrators refuse an image that does not say it.
        user: "0:0".to_owned(),
        command: vec!["/bin/bash".to_owned()],
        labels: labels::of_base(lock)?,
    })
}

fn make(bench: Workbench<'_>, lock: &BaseLock) -> Result<Layer, Error> {
    let epoch = lock.as_of.as_second();
    check_host(bench, &lock.suite, epoch)?;
    let scratch = bench.store.scratch_dir("base")?;
    let tree = scratch.path().join("tree");
    prepare(&tree, lock)?;
    let first = first_packages(bench.store, lock, bench.cancel)?;
    tracing::debug!(
        first = first.len(),
        all = lock.debs.len(),
        "packages unpacked before dpkg runs"
    );
    unpack_all(bench.store, &first, &tree, bench.cancel)?;
    seed(&tree, lock)?;
    let mut spec = install_spec(bench.store, scratch.path(), epoch)?;
    spec.env.insert("PYTHON".to_owned(), lock.python.clone());
    spec.env.insert("BARE".to_owned(), "1".to_owned());
    spec.argv = script("bootstrap.sh", &lock.debs);
    command::run(bench, &format!("the base of {}", lock.suite), Root::Directory(&tree), &spec)?;
    finish(&tree)?;
    Ok(image::commit_tree(bench.store, tree, &PackRules::base(epoch), bench.cancel)?)
}

/// Whether what this machine makes of Debian packages is what any other makes: files get the clock's time unless it is clamped
/// to the epoch, and owners need real ids.
pub(super) fn check_host(bench: Workbench<'_>, suite: &str, epoch: i64) -> Result<(), Error> {
    let fault = host_fault(clock::now().as_second(), epoch, bench.runtime.gaps());
    match fault {
        None => Ok(()),
        Some((problem, hint)) => Err(Error::Host {
            what: format!("an image with Debian packages of {suite}"),
            problem: problem.to_owned(),
            hint: hint.to_owned(),
        }),
    }
}

fn host_fault(now: i64, epoch: i64, gaps: &[Gap]) -> Option<(&'static str, &'static str)> {
    if now <= epoch {
        return Some((
            "this machine's clock is before the time of the packages",
            "set the clock: files would keep its time otherwise",
        ));
    }
    gaps.contains(&Gap::SingleId).then_some((
        "there is only one user id, and files of several owners would all get it",
        "give the user subordinate ids (`usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER`, and newuidmap from `uidmap`), or name a store that holds the layer with --store",
    ))
}

/// `sh` on one of the scripts, with the packages' files as arguments.
pub(super) fn script(name: &str, debs: &[Deb]) -> Vec<String> {
    ["sh".to_owned(), format!("/{MOUNTS}/scripts/{name}")]
        .into_iter()
        .chain(debs.iter().map(|deb| format!("/{MOUNTS}/blobs/{}", deb.sha256.hex())))
        .collect()
}

/// What installing packages needs, whatever lies below; outputs and scripts go to `scratch`.
pub(super) fn install_spec(store: &Store, scratch: &Path, epoch: i64) -> Result<RunSpec, Error> {
    let scripts = scratch.join("scripts");
    let output = scratch.join("output");
    fs_err::create_dir_all(&scripts)?;
    fs_err::create_dir_all(&output)?;
    for (name, text) in SCRIPTS {
        crate::base::files::write_atomic(&scripts.join(name), text.as_bytes())?;
    }
    let mut spec = RunSpec::new(["true"], &output);
    spec.network = Network::Unreachable;
    spec.env.extend(
        [
            ("DEBIAN_FRONTEND", "noninteractive".to_owned()),
            ("DEBCONF_NONINTERACTIVE_SEEN", "true".to_owned()),
            ("SOURCE_DATE_EPOCH", epoch.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    spec.mounts = vec![
        Mount {
            source: store.root().join("blobs/sha256"),
            target: format!("/{MOUNTS}/blobs"),
            writable: false,
        },
        Mount { source: scripts, target: format!("/{MOUNTS}/scripts"), writable: false },
    ];
    Ok(spec)
}

/// The empty tree: merged /usr first, so that packages that ship `/bin` land in it.
fn prepare(tree: &Path, lock: &BaseLock) -> Result<(), Error> {
    fs_err::create_dir_all(tree.join("usr"))?;
    for name in deb::MERGED {
        if name == "lib64" && lock.arch != crate::base::Arch::Amd64 {
            continue;
        }
        fs_err::create_dir(tree.join("usr").join(name))?;
        fs_err::os::unix::fs::symlink(Path::new("usr").join(name), tree.join(name))?;
    }
    Ok(())
}

/// The packages whose files must be there before dpkg runs: the essential ones, what any package asks for
/// before it is unpacked, and what these need. dpkg installs them again, like all others.
fn first_packages<'a>(
    store: &Store,
    lock: &'a BaseLock,
    cancel: &Cancel,
) -> Result<Vec<&'a Deb>, Error> {
    let mut text = String::new();
    let mut roots = BTreeSet::new();
    for deb in &lock.debs {
        cancel.check()?;
        let control = deb::control(deb.file_name(), store.open_blob(&deb.sha256)?)?;
        for line in control.lines() {
            if let Some(names) = line.strip_prefix("Pre-Depends:") {
                let names = names.split(',').filter_map(|clause| {
                    clause.split(|c: char| "(|: ".contains(c)).find(|part| !part.is_empty())
                });
                roots.extend(names.map(str::to_owned));
            }
        }
        write!(
            text,
            "{}\nFilename: {}\nSize: {}\nSHA256: {}\n\n",
            control.trim_end(),
            deb.path,
            deb.size,
            deb.sha256.hex()
        )
        .expect("a string takes everything");
    }
    let invalid = |error: crate::resolve::Error| Error::Invalid {
        what: format!("the lock of {}", lock.suite),
        problem: error.to_string(),
        hint: error.hint(),
    };
    let index = Index::parse(&lock.suite, &text).map_err(invalid)?;
    // A name that only another package provides is met by the essential ones or by that package's own name.
    let roots = roots.iter().filter_map(|name| index.package(name));
    let names: BTreeSet<String> =
        closure_of(&lock.suite, &index, index.essential().chain(roots).collect())
            .map_err(invalid)?
            .into_iter()
            .map(|deb| deb.name)
            .collect();
    Ok(lock.debs.iter().filter(|deb| names.contains(&deb.name)).collect())
}

/// Unpacks packages in parallel; their files do not overlap.
fn unpack_all(store: &Store, debs: &[&Deb], tree: &Path, cancel: &Cancel) -> Result<(), Error> {
    // The largest first, so that no thread is left with one at the end.
    let mut queue: Vec<&Deb> = debs.to_vec();
    queue.sort_by_key(|deb| deb.size);
    let queue = Mutex::new(queue);
    let work = || -> Result<(), Error> {
        loop {
            cancel.check()?;
            let Some(deb) = queue.lock().expect("no holder panics").pop() else { return Ok(()) };
            let archive = Stoppable { archive: store.open_blob(&deb.sha256)?, cancel };
            let unpacked = deb::unpack(deb.file_name(), archive, tree);
            // An archive that stopped is no broken one.
            cancel.check()?;
            unpacked?;
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("a worker does not panic"))
            .collect::<Result<Vec<()>, Error>>()
    })?;
    Ok(())
}

/// An archive that ends in an error once the end was asked for: a large one takes seconds to unpack.
struct Stoppable<'a, R> {
    archive: R,
    cancel: &'a Cancel,
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.cancel.check().map_err(std::io::Error::other)?;
        self.archive.read(buffer)
    }
}

/// dpkg's empty database, and the users that files belong to before base-passwd is configured.
fn seed(tree: &Path, lock: &BaseLock) -> Result<(), Error> {
    let dpkg = tree.join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        fs_err::create_dir_all(dpkg.join(folder))?;
    }
    let etc = tree.join("etc");
    fs_err::create_dir_all(&etc)?;
    let masters = tree.join("usr/share/base-passwd");
    let files: [(PathBuf, Vec<u8>); 5] = [
        (dpkg.join("status"), Vec::new()),
        (dpkg.join("available"), Vec::new()),
        (dpkg.join("arch"), format!("{}\n", lock.arch.oci()).into_bytes()),
        (etc.join("passwd"), fs_err::read(masters.join("passwd.master"))?),
        (etc.join("group"), fs_err::read(masters.join("group.master"))?),
    ];
    for (path, contents) in files {
        if !path.exists() {
            crate::base::files::write_atomic(&path, &contents)?;
        }
    }
    Ok(())
}

/// What no package makes: the mount points, a `python`, a few files of `/etc`.
fn finish(tree: &Path) -> Result<(), Error> {
    remove(&tree.join(MOUNTS))?;
    for (name, mode) in
        [("dev", 0o755), ("proc", 0o555), ("sys", 0o555), ("run", 0o755), ("tmp", 0o1777)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let path = tree.join(name);
        remove(&path)?;
        fs_err::create_dir(&path)?;
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
    }
    // /run/lock is where /var/lock points.
    let lock = tree.join("run/lock");
    fs_err::create_dir(&lock)?;
    fs_err::set_permissions(&lock, std::os::unix::fs::PermissionsExt::from_mode(0o1777))?;
    for (name, text) in FILES {
        let path = tree.join(name);
        remove(&path)?;
        crate::base::files::write_atomic(&path, text.as_bytes())?;
    }
    let python = tree.join("usr/local/bin/python");
    remove(&python)?;
    fs_err::os::unix::fs::symlink("/usr/bin/python3", python)?;
    // The image is one environment: pip installs into the interpreter's own local scheme. (PEP 668 allows it.)
    for entry in fs_err::read_dir(tree.join("usr/lib"))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("python3.") {
            remove(&entry.path().join("EXTERNALLY-MANAGED"))?;
        }
    }
    Ok(())
}

/// Removes whatever is there, following no link.
fn remove(path: &Path) -> Result<(), Error> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
        Ok(found) if found.is_dir() => Ok(image::remove_tree(path)?),
        Ok(_) => Ok(fs_err::remove_file(path)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_the_epoch_and_one_id_are_refused() {
        assert_eq!(host_fault(11, 10, &[Gap::MemoryLimit]), None);
        for now in [9, 10] {
            assert!(host_fault(now, 10, &[]).unwrap().0.contains("clock"));
        }
        assert!(host_fault(11, 10, &[Gap::SingleId]).unwrap().1.contains("--add-subuids"));
    }
}
