//! What tokens are asked for, and who gets to see what they are bought with.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use hallmark::base::{Arch, Digest};
use hallmark::image::registry::find;
use hallmark::net::Error;
use hallmark::net::registry::{Purpose, Reference, Registries};

use super::locks::Parts;
use super::{client, noise};
use crate::net::server::{Do, Request, Server, answer, ok};

/// Nobody is there (RFC 5737), and nobody may be asked there by plain HTTP.
const FAR: &str = "http://192.0.2.2:9";

fn with_entry(folder: &Path, host: &str, entry: &str) -> Registries {
    let path = folder.join("config.json");
    fs_err::write(&path, format!(r#"{{"auths": {{"{host}": {entry}}}}}"#)).unwrap();
    Registries { credentials: vec![path], ..Registries::default() }
}

fn wants_token(realm: &str) -> Vec<Do> {
    let wants = format!(r#"Bearer realm="{realm}/token",service="x""#);
    answer("401 Unauthorized", &[("WWW-Authenticate", &wants)], "")
}

#[test]
fn whoever_reads_asks_for_no_leave_to_write() {
    let parts = Parts::new();
    let (digest, served) = (parts.digest(), parts.clone());
    let registry = Server::start(move |request| {
        if request.target.starts_with("/token") {
            return if request.target.contains("push") {
                answer("403 Forbidden", &[], "")
            } else {
                ok("application/json", r#"{"token": "t"}"#)
            };
        }
        match request.header("authorization") {
            Some("Bearer t") => served.answer(request),
            _ => wants_token(&format!("http://{}", request.header("host").unwrap())),
        }
    });
    let client = client(Registries::default());
    let name = format!("{}/a:t@{digest}", registry.authority());
    let found = find(&client, &Reference::parse(&name).unwrap(), Arch::HOST).unwrap();
    assert_eq!(found.digest, digest);
    let tokens = registry.targets().into_iter().filter(|target| target.starts_with("/token"));
    assert_eq!(tokens.collect::<Vec<_>>(), ["/token?service=x&scope=repository%3Aa%3Apull"]);
    // Whoever writes is refused here.
    let repository = client.repository(&registry.authority(), "a").unwrap();
    let tagged = repository.tagged("t", Purpose::Pull).unwrap();
    assert_eq!(tagged.map(|tagged| tagged.digest), Some(digest));
    assert!(matches!(repository.tagged("t", Purpose::Push), Err(Error::Denied { .. })));
}

#[test]
fn an_identity_token_follows_no_redirect() {
    for status in ["307 Temporary Redirect", "308 Permanent Redirect", "302 Found"] {
        let other = Server::start(|_| ok("application/json", r#"{"token": "t"}"#));
        let place = format!("{}steal", other.url());
        let registry = Server::start(move |request| match request.target.as_str() {
            "/token" => answer(status, &[("Location", &place)], ""),
            _ => wants_token(&format!("http://{}", request.header("host").unwrap())),
        });
        let folder = tempfile::tempdir().unwrap();
        let host = registry.authority();
        let registries = with_entry(folder.path(), &host, r#"{"identitytoken": "secret"}"#);
        let error = client(registries).repository(&host, "a").unwrap().by_tag("t").unwrap_err();
        assert!(matches!(error, Error::Redirect { .. } | Error::Registry { .. }), "{error}");
        assert_eq!(other.targets(), [""; 0], "{status}");
    }
}

#[test]
fn nobody_far_is_sent_anything_by_plain_http() {
    type Handler = fn(&Request) -> Vec<Do>;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("blob");
    let bytes = noise("blob", 1000);
    fs_err::write(&path, &bytes).unwrap();
    let digest = Digest::of(&bytes);
    let handlers: [(&str, Handler); 3] = [
        ("a token server", |_| wants_token(FAR)),
        ("an upload", |_| answer("202 Accepted", &[("Location", &format!("{FAR}/up"))], "")),
        ("a redirect", |_| {
            answer("307 Temporary Redirect", &[("Location", &format!("{FAR}/x"))], "")
        }),
    ];
    for (what, handler) in handlers {
        let registry = Server::start(handler);
        let host = registry.authority();
        // That the registry itself is named says nothing of others.
        let plain_http = [host.clone()].into();
        let entry = r#"{"auth": "aGFsbG1hcms6c2VjcmV0"}"#;
        let registries = Registries { plain_http, ..with_entry(folder.path(), &host, entry) };
        let repository = client(registries).repository(&host, "a").unwrap();
        let error = repository.upload(&digest, 1000, &path, None, &|_| {}).unwrap_err();
        assert!(matches!(error, Error::PlainHttp { .. }), "{what}: {error}");
        assert!(error.to_string().contains(FAR), "{what}: {error}");
        let hint = error.hint().unwrap();
        assert!(hint.contains("HALLMARK_REGISTRY_PLAIN_HTTP (192.0.2.2:9)"), "{what}: {hint}");
        assert_eq!(registry.requests().len(), 1, "{what}");
    }
}

#[test]
fn a_helper_that_fails_is_asked_once_and_leaves_nobody_behind() {
    let registry =
        Server::start(|_| answer("401 Unauthorized", &[("WWW-Authenticate", "Basic realm=x")], ""));
    let (host, folder) = (registry.authority(), tempfile::tempdir().unwrap());
    let children = folder.path().join("children");
    let helper = folder.path().join("docker-credential-hangs");
    let script =
        format!("#!/bin/sh\nsleep 100 &\necho $$ $! >> {}\nsleep 100\n", children.display());
    fs_err::write(&helper, script).unwrap();
    fs_err::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.path().join("config.json");
    fs_err::write(&path, r#"{"credsStore": "hangs"}"#).unwrap();
    let helpers = format!("{}:/usr/bin:/bin", folder.path().display());
    let registries =
        Registries { credentials: vec![path], helpers: Some(helpers), ..Registries::default() };
    let client = client(registries);
    std::thread::scope(|scope| {
        for number in 0..6 {
            // Of several repositories, too.
            let repository = client.repository(&host, &format!("a{}", number % 2)).unwrap();
            scope.spawn(move || {
                let error = repository.by_tag("t").unwrap_err();
                assert!(matches!(error, Error::Helper { .. }), "{error}");
                assert!(error.to_string().contains("no answer within"), "{error}");
            });
        }
    });
    let children = fs_err::read_to_string(children).unwrap();
    assert_eq!(children.lines().count(), 1, "{children}");
    // Nobody may be left, but for what nobody has waited for yet.
    let runs = |pid: &str| {
        let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    for _ in 0..100 {
        if !children.split_whitespace().any(runs) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("still there: {children}");
}
