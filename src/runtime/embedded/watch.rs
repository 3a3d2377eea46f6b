//! Follows a run from outside: copies its output, hears its report, enforces its limits, kills it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{SpliceFlags, splice};

use super::super::error::system;
use super::super::shared::{DiskWatch, Reason};
use super::super::{Error, RunSpec};
use super::launcher::{END, KILL};
use super::protocol::{Frame, take_frame};
use crate::base::Cancel;
use crate::base::clock::Stopwatch;

/// How often cancellation and limits are looked at.
const TICK: Duration = Duration::from_millis(50);

/// Most bytes moved from a pipe to its file in one go.
const CHUNK: usize = 1 << 20;

/// A run that is going on. Dropped early, it is killed.
pub(super) struct Watch<'a> {
    child: Child,
    control: Option<UnixStream>,
    received: Vec<u8>,
    streams: Vec<Stream>,
    spec: &'a RunSpec,
    disk: Option<DiskWatch>,
    written: u64,
    clock: Stopwatch,
}

/// What was seen of a run.
pub(super) struct Outcome {
    pub(super) frames: Vec<Frame>,
    pub(super) timed_out: bool,
    pub(super) disk_full: bool,
    pub(super) output_full: bool,
    pub(super) wall: Duration,
    disk: Option<DiskWatch>,
    written: u64,
}

impl Outcome {
    /// Whether a run that failed had reached its disk limit.
    pub(super) fn ended_over_disk(&mut self) -> bool {
        let written = self.written;
        self.disk.as_mut().is_some_and(|disk| disk.ended_over(written))
    }
}

struct Stream {
    pipe: OwnedFd,
    file: File,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        child: Child,
        control: UnixStream,
        spec: &'a RunSpec,
        disk: Option<DiskWatch>,
    ) -> Result<Self, Error> {
        control.set_nonblocking(true).map_err(system("listen to the launcher"))?;
        let (received, streams) = (Vec::new(), Vec::new());
        let clock = Stopwatch::start();
        Ok(Self { child, control: Some(control), received, streams, spec, disk, written: 0, clock })
    }

    /// Copies what comes out of `pipe` to `name` in `folder`.
    pub(super) fn copy(mut self, pipe: OwnedFd, name: &str, folder: &Path) -> Result<Self, Error> {
        let path = folder.join(name);
        let file = fs_err::File::create(&path).map_err(system("write the output"))?.into_parts().0;
        self.streams.push(Stream { pipe, file });
        Ok(self)
    }

    /// Waits until nothing of the run is left.
    pub(super) fn wait(mut self, cancel: &Cancel) -> Result<Outcome, Error> {
        let mut frames = Vec::new();
        let mut killed = None;
        let mut wall = None;
        while self.control.is_some() || !self.streams.is_empty() {
            self.step(&mut frames)?;
            if killed.is_none() && self.control.is_some() {
                killed = self.reason(cancel);
                if let Some(reason) = killed {
                    wall = Some(self.clock.elapsed());
                    // Nobody asks what a cancelled run has cost.
                    self.tell(if reason == Reason::Cancelled { KILL } else { END });
                }
            }
        }
        self.child.wait().map_err(system("wait for the launcher"))?;
        if killed == Some(Reason::Cancelled) {
            return Err(Error::Base(crate::base::Error::Cancelled));
        }
        Ok(Outcome {
            frames,
            timed_out: killed == Some(Reason::Wall),
            disk_full: killed == Some(Reason::Disk),
            output_full: killed == Some(Reason::Output),
            wall: wall.unwrap_or_else(|| self.clock.elapsed()),
            disk: self.disk.take(),
            written: self.written,
        })
    }

    /// Handles what has come in, waiting for at most a tick.
    fn step(&mut self, frames: &mut Vec<Frame>) -> Result<(), Error> {
        let left = self.spec.limits.wall.saturating_sub(self.clock.elapsed());
        // Rounded up, so that the limit is over when the wait is.
        let wait = (left + Duration::from_millis(1)).min(TICK);
        let wait = Timespec::try_from(wait).expect("a tick is short");
        let mut fds: Vec<_> = self
            .streams
            .iter()
            .map(|stream| PollFd::new(&stream.pipe, PollFlags::IN))
            .chain(self.control.iter().map(|control| PollFd::new(control, PollFlags::IN)))
            .collect();
        match poll(&mut fds, Some(&wait)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(errno) => return Err(system("watch the run")(errno.into())),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let mut index = 0;
        let (mut failed, mut written) = (None, 0);
        self.streams.retain_mut(|stream| {
            let readable = ready[index];
            index += 1;
            if !readable || failed.is_some() {
                return true;
            }
            match stream.advance() {
                Ok(Some(moved)) => {
                    written += moved;
                    true
                }
                Ok(None) => false,
                Err(error) => {
                    failed = Some(error);
                    true
                }
            }
        });
        self.written += written;
        if let Some(error) = failed {
            return Err(system("write the output")(error));
        }
        if ready.get(index) == Some(&true) {
            self.hear(frames)?;
        }
        Ok(())
    }

    fn hear(&mut self, frames: &mut Vec<Frame>) -> Result<(), Error> {
        let Some(control) = &mut self.control else { return Ok(()) };
        let mut buffer = [0; 4096];
        match control.read(&mut buffer) {
            Ok(0) => self.control = None,
            Ok(read) => self.received.extend(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The launcher ended with bytes of ours unread: as good as its end.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => self.control = None,
            Err(error) => return Err(system("listen to the launcher")(error)),
        }
        while let Some(frame) =
            take_frame(&mut self.received).map_err(system("read the launcher's report"))?
        {
            frames.push(frame);
        }
        Ok(())
    }

    fn reason(&mut self, cancel: &Cancel) -> Option<Reason> {
        let (limits, disk) = (&self.spec.limits, self.disk.as_mut());
        Reason::now(cancel, limits, &self.clock, self.written, disk)
    }

    fn tell(&mut self, word: u8) {
        if let Some(control) = &mut self.control {
            // If the launcher is gone, so is the sandbox.
            let _ = control.write_all(&[word]);
        }
    }
}

impl Stream {
    /// Moves what is there and says how much; `None` at the end.
    fn advance(&mut self) -> io::Result<Option<u64>> {
        match splice(&self.pipe, None, &self.file, None, CHUNK, SpliceFlags::MOVE) {
            Ok(0) => return Ok(None),
            Ok(moved) => return Ok(Some(moved as u64)),
            // A filesystem without splice.
            Err(rustix::io::Errno::INVAL) => {}
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => return Ok(Some(0)),
            Err(errno) => return Err(errno.into()),
        }
        let mut buffer = vec![0; 64 << 10];
        let read = rustix::io::read(&self.pipe, &mut buffer)?;
        self.file.write_all(&buffer[..read])?;
        Ok((read > 0).then_some(read as u64))
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if self.control.is_some() {
            self.tell(KILL);
            self.control = None;
            // Its pipes are closed with us, so it cannot hang on a full one.
            self.streams.clear();
            let _ = self.child.wait();
        }
    }
}
