//! Pushes to a real registry: what is sent, mounted and left alone, and that others read it.

use std::process::Command;
use std::sync::Arc;

use hallmark::base::progress::{Recording, Silent};
use hallmark::base::{Arch, Cancel, SharedReporter};
use hallmark::image::registry::{Error, Outcome, Placed, PushOptions, PushReport, push};
use hallmark::image::{Compressor, Image, manifest};
use hallmark::net::registry::{Reference, Registries, Uploaded};

use super::{Shop, client, image, noise};
use crate::support::registry::{Access, Registry};
use crate::support::say_skipped;

const OPTIONS: PushOptions =
    PushOptions { compressor: Compressor::Gzip { level: 6 }, index: false, jobs: 4 };

fn push_set(
    shop: &Shop,
    images: &[(String, &Image)],
    options: PushOptions,
) -> Result<PushReport, Error> {
    let images: Vec<(Reference, &Image)> =
        images.iter().map(|(name, image)| (Reference::parse(name).unwrap(), *image)).collect();
    let reporter: SharedReporter = Arc::new(Silent);
    let client = client(Registries::default());
    push(&shop.store, &client, &images, options, &reporter, &Cancel::new())
}

/// Three images of one base, two of which share an environment.
fn family(shop: &Shop) -> [Image; 3] {
    let (base, env) = (shop.layer("base", 300_000), shop.layer("env", 200_000));
    [
        image(&[base, env, shop.layer("one", 1000)]),
        image(&[base, env, shop.layer("two", 1000)]),
        image(&[base, shop.layer("three", 1000)]),
    ]
}

fn named<'a>(host: &str, images: &'a [Image]) -> Vec<(String, &'a Image)> {
    let name = |number| format!("{host}/team/set_1776_{number}:v1");
    images.iter().enumerate().map(|(number, image)| (name(number), image)).collect()
}

fn writes(accesses: &[Access]) -> usize {
    accesses.iter().filter(|access| !matches!(access.method.as_str(), "GET" | "HEAD")).count()
}

#[test]
fn shared_layers_go_over_once_and_a_second_push_is_one_request_an_image() {
    let Some(registry) = Registry::start() else { return };
    let shop = Shop::new();
    let images = family(&shop);
    let set = named(registry.host(), &images);
    let report = push_set(&shop, &set, OPTIONS).unwrap();
    // Five layers and three configs; base and env are wanted in three and two repositories.
    assert_eq!((report.sent.blobs, report.mounted.blobs, report.present.blobs), (8, 3, 0));
    assert!(report.images.iter().all(|image| image.outcome == Outcome::Pushed));
    let first = registry.accesses();
    let uploads =
        first.iter().filter(|access| access.method == "PUT" && access.target.contains("/blobs/"));
    assert_eq!(uploads.count(), 8, "{first:#?}");

    let again = push_set(&shop, &set, OPTIONS).unwrap();
    assert!(again.images.iter().all(|image| image.outcome == Outcome::Present));
    assert_eq!((again.sent, again.mounted, again.present), <(Placed, Placed, Placed)>::default());
    let second = &registry.accesses()[first.len()..];
    assert_eq!((second.len(), writes(second)), (3, 0), "{second:#?}");

    // One image of the set is new: nothing but its own goes over.
    let newer = [
        images[0].clone(),
        images[1].clone(),
        image(&[images[2].layers[0], shop.layer("four", 10)]),
    ];
    let third = push_set(&shop, &named(registry.host(), &newer), OPTIONS).unwrap();
    assert_eq!((third.sent.blobs, third.mounted.blobs, third.present.blobs), (2, 0, 1));

    for (name, image) in &named(registry.host(), &newer) {
        let digests = manifest(&shop.store, image, OPTIONS.compressor, &Cancel::new()).unwrap();
        let Some(told) = skopeo(&["inspect", "--format", "{{.Digest}}"], name) else { return };
        assert_eq!(told, digests.manifest.to_string());
        let config = skopeo(&["inspect", "--raw"], name).unwrap();
        assert!(config.contains(&digests.config.hex()));
    }
}

/// `None` where it is not installed.
fn skopeo(arguments: &[&str], name: &str) -> Option<String> {
    let mut command = Command::new("skopeo");
    command.args(arguments).arg("--tls-verify=false").arg(format!("docker://{name}"));
    let Ok(output) = command.output() else {
        say_skipped("skopeo is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

#[test]
fn one_repository_may_hold_the_set_under_tags() {
    let Some(registry) = Registry::start() else { return };
    let shop = Shop::new();
    let images = family(&shop);
    let name = |number| format!("{}/set:{number}", registry.host());
    let set: Vec<_> =
        images.iter().enumerate().map(|(number, image)| (name(number), image)).collect();
    let report = push_set(&shop, &set, OPTIONS).unwrap();
    assert_eq!((report.sent.blobs, report.mounted.blobs, report.present.blobs), (8, 0, 0));
}

#[test]
fn an_index_keeps_the_images_of_other_platforms() {
    let Some(registry) = Registry::start() else { return };
    let shop = Shop::new();
    let own = image(&[shop.layer("x", 1000)]);
    let other = match Arch::HOST {
        Arch::Amd64 => Arch::Arm64,
        Arch::Arm64 => Arch::Amd64,
    };
    let foreign = Image { arch: other, ..own.clone() };
    let name = format!("{}/multi:v1", registry.host());
    let options = PushOptions { index: true, ..OPTIONS };
    for image in [&foreign, &own] {
        let report = push_set(&shop, &[(name.clone(), image)], options).unwrap();
        assert_eq!(report.images[0].outcome, Outcome::Pushed);
    }
    let before = registry.accesses();
    for image in [&own, &foreign] {
        let report = push_set(&shop, &[(name.clone(), image)], options).unwrap();
        assert_eq!(report.images[0].outcome, Outcome::Present);
        let index = client(Registries::default()).repository(registry.host(), "multi").unwrap();
        assert_eq!(index.tagged("v1").unwrap(), Some(report.images[0].digest));
    }
    let after = registry.accesses();
    assert_eq!(writes(&after[before.len()..]), 0);
    let Some(raw) = skopeo(&["inspect", "--raw"], &name) else { return };
    for image in [&own, &foreign] {
        let digests = manifest(&shop.store, image, OPTIONS.compressor, &Cancel::new()).unwrap();
        assert!(raw.contains(&digests.manifest.hex()), "{raw}");
    }
}

#[test]
fn a_blob_goes_in_pieces_and_in_one() {
    let Some(registry) = Registry::start() else { return };
    let shop = Shop::new();
    let pieces = Registries { largest_piece: 1 << 20, ..Registries::default() };
    for (size, registries, patches) in [
        (0, Registries::default(), 0),
        (5, Registries::default(), 0),
        (3 << 20, Registries::default(), 0),
        (3 << 20, pieces.clone(), 2),
        ((3 << 20) + 1, pieces, 3),
    ] {
        let name = format!("p{size}-{patches}");
        let bytes = noise(&name, size);
        let digest = shop.store.put_blob(&bytes).unwrap();
        let client = client(registries);
        let repository = client.repository(registry.host(), &name).unwrap();
        assert!(!repository.has_blob(&digest).unwrap());
        let told = std::cell::Cell::new(0);
        let report = |by: u64| told.set(told.get() + by);
        let path = shop.store.blob_path(&digest);
        let how = repository.upload(&digest, size as u64, &path, None, &report).unwrap();
        assert_eq!((how, told.get()), (Uploaded::Sent, size as u64));
        assert!(repository.has_blob(&digest).unwrap());
        let came = client
            .download_blob(&[repository], "blob", digest, size as u64, || Ok(Vec::new()))
            .unwrap();
        assert!(came == bytes, "{name}");
        let uploads = registry.accesses().into_iter().filter(|access| {
            access.method == "PATCH" && access.target.contains(&format!("/{name}/"))
        });
        assert_eq!(uploads.count(), patches, "{name}");
    }
}

#[test]
fn two_images_of_one_name_and_names_without_a_tag_are_refused() {
    let shop = Shop::new();
    let own = image(&[shop.layer("x", 10)]);
    let name = "registry.example/a:b".to_owned();
    let error = push_set(&shop, &[(name.clone(), &own), (name, &own)], OPTIONS).unwrap_err();
    assert_eq!(error.to_string(), "two images would be named registry.example/a:b");
    let pinned = format!("registry.example/a@{}", hallmark::base::Digest::of("x"));
    let error = push_set(&shop, &[(pinned, &own)], OPTIONS).unwrap_err();
    assert!(matches!(error, Error::NoTag { .. }), "{error}");
}

#[test]
fn progress_is_told_by_blob() {
    let Some(registry) = Registry::start() else { return };
    let shop = Shop::new();
    let images = family(&shop);
    let recording = Arc::new(Recording::default());
    let reporter: SharedReporter = Arc::clone(&recording) as SharedReporter;
    let names = named(registry.host(), &images);
    let set: Vec<(Reference, &Image)> =
        names.iter().map(|(name, image)| (Reference::parse(name).unwrap(), *image)).collect();
    let client = client(Registries::default());
    push(&shop.store, &client, &set, OPTIONS, &reporter, &Cancel::new()).unwrap();
    let mut blobs = 0;
    let mut totals = std::collections::BTreeMap::new();
    for event in recording.events() {
        use hallmark::base::Event;
        match event {
            Event::Started { task, stage, total, .. } => {
                blobs += usize::from(stage == "blob");
                totals.insert(task, (total.unwrap(), 0));
            }
            Event::Advanced { task, by } => totals.get_mut(&task).unwrap().1 += by,
            _ => {}
        }
    }
    assert_eq!(blobs, 11);
    let whole = totals.values().next().unwrap();
    assert_eq!(whole.0, whole.1, "{totals:?}");
}
