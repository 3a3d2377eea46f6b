//! Images that no base can be made of: each is refused when it is locked, and a lock that has one says so.

use hallmark::base::{Arch, Digest};
use hallmark::image::registry::{Error, Found, find};
use hallmark::net::registry::{Reference, Registries};
use serde_json::{Value, json};

use super::client;
use crate::net::server::{Do, Request, Server, answer, head, ok};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// What a registry has of one image, whose tag is `t`.
#[derive(Clone)]
pub(crate) struct Parts {
    manifest: Value,
    config: Value,
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({ "mediaType": media_type, "digest": Digest::of(bytes).to_string(), "size": bytes.len() })
}

impl Parts {
    /// A good image of one layer.
    pub(crate) fn new() -> Self {
        Self::of(1, &json!(["PATH=/bin"]))
    }

    fn of(layers: usize, variables: &Value) -> Self {
        let config = json!({
            "architecture": Arch::HOST.oci(), "os": "linux", "config": { "Env": variables },
            "rootfs": { "type": "layers", "diff_ids": vec![Digest::of("a").to_string(); layers] },
        });
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": descriptor(CONFIG, config.to_string().as_bytes()),
            "layers": vec![descriptor(GZIP, b"layer"); layers],
        });
        Self { manifest, config }
    }

    /// With this field in its manifest.
    fn with(mut self, field: &str, value: Value) -> Self {
        self.manifest[field] = value;
        self
    }

    /// Of the manifest.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(self.manifest.to_string())
    }

    pub(crate) fn answer(&self, request: &Request) -> Vec<Do> {
        let (manifest, config) = (self.manifest.to_string(), self.config.to_string());
        let name = request.target.rsplit('/').next().unwrap();
        if request.method == "HEAD" {
            let digest = self.digest().to_string();
            return vec![Do::Send(head("200 OK", &[("Docker-Content-Digest", &digest)], None))];
        }
        if name == "t" || name == Digest::of(&manifest).to_string() {
            return ok(MANIFEST, manifest);
        }
        if name == Digest::of(&config).to_string() {
            return ok(CONFIG, config);
        }
        answer("404 Not Found", &[], "")
    }

    /// What is found of it in a registry.
    fn look(self) -> Result<Found, Error> {
        let server = Server::start(move |request| self.answer(request));
        let name = Reference::parse(&format!("{}/a:t", server.authority())).unwrap();
        find(&client(Registries::default()), &name, Arch::HOST)
    }
}

#[test]
fn images_that_cannot_be_run_upon_are_refused() {
    assert_eq!(Parts::new().look().unwrap().layers.len(), 1);
    assert_eq!(Parts::of(120, &json!([])).look().unwrap().layers.len(), 120);
    Parts::of(1, &json!(["A=b=c", "A=", "without a value"])).look().unwrap();
    for (says, parts) in [
        ("it has no layers", Parts::of(0, &json!([]))),
        ("it has 121 layers, and at most 120 are taken", Parts::of(121, &json!([]))),
        (r#"its variable "A" holds a NUL"#, Parts::of(1, &json!(["A=b\u{0}c"]))),
        (r#"its variable "=x" has no name"#, Parts::of(1, &json!(["=x"]))),
    ] {
        let error = parts.look().unwrap_err();
        let told = error.to_string();
        assert!(told.contains(says) && told.contains("/a:t: "), "{says}: {told}");
        assert!(error.hint().unwrap().contains("choose another image"), "{says}");
    }
}

#[test]
fn a_document_is_a_manifest_or_an_index_and_not_both() {
    let manifests = json!([{
        "mediaType": MANIFEST, "digest": Digest::of("x").to_string(), "size": 7,
        "platform": { "os": "linux", "architecture": Arch::HOST.oci() },
    }]);
    for parts in [
        Parts::new().with("manifests", manifests.clone()),
        Parts::new().with("manifests", json!([])).with("mediaType", json!(INDEX)),
        Parts::new().with("manifests", manifests).with("mediaType", Value::Null),
        Parts::new().with("mediaType", json!(INDEX)),
    ] {
        let error = parts.look().unwrap_err();
        assert!(error.to_string().contains("a manifest and an index at once"), "{error}");
    }
    Parts::new().with("mediaType", Value::Null).look().unwrap();
    // What an index names is looked at as well.
    let both = Parts::new().with("manifests", json!([]));
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [] });
    for (says, entry) in [
        ("a manifest and an index at once", both.manifest.to_string()),
        ("its index names another index", index.to_string()),
    ] {
        let mut named = descriptor(MANIFEST, entry.as_bytes());
        named["platform"] = json!({ "os": "linux", "architecture": Arch::HOST.oci() });
        let manifest = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [named] });
        let top = Parts { manifest, ..Parts::new() };
        let server = Server::start(move |request| {
            if request.target.ends_with(&Digest::of(&entry).to_string()) {
                return ok(MANIFEST, &entry);
            }
            top.answer(request)
        });
        let name = Reference::parse(&format!("{}/a:t", server.authority())).unwrap();
        let error = find(&client(Registries::default()), &name, Arch::HOST).unwrap_err();
        assert!(error.to_string().contains(says), "{says}: {error}");
    }
}

#[test]
fn a_tag_that_moved_is_seen_where_the_registry_tells_no_digest() {
    let (old, new) = (Parts::new(), Parts::of(2, &json!([])));
    let (before, now) = (old.digest(), new.digest());
    let server = Server::start(move |request| {
        if request.method == "HEAD" {
            return vec![Do::Send(head("200 OK", &[("Content-Type", MANIFEST)], None))];
        }
        if request.target.ends_with(&before.to_string()) {
            return old.answer(request);
        }
        new.answer(request)
    });
    let name = Reference::parse(&format!("{}/a:t@{before}", server.authority())).unwrap();
    let error = find(&client(Registries::default()), &name, Arch::HOST).unwrap_err();
    let Error::Moved { expected, actual, .. } = &error else { panic!("{error}") };
    assert_eq!((expected, actual), (&before, &now));
}

#[test]
fn a_platform_cannot_write_on_the_terminal() {
    let mut parts = Parts::new();
    parts.config["architecture"] = "\u{1b}[2Jarm\u{202e}".into();
    let bytes = parts.config.to_string();
    let parts = parts.with("config", descriptor(CONFIG, bytes.as_bytes()));
    let error = parts.look().unwrap_err().to_string();
    assert!(error.ends_with("only for linux/[2Jarm"), "{error:?}");
}
