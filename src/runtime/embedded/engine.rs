//! The side of the runtime that lives in hallmark's own process.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::super::{
    Error, ExitStatus, Gap, Mount, Network, NetworkAttempts, Root, RunLog, RunSpec, Runtime,
};
use super::cgroup::{Group, Hierarchy};
use super::disk::DiskWatch;
use super::host;
use super::intercept::LAUNCHER;
use super::protocol::{Frame, Hole, MountRequest, Request, RootRequest, send};
use super::session::{self, RunFolder, Session, make_targets};
use super::watch::{Outcome, Watch};
use super::{idmap, seccomp};
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
    /// So that runs on few processors spread over those there are.
    next_processor: AtomicUsize,
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

/// An error of a system call, with what was being done.
pub(super) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::System { doing: doing.into(), source }
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
        let compiled = seccomp::programs(single_id).and_then(|all| Ok((all, seccomp::unsynced()?)));
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
            next_processor: AtomicUsize::new(0),
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
        session::sweep(self.store.scratch()).map_err(system("sweep the scratch folder"))
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
            processors: self.processors(spec.limits.processors),
            file_size: spec.limits.disk,
            scratch: folder.path().to_owned(),
            filters: self.filters_for(root).iter().map(|filter| filter.len()).collect(),
        })
    }

    /// The numbers of `count` processors, the next ones by each call; empty for all there are.
    fn processors(&self, count: Option<u32>) -> Vec<usize> {
        let Some(count) = count.map(|count| usize::try_from(count).unwrap_or(usize::MAX)) else {
            return Vec::new();
        };
        let own = own_processors();
        if count == 0 || count > own.len() {
            return Vec::new();
        }
        let first = self.next_processor.fetch_add(count, Ordering::Relaxed);
        let mut taken: Vec<usize> =
            (0..count).map(|offset| own[(first.wrapping_add(offset)) % own.len()]).collect();
        taken.sort_unstable();
        taken
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
            gaps: self.gaps.iter().filter(|gap| concerns(gap, spec)).cloned().collect(),
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
                    log.wall = Duration::from_nanos(nanoseconds);
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
        if spec.limits.processors.is_some_and(|count| count as usize > own_processors().len()) {
            gaps.push(Gap::Processors);
        }
        gaps
    }
}

/// The numbers of the processors that this process may be on.
fn own_processors() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|number| set.is_set(*number)).collect()
}

/// Whether a gap of the host touches a run with this spec.
fn concerns(gap: &Gap, spec: &RunSpec) -> bool {
    match gap {
        Gap::MemoryLimit => spec.limits.memory.is_some(),
        Gap::PidsLimit => spec.limits.pids.is_some(),
        Gap::CpuLimit => spec.limits.cpus.is_some(),
        Gap::SingleId | Gap::Seccomp => true,
        // Found by each run itself, or by its caller.
        Gap::BlackHole
        | Gap::User
        | Gap::Processors
        | Gap::EntryOrder
        | Gap::Ipv4Only
        | Gap::Clock
        | Gap::Load => false,
    }
}

/// What the types allow and the kernel does not.
fn check(spec: &RunSpec) -> Result<(), Error> {
    let invalid = |what: &str| {
        let reason = io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
        Err(system("start the command")(reason))
    };
    if spec.argv.is_empty() {
        return invalid("no command was given");
    }
    let env = spec.env.iter().flat_map(|(name, value)| [name, value]);
    if spec.argv.iter().chain(env).chain([&spec.working_dir]).any(|text| text.contains('\0')) {
        return invalid("an argument or variable holds a NUL");
    }
    if spec.env.keys().any(|name| name.is_empty() || name.contains('=')) {
        return invalid("a variable's name is empty or holds `=`");
    }
    let targets = spec.mounts.iter().map(|mount| &mount.target);
    let folders = spec.copies.iter().map(|copy| &copy.path).chain(&spec.read_only);
    if targets.chain(folders).any(|path| !is_plain(path)) {
        return invalid("a mount's target must be absolute, without `.` and `..`");
    }
    if spec.account.as_ref().is_some_and(|account| {
        account.name.is_empty()
            || [&account.name, &account.home].iter().any(|field| field.contains([':', '\n']))
    }) {
        return invalid("an account's name or home holds `:` or a line's end");
    }
    Ok(())
}

fn is_plain(target: &str) -> bool {
    target.len() > 1
        && target.starts_with('/')
        && !target.contains('\0')
        && !target.split('/').any(|part| part == "." || part == "..")
}

fn mount_request(mount: &Mount) -> Result<MountRequest, Error> {
    let doing = || format!("mount {}", mount.source.display());
    let source = fs_err::canonicalize(&mount.source).map_err(|error| system(doing())(error))?;
    let folder = source.is_dir();
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

/// /etc/hosts of the container.
fn hosts(spec: &RunSpec) -> Result<String, Error> {
    let mut text = String::from(
        "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nff02::1\tip6-allnodes\nff02::2\tip6-allrouters\n",
    );
    if spec.network == Network::Host {
        text = fs_err::read_to_string("/etc/hosts").map_err(system("read the host's names"))?;
    }
    // The address that Debian gives a machine's own name.
    Ok(format!("{text}127.0.1.1\t{}\n", spec.hostname))
}

/// /etc/resolv.conf of the container: names fail at once, unless it has the host's network.
fn resolv_conf(spec: &RunSpec) -> Result<String, Error> {
    if spec.network != Network::Host {
        return Ok(String::new());
    }
    match fs_err::read_to_string("/etc/resolv.conf") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        other => other.map_err(system("read the host's name servers")),
    }
}

fn exit_status(raw: i32) -> ExitStatus {
    let status = std::process::ExitStatus::from_raw(raw);
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitStatus::Exited(code),
        (None, Some(signal)) => ExitStatus::Signaled(signal),
        (None, None) => ExitStatus::Exited(raw),
    }
}
