//! Podman's compatible service in the daemon's place.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use hallmark::base::clock::Stopwatch;
use hallmark::base::progress::{Event, Recording};
use hallmark::base::{Cancel, SharedReporter};
use hallmark::runtime::docker::{Endpoint, Engine, Product};

use super::set::Set;
use crate::support::{installed, is_real_root, say_skipped};

/// Killed when dropped.
struct Podman {
    folder: tempfile::TempDir,
    service: Child,
}

impl Podman {
    fn start() -> Option<Self> {
        if !is_real_root() || !installed("podman") {
            say_skipped("podman is not installed, or this is not root");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let socket = format!("unix://{}", folder.path().join("p.sock").display());
        let root = folder.path().join("root");
        let service = Command::new("podman")
            .arg("--root")
            .arg(&root)
            .arg("--runroot")
            .arg(&root)
            .args(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"])
            .args(["system", "service", "--time", "0", &socket])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Some(Self { folder, service })
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("p.sock")
    }

    fn engine(&self) -> Engine {
        let watch = Stopwatch::start();
        loop {
            match Engine::connect(&[Endpoint::Unix(self.socket())], &Cancel::new()) {
                Ok(engine) => return engine,
                Err(error) => assert!(watch.elapsed() < Duration::from_secs(30), "{error}"),
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        let _ = self.service.kill();
        let _ = self.service.wait();
    }
}

#[test]
fn podman_takes_a_set_with_all_of_its_layers() {
    let Some(podman) = Podman::start() else { return };
    let engine = podman.engine();
    assert_eq!(engine.daemon().product, Product::Podman);
    let mut set = Set::new(1500, 2, 1 << 20, 1 << 16);
    // As the harness names images: without a place.
    set.images[0].0 = "sweb.eval.x86_64.owner__name-0:latest".to_owned();
    let sibling = set.images.pop().unwrap();
    let report = set.load(&engine);
    assert!(report.failure.is_none(), "{:?}", report.failure);
    assert_eq!((report.images[0].id, report.layers_sent), (set.id(0), 2));
    set.images.push(sibling);
    let report = set.load(&engine);
    assert!(report.failure.is_none(), "{:?}", report.failure);
    assert_eq!((report.images[0].was_there, report.images[1].was_there), (true, false));
    assert_eq!(report.images[1].id, set.id(1));
    // The shared layer was sent again.
    assert!(report.bytes_sent > 1 << 20, "{}", report.bytes_sent);

    // So it is in each of several requests, and none is refused for lack of it.
    let set = Set::new(1550, 2, 1 << 20, 1 << 16);
    let events = Arc::new(Recording::default());
    let reporter: SharedReporter = events.clone();
    let report = engine.load_in_requests(&set.named(), 1, &set.store, &reporter, &Cancel::new());
    assert!(report.failure.is_none(), "{:?}", report.failure);
    assert!(report.bytes_sent > 2 << 20, "{}", report.bytes_sent);
    let again = |event: &Event| matches!(event, Event::Warned { message, .. } if message.contains("all are sent"));
    assert!(!events.events().iter().any(again));
}
