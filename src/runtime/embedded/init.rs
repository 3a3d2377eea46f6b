//! Pid 1 of the sandbox: makes everything ready, starts the command, reaps, counts, and ends when the
//! command ends; the kernel then kills what is left in the namespace.

use std::convert::Infallible;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};

use super::super::shared::end_is_wanted;
use super::super::{Gap, Network};
use super::protocol::{During, Failure, Frame, Request, send};
use super::{cgroup, network, payload, root, sys};
use crate::base::clock::Stopwatch;

/// The namespaces pid 1 is born in. The cgroup namespace comes later, once the cgroups are joined, so
/// that they are its root.
pub(super) fn namespaces(network: Network) -> u64 {
    let mut flags = libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS;
    if network != Network::Host {
        flags |= libc::CLONE_NEWNET;
    }
    u64::try_from(flags).expect("the flags are positive")
}

/// Never returns: pid 1 ends here.
pub(super) fn main(
    control: &mut UnixStream,
    request: &Request,
    filters: &[Vec<u8>],
    joins: Vec<OwnedFd>,
    go: OwnedFd,
) -> ! {
    match run(control, request, filters, joins, go) {
        Ok(never) => match never {},
        Err(failure) => {
            // If nobody listens any more, there is nobody to tell.
            let _ = send(control, &failure.frame());
            sys::exit(1)
        }
    }
}

fn run(
    control: &mut UnixStream,
    request: &Request,
    filters: &[Vec<u8>],
    joins: Vec<OwnedFd>,
    go: OwnedFd,
) -> Result<Infallible, Failure> {
    let signals = sys::signals().during("watch for signals")?;
    let mut byte = [0];
    let started = File::from(go).read(&mut byte).during("wait for the launcher")?;
    if started == 0 {
        sys::exit(1);
    }
    sys::become_user(0, 0).during("become root of the sandbox")?;
    // Only now: taking ids clears it. The launcher was alive a moment ago; should it have died
    // since, the control socket's end is noticed by nobody, but its death signal is already ours.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .during("follow the launcher's death")?;
    cgroup::join(joins).during("join the cgroups")?;
    sys::unshare_cgroup().during("make a cgroup namespace")?;
    rustix::system::sethostname(request.hostname.as_bytes()).during("set the host name")?;
    // Kernels without keyrings have none to leave.
    let _ = sys::new_session_keyring();
    let mut gaps = Vec::new();
    let hole = network::set_up(request, &mut gaps)?;
    let outcome = root::set_up(request)?;
    gaps.extend(outcome.gaps);
    if !request.processors.is_empty() && take_processors(&request.processors).is_err() {
        gaps.push(Gap::Processors);
    }
    sys::set_dumpable(false).during("hide pid 1")?;

    let watch = Stopwatch::start();
    let Some(command) = sys::fork().during("start the command")? else {
        payload::run(request, filters)
    };
    let status = reap(command, &signals, hole.as_ref())?;
    let nanoseconds = u64::try_from(watch.elapsed().as_nanos()).unwrap_or(u64::MAX);

    sys::kill_everything();
    while sys::wait(-1, true).during("reap what is left")?.is_some() {}
    let attempts = network::attempts(request, hole.as_ref());
    let frame = Frame::Ended { status, nanoseconds, attempts, gaps, made: outcome.made };
    send(control, &frame).during("report")?;
    sys::exit(0)
}

/// Moves to some processors, and with this process all that it starts.
fn take_processors(numbers: &[usize]) -> rustix::io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    for number in numbers {
        set.set(*number);
    }
    rustix::thread::sched_setaffinity(None, &set)
}

/// Waits for the command, reaping orphans and draining the black hole meanwhile. If hallmark wants the end, it is brought about.
fn reap(command: i32, signals: &File, hole: Option<&network::BlackHole>) -> Result<i32, Failure> {
    loop {
        while let Some(ended) = sys::wait(-1, false).during("wait for the command")? {
            if ended.pid == command {
                return Ok(ended.status);
            }
        }
        let mut fds = vec![PollFd::new(signals, PollFlags::IN)];
        if let Some(hole) = hole {
            fds.push(PollFd::new(hole, PollFlags::IN));
        }
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno).during("wait for the command"),
        }
        if end_is_wanted(signals) {
            sys::kill_everything();
        }
        if let Some(hole) = hole {
            hole.drain();
        }
    }
}
