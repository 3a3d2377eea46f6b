//! Bytes that went bad: in bundles, manifests, stores, locks and on servers.

use std::path::Path;

use hallmark::cli::exit;

use super::context::{TestContext, snapshot};
use crate::net::server::{Server, ok};
use crate::support::{Full, INSTANCES};

/// Changes one bit in the middle of a file, which others may share.
fn flip(path: &Path) {
    let mut bytes = fs_err::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs_err::remove_file(path).unwrap();
    fs_err::write(path, bytes).unwrap();
}

#[test]
fn full_a_damaged_bundle_is_refused() {
    let Some(full) = Full::get() else { return };
    let whole = fs_err::read(full.bundle()).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let mut escaping = whole.clone();
    let at = whole.windows(13).position(|window| window == b"blobs/sha256/").unwrap();
    // The index comes first; the first entry after it is a header.
    escaping[at..at + 13].copy_from_slice(b"../../x/sha25");
    let cases = [
        ("cut", whole[..whole.len() - 5000].to_vec()),
        ("cut-in-the-index", whole[..600].to_vec()),
        ("flipped", flipped),
        ("escaping", escaping),
        ("empty", Vec::new()),
    ];
    for (name, bytes) in cases {
        let context = TestContext::new();
        fs_err::write(context.path().join("bundle"), bytes).unwrap();
        let answer = context.run(["bundle", "unpack", "../bundle", "--quiet"]);
        answer.expect(exit::BAD_INPUT, &["bundle", "hint: "]);
        // What came before the fault was verified, and may stay; nothing else may.
        for line in context.listing("store/blobs/sha256") {
            let (file, digest) = line.split_once(' ').unwrap();
            assert_eq!(format!("sha256:{file}"), digest, "{name}");
        }
        assert!(!context.path().join("x").exists(), "{name}");
    }
}

#[test]
fn full_an_audit_passes_and_finds_every_flipped_byte() {
    let Some(full) = Full::get() else { return };
    let context = TestContext::with_store(&full.store());
    let manifest = full.manifest();
    let manifest = manifest.to_str().unwrap();
    let answer = context.run(["audit", manifest, "--offline"]);
    answer.expect(exit::OK, &[]);
    assert!(answer.stdout.contains(" 0 wrong, 0 could not be made"), "{answer}");

    let value: serde_json::Value =
        serde_json::from_slice(&fs_err::read(manifest).unwrap()).unwrap();
    let instance = &value["subject"]["instances"][INSTANCES[0]];
    let sdist = instance["files"][0]["sha256"].as_str().unwrap();
    flip(&context.store().join("blobs").join(sdist.replace(':', "/")));
    let answer = context.run(["audit", manifest, "--offline"]);
    answer.expect(exit::CHECK_FAILED, &[]);
    let wrong: Vec<&str> = answer.stdout.lines().filter(|line| line.starts_with("WRONG")).collect();
    let place = format!(
        "WRONG  instances/{}/files/{}: expected {sdist}, the store holds sha256:",
        INSTANCES[0],
        instance["files"][0]["name"].as_str().unwrap()
    );
    assert!(wrong.len() == 1 && wrong[0].starts_with(&place), "{answer}");

    // A file that is not there is not an accusation.
    fs_err::remove_file(context.store().join("blobs").join(sdist.replace(':', "/"))).unwrap();
    let answer = context.run(["audit", manifest, "--offline"]);
    answer.expect(exit::CHECK_FAILED, &[]);
    assert!(answer.stdout.contains(" 0 wrong, 1 could not be made"), "{answer}");

    // A run's log.
    let context = TestContext::with_store(&full.store());
    let runs = value["evidence"]["instances"][INSTANCES[0]]["runs"].as_array().unwrap();
    let printed = runs.iter().find(|run| run["stdout"]["size"].as_u64() > Some(0)).unwrap();
    let key = printed["key"].as_str().unwrap().trim_start_matches("sha256:");
    let log = walkdir::WalkDir::new(context.store().join("runs"))
        .into_iter()
        .map(Result::unwrap)
        .find(|entry| entry.path().ends_with(format!("{key}/stdout")))
        .unwrap();
    flip(log.path());
    let answer = context.run(["audit", manifest, "--offline"]);
    answer.expect(exit::CHECK_FAILED, &[]);
    assert!(answer.stdout.contains("WRONG  instances/"), "{answer}");
}

#[test]
fn full_a_manifest_that_was_changed_is_found() {
    let Some(full) = Full::get() else { return };
    let context = TestContext::with_store(&full.store());
    let text = fs_err::read_to_string(full.manifest()).unwrap();
    // One digit of the digest that the whole subject hangs on, of a patch and of a count.
    let cases = [
        ("\"network\":\"", "\"network\":\"x", None),
        ("\"normalised\":false", "\"normalised\":true", Some("WRONG  subject: ")),
        ("\"repeat\":0", "\"repeat\":7", Some("WRONG  evidence: ")),
    ];
    for (from, to, finding) in cases {
        let spaced = text.replace("\": ", "\":");
        assert!(spaced.contains(from), "{from}");
        context.write("m.json", &spaced.replacen(from, to, 1));
        let answer = context.run(["audit", "m.json", "--offline"]);
        match finding {
            Some(finding) => {
                answer.expect(exit::CHECK_FAILED, &[]);
                assert!(answer.stdout.contains(finding), "{answer}");
            }
            None => assert!([1, 3].contains(&answer.code.unwrap()), "{answer}"),
        }
    }
    context.write("m.json", &text[..text.len() / 2]);
    context.run(["audit", "m.json"]).expect(exit::BAD_INPUT, &["m.json", "hint: "]);
    context.write("m.json", r#"{"version": 99, "shape": "unknown"}"#);
    let answer = context.run(["audit", "m.json"]);
    answer.expect(exit::BAD_INPUT, &["m.json", "99", "hint: update hallmark"]);
    snapshot("manifest-newer", &answer.stderr);
}

#[test]
fn a_server_with_other_bytes_is_refused_and_they_are_not_kept() {
    let context = TestContext::demo(super::context::SPEC);
    let server = Server::start(|request| {
        if request.target.starts_with("/simple/demo") {
            let page = r#"<a href="/files/demo-1.0.tar.gz">demo-1.0.tar.gz</a>
                <a href="/files/demo-1.1.tar.gz">demo-1.1.tar.gz</a>"#;
            ok("text/html", page)
        } else {
            ok("application/octet-stream", "ten bytes!")
        }
    });
    // No lock is needed for a row's own files, but the base's comes first.
    for name in ["lockfiles", "images", "specs"] {
        let status = std::process::Command::new("cp")
            .arg("-rT")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(name))
            .arg(context.project().join(name))
            .status()
            .unwrap();
        assert!(status.success());
    }
    let output = context
        .command(TestContext::both(&["bundle", "fetch"]))
        .env("HALLMARK_PYPI_INDEX", format!("{}simple/", server.url()))
        .env("HALLMARK_DEBIAN_MIRROR", format!("{}debian", server.url()))
        .env("HALLMARK_DEBIAN_SNAPSHOT", format!("{}snapshot", server.url()))
        .output()
        .unwrap();
    let answer = super::context::Answer::of(&output, context.path());
    answer.expect(exit::FETCH_FAILED, &["expected ", "got 10", ".deb", "hint: "]);
    assert_eq!(context.listing("store/blobs"), Vec::<String>::new());
}
