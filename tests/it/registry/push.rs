//! Pushes to a real registry: what is sent, mounted and left alone, and that others read it.

use std::process::Command;
use std::sync::Arc;

use hallmark::base::progress::{Recording, Silent};
use hallmark::base::{Arch, Cancel, SharedReporter};
use hallmark::image::registry::{
    Attachment, Error, Outcome, Placed, PushOptions, PushReport, Set, push,
};
use hallmark::image::{Compressor, Image, manifest};
use hallmark::net::registry::{Purpose, Reference, Registries, Uploaded, referrers_tag};

use super::{Shop, client, image, layer, noise};
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
    push(
        &shop.store,
        &client,
        Set { images: &images, attachment: None },
        options,
        &reporter,
        &Cancel::new(),
    )
}

/// Three images of one base, two of which share an environment.
fn family(shop: &Shop) -> [Image; 3] {
    let (base, env) = (layer(shop, "base", 300_000), layer(shop, "env", 200_000));
    [
        image(&[base, env, layer(shop, "one", 1000)]),
        image(&[base, env, layer(shop, "two", 1000)]),
        image(&[base, layer(shop, "three", 1000)]),
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
    assert_eq!((again.sent, again.mounted), <(Placed, Placed)>::default());
    assert_eq!(again.present.blobs, 11);
    assert_eq!(again.present.bytes, report.sent.bytes + report.mounted.bytes);
    let second = &registry.accesses()[first.len()..];
    assert_eq!((second.len(), writes(second)), (3, 0), "{second:#?}");

    // One image of the set is new: nothing but its own goes over.
    let newer = [
        images[0].clone(),
        images[1].clone(),
        image(&[images[2].layers[0], layer(&shop, "four", 10)]),
    ];
    let third = push_set(&shop, &named(registry.host(), &newer), OPTIONS).unwrap();
    assert_eq!((third.sent.blobs, third.mounted.blobs, third.present.blobs), (2, 0, 9));

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
fn a_set_that_grows_mounts_what_its_images_have_that_are_there() {
    let Some(registry) = Registry::start() else { return };
    let shop = Shop::new();
    let images = family(&shop);
    let set = named(registry.host(), &images);
    push_set(&shop, &set[..1], OPTIONS).unwrap();
    let report = push_set(&shop, &set, OPTIONS).unwrap();
    // Of two images their own layer and config; base and env come from the first one, which is there with its four blobs.
    assert_eq!((report.sent.blobs, report.mounted.blobs, report.present.blobs), (4, 3, 4));

    // In one repository nobody even asks for what the first one has.
    let tagged = |number| format!("{}/set:{number}", registry.host());
    let set: Vec<_> = images.iter().enumerate().map(|(n, image)| (tagged(n), image)).collect();
    push_set(&shop, &set[..1], OPTIONS).unwrap();
    let before = registry.accesses().len();
    let report = push_set(&shop, &set[..2], OPTIONS).unwrap();
    assert_eq!((report.sent.blobs, report.mounted.blobs, report.present.blobs), (2, 0, 4));
    let after = &registry.accesses()[before..];
    let looks =
        after.iter().filter(|access| access.method == "HEAD" && access.target.contains("/blobs/"));
    assert_eq!(looks.count(), 2, "{after:#?}");
}

#[test]
fn an_index_of_other_platforms_is_not_replaced_by_an_image() {
    let Some(registry) = Registry::start() else { return };
    let shop = Shop::new();
    let own = image(&[layer(&shop, "x", 1000)]);
    let newer = image(&[layer(&shop, "y", 1000)]);
    let other = match Arch::HOST {
        Arch::Amd64 => Arch::Arm64,
        Arch::Arm64 => Arch::Amd64,
    };
    let foreign = Image { arch: other, ..own.clone() };
    let index = PushOptions { index: true, ..OPTIONS };
    let name = format!("{}/multi:v1", registry.host());
    push_set(&shop, &[(name.clone(), &own)], index).unwrap();
    // An index of this platform alone holds nothing that would be missed.
    push_set(&shop, &[(name.clone(), &newer)], OPTIONS).unwrap();
    for image in [&own, &foreign] {
        push_set(&shop, &[(name.clone(), image)], index).unwrap();
    }
    let before = registry.accesses();
    let error = push_set(&shop, &[(name.clone(), &newer)], OPTIONS).unwrap_err();
    let lost = format!("{name} stands for images of other platforms, which would be lost: linux/");
    assert_eq!(error.to_string(), format!("{lost}{}", other.oci()));
    assert!(error.hint().unwrap().contains("--index"));
    assert_eq!(writes(&registry.accesses()[before.len()..]), 0);
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
    let own = image(&[layer(&shop, "x", 1000)]);
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
        let tagged = index.tagged("v1", Purpose::Push).unwrap().unwrap();
        assert_eq!(tagged.digest, report.images[0].digest);
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
    let own = image(&[layer(&shop, "x", 10)]);
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
    push(
        &shop.store,
        &client,
        Set { images: &set, attachment: None },
        OPTIONS,
        &reporter,
        &Cancel::new(),
    )
    .unwrap();
    let mut blobs = 0;
    let mut totals = std::collections::BTreeMap::new();
    for event in recording.events() {
        use hallmark::base::Event;
        match event {
            Event::Started { stage: "compress", .. } => {}
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

#[test]
fn the_registry_is_asked_first_and_each_layer_is_compressed_once() {
    let compressed = |shop: &Shop, host: &str, images: &[Image]| {
        let recording = Arc::new(Recording::default());
        let reporter: SharedReporter = Arc::clone(&recording) as SharedReporter;
        let names = named(host, images);
        let set: Vec<(Reference, &Image)> =
            names.iter().map(|(name, image)| (Reference::parse(name).unwrap(), *image)).collect();
        let set = Set { images: &set, attachment: None };
        let client = client(Registries::default());
        let result = push(&shop.store, &client, set, OPTIONS, &reporter, &Cancel::new());
        let stages = recording.events().into_iter().filter_map(|event| match event {
            hallmark::base::Event::Started { stage, .. } => Some(stage),
            _ => None,
        });
        (result, stages.filter(|stage| *stage == "compress").count())
    };
    let shop = Shop::new();
    let images = family(&shop);
    // Nobody listens on the port of a listener that is gone.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (result, count) = compressed(&shop, &gone.to_string(), &images);
    assert!(matches!(result, Err(Error::Net(_))) && count == 0, "{count}");
    let Some(registry) = Registry::start() else { return };
    for (known, expected) in [(1, 3), (3, 2), (3, 0)] {
        let (result, count) = compressed(&shop, registry.host(), &images[..known]);
        result.unwrap();
        assert_eq!(count, expected);
    }
}

#[test]
fn a_file_is_attached_once_and_found_by_the_image() {
    let Some(registry) = Registry::start() else { return };
    let shop = Shop::new();
    let own = image(&[layer(&shop, "x", 1000)]);
    let name = Reference::parse(&format!("{}/a/b:v1", registry.host())).unwrap();
    let client = client(Registries::default());
    let attach = |text: &str| {
        let attachment = Attachment {
            media_type: "application/vnd.hallmark.evaluation.v1+json".to_owned(),
            name: "manifest.json".to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        let images = [(name.clone(), &own)];
        let set = Set { images: &images, attachment: Some(&attachment) };
        let reporter: SharedReporter = Arc::new(Silent);
        push(&shop.store, &client, set, OPTIONS, &reporter, &Cancel::new())
            .unwrap()
            .images
            .remove(0)
    };
    let first = attach("one");
    assert!(first.attached);
    assert!(!attach("one").attached);
    assert!(attach("two").attached);
    // Debian's registry has no interface for referrers: they are under a tag.
    let repository = client.repository(registry.host(), "a/b").unwrap();
    let index = repository.referrers(&first.manifest).unwrap().unwrap();
    assert_eq!(repository.by_tag(&referrers_tag(&first.manifest)).unwrap().unwrap(), index);
    let index: serde_json::Value = serde_json::from_slice(&index.bytes).unwrap();
    let entries = index["manifests"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "{index}");
    for (entry, text) in entries.iter().zip(["one", "two"]) {
        assert_eq!(entry["artifactType"], "application/vnd.hallmark.evaluation.v1+json");
        let digest = entry["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let digest = hallmark::base::Digest::from_hex(digest).unwrap();
        let artifact = repository.by_digest(&digest).unwrap().unwrap();
        let artifact: serde_json::Value = serde_json::from_slice(&artifact.bytes).unwrap();
        assert_eq!(artifact["subject"]["digest"], first.manifest.to_string());
        let file = hallmark::base::Digest::of(text).to_string();
        assert_eq!(artifact["layers"][0]["digest"], file);
    }
    let before = registry.accesses();
    assert!(!attach("one").attached);
    assert_eq!(writes(&registry.accesses()[before.len()..]), 0);
}

#[test]
fn a_registry_that_keeps_referrers_itself_gets_no_tag() {
    use crate::net::server::{Server, answer, ok};
    let shop = Shop::new();
    let own = image(&[layer(&shop, "x", 10)]);
    let digests = manifest(&shop.store, &own, OPTIONS.compressor, &Cancel::new()).unwrap();
    let told = digests.manifest.to_string();
    let server = Server::start(move |request| match request.method.as_str() {
        "HEAD" if request.target.contains("/manifests/") => {
            answer("200 OK", &[("Docker-Content-Digest", &told)], "")
        }
        "HEAD" => answer("200 OK", &[], ""),
        "GET" if request.target.contains("/referrers/") => ok(
            "application/vnd.oci.image.index.v1+json",
            r#"{"schemaVersion": 2, "manifests": []}"#,
        ),
        "PUT" => answer("201 Created", &[("OCI-Subject", &told)], ""),
        _ => answer("404 Not Found", &[], ""),
    });
    let attachment =
        Attachment { media_type: "a/b".to_owned(), name: "x".to_owned(), bytes: b"y".to_vec() };
    let name = Reference::parse(&format!("{}/a/b:v1", server.authority())).unwrap();
    let images = [(name, &own)];
    let set = Set { images: &images, attachment: Some(&attachment) };
    let reporter: SharedReporter = Arc::new(Silent);
    let client = client(Registries::default());
    let report = push(&shop.store, &client, set, OPTIONS, &reporter, &Cancel::new()).unwrap();
    assert!(report.images[0].attached && report.images[0].outcome == Outcome::Present);
    let puts = server.requests().into_iter().filter(|request| request.method == "PUT");
    let puts: Vec<String> = puts.map(|request| request.target).collect();
    assert!(puts.len() == 1 && puts[0].starts_with("/v2/a/b/manifests/sha256:"), "{puts:?}");
}
