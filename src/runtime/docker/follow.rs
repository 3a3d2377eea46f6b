//! Follows a container from outside: takes its output, enforces limits, kills it.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::pin::{Pin, pin};
use std::time::Duration;

use bollard::container::{AttachContainerResults, LogOutput};
use bollard::errors::Error as ClientError;
use bollard::query_parameters::{KillContainerOptions, WaitContainerOptions};
use futures_util::{Stream, StreamExt as _};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::super::error::system;
use super::super::shared::{DiskWatch, GRACE, Reason};
use super::super::{Error, RunSpec};
use super::engine::{DaemonError, Engine};
use crate::base::Cancel;
use crate::base::clock::Stopwatch;

/// How often cancellation and limits are looked at.
const TICK: Duration = Duration::from_millis(50);

/// A daemon may take so long to kill a container, and again until it says that nothing is left of it.
const KILLING: Duration = Duration::from_secs(30);

/// After the container's end, a daemon may take so long for the next output, or to say that there is none.
const ENDING: Duration = Duration::from_secs(30);

/// A silent daemon is asked this often whether it is alive, and may take so long to say so.
const PULSE: Duration = Duration::from_secs(15);
const ANSWER: Duration = Duration::from_secs(30);

/// What was seen of a run.
pub(super) struct Outcome {
    pub(super) killed: Option<Reason>,
    /// Since the daemon said that the container had started.
    pub(super) wall: Duration,
    pub(super) disk: Option<DiskWatch>,
    /// Bytes of output.
    pub(super) written: u64,
}

type Output = Pin<Box<dyn Stream<Item = Result<LogOutput, ClientError>> + Send>>;

/// A container that has just been started.
pub(super) struct Follow<'a> {
    engine: &'a Engine,
    id: &'a str,
    spec: &'a RunSpec,
    cancel: &'a Cancel,
    output: Option<Output>,
    stdout: File,
    stderr: File,
    written: u64,
    /// Bytes of output that are pid 1's.
    marks: u64,
    disk: Option<DiskWatch>,
    clock: Stopwatch,
    /// Since the last output, or the container's end.
    silence: Stopwatch,
}

impl<'a> Follow<'a> {
    /// `attached` has been since before the start, so that nothing is lost.
    pub(super) fn new(
        engine: &'a Engine,
        id: &'a str,
        spec: &'a RunSpec,
        cancel: &'a Cancel,
        attached: AttachContainerResults,
        disk: Option<DiskWatch>,
        marks: u64,
    ) -> Result<Self, Error> {
        let (stdout, stderr) = (create(&spec.output, "stdout")?, create(&spec.output, "stderr")?);
        let output = Some(attached.output);
        let (written, clock, silence) = (0, Stopwatch::start(), Stopwatch::start());
        Ok(Self {
            engine,
            id,
            spec,
            cancel,
            output,
            stdout,
            stderr,
            written,
            marks,
            disk,
            clock,
            silence,
        })
    }

    /// Waits until nothing of the run is left. On an error the container may still be there.
    pub(super) fn wait(self) -> Result<Outcome, Error> {
        let engine = self.engine;
        engine.wait(async {
            let alive = pin!(pulse(engine));
            tokio::select! {
                outcome = self.follow() => outcome,
                error = alive => Err(error.into()),
            }
        })
    }

    async fn follow(mut self) -> Result<Outcome, Error> {
        let options = WaitContainerOptions { condition: "not-running".to_owned() };
        let mut ended = pin!(self.engine.docker().wait_container(self.id, Some(options)));
        let mut running = true;
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The daemon answers only once it has passed all output on, so that goes on meanwhile.
        let mut killing = pin!(None);
        let mut killed: Option<(Reason, Stopwatch)> = None;
        let mut wall = None;
        while running || self.output.is_some() {
            let left = self.spec.limits.wall.saturating_sub(self.clock.elapsed());
            tokio::select! {
                item = next(&mut self.output) => self.take(item)?,
                end = ended.next(), if running => {
                    self.check_end(end)?;
                    running = false;
                    self.silence = Stopwatch::start();
                    wall.get_or_insert(self.clock.elapsed());
                }
                done = maybe(killing.as_mut()) => {
                    killing.set(None);
                    done?;
                }
                _ = ticks.tick() => {}
                () = sleep(left), if killed.is_none() => {}
            }
            match &killed {
                None if self.cancel.is_cancelled() => {
                    // Nobody reads what is still to come; removing the container kills it.
                    killed = Some((Reason::Cancelled, Stopwatch::start()));
                    break;
                }
                None if running => {
                    let Some(reason) = self.reason() else { continue };
                    wall = Some(self.clock.elapsed());
                    killed = Some((reason, Stopwatch::start()));
                    killing.set(Some(end(self.engine, self.id)));
                }
                None if self.silence.elapsed() > ENDING => {
                    return Err(self.engine.timed_out("end a run's output", ENDING).into());
                }
                Some((_, since)) if since.elapsed() > KILLING => {
                    return Err(self.engine.timed_out("kill a container", KILLING).into());
                }
                _ => {}
            }
        }
        Ok(Outcome {
            killed: killed.map(|(reason, _)| reason),
            wall: wall.unwrap_or_else(|| self.clock.elapsed()),
            disk: self.disk,
            written: self.written.saturating_sub(self.marks),
        })
    }

    /// Writes what came out.
    fn take(&mut self, item: Option<Result<LogOutput, ClientError>>) -> Result<(), Error> {
        let (file, message) = match item {
            None => {
                self.output = None;
                return Ok(());
            }
            Some(Ok(LogOutput::StdOut { message })) => (&mut self.stdout, message),
            Some(Ok(LogOutput::StdErr { message })) => (&mut self.stderr, message),
            Some(Ok(LogOutput::StdIn { .. } | LogOutput::Console { .. })) => {
                return Err(Error::Launcher {
                    message: "the daemon cut the container's output".to_owned(),
                });
            }
            Some(Err(error)) => {
                return Err(self.engine.failure("pass the output on", error).into());
            }
        };
        file.write_all(&message).map_err(system("write the output"))?;
        self.silence = Stopwatch::start();
        self.written += message.len() as u64;
        Ok(())
    }

    /// What the daemon says of the end; the exit code is pid 1's own, and of no interest.
    fn check_end(
        &self,
        end: Option<Result<bollard::models::ContainerWaitResponse, ClientError>>,
    ) -> Result<(), Error> {
        match end {
            Some(Ok(_) | Err(ClientError::DockerContainerWaitError { .. })) => Ok(()),
            Some(Err(error)) => Err(self.engine.failure("wait for a container", error).into()),
            None => {
                let cut = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                let error = ClientError::IOError { err: cut };
                Err(self.engine.failure("wait for a container", error).into())
            }
        }
    }

    fn reason(&mut self) -> Option<Reason> {
        let (limits, disk) = (&self.spec.limits, self.disk.as_mut());
        let written = self.written.saturating_sub(self.marks);
        Reason::now(self.cancel, limits, &self.clock, written, disk)
    }
}

/// Ends a run: by pid 1, who knows what it has cost, else with pid 1.
async fn end(engine: &Engine, id: &str) -> Result<(), Error> {
    kill(engine, id, "SIGTERM").await?;
    sleep(GRACE).await;
    kill(engine, id, "SIGKILL").await
}

async fn kill(engine: &Engine, id: &str, signal: &str) -> Result<(), Error> {
    let options = KillContainerOptions { signal: signal.to_owned() };
    match engine.docker().kill_container(id, Some(options)).await {
        // 404 and 409: it has just ended by itself.
        Ok(()) | Err(ClientError::DockerResponseServerError { status_code: 404 | 409, .. }) => {
            Ok(())
        }
        Err(error) => Err(engine.failure("kill a container", error).into()),
    }
}

/// The end of work that may not have begun: then never.
async fn maybe<T>(work: Pin<&mut Option<impl Future<Output = T>>>) -> T {
    match work.as_pin_mut() {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

fn create(folder: &Path, name: &str) -> Result<File, Error> {
    let file = fs_err::File::create(folder.join(name)).map_err(system("write the output"))?;
    Ok(file.into_parts().0)
}

/// The next of a stream that may have ended: then never.
async fn next(output: &mut Option<Output>) -> Option<Result<LogOutput, ClientError>> {
    match output {
        Some(output) => output.next().await,
        None => std::future::pending().await,
    }
}

/// Returns once the daemon no longer answers.
async fn pulse(engine: &Engine) -> DaemonError {
    loop {
        sleep(PULSE).await;
        match timeout(ANSWER, engine.docker().ping()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return engine.failure("say that it is alive", error),
            Err(_) => return engine.timed_out("say that it is alive", ANSWER),
        }
    }
}
