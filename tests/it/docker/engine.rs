//! The connection to a daemon: a real one, and servers that play one that lies or hangs.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hallmark::base::Cancel;
use hallmark::base::clock::Stopwatch;
use hallmark::runtime::docker::{ApiVersion, DaemonError, Endpoint, Engine, Product};

use rustix::process::Signal;

use crate::support::Dockerd;

fn connect(sockets: &[&Path]) -> Result<Engine, DaemonError> {
    let candidates: Vec<_> = sockets.iter().map(|path| Endpoint::Unix((*path).into())).collect();
    Engine::connect(&candidates, &Cancel::new())
}

/// A socket that gives every request the same answer; nothing where there is none to give.
fn pretender(socket: &Path, answer: Option<&'static str>) {
    let listener = UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            match answer {
                Some(answer) => stream.write_all(answer.as_bytes()).unwrap(),
                None => open.push(stream),
            }
        }
    });
}

fn json(body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}

/// What connecting to a server that answers so gives.
fn refused(answer: &str) -> DaemonError {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("d.sock");
    pretender(&socket, Some(answer.to_owned().leak()));
    connect(&[&socket]).unwrap_err()
}

#[test]
fn a_daemon_says_what_it_is() {
    let Some(dockerd) = Dockerd::shared() else { return };
    let absent = Path::new("/nonexistent/docker.sock");
    let engine = connect(&[absent, &dockerd.socket()]).unwrap();
    let daemon = engine.daemon();
    assert_eq!(engine.endpoint(), dockerd.host());
    assert_eq!(daemon.product, Product::Docker);
    assert_eq!(daemon.version, dockerd.ask(&["version", "--format", "{{.Server.Version}}"]));
    assert!(daemon.api >= ApiVersion::OLDEST, "{daemon}");
    let store = dockerd.ask(&["info", "--format", "{{.DriverStatus}}"]);
    assert_eq!(daemon.containerd_images, store.contains("io.containerd.snapshotter"), "{store}");
    let pong =
        engine.call("answer", Duration::from_secs(10), &Cancel::new(), engine.docker().ping());
    assert_eq!(pong.unwrap(), "OK");
}

#[test]
fn what_the_daemon_refuses_is_told_in_its_words() {
    let Some(dockerd) = Dockerd::shared() else { return };
    let engine = connect(&[&dockerd.socket()]).unwrap();
    let work = engine.docker().inspect_image("no-such-image");
    let error = engine.call("show an image", Duration::from_secs(10), &Cancel::new(), work);
    let Err(DaemonError::Refused { status: Some(404), message, .. }) = &error else {
        panic!("{error:?}")
    };
    assert!(message.contains("no-such-image"), "{message}");
}

#[test]
fn without_a_daemon_every_place_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let stale = folder.path().join("stale.sock");
    drop(UnixListener::bind(&stale).unwrap());
    let absent = folder.path().join("absent.sock");
    let error = connect(&[&absent, &stale]).unwrap_err();
    let DaemonError::NoDaemon { looked } = &error else { panic!("{error}") };
    assert_eq!(looked.len(), 2);
    assert!(looked[0].contains("absent.sock: there is no such socket"), "{error}");
    assert!(looked[1].contains("stale.sock: nobody listens"), "{error}");
    assert!(error.hint().unwrap().contains("DOCKER_HOST"));
}

#[test]
fn a_daemon_over_tcp_is_found_or_not() {
    let absent = Endpoint::parse("tcp://127.0.0.1:1", "test").unwrap();
    let error = Engine::connect(&[absent], &Cancel::new()).unwrap_err();
    assert!(matches!(error, DaemonError::NoDaemon { .. }), "{error}");
}

#[test]
fn strange_answers_are_no_daemon() {
    let page = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>";
    for answer in
        [page, "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"]
    {
        let error = refused(answer);
        assert!(matches!(error, DaemonError::NotADaemon { .. }), "{answer}: {error}");
    }
    let error = refused(&json(r#"{"Version":"20.10.24"}"#));
    assert!(error.to_string().contains("names no API version"), "{error}");
}

#[test]
fn a_daemon_that_is_too_old_or_too_new_is_told_from_others() {
    let old = json(r#"{"Version":"19.03.15","ApiVersion":"1.40","MinAPIVersion":"1.12"}"#);
    let error = refused(&old);
    let DaemonError::TooOld { actual, expected, .. } = &error else { panic!("{error}") };
    assert_eq!((actual.to_string(), *expected), ("1.40".to_owned(), ApiVersion::OLDEST));
    assert!(error.to_string().contains("19.03.15"), "{error}");
    assert!(error.hint().unwrap().contains("20.10"));

    let new = json(r#"{"Version":"99.0","ApiVersion":"3.7","MinAPIVersion":"3.0"}"#);
    assert!(matches!(refused(&new), DaemonError::TooNew { .. }));
}

#[test]
fn a_daemon_that_hangs_is_not_waited_for_once_the_end_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("d.sock");
    pretender(&socket, None);
    let cancel = Cancel::new();
    let watch = Stopwatch::start();
    let error = std::thread::scope(|scope| {
        let call = scope.spawn(|| Engine::connect(&[Endpoint::Unix(socket.clone())], &cancel));
        std::thread::sleep(Duration::from_millis(300));
        cancel.cancel();
        call.join().unwrap().unwrap_err()
    });
    assert!(matches!(error, DaemonError::Base(hallmark::base::Error::Cancelled)), "{error}");
    assert!(watch.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_call_has_a_deadline_and_a_daemon_that_dies_is_gone() {
    let Some(dockerd) = Dockerd::start(&[]) else { return };
    let engine = connect(&[&dockerd.socket()]).unwrap();
    let limit = Duration::from_secs(1);
    let ping = || engine.call("answer", limit, &Cancel::new(), engine.docker().ping());
    ping().unwrap();
    dockerd.freeze();
    let stopped = ping().unwrap_err();
    dockerd.signal(Signal::CONT);
    assert!(matches!(stopped, DaemonError::TimedOut { .. }), "{stopped}");

    let events = std::thread::scope(|scope| {
        let call = scope.spawn(|| {
            let wait = Duration::from_mins(1);
            // Nothing is written to it: the daemon answers when it has something to say.
            let work = engine.docker().inspect_image("absent");
            engine.call("look", wait, &Cancel::new(), async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                work.await
            })
        });
        dockerd.signal(Signal::KILL);
        call.join().unwrap().unwrap_err()
    });
    assert!(matches!(events, DaemonError::Lost { .. }), "{events}");
    assert!(events.hint().unwrap().contains("does what is left"));
}

#[test]
fn a_socket_of_another_user_is_a_matter_of_permission() {
    if !crate::support::is_real_root() {
        return crate::support::say_skipped("it takes root to become another user");
    }
    let folder = tempfile::tempdir().unwrap();
    fs_err::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let socket = folder.path().join("d.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    fs_err::set_permissions(&socket, std::fs::Permissions::from_mode(0o660)).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "docker::engine::connect_as_nobody", "--ignored", "--nocapture"])
        .env("HALLMARK_TEST_SOCKET", &socket)
        .uid(65534)
        .gid(65534)
        .current_dir("/")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("this user may not use the daemon's socket"), "{output:?}");
}

/// The body of the other user's process.
#[test]
#[ignore = "started by a test"]
fn connect_as_nobody() {
    #[expect(clippy::disallowed_methods, reason = "the test that starts this names the socket")]
    let Some(socket) = std::env::var_os("HALLMARK_TEST_SOCKET") else { return };
    let error = connect(&[Path::new(&socket)]).unwrap_err();
    assert!(matches!(error, DaemonError::Permission { .. }), "{error}");
    crate::support::say(&error.to_string());
}
