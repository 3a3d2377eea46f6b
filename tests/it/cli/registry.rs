//! A base that is an image of a registry, and sets that are pushed to one, through the binary.

use std::path::Path;
use std::sync::Arc;

use hallmark::base::{Arch, Cancel, Digest, SharedReporter, Store, progress};
use hallmark::cli::exit;
use hallmark::image::registry::{PushOptions, Set, find, push};
use hallmark::image::{Compressor, Image, tree_digest};
use hallmark::lock::{self, BaseLock, LockedBlob, LockedImage};
use hallmark::net::registry::{Reference, Registries};
use hallmark::runtime::Workbench;
use hallmark::runtime::embedded::Embedded;

use super::context::TestContext;
use crate::net::server::{Server, ok};
use crate::registry::client;
use crate::support::registry::Registry;
use crate::support::{Full, INSTANCES};

const DEFINITION: &str = "images/bookworm.toml";
const BASE_LOCK: &str = "lockfiles/_bases/bookworm/lock.x86_64.toml";

fn base_lock(context: &TestContext) -> BaseLock {
    lock::parse_base(BASE_LOCK, &context.read(BASE_LOCK)).unwrap()
}

/// The base of a lock, out of a store that has its files.
fn base(store: &Path, lock: &BaseLock) -> (Store, Image) {
    let store = Store::open(store, &store.join("scratch")).unwrap();
    let runtime = Embedded::new(&store, env!("CARGO_BIN_EXE_hallmark").into()).unwrap();
    let reporter: SharedReporter = Arc::new(progress::Silent);
    let cancel = Cancel::new();
    let bench =
        Workbench { store: &store, runtime: &runtime, reporter: &reporter, cancel: &cancel };
    let image = hallmark::build::base(bench, lock).unwrap();
    (store, image)
}

/// Pushes the base that the context's store has, and returns its name and digest.
fn push_base(context: &TestContext, registry: &Registry) -> (Reference, Digest, Digest) {
    let (store, image) = base(&context.store(), &base_lock(context));
    let tree = tree_digest(&store, &image.layers, &Cancel::new()).unwrap();
    let name = Reference::parse(&format!("{}/base/bookworm:v1", registry.host())).unwrap();
    let options = PushOptions { compressor: Compressor::Gzip { level: 6 }, index: true, jobs: 2 };
    let reporter: SharedReporter = Arc::new(progress::Silent);
    let client = client(Registries::default());
    let set = [(name.clone(), &image)];
    let report = push(
        &store,
        &client,
        Set { images: &set, attachment: None },
        options,
        &reporter,
        &Cancel::new(),
    )
    .unwrap();
    (name, report.images[0].digest, tree)
}

/// Takes the base from the registry in the context's definition and locks.
fn take(context: &TestContext, name: &Reference, digest: Digest) -> BaseLock {
    let pinned = Reference { digest: Some(digest), ..name.clone() };
    context.write(DEFINITION, &format!("suite = \"bookworm\"\nregistry = \"{pinned}\"\n"));
    let definition =
        hallmark::spec::load_base(&context.project().join("images"), "bookworm").unwrap();
    let found = find(&client(Registries::default()), &pinned, Arch::HOST).unwrap();
    let blob = |held: &hallmark::image::registry::Held| LockedBlob {
        sha256: held.digest,
        size: held.size,
    };
    let before = base_lock(context);
    // What `hallmark lock` writes, but for the time of the suite's index: that of the committed lock.
    let lock = BaseLock {
        base_hash: definition.hash().unwrap(),
        debs: Vec::new(),
        image: Some(LockedImage {
            repository: name.repository.clone(),
            digest: found.digest,
            manifest: found.manifest,
            config: blob(&found.config),
            layers: found.layers.iter().map(blob).collect(),
        }),
        ..before.clone()
    };
    let text = lock::write_base(&lock).unwrap();
    assert!(!text.contains(&name.registry), "a lock names no host: {text}");
    assert_eq!(lock::parse_base("x", &text).unwrap(), lock);
    context.write(BASE_LOCK, &text);
    let path = "lockfiles/pypi__pyflakes/3.0.1/lock.x86_64.toml";
    context.replace(
        path,
        &before.digest().unwrap().to_string(),
        &lock.digest().unwrap().to_string(),
    );
    lock
}

#[test]
fn full_a_base_comes_from_a_registry_and_is_built_and_run_upon_offline() {
    let Some(full) = Full::get() else { return };
    let Some(registry) = Registry::start() else { return };
    let context = TestContext::with_store(&full.store());
    let (name, digest, tree) = push_base(&context, &registry);

    // An empty store: what the instances need but the base, from the packed bundle; the base from the registry.
    let second = TestContext::quickstart();
    let lock = take(&second, &name, digest);
    let bundle = full.bundle();
    second.run(["bundle", "unpack", bundle.to_str().unwrap()]).expect(exit::OK, &[]);
    let only = ["quickstart", "-i", INSTANCES[0]];
    let packed = second.path().join("packed");
    let fetched: Vec<&str> = ["bundle", "pack"].into_iter().chain(only).collect();
    second.run(fetched.into_iter().chain([packed.to_str().unwrap()])).expect(exit::OK, &[]);
    drop(registry);

    // Another machine, without a network and without a registry.
    let third = TestContext::quickstart();
    for path in [DEFINITION, BASE_LOCK, "lockfiles/pypi__pyflakes/3.0.1/lock.x86_64.toml"] {
        third.write(path, &second.read(path));
    }
    third.run(["bundle", "unpack", packed.to_str().unwrap()]).expect(exit::OK, &[]);
    let verify = ["verify", "quickstart", "-i", INSTANCES[0], "--offline", "--policy", "quick"];
    let answer = third.run(verify);
    answer.expect(exit::OK, &[]);
    let (store, image) = base(&third.store(), &lock);
    assert_eq!(tree_digest(&store, &image.layers, &Cancel::new()).unwrap(), tree);
}

/// An archive with one empty file of this name, which no well-meaning program writes.
fn archive(name: &str) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_size(0);
    header.set_mode(0o644);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.resize(3 * 512, 0);
    bytes
}

#[test]
fn a_layer_that_leaves_its_folder_is_refused_with_its_image() {
    let context = TestContext::quickstart();
    let store = Store::open(&context.store(), &context.store().join("scratch")).unwrap();
    let before = base_lock(&context);
    for name in ["../escaped", "etc/../../escaped"] {
        let bytes = archive(name);
        let layer = store.put_blob(&bytes).unwrap();
        let described = serde_json::json!({
            "architecture": Arch::HOST.oci(), "os": "linux",
            "rootfs": { "type": "layers", "diff_ids": [Digest::of(&bytes).to_string()] },
        })
        .to_string();
        let config = store.put_blob(described.as_bytes()).unwrap();
        let blob = |sha256, size: usize| LockedBlob { sha256, size: size as u64 };
        let lock = BaseLock {
            debs: Vec::new(),
            image: Some(LockedImage {
                repository: "base/hostile".to_owned(),
                digest: Digest::of("index"),
                manifest: Digest::of("manifest"),
                config: blob(config, described.len()),
                layers: vec![blob(layer, bytes.len())],
            }),
            ..before.clone()
        };
        let runtime = hallmark::runtime::fake::Fake::default();
        let reporter: SharedReporter = Arc::new(progress::Silent);
        let cancel = Cancel::new();
        let bench =
            Workbench { store: &store, runtime: &runtime, reporter: &reporter, cancel: &cancel };
        let error = hallmark::build::base(bench, &lock).unwrap_err();
        let text = format!("{error}");
        assert!(text.contains(name) && text.contains("leads out of the tree"), "{text}");
        assert!(!store.layer_path(&Digest::of(&bytes)).exists());
        assert!(runtime.calls().is_empty(), "nothing of it ran");
    }
    store.settle();
    let escaped = walkdir::WalkDir::new(context.path());
    assert!(escaped.into_iter().all(|entry| entry.unwrap().file_name() != "escaped"));
}

#[test]
fn full_a_bare_tag_and_a_tag_that_moved_are_refused_when_locking() {
    let Some(full) = Full::get() else { return };
    let Some(registry) = Registry::start() else { return };
    let context = TestContext::with_store(&full.store());
    let (name, digest, _) = push_base(&context, &registry);
    let lock = ["lock", "quickstart", "-i", INSTANCES[0]];
    context.write(DEFINITION, &format!("suite = \"bookworm\"\nregistry = \"{name}\"\n"));
    let pinned = Reference { digest: Some(digest), ..name.clone() };
    context.run(lock).expect(
        exit::BAD_INPUT,
        &[
            &format!("{name} is a tag"),
            &format!("hint: write what it stands for now: registry = \"{pinned}\""),
        ],
    );
    let old = Digest::of("what it was");
    let moved = Reference { digest: Some(old), ..name.clone() };
    context.write(DEFINITION, &format!("suite = \"bookworm\"\nregistry = \"{moved}\"\n"));
    context.run(lock).expect(
        exit::BAD_INPUT,
        &[&format!("{name} has moved: expected {old}, got {digest}"), "hint: "],
    );
    let gone = Reference { digest: Some(old), tag: None, ..name };
    context.write(DEFINITION, &format!("suite = \"bookworm\"\nregistry = \"{gone}\"\n"));
    context.run(lock).expect(exit::FETCH_FAILED, &["is not there", "hint: "]);
    // Nothing of it made a lock, and offline nobody is asked.
    context
        .run(lock.into_iter().chain(["--locked"]))
        .expect(exit::BAD_INPUT, &["became an image of a registry"]);
    context.run(lock.into_iter().chain(["--offline"])).expect(exit::FETCH_FAILED, &["offline"]);
}

#[test]
fn what_cannot_be_pushed_to_is_said_before_any_work() {
    let context = TestContext::quickstart();
    for (name, hint) in [
        ("{id}", "docker.io/TEAM/{id} for Docker Hub"),
        ("team/{id}:v1", "registry.example/team/{id}:v1, or docker.io/team/{id}:v1 for Docker Hub"),
    ] {
        let says = format!("{name} names no registry");
        context.run(["push", "quickstart", name]).expect(exit::BAD_INPUT, &[&says, hint]);
    }
    let answer = context.run(["push", "quickstart", "registry.example/{id}", "--offline"]);
    answer.expect(exit::FETCH_FAILED, &["hint: leave out --offline (or unset HALLMARK_OFFLINE)"]);
    assert!(!answer.stderr.contains("bundle"), "{answer}");
    // Nobody listens on the port of a listener that is gone; a web server listens on the other one.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Server::start(|_| ok("text/html", "<html>Sign in"));
    let page = server.authority();
    for (host, words) in [
        (gone.to_string(), "hint: check the registry's name and port"),
        (page, "hint: is this a container registry?"),
    ] {
        let answer = context.run(["push", "quickstart", &format!("{host}/{{id}}")]);
        answer.expect(exit::FETCH_FAILED, &[words]);
        assert!(!answer.stderr.contains("FAILED") && !answer.stderr.contains("done"), "{answer}");
    }
    assert_eq!(server.targets(), ["/v2/"]);
}

#[test]
fn full_instances_are_pushed_and_found_there() {
    let Some(full) = Full::get() else { return };
    let Some(registry) = Registry::start_with_password() else { return };
    let context = TestContext::with_store(&full.store());
    let template = format!("{}/set/{{id_1776}}:v1", registry.host());
    let push = TestContext::both(&["push", "--json"]);
    let push = || push.iter().copied().chain([template.as_str()]);
    context.run(push()).expect(exit::FETCH_FAILED, &["the registry refuses", "docker login"]);
    let config =
        format!(r#"{{"auths": {{"{}": {{"auth": "aGFsbG1hcms6c2VjcmV0"}}}}}}"#, registry.host());
    let folder = context.path().join("home/.docker");
    fs_err::create_dir_all(&folder).unwrap();
    fs_err::write(folder.join("config.json"), config).unwrap();
    for outcome in ["pushed", "present"] {
        let answer = context.run(push());
        answer.expect(exit::OK, &[]);
        let record = answer
            .stdout
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .find(|record| record["kind"] == "push")
            .unwrap();
        let images = record["value"]["images"].as_array().unwrap();
        assert_eq!(images.len(), 2, "{record}");
        assert!(images.iter().all(|image| image["outcome"] == outcome), "{record}");
        assert_eq!(record["value"]["sent"]["blobs"] == 0, outcome == "present", "{record}");
    }
    let before = registry.accesses().len();
    let answer = context.run(TestContext::both(&["push"]).into_iter().chain([template.as_str()]));
    answer.expect(
        exit::OK,
        &["2 images: 0 pushed, 2 present; blobs: 0 sent (0 B), 0 mounted (0 B), "],
    );
    assert!(answer.stdout.lines().all(|line| line.ends_with(" present")), "{answer}");
    // The question whether there is a registry, and one look at each image; nothing is refused for want of a login.
    assert_eq!(registry.accesses().len() - before, 3);
    let before = registry.accesses().len();
    context
        .run(TestContext::both(&["push"]).into_iter().chain(["registry.example/all:latest"]))
        .expect(exit::BAD_INPUT, &["alike", "hint: "]);
    assert_eq!(registry.accesses().len(), before);
}

#[test]
fn full_a_manifest_is_attached_to_the_images_that_it_speaks_of() {
    let Some(full) = Full::get() else { return };
    let Some(registry) = Registry::start() else { return };
    let context = TestContext::with_store(&full.store());
    let template = format!("{}/set/{{id_1776}}:v1", registry.host());
    let one = ["quickstart", "-i", INSTANCES[0]];
    context
        .run(["verify"].into_iter().chain(one).chain(["--policy", "quick"]))
        .expect(exit::OK, &[]);
    context
        .run(["export"].into_iter().chain(one).chain(["out", "--policy", "quick"]))
        .expect(exit::OK, &[]);
    let path = "out/manifest.json";
    let attach = ["--manifest", path, template.as_str()];
    let before = registry.accesses().len();
    context
        .run(TestContext::both(&["push"]).into_iter().chain(attach))
        .expect(exit::BAD_INPUT, &[&format!("{path} knows nothing of {}", INSTANCES[1]), "hint: "]);
    // A manifest that names the instance and another image of it.
    let mut other: serde_json::Value = serde_json::from_str(&context.read(path)).unwrap();
    other["subject"]["instances"][INSTANCES[0]]["image"]["config"] =
        Digest::of("x").to_string().into();
    context.write("out/other.json", &other.to_string());
    let push = || ["push"].into_iter().chain(one);
    context
        .run(push().chain(["--manifest", "out/other.json", template.as_str()]))
        .expect(exit::BAD_INPUT, &[&format!("out/other.json knows nothing of {}", INSTANCES[0])]);
    assert!(registry.accesses()[before..].iter().all(|access| access.target == "/v2/"));
    for words in ["attached to 1 image; 0 had it", "attached to 0 images; 1 had it"] {
        context.run(push().chain(attach)).expect(exit::OK, &[words]);
    }
}
