//! What names stand for: by tag, by digest, for a platform; and what is no image.

use std::sync::Arc;

use hallmark::base::{Arch, Cancel, Digest, SharedReporter, progress::Silent};
use hallmark::image::registry::{Error, Found, Held, PushOptions, Set, find, push};
use hallmark::image::{Compressor, Image, manifest};
use hallmark::net::registry::{Reference, Registries};
use serde_json::{Value, json};

use super::{Shop, client, image, layer};
use crate::net::server::{Server, answer, ok};
use crate::support::registry::Registry;

const OPTIONS: PushOptions =
    PushOptions { compressor: Compressor::Gzip { level: 6 }, index: false, jobs: 2 };

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

fn other() -> Arch {
    match Arch::HOST {
        Arch::Amd64 => Arch::Arm64,
        Arch::Arm64 => Arch::Amd64,
    }
}

fn look(name: &str) -> Result<Found, Error> {
    find(&client(Registries::default()), &Reference::parse(name).unwrap(), Arch::HOST)
}

#[test]
fn names_stand_for_the_image_of_this_platform() {
    let Some(registry) = Registry::start() else { return };
    let shop = Shop::new();
    let own = image(&[layer(&shop, "x", 1000), layer(&shop, "y", 10)]);
    let foreign = Image { arch: other(), ..own.clone() };
    let put = |name: &str, image: &Image, index: bool| {
        let reporter: SharedReporter = Arc::new(Silent);
        let name = Reference::parse(&format!("{}/{name}", registry.host())).unwrap();
        let options = PushOptions { index, ..OPTIONS };
        let client = client(Registries::default());
        let set = [(name, image)];
        push(
            &shop.store,
            &client,
            Set { images: &set, attachment: None },
            options,
            &reporter,
            &Cancel::new(),
        )
        .unwrap()
        .images
        .remove(0)
    };
    put("a:multi", &foreign, true);
    let multi = put("a:multi", &own, true);
    let single = put("a:single", &own, false);
    let alien = put("a:alien", &foreign, false);
    let lonely = put("b:lonely", &foreign, true);
    let name = |rest: String| format!("{}/{rest}", registry.host());
    let digests = manifest(&shop.store, &own, OPTIONS.compressor, &Cancel::new()).unwrap();
    let layers: Vec<Held> = digests
        .layers
        .iter()
        .map(|layer| Held { digest: layer.digest, size: layer.size })
        .collect();
    for (rest, digest) in [
        ("a:multi".to_owned(), multi.digest),
        (format!("a@{}", multi.digest), multi.digest),
        (format!("a:multi@{}", multi.digest), multi.digest),
        ("a:single".to_owned(), single.digest),
        (format!("a@{}", single.digest), single.digest),
    ] {
        let found = look(&name(rest.clone())).unwrap();
        assert_eq!((found.digest, found.manifest), (digest, digests.manifest), "{rest}");
        assert_eq!((found.config.digest, &found.layers), (digests.config, &layers), "{rest}");
    }
    for (rest, platform) in [
        ("a:alien".to_owned(), other()),
        (format!("a@{}", alien.digest), other()),
        (format!("b@{}", lonely.digest), other()),
    ] {
        let error = look(&name(rest)).unwrap_err();
        let Error::Platform { expected, actual, .. } = &error else { panic!("{error}") };
        assert_eq!(expected, &format!("linux/{}", Arch::HOST.oci()));
        assert_eq!(actual, &[format!("linux/{}", platform.oci())]);
    }
    let error = look(&name(format!("a:single@{}", multi.digest))).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{}/a:single has moved: expected {}, got {}",
            registry.host(),
            multi.digest,
            single.digest
        )
    );
    let error = look(&name("a:nothing".to_owned())).unwrap_err();
    assert!(matches!(error, Error::NotThere { .. }), "{error}");
}

/// A registry of documents and blobs that are named by their digests, and of one tag, `t`.
fn serve(tag: &Value, more: Vec<Vec<u8>>) -> (Server, String) {
    let top = tag.to_string().into_bytes();
    let server = Server::start(move |request| {
        let last = request.target.rsplit('/').next().unwrap();
        if last == "t" {
            return ok(MANIFEST, &top);
        }
        match more.iter().find(|bytes| Digest::of(bytes).to_string() == last) {
            Some(bytes) => ok(INDEX, bytes),
            None => answer("404 Not Found", &[], ""),
        }
    });
    let name = format!("{}/a:t", server.authority());
    (server, name)
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({ "mediaType": media_type, "digest": Digest::of(bytes).to_string(), "size": bytes.len() })
}

#[test]
fn what_is_no_image_is_said_to_be_none() {
    let config = json!({
        "architecture": Arch::HOST.oci(), "os": "linux", "config": {},
        "rootfs": { "type": "layers", "diff_ids": [Digest::of("a").to_string()] },
    })
    .to_string()
    .into_bytes();
    let config_type = "application/vnd.oci.image.config.v1+json";
    let with_layers = |layers: Value| {
        json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": descriptor(config_type, &config), "layers": layers,
        })
    };
    let gzip = "application/vnd.oci.image.layer.v1.tar+gzip";
    let good = with_layers(json!([descriptor(gzip, b"layer")]));
    let (_server, name) = serve(&good, vec![config.clone()]);
    assert_eq!(look(&name).unwrap().layers, [Held { digest: Digest::of("layer"), size: 5 }]);

    let foreign = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip";
    let long =
        json!({ "mediaType": gzip, "digest": format!("sha512:{}", "a".repeat(128)), "size": 5 });
    let short = json!({
        "schemaVersion": 2, "mediaType": INDEX, "manifests": [{
            "mediaType": MANIFEST, "digest": Digest::of(good.to_string()).to_string(), "size": 7,
            "platform": { "os": "linux", "architecture": Arch::HOST.oci() },
        }],
    });
    for (says, tag) in [
        ("schema version 2", json!({ "schemaVersion": 1, "fsLayers": [] })),
        ("missing field", json!({ "schemaVersion": 2, "mediaType": MANIFEST })),
        ("is not read here", with_layers(json!([descriptor(foreign, b"layer")]))),
        ("is not sha256", with_layers(json!([long]))),
        ("its config has 1 layers, its manifest 0", with_layers(json!([]))),
        ("only for nothing", json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [] })),
        ("expected 7 bytes, got", short),
    ] {
        let (_server, name) = serve(&tag, vec![config.clone(), good.to_string().into_bytes()]);
        let error = look(&name).unwrap_err();
        assert!(error.to_string().contains(says), "{says}: {error}");
    }
}
