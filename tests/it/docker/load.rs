//! What is sent into a daemon, and what is there afterwards.

use hallmark::base::progress::{Event, Recording};
use hallmark::base::{Cancel, SharedReporter};

use super::proxy::proxy;
use super::set::{Set, engine};
use crate::support::Dockerd;

/// The bytes of one file of an image, as the daemon has it.
fn size_in(dockerd: &Dockerd, image: &str, path: &str) -> usize {
    let container = dockerd.ask(&["create", image, "/none"]);
    let copy = dockerd.docker(&["cp", &format!("{container}:{path}"), "-"]);
    assert!(copy.status.success(), "{copy:?}");
    dockerd.ask(&["rm", &container]);
    copy.stdout.len()
}

#[test]
fn a_set_is_loaded_once_and_each_id_is_the_config_digest() {
    let Some(dockerd) = Dockerd::shared() else { return };
    let set = Set::new(100, 3, 3 << 20, 1 << 20);
    let engine = engine(&dockerd.socket());
    let report = set.load(&engine);
    assert!(report.failure.is_none(), "{:?}", report.failure);
    assert_eq!((report.layers_sent, report.layers_there, report.bytes_there), (4, 0, 0));
    for (index, (name, _)) in set.images.iter().enumerate() {
        let id = dockerd.ask(&["image", "inspect", "--format", "{{.Id}}", name]);
        assert_eq!(id, set.id(index).to_string());
        assert_eq!(
            (report.images[index].id, report.images[index].was_there),
            (set.id(index), false)
        );
        assert!(size_in(dockerd, name, "/base") > 3 << 20);
        assert!(size_in(dockerd, name, &format!("/own-{index}")) > 1 << 20);
    }
    let again = set.load(&engine);
    assert!(again.failure.is_none() && again.images.iter().all(|image| image.was_there));
    assert_eq!((again.bytes_sent, again.layers_sent, again.layers_there), (0, 0, 4));
}

#[test]
fn a_sibling_costs_its_own_layers_only() {
    let Some(dockerd) = Dockerd::shared() else { return };
    let mut set = Set::new(200, 2, 4 << 20, 256 << 10);
    let engine = engine(&dockerd.socket());
    let sibling = set.images.pop().unwrap();
    assert!(set.load(&engine).failure.is_none());
    let own = sibling.1.layers[1].size;
    set.images.push(sibling);
    let report = set.load(&engine);
    assert!(report.failure.is_none(), "{:?}", report.failure);
    assert_eq!((report.layers_sent, report.layers_there), (1, 2));
    let most = own + own / 20;
    assert!((own..=most).contains(&report.bytes_sent), "{} of {own}", report.bytes_sent);
    assert!(size_in(dockerd, &set.images[1].0, "/base") > 4 << 20);
}

#[test]
fn an_image_under_another_name_is_only_named() {
    let Some(dockerd) = Dockerd::shared() else { return };
    let mut set = Set::new(300, 1, 1 << 20, 1 << 20);
    let engine = engine(&dockerd.socket());
    assert!(set.load(&engine).failure.is_none());
    set.images[0].0 = "set300/other:tag".to_owned();
    let report = set.load(&engine);
    assert!(report.failure.is_none() && report.bytes_sent < 10_000, "{report:?}");
    let id = dockerd.ask(&["image", "inspect", "--format", "{{.Id}}", "set300/other:tag"]);
    assert_eq!(id, set.id(0).to_string());
}

#[test]
fn a_name_that_another_image_has_is_taken_from_it() {
    let Some(dockerd) = Dockerd::shared() else { return };
    let (mut set, other) = (Set::new(400, 1, 1 << 20, 1), Set::new(401, 1, 1 << 10, 1));
    let engine = engine(&dockerd.socket());
    assert!(other.load(&engine).failure.is_none());
    set.images[0].0.clone_from(&other.images[0].0);
    let report = set.load(&engine);
    assert!(report.failure.is_none(), "{:?}", report.failure);
    let id = dockerd.ask(&["image", "inspect", "--format", "{{.Id}}", &set.images[0].0]);
    assert_eq!(id, set.id(0).to_string());
}

#[test]
fn layers_that_went_away_meanwhile_are_sent_after_all() {
    let Some(dockerd) = Dockerd::shared() else { return };
    let mut set = Set::new(500, 2, 2 << 20, 1 << 20);
    let sibling = set.images.pop().unwrap();
    assert!(set.load(&engine(&dockerd.socket())).failure.is_none());
    let (gone, _) = std::mem::replace(&mut set.images[0], sibling);
    // When the archive without the shared layer comes, the image that held it is removed.
    let socket = set.path().join("p.sock");
    proxy(&socket, &dockerd.socket(), 0, move || {
        let _ = dockerd.docker(&["rmi", &gone]);
    });
    let events = std::sync::Arc::new(Recording::default());
    let reporter: SharedReporter = events.clone();
    let report = engine(&socket).load(&set.named(), &set.store, &reporter, &Cancel::new());
    assert!(report.failure.is_none(), "{:?}", report.failure);
    assert_eq!((report.layers_sent, report.layers_there), (2, 0));
    let warned = events.events().into_iter().any(
        |event| matches!(event, Event::Warned { message, .. } if message.contains("all are sent")),
    );
    assert!(warned);
    assert!(size_in(dockerd, &set.images[0].0, "/base") > 2 << 20);
}
