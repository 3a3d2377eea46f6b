//! Registries that lie: what is never taken, what is tried again, and what no other host gets to see.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hallmark::base::{self, Digest};
use hallmark::net::Error;
use hallmark::net::registry::{Registries, Repository, Uploaded};

use super::{Shop, client, noise};
use crate::net::server::{Do, Request, Server, answer, head, ok};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

fn repository(server: &Server) -> Repository {
    client(Registries::default()).repository(&server.authority(), "a/b").unwrap()
}

/// Downloads a blob of 100,000 bytes from a registry that answers so, and how often it was asked.
fn blob(
    handler: impl Fn(&Request) -> Vec<Do> + Send + Sync + 'static,
) -> (Result<Vec<u8>, Error>, usize) {
    let server = Server::start(handler);
    let bytes = noise("blob", 100_000);
    let client = client(Registries::default());
    let places = client.repositories(&server.authority(), "a/b").unwrap();
    let result =
        client.download_blob(&places, "layer", Digest::of(&bytes), bytes.len() as u64, || {
            Ok(Vec::new())
        });
    (result, server.requests().len())
}

#[test]
fn blobs_are_what_they_were_promised_to_be() {
    let bytes = || noise("blob", 100_000);
    let (result, count) = blob(move |_| ok("application/octet-stream", bytes()));
    assert_eq!((result.unwrap() == bytes(), count), (true, 1));
    let (result, _) = blob(move |_| {
        let mut bytes = bytes();
        bytes[5] ^= 1;
        ok("x/y", bytes)
    });
    assert!(matches!(result, Err(Error::Base(base::Error::DigestMismatch { .. }))), "{result:?}");
    for length in [99_999, 100_001] {
        let (result, _) = blob(move |_| ok("x/y", noise("blob", length)));
        assert!(matches!(result, Err(Error::Base(base::Error::SizeMismatch { .. }))), "{length}");
    }
    // Cut, and gone on with.
    let (result, count) = blob(move |request| match request.header("range") {
        None => {
            let mut out = head("200 OK", &[], Some(100_000));
            out.extend(&bytes()[..60_000]);
            vec![Do::Send(out)]
        }
        Some(_) => answer(
            "206 Partial Content",
            &[("Content-Range", "bytes 60000-99999/100000")],
            &bytes()[60_000..],
        ),
    });
    assert_eq!((result.unwrap() == bytes(), count), (true, 2));
    let (result, _) =
        blob(|_| vec![Do::Send(head("200 OK", &[], None)), Do::Drip(vec![1; 30_000], 0)]);
    assert!(matches!(result, Err(Error::Base(base::Error::SizeMismatch { more: true, .. }))));
    let (result, count) = blob(move |request| match request.number {
        0 => answer("429 Too Many Requests", &[("Retry-After", "0")], ""),
        1 => answer("503 Service Unavailable", &[], ""),
        _ => ok("x/y", bytes()),
    });
    assert_eq!((result.is_ok(), count), (true, 3));
    let (result, count) = blob(|_| answer("429 Too Many Requests", &[("Retry-After", "999")], ""));
    assert!(matches!(result, Err(Error::AskedToWait { .. })) && count == 1, "{result:?}");
}

#[test]
fn a_mirror_that_lies_is_passed_over() {
    let good = Server::start(|_| ok("x/y", noise("blob", 100_000)));
    let bad = Server::start(|_| ok("x/y", noise("other", 100_000)));
    let mut registries = Registries::default();
    registries.mirrors.insert(good.authority(), vec![format!("{}/prefix", bad.authority())]);
    let client = client(registries);
    let places = client.repositories(&good.authority(), "a/b").unwrap();
    let digest = Digest::of(noise("blob", 100_000));
    let bytes = client.download_blob(&places, "layer", digest, 100_000, || Ok(Vec::new())).unwrap();
    assert_eq!(Digest::of(bytes), digest);
    assert_eq!(bad.targets(), [format!("/v2/prefix/a/b/blobs/{digest}")]);
    assert_eq!(good.targets(), [format!("/v2/a/b/blobs/{digest}")]);
}

#[test]
fn a_token_never_goes_to_another_host() {
    let bytes = noise("blob", 100_000);
    let digest = Digest::of(&bytes);
    let other = Server::start(move |_| ok("x/y", noise("blob", 100_000)));
    let place = other.url();
    let registry = Server::start(move |request| {
        let host = request.header("host").unwrap();
        if request.target.starts_with("/token") {
            return ok("application/json", r#"{"access_token": "secret"}"#);
        }
        match (request.header("authorization"), request.method.as_str()) {
            (Some("Bearer secret"), "GET") => {
                answer("307 Temporary Redirect", &[("Location", &format!("{place}elsewhere"))], "")
            }
            // The upload goes on at another host, which wants to know who we are.
            (Some("Bearer secret"), "POST") => {
                answer("202 Accepted", &[("Location", &format!("{place}upload"))], "")
            }
            _ => {
                let wants = format!(r#"Bearer realm="http://{host}/token",service="x""#);
                answer("401 Unauthorized", &[("WWW-Authenticate", &wants)], "")
            }
        }
    });
    let client = client(Registries::default());
    let places = client.repositories(&registry.authority(), "a/b").unwrap();
    client.download_blob(&places, "layer", digest, 100_000, || Ok(Vec::new())).unwrap();
    let shop = Shop::new();
    shop.store.put_blob(&bytes).unwrap();
    let error = places[0]
        .upload(&digest, 100_000, &shop.store.blob_path(&digest), None, &|_| {})
        .unwrap_err();
    assert!(matches!(error, Error::Registry { .. }), "{error}");
    let seen = other.requests();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|request| request.header("authorization").is_none()), "{seen:?}");
}

#[test]
fn another_host_gets_no_password_however_it_asks() {
    let other =
        Server::start(|_| answer("401 Unauthorized", &[("WWW-Authenticate", "Basic realm=x")], ""));
    let place = other.url();
    let registry = Server::start(move |_| {
        answer("202 Accepted", &[("Location", &format!("{place}upload"))], "")
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.json");
    let entry = |host: String| format!(r#""{host}": {{"auth": "aGFsbG1hcms6c2VjcmV0"}}"#);
    fs_err::write(&path, format!(r#"{{"auths": {{{}}}}}"#, entry(registry.authority()))).unwrap();
    let registries = Registries { credentials: vec![path], ..Registries::default() };
    let shop = Shop::new();
    let digest = shop.store.put_blob(b"blob").unwrap();
    let repository = client(registries).repository(&registry.authority(), "a/b").unwrap();
    let error =
        repository.upload(&digest, 4, &shop.store.blob_path(&digest), None, &|_| {}).unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    assert!(other.requests().iter().all(|request| request.header("authorization").is_none()));
}

#[test]
fn documents_are_small_whole_and_what_was_asked_for() {
    let text = r#"{"schemaVersion": 2}"#;
    let digest = Digest::of(text);
    let by_digest = |handler: fn(&Request) -> Vec<Do>| {
        repository(&Server::start(handler)).by_digest(&Digest::of(r#"{"schemaVersion": 2}"#))
    };
    let found = by_digest(|_| {
        ok("Application/VND.oci.image.manifest.v1+json; x=y", r#"{"schemaVersion": 2}"#)
    });
    let found = found.unwrap().unwrap();
    assert_eq!((found.digest, found.media_type.as_str()), (digest, MANIFEST));
    assert_eq!(by_digest(|_| answer("404 Not Found", &[], "")).unwrap(), None);
    for (says, handler) in [
        ("expected sha256:", (|_| ok(MANIFEST, "{}")) as fn(&Request) -> Vec<Do>),
        ("larger than 4194304 bytes", |_| {
            vec![Do::Send(head("200 OK", &[], Some(20 << 20))), Do::Wait(5000)]
        }),
        ("larger than 4194304 bytes", |_| {
            vec![Do::Send(head("200 OK", &[], None)), Do::Drip(vec![b'x'; 60_000], 0)]
        }),
        ("MANIFEST_UNKNOWN gone for good", |_| {
            let text =
                r#"{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "gone\u001b for good"}]}"#;
            answer("400 Bad Request", &[], text)
        }),
        ("the registry refuses: it says 403", |_| answer("403 Forbidden", &[], "<html>")),
    ] {
        let error = by_digest(handler).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
        assert!(!error.contains('\u{1b}'));
    }
    let by_tag =
        |handler: fn(&Request) -> Vec<Do>| repository(&Server::start(handler)).by_tag("v1");
    let error = by_tag(|_| ok("text/html", "<html>Sign in")).unwrap_err();
    assert!(error.to_string().contains("no JSON") && error.hint().is_some(), "{error}");
    let lies = [(
        "Docker-Content-Digest",
        "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    )];
    let server = Server::start(move |_| answer("200 OK", &lies, "{}"));
    let error = repository(&server).by_tag("v1").unwrap_err();
    assert!(matches!(error, Error::Base(base::Error::DigestMismatch { .. })), "{error}");
}

#[test]
fn an_offline_client_asks_nobody() {
    let server = Server::start(|_| ok(MANIFEST, "{}"));
    let config = hallmark::net::Config { offline: true, ..crate::net::config_for(&server) };
    let client = hallmark::net::Client::new(config, &base::Cancel::new()).unwrap();
    let repository = client.repository(&server.authority(), "a").unwrap();
    assert!(repository.by_tag("x").unwrap_err().is_offline());
    assert!(repository.has_blob(&Digest::of("x")).unwrap_err().is_offline());
    assert!(server.requests().is_empty());
}

/// A registry that keeps one upload, and cuts the first piece after so many bytes.
fn cutting(cut_at: usize, knows: bool) -> (Server, Arc<std::sync::Mutex<Vec<u8>>>) {
    let kept = Arc::new(std::sync::Mutex::new(Vec::new()));
    let cuts = Arc::new(AtomicUsize::new(0));
    let (for_cut, for_handler, held) = (Arc::clone(&cuts), Arc::clone(&cuts), Arc::clone(&kept));
    let carries = |request: &Request| matches!(request.method.as_str(), "PUT" | "PATCH");
    let server = Server::start_cutting(
        move |request| (carries(request) && for_cut.load(Ordering::SeqCst) == 0).then_some(cut_at),
        move |request| {
            let mut kept = held.lock().unwrap();
            let place = [("Location", "/v2/a/b/blobs/uploads/1?state=x")];
            match request.method.as_str() {
                "POST" => {
                    kept.clear();
                    answer("202 Accepted", &place, "")
                }
                "GET" if knows => {
                    let range = format!("0-{}", kept.len().saturating_sub(1));
                    answer("204 No Content", &[place[0], ("Range", &range)], "")
                }
                "GET" => answer("404 Not Found", &[], ""),
                _ => {
                    if let Some(range) = request.header("content-range") {
                        assert_eq!(range.split('-').next().unwrap(), kept.len().to_string());
                    }
                    kept.extend(&request.body);
                    if for_handler.fetch_add(1, Ordering::SeqCst) == 0 {
                        return vec![Do::Reset];
                    }
                    if request.method == "PUT" {
                        return answer("201 Created", &[], "");
                    }
                    let range = format!("0-{}", kept.len() - 1);
                    answer("202 Accepted", &[place[0], ("Range", &range)], "")
                }
            }
        },
    );
    (server, kept)
}

#[test]
fn an_upload_that_is_cut_in_the_middle_goes_on_there() {
    let shop = Shop::new();
    let bytes = noise("large", 3_000_000);
    let digest = shop.store.put_blob(&bytes).unwrap();
    let path = shop.store.blob_path(&digest);
    for (largest_piece, knows, expected) in [
        // In one piece: what the registry has is not sent again.
        (64 << 20, true, vec!["POST", "PUT", "GET", "PUT"]),
        (1 << 20, true, vec!["POST", "PATCH", "GET", "PATCH", "PATCH", "PUT"]),
        (64 << 20, false, vec!["POST", "PUT", "GET", "POST", "PUT"]),
    ] {
        let (server, kept) = cutting(500_000, knows);
        let registries = Registries { largest_piece, ..Registries::default() };
        let repository = client(registries).repository(&server.authority(), "a/b").unwrap();
        let told = std::cell::Cell::new(0);
        let report = |by: u64| told.set(told.get() + by);
        let how = repository.upload(&digest, bytes.len() as u64, &path, None, &report).unwrap();
        assert_eq!((how, told.get()), (Uploaded::Sent, 3_000_000));
        assert!(*kept.lock().unwrap() == bytes);
        let methods: Vec<String> =
            server.requests().into_iter().map(|request| request.method).collect();
        assert_eq!(methods, expected, "{largest_piece} {knows}");
        let last = server.targets().pop().unwrap();
        assert_eq!(
            last,
            format!(
                "/v2/a/b/blobs/uploads/1?state=x&digest={}",
                digest.to_string().replace(':', "%3A")
            )
        );
    }
}

#[test]
fn pieces_that_are_too_large_become_smaller() {
    let shop = Shop::new();
    let bytes = noise("large", 5_000_000);
    let digest = shop.store.put_blob(&bytes).unwrap();
    let (server, kept) = {
        let kept = Arc::new(std::sync::Mutex::new(Vec::<u8>::new()));
        let held = Arc::clone(&kept);
        let server = Server::start(move |request| {
            let place = [("Location", "/next")];
            match (request.method.as_str(), request.body.len()) {
                ("POST", _) => answer("202 Accepted", &place, ""),
                (_, 2_000_000..) => answer("413 Payload Too Large", &[], ""),
                (method, _) => {
                    held.lock().unwrap().extend(&request.body);
                    answer(if method == "PUT" { "201 Created" } else { "202 Accepted" }, &place, "")
                }
            }
        });
        (server, kept)
    };
    let repository = repository(&server);
    let path = shop.store.blob_path(&digest);
    repository.upload(&digest, bytes.len() as u64, &path, None, &|_| {}).unwrap();
    assert!(*kept.lock().unwrap() == bytes);
}

#[test]
fn uploads_that_come_to_nothing_end() {
    let shop = Shop::new();
    let digest = shop.store.put_blob(&noise("x", 3_000_000)).unwrap();
    let path = shop.store.blob_path(&digest);
    let place = [("Location", "/next"), ("Range", "0-0")];
    for (says, handler) in [
        (
            "where the upload goes on",
            (|_| answer("202 Accepted", &[], "")) as fn(&Request) -> Vec<Do>,
        ),
        ("where the upload goes on", |_| answer("202 Accepted", &[("Location", "ftp://x/")], "")),
        ("DIGEST_INVALID", |request| match request.method.as_str() {
            "POST" => answer("202 Accepted", &[("Location", "/next")], ""),
            _ => answer("400 Bad Request", &[], r#"{"errors": [{"code": "DIGEST_INVALID"}]}"#),
        }),
        ("tried 5 times", |request| match request.method.as_str() {
            "POST" | "GET" => answer("202 Accepted", &[("Location", "/next")], ""),
            _ => vec![Do::Reset],
        }),
    ] {
        let server = Server::start(handler);
        let error =
            repository(&server).upload(&digest, 3_000_000, &path, None, &|_| {}).unwrap_err();
        assert!(error.to_string().contains(says), "{says}: {error}");
    }
    let server = Server::start(move |_| answer("202 Accepted", &place, ""));
    let registries = Registries { largest_piece: 1 << 20, ..Registries::default() };
    let repository = client(registries).repository(&server.authority(), "a/b").unwrap();
    let error = repository.upload(&digest, 3_000_000, &path, None, &|_| {}).unwrap_err();
    assert!(error.to_string().contains("took next to nothing"), "{error}");
}

#[test]
fn a_registry_that_takes_nothing_is_left_in_time() {
    let shop = Shop::new();
    let digest = shop.store.put_blob(&noise("x", 30_000_000)).unwrap();
    let path = shop.store.blob_path(&digest);
    let server = Server::start_cutting(
        |request| (request.method == "PUT").then_some(0),
        |request| match request.method.as_str() {
            "PUT" => vec![Do::Wait(20_000)],
            _ => answer("202 Accepted", &[("Location", "/next")], ""),
        },
    );
    let watch = base::clock::Stopwatch::start();
    let error = repository(&server).upload(&digest, 30_000_000, &path, None, &|_| {}).unwrap_err();
    assert!(error.to_string().contains("no answer in time"), "{error}");
    assert!(watch.elapsed().as_secs() < 15);
}
