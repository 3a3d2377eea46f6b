//! The runtime that lets a daemon make its containers.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bollard::models::SystemInfo;
use bollard::query_parameters::{
    AttachContainerOptions, CreateContainerOptions, InspectContainerOptions,
};

use super::super::check::{check, source};
use super::super::error::{of_setup, system};
use super::super::shared::{
    DiskWatch, Processors, Reason, RunFolder, Session, exit_status, make_targets, programs, sweep,
    unsynced,
};
use super::super::{Error, ExitStatus, Gap, NetworkAttempts, Root, RunLog, RunSpec, Runtime};
use super::ask;
use super::container::{Bind, Container, body};
use super::engine::{DaemonError, Engine};
use super::follow::{Follow, Outcome};
use super::images::Images;
use super::mark::Mark;
use super::reaper::{Labels, reap};
use super::report::Report;
use crate::base::scratch::Scratch;
use crate::base::{Cancel, Store};
use crate::image::Layer;

/// Pid 1 of every container, a static program.
const INIT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/container-init"));

/// How long a daemon may take to make a container ready: under load, runc alone takes seconds.
const CREATION: Duration = Duration::from_mins(2);

/// How long it may take to answer a question.
const ANSWER: Duration = Duration::from_secs(30);

/// How long what the kernel killed may take to be known to the daemon.
const NEWS: Duration = Duration::from_secs(2);

/// Containers by Docker Engine, or by what speaks its API.
pub struct Docker {
    engine: Engine,
    name: String,
    images: Images,
    session: Session,
    /// Holds the program that is pid 1.
    program: Scratch,
    filters: Vec<Vec<u8>>,
    /// On top of `filters` for [`Root::Directory`]; overlays are mounted `volatile` instead.
    unsynced: Vec<u8>,
    gaps: Vec<Gap>,
    processors: Processors,
    next_run: AtomicU64,
}

impl Docker {
    /// Finds out what the daemon can give, and removes what dead runs left in it and in scratch.
    pub fn new(store: &Store, engine: Engine, cancel: &Cancel) -> Result<Self, Error> {
        let info = engine.call("describe itself", ANSWER, cancel, engine.docker().info())?;
        is_same_user(&engine, &info)?;
        sweep(store.scratch()).map_err(system("sweep the scratch folder"))?;
        reap(&engine, cancel)?;
        let compiled = programs(false).and_then(|all| Ok((all, unsynced()?)));
        let (filters, unsynced) = compiled.map_err(|error| Error::Launcher {
            message: format!("the seccomp filter does not compile: {error}"),
        })?;
        // What a daemon does not say it has.
        let lacking = |given: Option<bool>, gap| (given == Some(false)).then_some(gap);
        let gaps = [
            lacking(info.memory_limit, Gap::MemoryLimit),
            lacking(info.pids_limit, Gap::PidsLimit),
            lacking(info.cpu_cfs_quota, Gap::CpuLimit),
        ];
        let program = store.scratch_dir("init")?;
        let path = program.path().join("init");
        fs_err::write(&path, INIT)
            .and_then(|()| fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755)))
            .map_err(system("write the program for containers"))?;
        Ok(Self {
            name: engine.daemon().to_string(),
            images: Images::new(store, engine.clone()),
            session: Session::create(store).map_err(system("make a scratch folder"))?,
            engine,
            program,
            filters,
            unsynced,
            gaps: gaps.into_iter().flatten().collect(),
            processors: Processors::default(),
            next_run: AtomicU64::new(1),
        })
    }

    /// The daemon.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Writes what pid 1 is to find, and says what the daemon is to mount for it.
    fn prepare(
        &self,
        root: Root<'_>,
        spec: &RunSpec,
        folder: &RunFolder,
        mark: &Mark,
    ) -> Result<Vec<Bind>, Error> {
        let path = real(folder.path())?;
        let mut binds = vec![
            Bind::new(&path, "", false),
            Bind::new(&real(&self.program.path().join("init"))?, "init", true),
            Bind::new(&real(&self.session.skeleton())?, "skeleton", true),
        ];
        let mut folders = Vec::new();
        for (number, mount) in spec.mounts.iter().enumerate() {
            let (source, is_folder) = source(mount)?;
            binds.push(Bind::new(&source, format!("m{number}"), !mount.writable));
            folders.push(is_folder);
        }
        let targets = folder.make("targets").map_err(system("make mount points"))?;
        match root {
            Root::Directory(directory) => binds.push(Bind::new(&real(directory)?, "root", false)),
            Root::Layers(_) => {
                let wanted = spec.mounts.iter().zip(&folders);
                let wanted = wanted.map(|(mount, folder)| (mount.target.as_str(), *folder));
                make_targets(&targets, wanted).map_err(system("make mount points"))?;
            }
        }
        for name in ["upper", "work", "root"] {
            folder.make(name).map_err(system("make the upper dir"))?;
        }
        let unsynced = matches!(root, Root::Directory(_)).then_some(&self.unsynced);
        let filters: Vec<&[u8]> = self.filters.iter().chain(unsynced).map(Vec::as_slice).collect();
        let lengths: Vec<usize> = filters.iter().map(|filter| filter.len()).collect();
        let request = ask::request(root, spec, &folders, &self.processors, &lengths, mark.word())?;
        fs_err::write(path.join("request"), request.encode())
            .and_then(|()| fs_err::write(path.join("filters"), filters.concat()))
            .map_err(system("write the request"))?;
        Ok(binds)
    }

    /// Makes the container of a run, and its image where the daemon does not have it.
    fn make(
        &self,
        layers: &[Layer],
        spec: &RunSpec,
        binds: &[Bind],
        cancel: &Cancel,
    ) -> Result<Container<'_>, Error> {
        let image = self.images.ensure(layers, cancel)?;
        let labels = Labels::new(self.next_run.fetch_add(1, Ordering::Relaxed))?;
        let body = body(&image, &labels, &spec.limits, spec.network, binds);
        let making = self.engine.docker().create_container(None::<CreateContainerOptions>, body);
        let made = self.engine.call("make a container", CREATION, cancel, making)?;
        Ok(Container { engine: &self.engine, id: made.id })
    }

    /// Starts a container and waits for its end.
    fn execute(
        &self,
        root: Root<'_>,
        spec: &RunSpec,
        folder: &RunFolder,
        mark: &Mark,
        cancel: &Cancel,
    ) -> Result<(Container<'_>, Outcome), Error> {
        let binds = self.prepare(root, spec, folder, mark)?;
        let layers = match root {
            Root::Layers(layers) => layers,
            Root::Directory(_) => &[],
        };
        let docker = self.engine.docker();
        let container = match self.make(layers, spec, &binds, cancel) {
            Err(Error::Daemon(DaemonError::Refused { status: Some(404), .. })) => {
                // Somebody removed the image that was there before.
                self.images.forget(layers)?;
                self.make(layers, spec, &binds, cancel)?
            }
            other => other?,
        };
        let attach = AttachContainerOptions {
            stream: true,
            stdout: true,
            stderr: true,
            ..AttachContainerOptions::default()
        };
        let attaching = docker.attach_container(&container.id, Some(attach));
        let attached = self.engine.call("attach to a container", ANSWER, cancel, attaching)?;
        let disk = disk_watch(root, spec, folder);
        let marks = mark.bytes();
        let starting = docker.start_container(&container.id, None);
        self.engine.call("start a container", CREATION, cancel, starting)?;
        let follow = Follow::new(&self.engine, &container.id, spec, cancel, attached, disk, marks)?;
        let outcome = follow.wait()?;
        Ok((container, outcome))
    }

    /// Whether the kernel killed something for its memory, by the daemon's word. Where pid 1 was killed and nobody said
    /// why, that word is waited for.
    fn out_of_memory(&self, id: &str, unexplained: bool) -> Result<bool, Error> {
        let watch = crate::base::clock::Stopwatch::start();
        loop {
            let asking =
                self.engine.docker().inspect_container(id, None::<InspectContainerOptions>);
            let answer =
                self.engine.call("describe a container", ANSWER, &Cancel::new(), asking)?;
            let killed = answer.state.and_then(|state| state.oom_killed) == Some(true);
            if killed || !unexplained || watch.elapsed() > NEWS {
                return Ok(killed);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Runtime for Docker {
    fn run(&self, root: Root<'_>, spec: &RunSpec, cancel: &Cancel) -> Result<RunLog, Error> {
        cancel.check()?;
        check(spec)?;
        let folder = self.session.run().map_err(system("make a scratch folder"))?;
        let mark = Mark::new().map_err(system("name the end of the output"))?;
        let (container, outcome) = self.execute(root, spec, &folder, &mark, cancel)?;
        if outcome.killed == Some(Reason::Cancelled) {
            return Err(Error::Base(crate::base::Error::Cancelled));
        }
        let text = fs_err::read_to_string(folder.path().join("report")).unwrap_or_default();
        let report = Report::decode(&text);
        let unexplained = report.is_none() && outcome.killed.is_none();
        let oom_killed = self.out_of_memory(&container.id, unexplained)?;
        drop(container);
        if report.as_ref().is_some_and(|report| report.failed.is_none()) {
            for name in ["stdout", "stderr"] {
                if !mark.take(&spec.output.join(name)).map_err(system("read the output"))? {
                    return Err(self.engine.cut_output().into());
                }
            }
        }
        let mut log = self.log(spec, outcome, report, oom_killed)?;
        if spec.keep_upper && matches!(root, Root::Layers(_)) {
            log.upper = Some(folder.keep_upper().map_err(system("keep the upper dir"))?);
        }
        Ok(log)
    }

    fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl Docker {
    fn log(
        &self,
        spec: &RunSpec,
        mut outcome: Outcome,
        report: Option<Report>,
        oom_killed: bool,
    ) -> Result<RunLog, Error> {
        let mut log = RunLog {
            status: ExitStatus::Signaled(libc::SIGKILL),
            timed_out: outcome.killed == Some(Reason::Wall),
            oom_killed,
            disk_full: outcome.killed == Some(Reason::Disk),
            output_full: outcome.killed == Some(Reason::Output),
            wall: outcome.wall,
            cpu: None,
            peak_memory: None,
            network_attempts: None,
            stdout: spec.output.join("stdout"),
            stderr: spec.output.join("stderr"),
            upper: None,
            gaps: self.gaps.iter().filter(|gap| gap.concerns(spec)).cloned().collect(),
        };
        if !Processors::has(spec.limits.processors) {
            log.gaps.push(Gap::Processors);
        }
        let report = match report {
            Some(report) => report,
            None if outcome.killed.is_some() || oom_killed => Report::default(),
            None => {
                return Err(Error::Launcher { message: "pid 1 ended without a report".to_owned() });
            }
        };
        match report.failed {
            Some((0, doing)) => {
                return Err(Error::Launcher { message: format!("cannot {doing}") });
            }
            Some((errno, doing)) => {
                return Err(of_setup(doing, std::io::Error::from_raw_os_error(errno)));
            }
            None => {}
        }
        log.oom_killed |= report.oom_kills.is_some_and(|count| count > 0);
        log.cpu = report.cpu.map(Duration::from_micros);
        log.peak_memory = report.peak_memory;
        if let Some(status) = report.status {
            log.status = exit_status(status);
            if outcome.killed.is_none() {
                log.wall = Duration::from_nanos(report.nanoseconds);
            }
        }
        log.network_attempts =
            report.attempts.map(|(packets, lookups)| NetworkAttempts { packets, lookups });
        log.gaps.extend(report.gaps.iter().filter_map(|name| Gap::named(name)));
        if log.status != ExitStatus::Exited(0) && !log.timed_out && !log.output_full {
            let written = outcome.written;
            log.disk_full |= outcome.disk.as_mut().is_some_and(|disk| disk.ended_over(written));
        }
        log.gaps.sort();
        log.gaps.dedup();
        Ok(log)
    }
}

/// An error unless the daemon and hallmark are root of the same ids: files that a run makes would be a stranger's, and could
/// neither be kept nor removed.
fn is_same_user(engine: &Engine, info: &SystemInfo) -> Result<(), Error> {
    let map = fs_err::read_to_string("/proc/self/uid_map").map_err(system("read the id map"))?;
    let real_root = map.split_whitespace().eq(["0", "0", "4294967295"]);
    let rootless = info.security_options.iter().flatten().any(|text| text.contains("rootless"));
    if real_root != rootless {
        return Ok(());
    }
    let (daemon, own) = if rootless { ("rootless", "root") } else { ("root's", "not root") };
    Err(Error::Host {
        reason: format!("{}: the daemon is {daemon}, and hallmark is {own}", engine.endpoint()),
        hint: "run hallmark as the user that the daemon runs as, or use --runtime embedded"
            .to_owned(),
    })
}

fn real(path: &Path) -> Result<PathBuf, Error> {
    fs_err::canonicalize(path).map_err(system("find a folder"))
}

/// Watches what the run may write to, where that is limited.
fn disk_watch(root: Root<'_>, spec: &RunSpec, folder: &RunFolder) -> Option<DiskWatch> {
    let limit = spec.limits.disk?;
    let writable = spec.mounts.iter().filter(|mount| mount.writable);
    let mut folders: Vec<_> = writable.map(|mount| mount.source.clone()).collect();
    let mut fresh = Vec::new();
    match root {
        Root::Layers(_) => fresh.push(folder.upper()),
        Root::Directory(path) => folders.push(path.to_owned()),
    }
    Some(DiskWatch::new(fresh, folders, limit))
}
