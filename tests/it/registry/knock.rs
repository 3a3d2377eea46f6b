//! The question before the work: whether there is a registry that lets us in, and what is said where there is not.

use hallmark::base::Digest;
use hallmark::net::registry::{Purpose, Registries, Repository};
use hallmark::net::{Client, Config, Error};

use super::client;
use crate::net::server::{Do, Request, Server, answer, ok};
use crate::support::registry::Registry;

fn repository(host: &str) -> Repository {
    client(Registries::default()).repository(host, "a/b").unwrap()
}

#[test]
fn a_registry_is_known_by_its_answer() {
    type Handler = fn(&Request) -> Vec<Do>;
    let version = ("Docker-Distribution-Api-Version", "registry/2.0");
    let good: [Handler; 4] = [
        |_| ok("application/json; charset=utf-8", "{}"),
        |_| answer("200 OK", &[], ""),
        |_| ok("application/vnd.example+json", "{}"),
        |_| {
            let page = ("Content-Type", "text/html");
            answer("200 OK", &[page, ("Docker-Distribution-Api-Version", "registry/2.0")], "")
        },
    ];
    for handler in good {
        let server = Server::start(handler);
        repository(&server.authority()).knock().unwrap();
        assert_eq!(server.targets(), ["/v2/"]);
    }
    let bad: [(&str, Handler); 4] = [
        ("it answers with \"text/html\", which no registry does", |_| ok("text/html", "<html>")),
        ("it answers with \"text/plain\", which no registry does", |_| ok("text/plain", "hello")),
        ("it says 404 Not Found, which no registry does", |_| answer("404 Not Found", &[], "")),
        ("it says 405 Method Not Allowed, which", |_| answer("405 Method Not Allowed", &[], "")),
    ];
    for (says, handler) in bad {
        let server = Server::start(handler);
        let error = repository(&server.authority()).knock().unwrap_err();
        assert!(matches!(error, Error::NoRegistry { .. }), "{error}");
        assert!(error.to_string().contains(says), "{says}: {error}");
        assert!(error.hint().unwrap().contains("is this a container registry?"));
    }
    // A page is no blob either, unless a registry of that version says so.
    let page = Server::start(|_| ok("text/html", "<html>"));
    let error = repository(&page.authority()).has_blob(&Digest::of("x")).unwrap_err();
    assert!(matches!(error, Error::NoRegistry { .. }), "{error}");
    let page =
        Server::start(move |_| answer("200 OK", &[("Content-Type", "text/html"), version], ""));
    assert!(repository(&page.authority()).has_blob(&Digest::of("x")).unwrap());
}

#[test]
fn a_login_is_demanded_at_once_and_costs_no_second_request() {
    let Some(registry) = Registry::start_with_password() else { return };
    let host = registry.host();
    let error = repository(host).knock().unwrap_err();
    assert!(error.to_string().contains("it wants a user and a password"), "{error}");
    assert!(error.hint().unwrap().contains("docker login"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.json");
    let text = format!(r#"{{"auths": {{"{host}": {{"auth": "aGFsbG1hcms6c2VjcmV0"}}}}}}"#);
    fs_err::write(&path, text).unwrap();
    let registries = Registries { credentials: vec![path.clone()], ..Registries::default() };
    let repository = client(registries.clone()).repository(host, "a/b").unwrap();
    let before = registry.accesses().len();
    repository.knock().unwrap();
    assert_eq!(repository.tagged("v1", Purpose::Push).unwrap(), None);
    let statuses: Vec<u16> =
        registry.accesses()[before..].iter().map(|access| access.status).collect();
    assert_eq!(statuses, [401, 404]);

    fs_err::write(&path, "{").unwrap();
    let error = client(registries).repository(host, "a/b").unwrap().knock().unwrap_err();
    assert!(error.to_string().contains("config.json: it does not read"), "{error}");
    assert!(error.hint().unwrap().contains("repair the file"));
}

#[test]
fn the_way_out_is_a_registrys() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = repository(&gone.to_string()).knock().unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    let hint = error.hint().unwrap();
    assert!(hint.contains("name and port") && hint.contains("HALLMARK_REGISTRY_MIRRORS"), "{hint}");

    let server = Server::start(|_| answer("429 Too Many Requests", &[("Retry-After", "999")], ""));
    let repository = repository(&server.authority());
    let hint = repository.knock().unwrap_err().hint().unwrap();
    assert_eq!(hint, "try again after that; what went over does not go again");
    let server = Server::start(|_| answer("503 Service Unavailable", &[], ""));
    let hint = self::repository(&server.authority()).knock().unwrap_err().hint().unwrap();
    assert_eq!(
        hint,
        "the registry is in trouble: try again later; what went over does not go again"
    );

    let config = Config { offline: true, ..crate::net::config_for(&server) };
    let client = Client::new(config, &hallmark::base::Cancel::new()).unwrap();
    let asked = server.requests().len();
    let error = client.repository(&server.authority(), "a").unwrap().knock().unwrap_err();
    assert_eq!(error.hint().unwrap(), "leave out --offline (or unset HALLMARK_OFFLINE)");
    assert_eq!(server.requests().len(), asked);
}

#[test]
fn a_refusal_without_a_body_is_asked_for_its_reason_once() {
    let reason = r#"{"errors": [{"code": "DENIED", "message": "the quota is used up"}]}"#;
    let server = Server::start(move |request| match request.method.as_str() {
        "HEAD" => answer("403 Forbidden", &[], ""),
        _ => answer("403 Forbidden", &[], reason),
    });
    let error = repository(&server.authority()).tagged("v1", Purpose::Push).unwrap_err();
    assert!(error.to_string().contains("DENIED the quota is used up"), "{error}");
    let methods: Vec<String> = server.requests().into_iter().map(|asked| asked.method).collect();
    assert_eq!(methods, ["HEAD", "GET"]);
}
