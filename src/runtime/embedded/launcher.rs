//! The launcher: one thread in the host's namespaces between hallmark and the sandbox's pid 1.
//!
//! It outlives hallmark: when the socket closes it kills pid 1, with it the whole PID namespace, and
//! removes the cgroups and the scratch folder that hallmark no longer can.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;

use super::super::shared::GRACE;
use super::protocol::{During, Failure, Frame, Request, receive, send};
use super::sys::{self, Cloned};
use super::{cgroup, init};
use crate::base::clock::Stopwatch;

/// The byte by which hallmark asks pid 1 to end the run and to report, and the one that kills pid 1 with it.
pub(super) const END: u8 = b'E';
pub(super) const KILL: u8 = b'K';

/// Runs one request from standard input.
pub(super) fn main() -> ExitCode {
    sys::ignore_terminal_signals();
    // Whatever hallmark's own parent left open is no concern of the sandbox.
    let _ = sys::close_others();
    let Ok(mut control) = take_control() else { return ExitCode::FAILURE };
    let (request, filters) = match read_request(&mut control) {
        Ok(read) => read,
        Err(failure) => return fail(&mut control, &failure),
    };
    match supervise(&mut control, &request, &filters) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => fail(&mut control, &failure),
    }
}

fn fail(control: &mut UnixStream, failure: &Failure) -> ExitCode {
    // If hallmark is gone as well, nobody is left to be told.
    let _ = send(control, &failure.frame());
    ExitCode::FAILURE
}

/// Moves the socket away from standard input, which the command gets as /dev/null.
fn take_control() -> std::io::Result<UnixStream> {
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    sys::replace(&null, 0)?;
    Ok(UnixStream::from(control))
}

fn read_request(control: &mut UnixStream) -> Result<(Request, Vec<Vec<u8>>), Failure> {
    let request: Request = receive(control).during("read the request")?;
    let mut filters = Vec::new();
    for length in &request.filters {
        let mut program = vec![0; *length];
        std::io::Read::read_exact(control, &mut program).during("read a seccomp program")?;
        filters.push(program);
    }
    Ok((request, filters))
}

fn supervise(
    control: &mut UnixStream,
    request: &Request,
    filters: &[Vec<u8>],
) -> Result<(), Failure> {
    // A session of its own: no terminal reaches what runs below, and Ctrl-C only hallmark.
    rustix::process::setsid().during("start a session")?;
    let joins = cgroup::open_v1(&request.cgroups).during("open the cgroups")?;
    let cgroup2 = cgroup::open_v2(request.cgroup2.as_deref()).during("open the v2 cgroup")?;
    let (go_read, go_write) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).during("make a pipe")?;

    let cloned = sys::clone(init::namespaces(request.network), cgroup2.as_ref().map(AsFd::as_fd))
        .during("make namespaces")?;
    let (pid, pidfd) = match cloned {
        Cloned::Child => {
            drop(go_write);
            init::main(control, request, filters, joins, go_read)
        }
        Cloned::Parent { pid, pidfd } => (pid, pidfd),
    };
    drop((go_read, joins));

    let result = write_maps(pid, request)
        .and_then(|()| File::from(go_write).write_all(b"g").during("start pid 1"))
        .and_then(|()| watch(control, &pidfd));
    if result.is_err() {
        let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::KILL);
    }
    let ended = sys::wait(pid, true).during("wait for pid 1")?;
    let orphaned = result?;
    let cpu = ended.map(|ended| ended.cpu).unwrap_or_default();
    let cpu_microseconds = u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX);
    if send(control, &Frame::Reaped { cpu_microseconds }).is_err() || orphaned {
        clean_up(request);
    }
    Ok(())
}

fn write_maps(pid: i32, request: &Request) -> Result<(), Failure> {
    for (file, map) in [("gid_map", &request.gid_map), ("uid_map", &request.uid_map)] {
        let path = format!("/proc/{pid}/{file}");
        // One write(2) for the whole map, as the kernel demands.
        fs_err::OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut file| file.write_all(map.as_bytes()))
            .during(format!("write the {file} of the sandbox"))?;
    }
    Ok(())
}

/// Waits for pid 1 to end, or for the word to end or to kill it. Whether hallmark is gone.
fn watch(control: &UnixStream, pidfd: &OwnedFd) -> Result<bool, Failure> {
    let signal = |signal| {
        // The error means that it has ended by itself meanwhile.
        let _ = rustix::process::pidfd_send_signal(pidfd, signal);
    };
    let mut orphaned = false;
    let mut listening = true;
    let mut ending: Option<Stopwatch> = None;
    loop {
        let left = ending.as_ref().map(|since| GRACE.saturating_sub(since.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            signal(Signal::KILL);
            ending = None;
        }
        let wait = ending.as_ref().and(left).map(|left| left + Duration::from_millis(1));
        let wait = wait.map(|wait| Timespec::try_from(wait).expect("it is short"));

        let mut fds = vec![PollFd::new(pidfd, PollFlags::IN)];
        if listening {
            fds.push(PollFd::new(control, PollFlags::IN));
        }
        match poll(&mut fds, wait.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(errno).during("wait for pid 1"),
        }
        if !fds[0].revents().is_empty() {
            return Ok(orphaned);
        }
        if listening && !fds[1].revents().is_empty() {
            let mut byte = [0];
            let read = rustix::io::read(control, &mut byte).unwrap_or(0);
            if read > 0 && byte[0] == END {
                signal(Signal::TERM);
                ending = Some(Stopwatch::start());
            } else {
                orphaned = read == 0 || byte[0] != KILL;
                signal(Signal::KILL);
                listening = false;
            }
        }
    }
}

/// Does what hallmark would have done.
fn clean_up(request: &Request) {
    for folder in request.cgroups.iter().chain(&request.cgroup2) {
        cgroup::remove(folder);
    }
    let _ = crate::base::scratch::remove_tree(&request.scratch);
}
