//! Locking against a local archive that lies in every way an archive can.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use hallmark::base::{Arch, Cancel, Digest, SharedReporter, Store, progress};
use hallmark::lock::{BaseLock, FileRef, Origin};
use hallmark::net::{Client, Config};
use hallmark::resolve::Error;
use hallmark::resolve::debian::{Keyring, lock_base, lock_base_with, locked_index};
use hallmark::spec::{BaseDefinition, Interpreter};
use hallmark::{bundle, lock};

const KEY: &str = include_str!("../../fixtures/debian/archive-key.asc");
const INRELEASE: &[u8] = include_bytes!("../../fixtures/debian/InRelease");
const LATER: &[u8] = include_bytes!("../../fixtures/debian/later.InRelease");
const EXPIRED: &[u8] = include_bytes!("../../fixtures/debian/expired.InRelease");
const WEAK: &[u8] = include_bytes!("../../fixtures/debian/weak.InRelease");
const PACKAGES: &[u8] = include_bytes!("../../fixtures/debian/Packages.xz");

/// Serves bytes by path over HTTP until the process ends.
struct Archive {
    address: String,
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

impl Archive {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let files: Arc<Mutex<BTreeMap<String, Vec<u8>>>> = Arc::default();
        let served = Arc::clone(&files);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let Some(Ok(request)) = lines.next() else { continue };
                for line in lines.by_ref() {
                    if line.unwrap_or_default().is_empty() {
                        break;
                    }
                }
                let path = request.split(' ').nth(1).unwrap_or_default();
                let body = served.lock().unwrap().get(path).cloned();
                let status = if body.is_some() { "200 OK" } else { "404 Not Found" };
                let body = body.unwrap_or_default();
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                // A client that hangs up early is the client's business.
                drop(stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)));
            }
        });
        Self { address, files }
    }

    /// The archive as it should be.
    fn whole() -> Self {
        let archive = Self::new();
        archive.put("/mirror/dists/bookworm/InRelease", INRELEASE);
        archive.put("/mirror/dists/bookworm/main/binary-amd64/Packages.xz", PACKAGES);
        archive
    }

    fn put(&self, path: &str, bytes: &[u8]) {
        self.files.lock().unwrap().insert(path.to_owned(), bytes.to_vec());
    }

    fn client(&self) -> Client {
        let env = [
            ("HALLMARK_DEBIAN_MIRROR", format!("{}/mirror", self.address)),
            ("HALLMARK_DEBIAN_SNAPSHOT", format!("{}/snapshot", self.address)),
        ]
        .map(|(name, value)| (name.to_owned(), value));
        Client::new(Config::from_host(&env.into(), None).unwrap(), &Cancel::new()).unwrap()
    }

    fn lock(&self) -> Result<BaseLock, Error> {
        let keyring = Keyring::parse(&[KEY]).unwrap();
        let client = self.client();
        lock_base_with(&keyring, &client, &definition(), Arch::Amd64, &silent(), &Cancel::new())
    }
}

fn silent() -> SharedReporter {
    Arc::new(progress::Silent)
}

fn definition() -> BaseDefinition {
    BaseDefinition {
        name: "test".to_owned(),
        suite: "bookworm".to_owned(),
        packages: vec!["python3".to_owned()],
        interpreter: Interpreter::Debian,
        registry: None,
    }
}

#[test]
fn a_signed_archive_is_locked() {
    let lock = Archive::whole().lock().unwrap();
    assert_eq!(lock.as_of.to_string(), "2026-07-11T10:16:37Z");
    assert_eq!(lock.inrelease, Digest::of(INRELEASE));
    assert_eq!(lock.python, "3.11");
    let names: Vec<&str> = lock.debs.iter().map(|deb| deb.name.as_str()).collect();
    assert_eq!(
        names,
        ["apt", "base-files", "libapt", "mawk", "media-types", "python3", "python3.11"]
    );
    assert_eq!(lock.debs[0].path, "pool/main/a/apt/apt_1.0-1_amd64.deb");
    // The same again gives the same text.
    let text = lock::write_base(&lock).unwrap();
    assert_eq!(lock::write_base(&Archive::whole().lock().unwrap()).unwrap(), text);
    assert_eq!(lock::parse_base("lock", &text).unwrap(), lock);
    lock::check_base(&definition(), &lock, Arch::Amd64).unwrap();
}

#[test]
fn a_strangers_signature_is_refused() {
    let archive = Archive::whole();
    let error = lock_base(&archive.client(), &definition(), Arch::Amd64, &silent(), &Cancel::new())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the InRelease file of bookworm is not to be trusted: \
         0C1130D8E1BA951DBE525D334718DBF50E71E398 is not one of the trusted keys"
    );
    assert!(error.hint().unwrap().contains("HALLMARK_DEBIAN_MIRROR"));
}

#[test]
fn release_files_that_lie_are_refused() {
    let text = String::from_utf8(INRELEASE.to_vec()).unwrap();
    let unsigned =
        &text[text.find("Origin").unwrap()..text.find("-----BEGIN PGP SIGNATURE").unwrap()];
    let no_signature = &text[..=text.find("\n-----BEGIN PGP SIGNATURE").unwrap()];
    let other_text = text.replace("2026 10:16:37", "2027 10:16:37");
    let appended = format!("{text}\nOrigin: evil\n");
    let prepended = format!("Origin: evil\n\n{text}");
    for (bytes, message) in [
        (unsigned.as_bytes(), "is not to be trusted: it is not a signed text"),
        (no_signature.as_bytes(), "is not to be trusted: it is not a signed text"),
        (other_text.as_bytes(), "does not fit the text"),
        (appended.as_bytes(), "is not to be trusted: it is not a signed text"),
        (prepended.as_bytes(), "is not to be trusted: it is not a signed text"),
        (b"\xff\xfe", "is not to be trusted: it is not UTF-8 text"),
        (b"<html>sign in to the network</html>", "is not to be trusted: it is not a signed text"),
        (WEAK, "has a weak hash"),
        (EXPIRED, "the Release file of bookworm was valid until 2026-07-18T10:16:37Z"),
    ] {
        let archive = Archive::whole();
        archive.put("/mirror/dists/bookworm/InRelease", bytes);
        let error = archive.lock().unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn a_release_of_another_suite_is_refused() {
    let archive = Archive::whole();
    archive.put("/mirror/dists/trixie/InRelease", INRELEASE);
    let keyring = Keyring::parse(&[KEY]).unwrap();
    let trixie = BaseDefinition { suite: "trixie".to_owned(), ..definition() };
    let error = lock_base_with(
        &keyring,
        &archive.client(),
        &trixie,
        Arch::Amd64,
        &silent(),
        &Cancel::new(),
    )
    .unwrap_err();
    assert_eq!(error.to_string(), "InRelease of trixie: expected codename trixie, got bookworm");
}

#[test]
fn an_index_with_other_bytes_is_refused() {
    let archive = Archive::whole();
    let mut bytes = PACKAGES.to_vec();
    bytes[400] ^= 1;
    archive.put("/mirror/dists/bookworm/main/binary-amd64/Packages.xz", &bytes);
    let error = archive.lock().unwrap_err().to_string();
    assert!(error.contains(&Digest::of(PACKAGES).to_string()), "{error}");
    assert!(error.contains(&Digest::of(&bytes).to_string()), "{error}");
    archive.put("/mirror/dists/bookworm/main/binary-amd64/Packages.xz", &PACKAGES[..100]);
    assert!(matches!(archive.lock().unwrap_err(), Error::Net(_)));
}

#[test]
fn packages_that_are_not_there_are_named() {
    let archive = Archive::whole();
    let keyring = Keyring::parse(&[KEY]).unwrap();
    let wrong = BaseDefinition { packages: vec!["pyhton3".to_owned()], ..definition() };
    let error =
        lock_base_with(&keyring, &archive.client(), &wrong, Arch::Amd64, &silent(), &Cancel::new())
            .unwrap_err();
    assert_eq!(error.to_string(), "bookworm has no package `pyhton3`");
    assert_eq!(error.hint().unwrap(), "did you mean python3?");
    let none = BaseDefinition { packages: vec!["gcc".to_owned()], ..definition() };
    let error =
        lock_base_with(&keyring, &archive.client(), &none, Arch::Amd64, &silent(), &Cancel::new())
            .unwrap_err();
    assert_eq!(error.to_string(), "expected one Python in bookworm, got none");
}

#[test]
fn what_the_mirror_no_longer_has_comes_from_the_snapshot() {
    let archive = Archive::whole();
    let lock = archive.lock().unwrap();
    // A day on: the suite has a new release, and superseded packages have gone.
    archive.put("/mirror/dists/bookworm/InRelease", LATER);
    archive.put("/mirror/dists/bookworm/main/binary-amd64/Packages.xz", b"another");
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store"), &folder.path().join("scratch")).unwrap();
    let client = archive.client();
    assert!(locked_index(&store, &client, &lock).is_err());
    assert!(!store.has_blob(&lock.packages_index));
    let snapshot = "/snapshot/20260712T101637Z";
    archive.put(&format!("{snapshot}/dists/bookworm/InRelease"), INRELEASE);
    archive.put(&format!("{snapshot}/dists/bookworm/main/binary-amd64/Packages.xz"), PACKAGES);
    let text = locked_index(&store, &client, &lock).unwrap();
    assert_eq!(Digest::of(&text), lock.packages_index);
    // From now on it needs no network.
    archive.files.lock().unwrap().clear();
    assert_eq!(locked_index(&store, &client, &lock).unwrap(), text);

    let deb = &lock.debs[0];
    archive.put(&format!("{snapshot}/{}", deb.path), b"apt contents\n");
    let file = lock::base_files(&lock).remove(0);
    assert!(
        matches!(&file, FileRef { origin: Origin::Debian { path, .. }, .. } if *path == deb.path)
    );
    let report = bundle::fetch(&store, &client, &[file], &silent(), &Cancel::new()).unwrap();
    assert_eq!(report.fetched, 1);
    assert_eq!(store.read_blob(&deb.sha256).unwrap(), b"apt contents\n");
}

#[test]
fn a_snapshot_that_gives_another_release_is_refused() {
    let archive = Archive::whole();
    let lock = archive.lock().unwrap();
    archive.put("/mirror/dists/bookworm/InRelease", LATER);
    for day in ["20260711", "20260712", "20260713"] {
        archive.put(&format!("/snapshot/{day}T101637Z/dists/bookworm/InRelease"), LATER);
    }
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store"), &folder.path().join("scratch")).unwrap();
    let error = locked_index(&store, &archive.client(), &lock).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "InRelease of bookworm: expected {}, got {}",
            Digest::of(INRELEASE),
            Digest::of(LATER)
        )
    );
}

/// Says what the real archive says today.
#[test]
fn online_every_suite_locks() {
    let Some(client) = crate::net::online_client() else { return };
    for (suite, python) in [("bullseye", "3.9"), ("bookworm", "3.11"), ("trixie", "3.13")] {
        let definition = BaseDefinition { suite: suite.to_owned(), ..definition() };
        let lock = lock_base(&client, &definition, Arch::Amd64, &silent(), &Cancel::new()).unwrap();
        assert_eq!(lock.python, python);
        assert!(lock.debs.len() > 80, "{suite}: {}", lock.debs.len());
    }
}
