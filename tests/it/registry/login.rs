//! Who we are for a registry: passwords, tokens, helpers.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use hallmark::base::Digest;
use hallmark::base::clock::Stopwatch;
use hallmark::net::Error;
use hallmark::net::registry::Registries;

use super::client;
use crate::net::server::{Do, Request, Server, answer};
use crate::support::registry::{Registry, USER};

/// A host with this file as Docker's configuration, and helpers in the same folder.
fn configured(folder: &Path, text: &str) -> Registries {
    let path = folder.join("config.json");
    fs_err::write(&path, text).unwrap();
    let helpers = format!("{}:/usr/bin:/bin", folder.display());
    Registries { credentials: vec![path], helpers: Some(helpers), ..Registries::default() }
}

/// Installs `docker-credential-NAME`.
fn helper(folder: &Path, name: &str, script: &str) -> PathBuf {
    let path = folder.join(format!("docker-credential-{name}"));
    fs_err::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Asks for something in a repository of the registry.
fn look(registries: Registries, host: &str) -> Result<bool, Error> {
    client(registries).repository(host, "a/b").unwrap().has_blob(&Digest::of("x"))
}

#[test]
fn a_password_is_found_where_docker_keeps_it() {
    let Some(registry) = Registry::start_with_password() else { return };
    let (host, folder) = (registry.host(), tempfile::tempdir().unwrap());
    let base64 = "aGFsbG1hcms6c2VjcmV0";
    helper(
        folder.path(),
        "good",
        &format!(
            r#"read server; [ "$server" = {host} ] && echo '{{"Username":"{}","Secret":"{}"}}'"#,
            USER.0, USER.1
        ),
    );
    helper(folder.path(), "empty", "echo 'credentials not found in native keychain'; exit 1");
    for (text, good) in [
        (format!(r#"{{"auths": {{"{host}": {{"auth": "{base64}"}}}}}}"#), true),
        (format!(r#"{{"auths": {{"http://{host}/v1/": {{"auth": "{base64}"}}}}}}"#), true),
        (format!(r#"{{"credHelpers": {{"{host}": "good"}}}}"#), true),
        (r#"{"credsStore": "good"}"#.to_owned(), true),
        (
            format!(r#"{{"credsStore": "empty", "auths": {{"{host}": {{"auth": "{base64}"}}}}}}"#),
            true,
        ),
        (r#"{"credsStore": "empty"}"#.to_owned(), false),
        (r#"{"auths": {"other.example": {"auth": "eDp5"}}}"#.to_owned(), false),
        // x:y.
        (format!(r#"{{"auths": {{"{host}": {{"auth": "eDp5"}}}}}}"#), false),
    ] {
        let before = registry.accesses().len();
        let result = look(configured(folder.path(), &text), host);
        if good {
            assert!(!result.unwrap(), "{text}");
        } else {
            let error = result.unwrap_err();
            assert!(matches!(error, Error::Denied { .. }), "{text}: {error}");
            assert!(error.hint().unwrap().contains("docker login"));
        }
        let count = registry.accesses().len() - before;
        assert!(count <= 2, "{text}: {count} requests");
    }
}

#[test]
fn a_helper_that_hangs_or_talks_nonsense_is_left_behind() {
    let Some(registry) = Registry::start_with_password() else { return };
    let (host, folder) = (registry.host(), tempfile::tempdir().unwrap());
    for (name, script, says) in [
        ("hangs", "sleep 100 & sleep 100", "no answer within"),
        ("floods", "yes secret", "exit status"),
        ("babbles", "echo secret", "not JSON"),
        ("fails", "echo no way; exit 3", "no way"),
        ("lingers", "sleep 100 & exit 0", "left its output open"),
    ] {
        helper(folder.path(), name, script);
        let text = format!(r#"{{"credHelpers": {{"{host}": "{name}"}}}}"#);
        let watch = Stopwatch::start();
        let error = look(configured(folder.path(), &text), host).unwrap_err();
        assert!(watch.elapsed().as_secs() < 5, "{name}");
        let told = error.to_string();
        assert!(matches!(error, Error::Helper { .. }) && told.contains(says), "{name}: {told}");
        assert!(!told.contains("secret"), "{told}");
    }
}

/// A registry that asks for tokens, and its token server. `good` says whether it takes a token.
fn token_registry(good: impl Fn(usize, &str) -> bool + Send + Sync + 'static) -> Server {
    let tokens = std::sync::atomic::AtomicUsize::new(0);
    Server::start(move |request: &Request| {
        let host = request.header("host").unwrap();
        if request.target.starts_with("/token") {
            let number = tokens.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            return answer(
                "200 OK",
                &[("Content-Type", "application/json")],
                format!(r#"{{"token": "t{number}"}}"#),
            );
        }
        let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        match token {
            Some(token) if good(request.number, token) => answer("404 Not Found", &[], ""),
            _ => answer(
                "401 Unauthorized",
                &[(
                    "WWW-Authenticate",
                    &format!(
                        r#"Bearer realm="http://{host}/token",service="r",scope="repository:a/b:pull""#
                    ),
                )],
                "",
            ),
        }
    })
}

#[test]
fn a_token_is_asked_for_once_and_again_when_it_is_worn_out() {
    let server = token_registry(|number, token| token == if number < 4 { "t0" } else { "t1" });
    let folder = tempfile::tempdir().unwrap();
    let host = server.authority();
    let text = format!(r#"{{"auths": {{"{host}": {{"auth": "aGFsbG1hcms6c2VjcmV0"}}}}}}"#);
    let client = client(configured(folder.path(), &text));
    let repository = client.repository(&host, "a/b").unwrap();
    for _ in 0..3 {
        assert!(!repository.has_blob(&Digest::of("x")).unwrap());
    }
    let requests = server.requests();
    let asked: Vec<&str> = requests
        .iter()
        .map(|request| if request.target.starts_with("/token") { "token" } else { "blob" })
        .collect();
    assert_eq!(asked, ["blob", "token", "blob", "blob", "blob", "token", "blob"]);
    let token = &requests[1];
    assert_eq!(token.target, "/token?service=r&scope=repository%3Aa%2Fb%3Apull%2Cpush");
    assert_eq!(token.header("authorization"), Some("Basic aGFsbG1hcms6c2VjcmV0"));
    assert_eq!(requests[0].header("authorization"), None);
}

#[test]
fn an_identity_token_is_exchanged_by_post() {
    let server = token_registry(|_, token| token == "t0");
    let folder = tempfile::tempdir().unwrap();
    let host = server.authority();
    let text = format!(r#"{{"auths": {{"{host}": {{"identitytoken": "long lived"}}}}}}"#);
    assert!(!look(configured(folder.path(), &text), &host).unwrap());
    let requests = server.requests();
    let (method, body) =
        (&requests[1].method, String::from_utf8(requests[1].body.clone()).unwrap());
    assert_eq!(method, "POST");
    assert!(body.contains("grant_type=refresh_token&refresh_token=long+lived&"), "{body}");
}

#[test]
fn a_registry_that_is_never_content_is_left() {
    type Handler = fn(&Request) -> Vec<Do>;
    let loops: [(&str, Handler); 4] = [
        ("it wants a user", |_| {
            answer("401 Unauthorized", &[("WWW-Authenticate", "Basic realm=x")], "")
        }),
        ("not what it wants", |_| answer("401 Unauthorized", &[], "")),
        ("not JSON", |request| {
            let host = request.header("host").unwrap();
            let wants = format!(r#"Bearer realm="http://{host}/token""#);
            match request.target.as_str() {
                "/token?scope=repository%3Aa%2Fb%3Apull%2Cpush" => answer("200 OK", &[], "<html>"),
                _ => answer("401 Unauthorized", &[("WWW-Authenticate", &wants)], ""),
            }
        }),
        ("address of its token server", |_| {
            answer("401 Unauthorized", &[("WWW-Authenticate", r#"Bearer realm="ftp://x/""#)], "")
        }),
    ];
    for (says, handler) in loops {
        let server = Server::start(handler);
        let error = look(Registries::default(), &server.authority()).unwrap_err();
        assert!(error.to_string().contains(says), "{says}: {error}");
        assert!(server.requests().len() <= 2, "{says}: {}", server.requests().len());
    }
    // The token is taken from the token server, and never good enough.
    let server = token_registry(|_, _| false);
    let error = look(Registries::default(), &server.authority()).unwrap_err();
    assert!(error.to_string().contains("does not take the token"), "{error}");
    assert_eq!(server.requests().len(), 3);
}
