//! The side of the runtime that lives in hallmark's own process.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::super::check::{check, source};
use super::super::error::system;
use super::super::shared::{
    DiskWatch, Processors, RunFolder, Session, exit_status, hosts, make_targets, programs,
    resolv_conf, sweep, unsynced,
};
use super::super::{
    EMBEDDED, Error, ExitStatus, Gap, Mount, NetworkAttempts, Root, RunLog, RunSpec, Runtime,
};
use super::cgroup::{Group, Hierarchy};
use super::host;
use super::idmap;
use super::intercept::LAUNCHER;
use super::protocol::{Frame, Hole, MountRequest, Request, RootRequest, send};
use super::watch::{Outcome, Watch};
use crate::base::{Cancel, Store};

/// The runtime that needs nothing installed.
pub struct Embedded {
    store: Store,
    launcher: PathBuf,
    maps: (String, String),
    filters: Vec<Vec<u8>>,
    /// On top of `filters` for [`Root::Directory`]; overlays are mounted `volatile` instead.
    unsynced: Vec<u8>,
    hierarchy: Hierarchy,
    session: Session,
    gaps: Vec<Gap>,
    options: Options,
    processors: Processors,
}

/// Ways of doing the same that hosts differ in, for tests.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Stack layers by mount(2) as kernels before 6.7 must.
    pub classic_overlay: bool,
    /// What may make a black hole; nothing, as on a host that cannot.
    pub black_holes: &'static [Hole],
    /// Use cgroups, or do as on a host that has none.
    pub cgroups: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { classic_overlay: false, black_holes: &[Hole::Veth, Hole::Tun], cgroups: true }
    }
}

impl Embedded {
    /// Finds out what the host can give, and sweeps what dead runs left. `launcher` is this binary (or
    /// one whose `main` calls [`super::intercept`]).
    pub fn new(store: &Store, launcher: PathBuf) -> Result<Self, Error> {
        Self::with_options(store, launcher, Options::default())
    }

    #[doc(hidden)]
    pub fn with_options(store: &Store, launcher: PathBuf, options: Options) -> Result<Self, Error> {
        host::check()?;
        let maps = idmap::own().map_err(system("read the id maps"))?;
        let single_id = idmap::count(&maps.0) < 2 || idmap::count(&maps.1) < 2;
        let compiled = programs(single_id).and_then(|all| Ok((all, unsynced()?)));
        let (filters, unsynced) = compiled.map_err(|error| Error::Launcher {
            message: format!("the seccomp filter does not compile: {error}"),
        })?;
        let hierarchy = Hierarchy::find().map_err(system("find the cgroups"))?;
        let session = Session::create(store).map_err(system("make a scratch folder"))?;
        let mut gaps = Vec::new();
        for (given, gap) in
            hierarchy.limits().into_iter().zip([Gap::MemoryLimit, Gap::PidsLimit, Gap::CpuLimit])
        {
            if !given || !options.cgroups {
                gaps.push(gap);
            }
        }
        if single_id {
            gaps.push(Gap::SingleId);
        }
        let store = store.clone();
        let embedded = Self {
            store,
            launcher,
            maps,
            filters,
            unsynced,
            hierarchy,
            session,
            gaps,
            options,
            processors: Processors::default(),
        };
        embedded.sweep()?;
        Ok(embedded)
    }

    /// Which cgroups are used, in words.
    pub(super) fn cgroups(&self) -> String {
        self.hierarchy.describe()
    }

    /// Removes the cgroups and scratch folders of dead processes' runs.
    pub fn sweep(&self) -> Result<(), Error> {
        self.hierarchy.sweep();
        sweep(self.store.scratch()).map_err(system("sweep the scratch folder"))
    }

    fn request(
        &self,
        root: Root<'_>,
        spec: &RunSpec,
        folder: &RunFolder,
        group: &Group,
    ) -> Result<Request, Error> {
        let mounts = spec.mounts.iter().map(mount_request).collect::<Result<Vec<_>, _>>()?;
        // Where there is one id there is no other user to be.
        let single_id = self.gaps.contains(&Gap::SingleId);
        let mut copies = spec.copies.clone();
        if single_id {
            for copy in &mut copies {
                copy.owner = None;
            }
        }
        Ok(Request {
            root: self.root_request(root, &mounts, folder)?,
            argv: spec.argv.clone(),
            env: spec.env.iter().map(|(name, value)| format!("{name}={value}")).collect(),
            working_dir: spec.working_dir.clone(),
            uid: if single_id { 0 } else { spec.uid },
            gid: if single_id { 0 } else { spec.gid },
            hostname: spec.hostname.clone(),
            uid_map: self.maps.0.clone(),
            gid_map: self.maps.1.clone(),
            cgroups: group.v1().to_vec(),
            cgroup2: group.v2().map(Path::to_owned),
            network: spec.network,
            holes: self.options.black_holes.to_vec(),
            account: if single_id { None } else { spec.account.clone() },
            copies,
            copy_size: spec.limits.memory,
            read_only: spec.read_only.clone(),
            mounts,
            hosts: hosts(spec)?,
            resolv_conf: resolv_conf(spec)?,
            shm: spec.limits.shm,
            open_files: spec.limits.open_files,
            processors: self.processors.next(spec.limits.processors),
            file_size: spec.limits.disk,
            scratch: folder.path().to_owned(),
            filters: self.filters_for(root).iter().map(|filter| filter.len()).collect(),
        })
    }

    fn root_request(
        &self,
        root: Root<'_>,
        mounts: &[MountRequest],
        run: &RunFolder,
    ) -> Result<RootRequest, Error> {
        let layers = match root {
            Root::Directory(folder) => {
                let folder =
                    fs_err::canonicalize(folder).map_err(system("find the root folder"))?;
                return Ok(RootRequest::Directory(folder));
            }
            Root::Layers(layers) => layers,
        };
        let mut lowers = vec![self.session.skeleton()];
        let make = |name| run.make(name).map_err(system("make the upper dir"));
        if !mounts.is_empty() {
            let targets = make("targets")?;
            let wanted = mounts.iter().map(|mount| (mount.target.as_str(), mount.folder));
            make_targets(&targets, wanted).map_err(system("make mount points"))?;
            lowers.push(targets);
        }
        for layer in layers {
            let path = self.store.layer_path(&layer.diff_id);
            if !path.is_dir() {
                return Err(Error::MissingLayer { path });
            }
            lowers.push(path);
        }
        Ok(RootRequest::Layers {
            lowers,
            upper: make("upper")?,
            work: make("work")?,
            target: make("root")?,
            classic: self.options.classic_overlay,
        })
    }

    fn filters_for(&self, root: Root<'_>) -> Vec<&[u8]> {
        let unsynced = matches!(root, Root::Directory(_)).then_some(&self.unsynced);
        self.filters.iter().chain(unsynced).map(Vec::as_slice).collect()
    }

    fn spawn(
        &self,
        request: &Request,
        filters: &[&[u8]],
        stdout: OwnedFd,
        stderr: OwnedFd,
    ) -> Result<(Child, UnixStream), Error> {
        let (mut ours, theirs) = UnixStream::pair().map_err(system("make a socket"))?;
        let child = Command::new(&self.launcher)
            .arg0("hallmark")
            .arg(LAUNCHER)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(stdout))
            .stderr(Stdio::from(stderr))
            .spawn()
            .map_err(system(format!("start {}", self.launcher.display())))?;
        send(&mut ours, request)
            .and_then(|()| filters.iter().try_for_each(|filter| ours.write_all(filter)))
            .map_err(system("pass the request to the launcher"))?;
        Ok((child, ours))
    }
}

impl Runtime for Embedded {
    fn run(&self, root: Root<'_>, spec: &RunSpec, cancel: &Cancel) -> Result<RunLog, Error> {
        cancel.check()?;
        check(spec)?;
        let folder = self.session.run().map_err(system("make a scratch folder"))?;
        let group = if self.options.cgroups {
            self.hierarchy.create().map_err(system("make a cgroup"))?
        } else {
            Group::default()
        };
        let limit_gaps = group.limit(&spec.limits);
        let request = self.request(root, spec, &folder, &group)?;
        let pipe = || {
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
                .map_err(|errno| system("make a pipe")(errno.into()))
        };
        let ((out, out_end), (err, err_end)) = (pipe()?, pipe()?);
        let disk = disk_watch(root, spec, &folder);
        let (child, control) = self.spawn(&request, &self.filters_for(root), out_end, err_end)?;
        let outcome = Watch::new(child, control, spec, disk)?
            .copy(out, "stdout", &spec.output)?
            .copy(err, "stderr", &spec.output)?
            .wait(cancel)?;
        self.log(root, spec, &folder, &group, limit_gaps, outcome)
    }

    fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    fn name(&self) -> &str {
        EMBEDDED
    }
}

/// Watches what the run may write to, where that is limited.
fn disk_watch(root: Root<'_>, spec: &RunSpec, folder: &RunFolder) -> Option<DiskWatch> {
    let limit = spec.limits.disk?;
    let mut folders: Vec<_> = spec
        .mounts
        .iter()
        .filter(|mount| mount.writable)
        .map(|mount| mount.source.clone())
        .collect();
    let mut fresh = Vec::new();
    match root {
        Root::Layers(_) => fresh.push(folder.upper()),
        Root::Directory(path) => folders.push(path.to_owned()),
    }
    Some(DiskWatch::new(fresh, folders, limit))
}

impl Embedded {
    fn log(
        &self,
        root: Root<'_>,
        spec: &RunSpec,
        folder: &RunFolder,
        group: &Group,
        limit_gaps: Vec<Gap>,
        mut outcome: Outcome,
    ) -> Result<RunLog, Error> {
        let mut log = RunLog {
            status: ExitStatus::Signaled(libc::SIGKILL),
            timed_out: outcome.timed_out,
            oom_killed: group.oom_killed(),
            disk_full: outcome.disk_full,
            output_full: outcome.output_full,
            wall: outcome.wall,
            cpu: group.cpu(),
            peak_memory: group.peak_memory(),
            network_attempts: None,
            stdout: spec.output.join("stdout"),
            stderr: spec.output.join("stderr"),
            upper: None,
            gaps: self.gaps.iter().filter(|gap| gap.concerns(spec)).cloned().collect(),
        };
        log.gaps.extend(limit_gaps);
        log.gaps.extend(self.denied(spec));
        let mut ended = false;
        for frame in std::mem::take(&mut outcome.frames) {
            match frame {
                Frame::Failed { doing, errno: 0 } => {
                    return Err(Error::Launcher { message: format!("cannot {doing}") });
                }
                Frame::Failed { doing, errno } => return Err(host::explain(doing, errno)),
                Frame::Ended { status, nanoseconds, attempts, gaps, made } => {
                    ended = true;
                    log.status = exit_status(status);
                    if !(log.timed_out || log.disk_full || log.output_full) {
                        log.wall = Duration::from_nanos(nanoseconds);
                    }
                    log.network_attempts =
                        attempts.map(|(packets, lookups)| NetworkAttempts { packets, lookups });
                    log.gaps.extend(gaps);
                    if let Root::Directory(folder) = root {
                        remove_made(folder, &made);
                    }
                }
                Frame::Reaped { cpu_microseconds } => {
                    log.cpu = log.cpu.or(Some(Duration::from_micros(cpu_microseconds)));
                }
            }
        }
        if log.status != ExitStatus::Exited(0) && !log.timed_out && !log.output_full {
            log.disk_full |= outcome.ended_over_disk();
        }
        let killed = log.timed_out || log.oom_killed || log.disk_full || log.output_full;
        if !ended && !killed {
            return Err(Error::Launcher { message: "pid 1 ended without a report".to_owned() });
        }
        if spec.keep_upper && matches!(root, Root::Layers(_)) {
            log.upper = Some(folder.keep_upper().map_err(system("keep the upper dir"))?);
        }
        log.gaps.sort();
        log.gaps.dedup();
        Ok(log)
    }
}

impl Embedded {
    /// What of a spec this host cannot give at all.
    fn denied(&self, spec: &RunSpec) -> Vec<Gap> {
        let mut gaps = Vec::new();
        if spec.uid != 0 && self.gaps.contains(&Gap::SingleId) {
            gaps.push(Gap::User);
        }
        if !Processors::has(spec.limits.processors) {
            gaps.push(Gap::Processors);
        }
        gaps
    }
}

fn mount_request(mount: &Mount) -> Result<MountRequest, Error> {
    let (source, folder) = source(mount)?;
    Ok(MountRequest { source, target: mount.target.clone(), writable: mount.writable, folder })
}

/// Removes from a writable root what was made to mount on, unless something came into it.
fn remove_made(root: &Path, made: &[String]) {
    for path in made.iter().rev() {
        let path = root.join(path.trim_start_matches('/'));
        let Ok(metadata) = fs_err::symlink_metadata(&path) else { continue };
        // A folder that is not empty stays, which is what should happen.
        let _ = if metadata.is_dir() {
            fs_err::remove_dir(&path)
        } else if metadata.is_file() && metadata.len() == 0 {
            fs_err::remove_file(&path)
        } else {
            Ok(())
        };
    }
}
