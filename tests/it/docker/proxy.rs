//! A socket in front of a daemon's: what goes through is not changed, but a test may act at a chosen byte of a load.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;

/// Puts `socket` in front of `daemon`. `act` is called once for each request of a load, after `after` bytes of it were passed on.
pub(super) fn proxy(
    socket: &Path,
    daemon: &Path,
    after: usize,
    act: impl Fn() + Send + Sync + 'static,
) {
    let listener = UnixListener::bind(socket).unwrap();
    let daemon = daemon.to_owned();
    let act = Arc::new(act);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (client, act) = (client.unwrap(), Arc::clone(&act));
            let Ok(server) = UnixStream::connect(&daemon) else { continue };
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || upwards(from, to, after, &*act));
            std::thread::spawn(move || pass(server, client));
        }
    });
}

fn upwards(mut from: UnixStream, mut to: UnixStream, after: usize, act: &dyn Fn()) {
    let mut buffer = vec![0; 64 << 10];
    let mut load = None;
    let mut passed = 0;
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 {
            break;
        }
        let first = &buffer[..count];
        let is_load = *load.get_or_insert_with(|| {
            String::from_utf8_lossy(first).lines().next().unwrap_or("").contains("/images/load")
        });
        if is_load && passed <= after && passed + count > after {
            act();
        }
        passed += count;
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

fn pass(mut from: UnixStream, mut to: UnixStream) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
