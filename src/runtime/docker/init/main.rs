//! Pid 1 of a container that a daemon made for hallmark: a program of its own, static, of the standard library alone.
//!
//! `../build.rs` compiles it; it finds everything in one folder that is mounted for it:
//!
//! ```text
//! /dev/hallmark/
//!   init                this program, read-only
//!   request             what to do (request.rs)
//!   filters             seccomp programs
//!   upper, work         of the run's own changes
//!   targets, skeleton   what to mount on where the image has nothing
//!   root                where the new root is put together, or the folder that is to be it
//!   m<n>                what is to be mounted for the run
//!   files, c<n>         files and copies, made here in memory
//!   report              what came of it (report.rs), written here
//! ```
//!
//! It does what pid 1 of the embedded runtime does, in the same order, so that a run cannot tell them apart: the
//! network, the files of /etc, copies, read-only folders, mounts. Then that folder is gone from the container, the
//! command starts without privileges and behind the filters, and pid 1 reaps, counts and reports. Nothing of the
//! image is run before that.
//!
//! What both pid 1s know, and the standard library can say, is in files of `../../shared/`.

mod copy;
mod decode;
#[path = "../../shared/ending.rs"]
#[expect(clippy::duplicate_mod, reason = "of two programs, which are one in tests alone")]
mod ending;
#[path = "../../shared/etc_files.rs"]
#[expect(clippy::duplicate_mod, reason = "of two programs, which are one in tests alone")]
mod etc_files;
mod files;
mod groups;
mod network;
mod payload;
#[path = "../../shared/place.rs"]
#[expect(clippy::duplicate_mod, reason = "of two programs, which are one in tests alone")]
mod place;
#[path = "../../shared/powers.rs"]
#[expect(clippy::duplicate_mod, reason = "of two programs, which are one in tests alone")]
mod powers;
pub(crate) mod report;
pub(crate) mod request;
mod root;
mod sys;
mod tell;
#[path = "../../shared/traffic.rs"]
#[expect(clippy::duplicate_mod, reason = "of two programs, which are one in tests alone")]
mod traffic;
#[path = "../../shared/veth_message.rs"]
#[expect(clippy::duplicate_mod, reason = "of two programs, which are one in tests alone")]
mod veth_message;

use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use report::Report;
use request::{FOLDER, Request};

/// A step that failed: what it was, a fragment after "cannot", and why.
struct Failure {
    doing: String,
    error: io::Error,
}

/// Names the step that an error came from.
trait During<T> {
    fn during(self, doing: impl Into<String>) -> Result<T, Failure>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, doing: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|error| Failure { doing: doing.into(), error })
    }
}

fn main() {
    let mut file = match fs::File::create(Path::new(FOLDER).join("report")) {
        Ok(file) => file,
        Err(error) => {
            // Nobody can be told but the container's own output.
            let _ = writeln!(io::stderr(), "hallmark: cannot write the report: {error}");
            sys::exit(1)
        }
    };
    let report = match run() {
        Ok(report) => report,
        Err(Failure { doing, error }) => {
            Report { failed: Some((error.raw_os_error().unwrap_or(0), doing)), ..Report::default() }
        }
    };
    let failed = report.failed.is_some();
    // One write: it is there whole or not at all.
    let written = file.write_all(report.encode().as_bytes());
    sys::exit(i32::from(failed || written.is_err()))
}

fn run() -> Result<Report, Failure> {
    let folder = Path::new(FOLDER);
    let bytes = fs::read(folder.join("request")).during("read the request")?;
    let request = Request::decode(&bytes)
        .ok_or_else(|| io::Error::from_raw_os_error(sys::EINVAL))
        .during("understand the request")?;
    let filters = fs::read(folder.join("filters")).during("read the seccomp filters")?;
    let groups = groups::Groups::open();
    let mut report = Report::default();
    let signals = sys::signals().during("watch for signals")?;

    // What the daemon's own mounts would let the rest of the set-up make.
    sys::umask(0o022);
    sys::private_mounts().during("make mounts private")?;
    sys::set_hostname(&request.hostname).during("set the host name")?;
    let hole = network::set_up(&request, &mut report.gaps)?;
    let made = root::set_up(&request, &mut report.gaps)?;
    if !request.processors.is_empty() && sys::take_processors(&request.processors).is_err() {
        report.gaps.push("processors".to_owned());
    }
    sys::set_undumpable().during("hide pid 1")?;

    let watch = Instant::now();
    let Some(command) = sys::fork().during("start the command")? else {
        payload::run(&request, &filters)
    };
    report.status = Some(reap(command, &signals, hole.as_ref())?);
    report.nanoseconds = u64::try_from(watch.elapsed().as_nanos()).unwrap_or(u64::MAX);

    sys::kill_everything();
    while sys::wait(true).during("reap what is left")?.is_some() {}
    report.attempts = network::attempts(&request, hole.as_ref());
    groups.read(&mut report);
    if request.directory {
        root::tidy(&request, &made);
    }
    for stream in [io::stdout().as_fd(), io::stderr().as_fd()] {
        write_whole(stream, request.mark.as_bytes()).during("end the output")?;
    }
    Ok(report)
}

/// Writes to a pipe that the command may have made one that never waits.
fn write_whole(stream: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    let mut stream = fs::File::from(stream.try_clone_to_owned()?);
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(1));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits for the command, reaping orphans and draining the black hole meanwhile. If hallmark wants the end, it is brought about.
fn reap(
    command: i32,
    signals: &fs::File,
    hole: Option<&network::BlackHole>,
) -> Result<i32, Failure> {
    loop {
        while let Some((pid, status)) = sys::wait(false).during("wait for the command")? {
            if pid == command {
                return Ok(status);
            }
        }
        let device = hole.map(network::BlackHole::device);
        sys::poll(signals, device).during("wait for the command")?;
        if ending::is_wanted(signals) {
            sys::kill_everything();
        }
        if let Some(hole) = hole {
            hole.drain();
        }
    }
}
