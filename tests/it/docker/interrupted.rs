//! Loads that end early: nothing half is taken for whole, and the same load goes on afterwards.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hallmark::base::Cancel;
use hallmark::base::clock::Stopwatch;
use hallmark::runtime::Error;
use hallmark::runtime::docker::DaemonError;

use super::proxy::proxy;
use super::set::{Set, engine, reporter};
use crate::support::Dockerd;

/// A daemon over what a killed one left.
fn start_again(dockerd: &Dockerd) -> Dockerd {
    // Its containerd died with it; where nobody reaps the dead, the file with its number looks as if it lived.
    fs_err::remove_dir_all(dockerd.folder().join("exec")).unwrap();
    Dockerd::start_in(dockerd.folder().to_owned(), &[])
}

#[test]
fn a_daemon_that_is_killed_in_the_middle_has_no_half_set() {
    let Some(dockerd) = Dockerd::start(&[]) else { return };
    let set = Set::new(600, 2, 8 << 20, 8 << 20);
    let socket = set.path().join("p.sock");
    let pid = rustix::process::Pid::from_raw(dockerd.pid()).unwrap();
    proxy(&socket, &dockerd.socket(), 10 << 20, move || {
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    });
    let report = set.load(&engine(&socket));
    let failure = report.failure.unwrap();
    assert!(matches!(failure, Error::Daemon(DaemonError::Lost { .. })), "{failure:?}");
    assert!(failure.hint().unwrap().contains("does what is left"));
    assert!(report.images.is_empty());

    let again = start_again(&dockerd);
    assert_eq!(again.ask(&["images", "-q"]), "");
    let report = set.load(&engine(&again.socket()));
    assert!(report.failure.is_none() && report.images.len() == 2, "{:?}", report.failure);
}

#[test]
fn what_whole_requests_brought_stays_and_the_rest_is_sent_by_the_same_load() {
    let Some(dockerd) = Dockerd::start(&[]) else { return };
    // The first request has the shared layer and one image's own, the next two have two images each.
    let (set, most) = (Set::new(650, 5, 4 << 20, 4 << 20), 9 << 20);
    let socket = set.path().join("p.sock");
    let pid = rustix::process::Pid::from_raw(dockerd.pid()).unwrap();
    let requests = AtomicUsize::new(0);
    proxy(&socket, &dockerd.socket(), 6 << 20, move || {
        if requests.fetch_add(1, Ordering::Relaxed) == 1 {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
    });
    let load = |socket: &Path| {
        let (named, cancel) = (set.named(), Cancel::new());
        engine(socket).load_in_requests(&named, most, &set.store, &reporter(), &cancel)
    };
    let report = load(&socket);
    let failure = report.failure.unwrap();
    assert!(matches!(failure, Error::Daemon(DaemonError::Lost { .. })), "{failure:?}");
    let [image] = &report.images[..] else { panic!("{:?}", report.images) };
    assert_eq!((&image.name, image.was_there), (&set.images[0].0, false));

    let again = start_again(&dockerd);
    assert_eq!(again.ask(&["images", "-q"]).lines().count(), 1);
    let report = load(&again.socket());
    assert!(report.failure.is_none(), "{:?}", report.failure);
    let were_there: Vec<bool> = report.images.iter().map(|image| image.was_there).collect();
    assert_eq!(were_there, [true, false, false, false, false]);
    assert_eq!((report.layers_sent, report.layers_there), (4, 2));
    assert!((16 << 20..17 << 20).contains(&report.bytes_sent), "{report:?}");
}

#[test]
fn an_interrupted_load_ends_soon_and_leaves_nothing() {
    let Some(dockerd) = Dockerd::shared() else { return };
    let set = Set::new(700, 1, 16 << 20, 1);
    let socket = set.path().join("p.sock");
    let cancel = Cancel::new();
    let flag = cancel.clone();
    proxy(&socket, &dockerd.socket(), 4 << 20, move || {
        flag.cancel();
        std::thread::sleep(Duration::from_secs(1));
    });
    let watch = Stopwatch::start();
    let report = set.load_with(&engine(&socket), &cancel);
    assert!(watch.elapsed() < Duration::from_secs(5), "{:?}", watch.elapsed());
    let failure = report.failure.unwrap();
    let cancelled = matches!(
        failure,
        Error::Base(hallmark::base::Error::Cancelled)
            | Error::Image(hallmark::image::Error::Base(hallmark::base::Error::Cancelled))
    );
    assert!(cancelled, "{failure:?}");
    assert!(!dockerd.docker(&["image", "inspect", &set.images[0].0]).status.success());
}

#[test]
fn a_damaged_blob_reaches_no_image() {
    let Some(dockerd) = Dockerd::shared() else { return };
    let set = Set::new(800, 1, 4 << 20, 1);
    for entry in fs_err::read_dir(set.store.root().join("blobs/sha256")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs_err::read(&path).unwrap();
        if bytes.len() > 1 << 20 {
            // In the middle of noise, which is stored as it is: only the digest tells.
            let at = bytes.len() / 2;
            bytes[at] ^= 1;
            fs_err::remove_file(&path).unwrap();
            fs_err::write(&path, bytes).unwrap();
        }
    }
    let report = set.load(&engine(&dockerd.socket()));
    let failure = report.failure.unwrap();
    let Error::Image(hallmark::image::Error::Base(error)) = &failure else { panic!("{failure:?}") };
    assert!(matches!(error, hallmark::base::Error::DigestMismatch { .. }), "{error:?}");
    assert!(!dockerd.docker(&["image", "inspect", &set.images[0].0]).status.success());
}

#[test]
fn a_full_disk_of_the_daemon_is_told() {
    let Some(dockerd) = Dockerd::on_small_disk("40m") else { return };
    let mut set = Set::new(900, 2, 1 << 20, 24 << 20);
    let (_, small) = set.images.last_mut().unwrap();
    small.layers.pop();
    set.images.reverse();
    for was_there in [false, true] {
        let report = set.load(&engine(&dockerd.socket()));
        let failure = report.failure.unwrap();
        assert!(matches!(failure, Error::Daemon(DaemonError::DiskFull { .. })), "{failure:?}");
        assert!(failure.hint().unwrap().contains("free some space"));
        // The first one fits: it is in, and told.
        let [image] = &report.images[..] else { panic!("{:?}", report.images) };
        assert_eq!((&image.name, image.was_there), (&set.images[0].0, was_there));
        assert_eq!(dockerd.ask(&["images", "-q"]).lines().count(), 1);
    }
}
