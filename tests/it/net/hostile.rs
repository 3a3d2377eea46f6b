//! Servers that misbehave: what is tried again, what is not, and what is never taken.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use hallmark::base::{self, Cancel, Digest, clock::Stopwatch};
use hallmark::net::{self, Address, Client, Config, Error};

use super::server::{Do, Request, Server, answer, certificate_path, head, ok};
use super::{client_for, config_for};

fn address(text: &str) -> Address {
    Address::parse(text).unwrap()
}

fn body() -> Vec<u8> {
    (0..30_000_u32).flat_map(u32::to_le_bytes).collect()
}

/// Downloads `body()` from these addresses.
fn download(client: &Client, urls: &[String]) -> Result<Vec<u8>, Error> {
    let candidates: Vec<_> = urls.iter().map(|url| address(url)).collect();
    let body = body();
    client.download(&candidates, "x.whl", Digest::of(&body), Some(body.len() as u64), || {
        Ok(Vec::new())
    })
}

/// Downloads `body()` from a server that answers so, and how often it was asked.
fn try_with(
    handler: impl Fn(&Request) -> Vec<Do> + Send + Sync + 'static,
) -> (Result<Vec<u8>, Error>, usize) {
    let server = Server::start(handler);
    let result = download(&client_for(&server), &[format!("{}x.whl", server.url())]);
    let count = server.requests().len();
    (result, count)
}

#[test]
fn good_bytes_come_at_once() {
    let (result, count) = try_with(|_| ok("application/octet-stream", body()));
    assert_eq!((result.unwrap() == body(), count), (true, 1));
}

#[test]
fn wrong_bytes_are_not_asked_for_again() {
    let (result, count) = try_with(|_| {
        let mut bytes = body();
        bytes[7] ^= 1;
        ok("x/y", bytes)
    });
    let error = result.unwrap_err();
    let Error::Base(base::Error::DigestMismatch { name, expected, actual }) = &error else {
        panic!("{error}")
    };
    assert_eq!((name.as_str(), *expected, count), ("x.whl", Digest::of(body()), 1));
    assert_ne!(actual, expected);
    assert!(error.hint().unwrap().contains("dropped"));
}

#[test]
fn a_wrong_length_is_seen_before_the_body() {
    for bytes in [&b"short"[..], &[body(), vec![0]].concat()] {
        let bytes = bytes.to_vec();
        let (result, count) = try_with(move |_| {
            // Only the head: waiting for the body would take longer than the test.
            vec![Do::Send(head("200 OK", &[], Some(bytes.len()))), Do::Wait(2000)]
        });
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Base(base::Error::SizeMismatch { .. })), "{error}");
        assert_eq!(count, 1);
    }
}

#[test]
fn a_body_without_end_is_cut_where_it_is_too_long() {
    let (result, count) =
        try_with(|_| vec![Do::Send(head("200 OK", &[], None)), Do::Drip(vec![1; 50_000], 0)]);
    let error = result.unwrap_err();
    assert!(
        matches!(
            error,
            Error::Base(base::Error::SizeMismatch { more: true, expected: 120_000, .. })
        ),
        "{error}"
    );
    assert_eq!(count, 1);
}

#[test]
fn a_short_body_is_continued_where_it_stopped() {
    let (result, count) = try_with(|request| {
        let body = body();
        if request.number == 0 {
            let mut out = head("200 OK", &[], Some(body.len()));
            out.extend(&body[..70_000]);
            return vec![Do::Send(out)];
        }
        let range = request.header("range").unwrap();
        let start: usize =
            range.strip_prefix("bytes=").unwrap().trim_end_matches('-').parse().unwrap();
        let of = format!("bytes {start}-{}/{}", body.len() - 1, body.len());
        answer("206 Partial Content", &[("Content-Range", &of)], &body[start..])
    });
    assert_eq!((result.unwrap() == body(), count), (true, 2));
}

#[test]
fn a_server_that_cannot_continue_starts_again() {
    for status in ["200 OK", "416 Range Not Satisfiable", "206 Partial Content"] {
        let (result, count) = try_with(move |request| {
            let body = body();
            match (request.number, status) {
                (0, _) => {
                    let mut out = head("200 OK", &[], Some(body.len()));
                    out.extend(&body[..70_000]);
                    vec![Do::Send(out)]
                }
                (1, "416 Range Not Satisfiable") => answer(status, &[], ""),
                // Goes on at another place than asked for.
                (1, "206 Partial Content") => {
                    answer(status, &[("Content-Range", "bytes 0-9/120000")], &body[..10])
                }
                _ => ok("x/y", body),
            }
        });
        assert!(result.unwrap() == body(), "{status}");
        assert_eq!(count, if status == "200 OK" { 2 } else { 3 }, "{status}");
    }
}

#[test]
fn parts_of_two_files_are_not_put_together() {
    let (result, count) = try_with(|request| {
        let body = body();
        match request.number {
            0 => {
                let mut out = head("200 OK", &[], Some(body.len()));
                out.extend(vec![9; 70_000]);
                vec![Do::Send(out)]
            }
            1 => {
                let start: usize =
                    request.header("range").unwrap()[6..].trim_end_matches('-').parse().unwrap();
                let of = format!("bytes {start}-{}/{}", body.len() - 1, body.len());
                answer("206 Partial Content", &[("Content-Range", &of)], &body[start..])
            }
            _ => {
                assert_eq!(request.header("range"), None);
                ok("x/y", body)
            }
        }
    });
    assert_eq!((result.unwrap() == body(), count), (true, 3));
}

#[test]
fn a_body_that_stays_short_is_an_error_in_the_end() {
    let (result, count) = try_with(|request| {
        let body = body();
        match request.header("range") {
            None => {
                let mut out = head("200 OK", &[], None);
                out.extend(&body[..10]);
                vec![Do::Send(out)]
            }
            Some(_) => answer("416 Range Not Satisfiable", &[], ""),
        }
    });
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert_eq!(count, 5);
    assert!(error.hint().is_some());
}

#[test]
fn trouble_that_passes_is_waited_for() {
    for (what, bad) in [
        ("500", answer("500 Internal Server Error", &[], "oops")),
        ("502", answer("502 Bad Gateway", &[], "")),
        ("503", answer("503 Service Unavailable", &[("Retry-After", "0")], "")),
        ("408", answer("408 Request Timeout", &[], "")),
        ("reset", vec![Do::Reset]),
        ("nothing", vec![]),
        ("reset in the head", vec![Do::Send(b"HTTP/1.1 200".to_vec()), Do::Reset]),
        ("no answer", vec![Do::Wait(1500)]),
        ("an idle body", vec![Do::Send(head("200 OK", &[], Some(120_000))), Do::Wait(1500)]),
        ("a trickle", vec![Do::Send(head("200 OK", &[], Some(120_000))), Do::Drip(vec![0], 100)]),
    ] {
        let (result, count) =
            try_with(
                move |request| {
                    if request.number < 2 { bad.clone() } else { ok("x/y", body()) }
                },
            );
        assert_eq!((result.map(|bytes| bytes == body()).unwrap(), count), (true, 3), "{what}");
    }
}

#[test]
fn trouble_that_stays_is_told_with_the_number_of_tries() {
    let (result, count) = try_with(|_| answer("503 Service Unavailable", &[], ""));
    let error = result.unwrap_err();
    assert!(error.to_string().ends_with("503 Service Unavailable (tried 5 times)"), "{error}");
    assert_eq!(count, 5);
}

#[test]
fn retry_after_is_obeyed_up_to_a_limit() {
    let watch = Stopwatch::start();
    let (result, count) = try_with(|request| match request.number {
        0 => answer("429 Too Many Requests", &[("Retry-After", "1")], ""),
        1 => {
            answer("429 Too Many Requests", &[("Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT")], "")
        }
        _ => ok("x/y", body()),
    });
    assert_eq!((result.map(|bytes| bytes == body()).unwrap(), count), (true, 3));
    assert!(watch.elapsed() >= Duration::from_secs(1));

    let (result, count) =
        try_with(|_| answer("429 Too Many Requests", &[("Retry-After", "86400")], ""));
    let error = result.unwrap_err();
    assert!(error.to_string().ends_with("asks to wait 86400 s"), "{error}");
    assert_eq!(count, 1);
}

#[test]
fn what_is_refused_is_not_asked_for_again() {
    for (status, hint) in [
        ("404 Not Found", "not there"),
        ("410 Gone", "not there"),
        ("403 Forbidden", "credentials"),
        ("401 Unauthorized", "credentials"),
        ("400 Bad Request", "try again later"),
        ("501 Not Implemented", "try again later"),
        ("204 No Content", "try again later"),
        ("304 Not Modified", "try again later"),
    ] {
        let (result, count) = try_with(move |_| answer(status, &[], ""));
        let error = result.unwrap_err();
        assert!(error.to_string().ends_with(&format!("the server says {status}")), "{error}");
        assert!(error.hint().unwrap().contains(hint), "{status}");
        assert_eq!(count, 1, "{status}");
        assert_eq!(error.is_not_found(), matches!(&status[..3], "404" | "410"));
    }
}

#[test]
fn the_next_address_is_tried() {
    let server = Server::start(|request| match request.target.as_str() {
        "/good" => ok("x/y", body()),
        "/bad" => ok("x/y", vec![0; 120_000]),
        _ => answer("404 Not Found", &[], ""),
    });
    let url = |path: &str| format!("{}{path}", server.url());
    let client = client_for(&server);
    assert!(download(&client, &[url("none"), url("bad"), url("good"), url("more")]).is_ok());
    assert_eq!(server.targets(), ["/none", "/bad", "/good"]);
    let error = download(&client, &[url("none"), url("bad")]).unwrap_err().to_string();
    assert!(error.starts_with("no address gave x.whl: "), "{error}");
    assert!(error.contains("404") && error.contains("expected sha256:"), "{error}");
    assert!(download(&client, &[url("none"), url("no")]).unwrap_err().is_not_found());
}

#[test]
fn redirects_are_followed_but_not_round_and_round() {
    let (result, count) = try_with(|request| match request.target.as_str() {
        "/x.whl" => answer("302 Found", &[("Location", "/a/b")], ""),
        "/a/b" => answer("308 Permanent Redirect", &[("Location", "../c?token=1")], ""),
        "/c?token=1" => ok("x/y", body()),
        other => panic!("{other}"),
    });
    assert_eq!((result.map(|bytes| bytes == body()).unwrap(), count), (true, 3));

    let (result, count) = try_with(|request| {
        let next = if request.target == "/x.whl" { "/y" } else { "/x.whl" };
        answer("301 Moved Permanently", &[("Location", next)], "")
    });
    assert!(matches!(result.unwrap_err(), Error::RedirectLoop { count: 2, .. }));
    assert_eq!(count, 2);

    let (result, count) = try_with(|request| {
        answer("302 Found", &[("Location", &format!("/n{}", request.number))], "")
    });
    assert!(matches!(result.unwrap_err(), Error::RedirectLoop { .. }));
    assert_eq!(count, 10);

    for target in ["file:///etc/passwd", "ftp://host.test/", "http://"] {
        let (result, count) = try_with(move |_| answer("302 Found", &[("Location", target)], ""));
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Redirect { .. }), "{error}");
        assert_eq!(count, 1);
    }
}

#[test]
fn credentials_stay_with_their_server() {
    let other = Server::start(|_| ok("x/y", body()));
    let target = format!("{}x.whl", other.url());
    let server = Server::start(move |request| match request.target.as_str() {
        "/x.whl" => answer("302 Found", &[("Location", "/here")], ""),
        _ => answer("302 Found", &[("Location", &target)], ""),
    });
    let mut config = config_for(&server);
    let secret = format!("http://me:s%3Aecret@{}/simple/", server.authority());
    config.pypi_index.address = address(&secret);
    let client = Client::new(config, &Cancel::new()).unwrap();
    // The address itself names nobody: the index's credentials count for its whole server.
    download(&client, &[format!("{}x.whl", server.url())]).unwrap();
    let sent: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.header("authorization").map(str::to_owned))
        .collect();
    let basic = Some("Basic bWU6czplY3JldA==".to_owned());
    assert_eq!(sent, [basic.clone(), basic]);
    assert_eq!(other.requests()[0].header("authorization"), None);
}

#[test]
fn https_is_checked_and_not_left() {
    let plain = Server::start(|_| ok("x/y", body()));
    let target = format!("{}x.whl", plain.url());
    let secure = Server::start_secure(move |request| match request.target.as_str() {
        "/down" => answer("302 Found", &[("Location", &target)], ""),
        _ => ok("x/y", body()),
    });
    let mut config = config_for(&secure);
    config.certificates.files = vec![certificate_path()];
    let client = Client::new(config.clone(), &Cancel::new()).unwrap();
    download(&client, &[format!("{}x.whl", secure.url())]).unwrap();
    let error = download(&client, &[format!("{}down", secure.url())]).unwrap_err();
    assert!(error.to_string().ends_with("it leaves https for http"), "{error}");
    assert_eq!(plain.targets(), Vec::<String>::new());

    // A stranger's certificate: said at once, with the way out.
    config.certificates.files.clear();
    let client = Client::new(config, &Cancel::new()).unwrap();
    let error = download(&client, &[format!("{}x.whl", secure.url())]).unwrap_err();
    assert!(matches!(error, Error::Unreachable { tries: 1, .. }), "{error}");
    assert!(error.hint().unwrap().contains("SSL_CERT_FILE"), "{error}");
}

#[test]
fn a_server_without_encryption_is_called_one() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}/x.whl", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            let _ = stream.read(&mut [0; 1024]);
        }
    });
    let server = Server::start(|_| ok("x/y", body()));
    let client = Client::new(config_for(&server), &Cancel::new()).unwrap();
    let error = download(&client, &[address]).unwrap_err();
    assert!(error.to_string().contains("seems to speak plain HTTP"), "{error}");
    let hint = error.hint().unwrap();
    assert!(
        hint.contains("--plain-http") && hint.contains("HALLMARK_REGISTRY_PLAIN_HTTP"),
        "{hint}"
    );
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

#[test]
fn pages_are_decoded_up_to_their_limit() {
    let server = Server::start(|request| match request.target.as_str() {
        "/plain" => ok("text/plain; charset=utf-8", "hello"),
        "/gzip" => answer("200 OK", &[("Content-Encoding", "gzip")], gzip(b"hello")),
        "/bomb" => answer("200 OK", &[("Content-Encoding", "gzip")], gzip(&vec![0; 10 << 20])),
        "/long" => ok("text/plain", vec![0; 100_001]),
        "/endless" => vec![Do::Send(head("200 OK", &[], None)), Do::Drip(vec![0; 5000], 0)],
        "/strange" => answer("200 OK", &[("Content-Encoding", "br")], "x"),
        other => panic!("{other}"),
    });
    let client = client_for(&server);
    let get = |path: &str| client.get(&address(&format!("{}{path}", server.url())), "*/*", 100_000);
    let plain = get("plain").unwrap();
    assert_eq!(
        (plain.bytes.as_slice(), plain.content_type.as_str()),
        (&b"hello"[..], "text/plain")
    );
    assert_eq!(get("gzip").unwrap().bytes, b"hello");
    for path in ["bomb", "long", "endless"] {
        let error = get(path).unwrap_err();
        assert!(matches!(error, Error::TooLarge { limit: 100_000, .. }), "{path}: {error}");
    }
    assert!(get("strange").unwrap_err().to_string().contains("encoded as \"br\""));
    assert_eq!(server.requests().len(), 6);
}

#[test]
fn a_download_is_taken_as_it_is() {
    // Some servers label a .tar.gz as an encoded .tar; its digest is that of the packed bytes.
    let packed = gzip(&body());
    let served = packed.clone();
    let server = Server::start(move |request| {
        assert_eq!(request.header("accept-encoding"), Some("identity"));
        answer("200 OK", &[("Content-Encoding", "gzip")], &served)
    });
    let got = client_for(&server)
        .download(
            &[address(&format!("{}x.tar.gz", server.url()))],
            "x.tar.gz",
            Digest::of(&packed),
            None,
            || Ok(Vec::new()),
        )
        .unwrap();
    assert_eq!(got, packed);
}

#[test]
fn offline_nothing_is_asked_for() {
    let server = Server::start(|_| ok("x/y", body()));
    let client =
        Client::new(Config { offline: true, ..config_for(&server) }, &Cancel::new()).unwrap();
    let error = download(&client, &[format!("{}x.whl", server.url())]).unwrap_err();
    assert!(error.is_offline());
    assert!(error.to_string().starts_with("x.whl is needed from http://127.0.0.1"), "{error}");
    assert!(error.hint().unwrap().contains("bundle unpack"));
    assert!(net::pypi::files(&client, "demo").unwrap_err().is_offline());
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_host_that_is_not_there_is_said_soon() {
    let gone = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/x.whl", listener.local_addr().unwrap())
    };
    let server = Server::start(|_| ok("x/y", body()));
    let client = client_for(&server);
    let tries = |result: Result<Vec<u8>, Error>| match result.unwrap_err() {
        Error::Unreachable { tries, .. } => tries,
        other => panic!("{other}"),
    };
    assert_eq!(tries(download(&client, std::slice::from_ref(&gone))), 3);
    // Known by now.
    assert_eq!(tries(download(&client, &[gone])), 1);
}

#[test]
fn every_wait_ends_when_asked_to() {
    for handler in [
        vec![Do::Wait(5000)],
        vec![Do::Send(head("200 OK", &[], Some(120_000))), Do::Wait(5000)],
        vec![Do::Send(head("200 OK", &[], Some(120_000))), Do::Drip(vec![0; 10], 20)],
        answer("503 Service Unavailable", &[("Retry-After", "60")], ""),
    ] {
        let server = Server::start(move |_| handler.clone());
        let cancel = Cancel::new();
        let mut config = config_for(&server);
        config.patience = net::Patience::default();
        let client = Client::new(config, &cancel).unwrap();
        let watch = Stopwatch::start();
        let soon = cancel.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            soon.cancel();
        });
        let error = download(&client, &[format!("{}x.whl", server.url())]).unwrap_err();
        assert!(matches!(error, Error::Base(base::Error::Cancelled)), "{error}");
        assert!(watch.elapsed() < Duration::from_secs(2), "{:?}", watch.elapsed());
    }
}

#[test]
fn proxies_are_used_as_told() {
    let proxy = Server::start(|_| ok("x/y", body()));
    let server = Server::start(|_| ok("x/y", body()));
    let mut config = config_for(&server);
    config.proxy.http = Some(format!("http://me:secret@{}", proxy.authority()));
    config.proxy.except = Some("127.0.0.1".to_owned());
    let client = Client::new(config, &Cancel::new()).unwrap();
    download(&client, &[format!("{}x.whl", server.url())]).unwrap();
    assert_eq!((server.requests().len(), proxy.requests().len()), (1, 0));
    download(&client, &["http://archive.test/pool/x.whl".to_owned()]).unwrap();
    assert_eq!(proxy.targets(), ["http://archive.test/pool/x.whl"]);
    assert_eq!(proxy.requests()[0].header("proxy-authorization"), Some("Basic bWU6c2VjcmV0"));
    let shown = format!("{:?}", client.config());
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn an_index_is_asked_once_for_a_project() {
    let server = Server::start(|request| match request.target.as_str() {
        "/simple/demo/" => {
            let mut steps = vec![Do::Wait(100)];
            steps.extend(ok(
                "text/html",
                "<a href='/f/demo-1.0.tar.gz#sha256=00'>demo-1.0.tar.gz</a>",
            ));
            steps
        }
        "/simple/good/" => ok("text/html", "<a href='../../f/good-1.0.tar.gz'>good-1.0.tar.gz</a>"),
        "/simple/hotel/" => ok("text/html", "<html><body>Please sign in</body></html>"),
        "/simple/text/" => ok("text/plain", "hello"),
        _ => answer("404 Not Found", &[], ""),
    });
    let client = client_for(&server);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| net::pypi::files(&client, "good").unwrap());
        }
    });
    assert_eq!(server.targets(), ["/simple/good/"]);
    let files = net::pypi::files(&client, "GOOD").unwrap();
    assert_eq!(files[0].address.expose(), format!("{}f/good-1.0.tar.gz", server.url()));
    for (project, reason) in [
        ("demo", "the digest of demo-1.0.tar.gz"),
        ("hotel", "an HTML page without any file"),
        ("text", "the answer is \"text/plain\""),
        ("none", "the server says 404"),
    ] {
        let error = net::pypi::files(&client, project).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
        assert!(error.hint().is_some());
    }
    let wrong = net::pypi::locate(&client, "good", "good-2.0.tar.gz", Digest::of("")).unwrap_err();
    assert!(matches!(wrong, Error::NotListed { .. }), "{wrong}");
}

#[test]
fn debian_files_come_from_the_mirror_or_a_snapshot() {
    let server = Server::start(|request| match request.target.as_str() {
        "/snapshot/20260712T101637Z/dists/x/main/Packages.xz" => ok("x/y", body()),
        "/debian/dists/x/InRelease" => ok("x/y", "now"),
        "/snapshot/20260711T101637Z/dists/x/InRelease" => ok("x/y", "then"),
        _ => answer("404 Not Found", &[], ""),
    });
    let client = client_for(&server);
    let as_of = "2026-07-11T10:16:37Z".parse().unwrap();
    assert_eq!(net::debian::release(&client, "x", None).unwrap(), b"now");
    assert_eq!(net::debian::release(&client, "x", Some(as_of)).unwrap(), b"then");
    let digest = Digest::of(body());
    let bytes =
        net::debian::index(&client, "x", "main/Packages.xz", digest, 120_000, as_of).unwrap();
    assert!(bytes == body());
    assert_eq!(
        server.targets()[2..],
        [
            format!("/debian/dists/x/main/by-hash/SHA256/{}", digest.hex()),
            "/debian/dists/x/main/Packages.xz".to_owned(),
            "/snapshot/20260712T101637Z/dists/x/main/Packages.xz".to_owned(),
        ]
    );
    for bad in ["../x", "/etc/passwd", "pool//x"] {
        assert!(net::debian::candidates(client.config(), bad, as_of).is_err(), "{bad}");
    }
}
