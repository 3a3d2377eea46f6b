//! Docker's credential helpers: programs that are given a server's name and answer with user and secret.
//!
//! Protocol: `docker-credential-<name> get`, the server on stdin, `{"Username": ..., "Secret": ...}` on stdout
//! (docker/docker-credential-helpers). A helper that hangs is killed, with all that it has started.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;

use super::super::Error;
use super::credentials::{Login, Lookup};
use crate::base::clock::Stopwatch;
use crate::base::harmless;

/// More than any secret has.
const LONGEST_ANSWER: u64 = 64 * 1024;

/// More than any helper has to say when it fails.
const LONGEST_MESSAGE: usize = 500;

/// How often a running helper is looked at.
const POLL: Duration = Duration::from_millis(10);

/// What helpers say when they know of no such server.
const UNKNOWN: &str = "credentials not found";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

/// What helpers answered, by helper and server. A failure is an answer too: a helper that hangs costs its time once.
#[derive(Default)]
pub(super) struct Helpers(Mutex<BTreeMap<(String, String), Answered>>);

/// A login, if the helper knows of one, or why it gave no answer.
type Answered = Result<Option<Login>, String>;

impl Helpers {
    /// What the helper says, who is asked once: all others wait for the answer. `None` when it knows of nothing.
    pub(super) fn ask(
        &self,
        name: &str,
        server: &str,
        lookup: &Lookup<'_>,
    ) -> Result<Option<Login>, Error> {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (name.to_owned(), server.to_owned());
        let answer = match answers.entry(key) {
            Entry::Occupied(held) => held.get().clone(),
            Entry::Vacant(place) => {
                let answer = match ask(name, server, lookup) {
                    Err(Stop::Cancelled) => return Err(Error::Base(crate::base::Error::Cancelled)),
                    Err(Stop::Failed(reason)) => Err(reason),
                    Ok(login) => Ok(login),
                };
                place.insert(answer).clone()
            }
        };
        answer.map_err(|reason| Error::Helper {
            name: name.to_owned(),
            server: server.to_owned(),
            reason,
        })
    }
}

/// Why a helper gave no answer.
enum Stop {
    Cancelled,
    Failed(String),
}

fn ask(name: &str, server: &str, lookup: &Lookup<'_>) -> Result<Option<Login>, Stop> {
    let Lookup { path, deadline, cancel, .. } = *lookup;
    let fail = Stop::Failed;
    if name.is_empty() || name.contains(['/', '\0']) {
        return Err(fail("its name is no program's".to_owned()));
    }
    let mut command = Command::new(format!("docker-credential-{name}"));
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let mut child = command
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| fail(format!("it does not start: {error}")))?;
    let mut stdin = child.stdin.take().expect("it was asked for");
    let stdout = child.stdout.take().expect("it was asked for");
    let server = server.to_owned();
    // Threads of their own: a helper that does neither read nor write nor end must not hold anybody. They end when its pipes
    // do, at the latest by the kill below, and are not waited for: what left the helper's group may hold the pipes.
    std::thread::spawn(move || stdin.write_all(format!("{server}\n").as_bytes()));
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = stdout.take(LONGEST_ANSWER).read_to_end(&mut text);
        // Nobody listens any more after the deadline.
        let _ = sender.send(read.map(|_| text));
    });
    let watch = Stopwatch::start();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if cancel.is_cancelled() => {
                kill(&mut child);
                return Err(Stop::Cancelled);
            }
            Ok(None) if watch.elapsed() >= deadline => {
                kill(&mut child);
                return Err(fail(format!("no answer within {} s", deadline.as_secs_f32())));
            }
            Ok(None) => std::thread::sleep(POLL),
            Err(error) => {
                kill(&mut child);
                return Err(fail(error.to_string()));
            }
        }
    };
    let text = receiver
        .recv_timeout(deadline.saturating_sub(watch.elapsed()).max(POLL))
        .map_err(|_| {
            kill(&mut child);
            fail("it ended and left its output open".to_owned())
        })?
        .map_err(|error| fail(error.to_string()))?;
    if !status.success() {
        let said = String::from_utf8_lossy(&text);
        if said.contains(UNKNOWN) {
            return Ok(None);
        }
        // What is longer is no message, and may be what nobody should read.
        let said = if said.len() > LONGEST_MESSAGE { "..." } else { said.trim() };
        return Err(fail(format!("{status}: {}", harmless(said))));
    }
    let answer: Answer = serde_json::from_slice(&text)
        // Not the parser's words: they may quote the secret.
        .map_err(|_| fail("its answer is not JSON with Username and Secret".to_owned()))?;
    Ok(Some(match answer.username.as_str() {
        "<token>" => Login::Identity(answer.secret),
        _ => Login::Basic { user: answer.username, password: answer.secret },
    }))
}

/// Ends the helper and what it has started, which is in its group.
fn kill(child: &mut Child) {
    if let Err(error) = kill_process_group(Pid::from_child(child), Signal::KILL) {
        tracing::debug!(%error, "cannot end a helper's processes");
    }
    if let Err(error) = child.wait() {
        tracing::debug!(%error, "cannot wait for a helper");
    }
}
