//! The side of the runtime that lives in hallmark's own process.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::super::{
    Error, ExitStatus, Gap, Network, NetworkAttempts, Root, RunLog, RunSpec, Runtime,
};
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
    gaps: Vec<Gap>,
    /// An empty tree with what every container is mounted on, below all layers: so that nothing is made
    /// in an upper dir just to mount on it.
    skeleton: tempfile::TempDir,
}

/// An error of a system call, with what was being done.
pub(super) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::System { doing: doing.into(), source }
}

impl Embedded {
    /// Finds out what the host can give. `launcher` is this binary (or one whose `main` calls
    /// [`super::intercept`]).
    pub fn new(store: &Store, launcher: PathBuf) -> Result<Self, Error> {
        let maps = idmap::own().map_err(system("read the id maps"))?;
        let mut gaps = Vec::new();
        if idmap::count(&maps.0) < 2 {
            gaps.push(Gap::SingleId);
        }
        let skeleton = store.scratch_dir("skeleton")?;
        let targets = ["/dev", "/proc", "/sys"].map(|path| (path, true));
        let files = ["/etc/hosts", "/etc/hostname", "/etc/resolv.conf"].map(|path| (path, false));
        make_targets(skeleton.path(), targets.into_iter().chain(files))
            .map_err(system("make the skeleton"))?;
        Ok(Self { store: store.clone(), launcher, maps, gaps, skeleton })
    }

    fn request(&self, root: Root<'_>, spec: &RunSpec, scratch: &Path) -> Result<Request, Error> {
        let mounts = spec.mounts.iter().map(mount_request).collect::<Result<Vec<_>, _>>()?;
        Ok(Request {
            root: self.root_request(root, &mounts, scratch)?,
            argv: spec.argv.clone(),
            env: spec.env.iter().map(|(name, value)| format!("{name}={value}")).collect(),
            working_dir: spec.working_dir.clone(),
            uid: spec.uid,
            gid: spec.gid,
            hostname: spec.hostname.clone(),
            uid_map: self.maps.0.clone(),
            gid_map: self.maps.1.clone(),
            cgroups: Vec::new(),
            cgroup2: None,
            network: spec.network,
            holes: vec![Hole::Tun, Hole::Veth],
            mounts,
            hosts: hosts(spec)?,
            resolv_conf: resolv_conf(spec)?,
            shm: spec.limits.shm,
            open_files: spec.limits.open_files,
            file_size: spec.limits.disk,
            scratch: scratch.to_owned(),
            filters: Vec::new(),
        })
    }

    fn root_request(
        &self,
        root: Root<'_>,
        mounts: &[MountRequest],
        scratch: &Path,
    ) -> Result<RootRequest, Error> {
        let layers = match root {
            Root::Directory(folder) => {
                let folder =
                    fs_err::canonicalize(folder).map_err(system("find the root folder"))?;
                return Ok(RootRequest::Directory(folder));
            }
            Root::Layers(layers) => layers,
        };
        let mut lowers = vec![self.skeleton.path().to_owned()];
        if !mounts.is_empty() {
            let targets = scratch.join("targets");
            fs_err::create_dir(&targets).map_err(system("make mount points"))?;
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
        let folder = |name: &str| {
            let path = scratch.join(name);
            fs_err::create_dir(&path)
                .and_then(|()| {
                    fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
                })
                .map_err(system("make the upper dir"))?;
            Ok::<_, Error>(path)
        };
        Ok(RootRequest::Layers {
            lowers,
            upper: folder("upper")?,
            work: folder("work")?,
            target: folder("root")?,
            classic: false,
        })
    }

    fn spawn(
        &self,
        request: &Request,
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
            .and_then(|()| ours.flush())
            .map_err(system("pass the request to the launcher"))?;
        Ok((child, ours))
    }
}

impl Runtime for Embedded {
    fn run(&self, root: Root<'_>, spec: &RunSpec, cancel: &Cancel) -> Result<RunLog, Error> {
        cancel.check()?;
        check(spec)?;
        let scratch = self.store.scratch_dir("run")?;
        let request = self.request(root, spec, scratch.path())?;
        let pipe = || {
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
                .map_err(|errno| system("make a pipe")(errno.into()))
        };
        let ((out, out_end), (err, err_end)) = (pipe()?, pipe()?);
        let (child, control) = self.spawn(&request, out_end, err_end)?;
        let outcome = Watch::new(child, control, spec)?
            .copy(out, "stdout", &spec.output)?
            .copy(err, "stderr", &spec.output)?
            .wait(cancel)?;
        self.log(root, spec, scratch, outcome)
    }

    fn gaps(&self) -> &[Gap] {
        &self.gaps
    }
}

impl Embedded {
    fn log(
        &self,
        root: Root<'_>,
        spec: &RunSpec,
        scratch: tempfile::TempDir,
        outcome: Outcome,
    ) -> Result<RunLog, Error> {
        let mut log = RunLog {
            status: ExitStatus::Signaled(libc::SIGKILL),
            timed_out: outcome.timed_out,
            oom_killed: false,
            disk_full: outcome.disk_full,
            wall: outcome.wall,
            cpu: None,
            peak_memory: None,
            network_attempts: None,
            stdout: spec.output.join("stdout"),
            stderr: spec.output.join("stderr"),
            upper: None,
            gaps: self.gaps.clone(),
        };
        let mut ended = false;
        for frame in outcome.frames {
            match frame {
                Frame::Failed { doing, errno: 0 } => {
                    return Err(Error::Launcher { message: format!("cannot {doing}") });
                }
                Frame::Failed { doing, errno } => {
                    return Err(system(doing)(io::Error::from_raw_os_error(errno)));
                }
                Frame::Ended { status, nanoseconds, attempts, hole, made } => {
                    ended = true;
                    log.status = exit_status(status);
                    log.wall = Duration::from_nanos(nanoseconds);
                    log.network_attempts =
                        attempts.map(|(packets, lookups)| NetworkAttempts { packets, lookups });
                    if spec.network == Network::None && !hole {
                        log.gaps.push(Gap::BlackHole);
                    }
                    if let Root::Directory(folder) = root {
                        remove_made(folder, &made);
                    }
                }
                Frame::Reaped { cpu_microseconds } => {
                    log.cpu = Some(Duration::from_micros(cpu_microseconds));
                }
            }
        }
        if !ended && !log.timed_out && !log.oom_killed && !log.disk_full {
            return Err(Error::Launcher { message: "pid 1 ended without a report".to_owned() });
        }
        if spec.keep_upper && matches!(root, Root::Layers(_)) {
            log.upper = Some(self.keep_upper(&scratch)?);
        }
        if let Err(error) = scratch.close() {
            tracing::debug!(%error, "a scratch folder stays");
        }
        Ok(log)
    }

    /// Moves the upper dir out of the run's folder, which goes away.
    fn keep_upper(&self, scratch: &tempfile::TempDir) -> Result<PathBuf, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("upper-{}-{number}", std::process::id());
        let kept = self.store.scratch().join(name);
        fs_err::rename(scratch.path().join("upper"), &kept)
            .map_err(system("keep the upper dir"))?;
        Ok(kept)
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
    if spec.mounts.iter().any(|mount| !is_plain(&mount.target)) {
        return invalid("a mount's target must be absolute, without `.` and `..`");
    }
    Ok(())
}

fn is_plain(target: &str) -> bool {
    target.len() > 1
        && target.starts_with('/')
        && !target.contains('\0')
        && !target.split('/').any(|part| part == "." || part == "..")
}

fn mount_request(mount: &super::super::Mount) -> Result<MountRequest, Error> {
    let doing = || format!("mount {}", mount.source.display());
    let source = fs_err::canonicalize(&mount.source).map_err(|error| system(doing())(error))?;
    let folder = source.is_dir();
    Ok(MountRequest { source, target: mount.target.clone(), writable: mount.writable, folder })
}

/// Makes empty files and folders to mount on below `root`.
fn make_targets<'a>(root: &Path, targets: impl Iterator<Item = (&'a str, bool)>) -> io::Result<()> {
    // Temporary folders are made private; this one is seen by the container's users.
    fs_err::set_permissions(root, std::fs::Permissions::from_mode(0o755))?;
    for (target, folder) in targets {
        let path = root.join(target.trim_start_matches('/'));
        if folder {
            fs_err::create_dir_all(&path)?;
        } else {
            if let Some(parent) = path.parent() {
                fs_err::create_dir_all(parent)?;
            }
            fs_err::OpenOptions::new().create(true).append(true).open(&path)?;
        }
    }
    Ok(())
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
