//! One archive, streamed into `POST /images/load`.

use std::time::Duration;

use bollard::errors::Error as ClientError;
use bollard::models::BuildInfo;
use bollard::query_parameters::ImportImageOptionsBuilder;
use futures_util::{Stream, StreamExt as _};

use super::super::{DaemonError, Engine};
use super::body::{BodyWatch, body};
use crate::base::cancel::until_cancelled;
use crate::base::clock::Stopwatch;
use crate::base::{Cancel, SharedReporter, Store};
use crate::image::Tarball;
use crate::runtime::Error;

/// What the daemon is asked, for people.
const DOING: &str = "load images";

/// How long a daemon may neither take bytes nor say anything. It reports what it unpacks several times a second; one on a slow
/// disk was seen to be silent for half a minute.
const IDLE: Duration = Duration::from_mins(5);

/// How often the bytes are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Sends an archive and waits until the daemon has taken it in; the number of bytes that were sent.
pub(super) fn send(
    engine: &Engine,
    store: &Store,
    archive: &Tarball,
    reporter: &SharedReporter,
    cancel: &Cancel,
) -> Result<u64, Error> {
    let (mut writer, watch, stream) = body();
    // The daemon's progress is asked for: without it a long silence could not be told from a hang.
    let options = ImportImageOptionsBuilder::new().quiet(false).build();
    let answer = engine.docker().import_image_stream(options, stream, None);
    std::thread::scope(|scope| {
        let writing =
            scope.spawn(move || match archive.write(store, &mut writer, reporter, cancel) {
                Ok(_) => Ok(()),
                Err(error) => {
                    writer.fail();
                    Err(error)
                }
            });
        let answered = engine.wait(listen(engine, answer, &watch, cancel));
        let sent = watch.sent();
        // Cuts the body if the daemon answered before its end.
        drop(watch);
        let written = writing.join().expect("the writing thread does not panic");
        match (answered, written) {
            (Ok(()), Ok(())) => Ok(sent),
            // What was wrong on our side is the cause; a broken pipe is only how the daemon's answer was seen.
            (_, Err(error)) if !is_broken_pipe(&error) => Err(error.into()),
            (Err(error), _) => Err(error.into()),
            (Ok(()), Err(_)) => {
                let cut = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
                Err(engine.failure(DOING, ClientError::IOError { err: cut }).into())
            }
        }
    })
}

/// Reads the daemon's messages to their end.
async fn listen(
    engine: &Engine,
    mut answer: impl Stream<Item = Result<BuildInfo, ClientError>> + Unpin,
    watch: &BodyWatch,
    cancel: &Cancel,
) -> Result<(), DaemonError> {
    let mut silence = Stopwatch::start();
    let mut taken = 0;
    loop {
        let next = tokio::time::timeout(LOOK, answer.next());
        match until_cancelled(cancel, next).await? {
            Ok(None) => return Ok(()),
            Ok(Some(Ok(_))) => silence = Stopwatch::start(),
            Ok(Some(Err(error))) => return Err(engine.failure(DOING, error)),
            Err(_) if watch.sent() > taken => {
                (taken, silence) = (watch.sent(), Stopwatch::start());
            }
            Err(_) if silence.elapsed() > IDLE => return Err(engine.timed_out(DOING, IDLE)),
            Err(_) => {}
        }
    }
}

fn is_broken_pipe(error: &crate::image::Error) -> bool {
    matches!(error, crate::image::Error::Base(crate::base::Error::Io(error))
        if error.kind() == std::io::ErrorKind::BrokenPipe)
}
