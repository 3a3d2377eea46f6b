//! A socket in front of a daemon's that keeps something of a run's output to itself.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What it does to the connection that brings the output.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Fault {
    /// Ends it after the first frame, as if that were all.
    Cut,
    /// Never ends it.
    Hold,
}

/// Puts `socket` in front of `daemon`.
pub(super) fn attach_proxy(socket: &Path, daemon: &Path, fault: Fault) {
    let listener = UnixListener::bind(socket).unwrap();
    let daemon = daemon.to_owned();
    thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.unwrap();
            let Ok(server) = UnixStream::connect(&daemon) else { continue };
            let attached = Arc::new(AtomicBool::new(false));
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            let flag = Arc::clone(&attached);
            thread::spawn(move || upwards(from, to, &flag));
            thread::spawn(move || downwards(server, client, &attached, fault));
        }
    });
}

fn upwards(mut from: UnixStream, mut to: UnixStream, attached: &AtomicBool) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let text = String::from_utf8_lossy(&buffer[..count]);
        if text.lines().next().is_some_and(|line| line.contains("/attach")) {
            attached.store(true, Ordering::SeqCst);
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

fn downwards(mut from: UnixStream, mut to: UnixStream, attached: &AtomicBool, fault: Fault) {
    let mut buffer = vec![0; 64 << 10];
    let mut output = Vec::new();
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if fault == Fault::Cut && attached.load(Ordering::SeqCst) {
            let passed = output.len();
            output.extend(&buffer[..count]);
            let end = first_frame(&output);
            let _ = to.write_all(&output[passed..end.unwrap_or(output.len())]);
            if end.is_some() {
                break;
            }
        } else if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    if fault == Fault::Hold && attached.load(Ordering::SeqCst) {
        return std::mem::forget(to);
    }
    let _ = to.shutdown(Shutdown::Both);
    // The daemon goes on as if somebody listened.
    while let Ok(1..) = from.read(&mut buffer) {}
}

/// Where the first frame behind the answer's head ends, once it is there: eight bytes, the last four of which are its length.
fn first_frame(output: &[u8]) -> Option<usize> {
    let head = output.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let length = output.get(head + 4..head + 8)?;
    let end = head + 8 + u32::from_be_bytes(length.try_into().unwrap()) as usize;
    (output.len() >= end).then_some(end)
}
