//! `hallmark export`: what is written where, and what is refused before any work.

use std::process::Command;

use hallmark::cli::exit;

use super::context::TestContext;
use crate::support::{Dockerd, Full, INSTANCES, installed, say_skipped};

#[test]
fn an_archive_is_loaded_by_docker_under_names_of_ones_own() {
    let (Some(full), Some(dockerd)) = (Full::get(), Dockerd::shared()) else { return };
    let context = TestContext::with_store(&full.store());
    let mut arguments = TestContext::both(&["export"]);
    let file = context.path().join("set.tar");
    arguments.insert(2, file.to_str().unwrap());
    arguments.extend(["--offline", "--name", "registry.example/sets/{id_1776}:{arch}"]);
    let answer = context.run(&arguments);
    answer.expect(exit::OK, &["2 images in [DIR]/set.tar ("]);
    let first = fs_err::read(&file).unwrap();
    dockerd.ask(&["load", "-i", file.to_str().unwrap()]);
    let name = format!("registry.example/sets/{}:x86_64", INSTANCES[0].replace("__", "_1776_"));
    let id = dockerd.ask(&["image", "inspect", "--format", "{{.Id}}", &name]);
    assert!(answer.stdout.starts_with(&format!("{name} {id}\n")), "{answer}");
    assert_eq!(answer.stdout.lines().count(), 2, "{answer}");
    arguments.push("--json");
    let answer = context.run(&arguments);
    answer.expect(exit::OK, &[]);
    assert!(first == fs_err::read(&file).unwrap(), "the same images make other bytes");
    let record = record(&answer.stdout);
    assert_eq!(record["bytes"], first.len());
    assert_eq!(record["images"][0]["name"], name);
    assert_eq!(record["images"][0]["id"], id);
}

/// The value of the record about an export.
fn record(stdout: &str) -> serde_json::Value {
    let records = stdout.lines().map(|line| serde_json::from_str(line).unwrap());
    let mut found = records.filter(|line: &serde_json::Value| line["kind"] == "export");
    found.next().unwrap()["value"].take()
}

#[test]
fn full_a_layout_is_compressed_as_asked_and_its_manifest_says_so() {
    let Some(full) = Full::get() else { return };
    let context = TestContext::with_store(&full.store());
    let export = |folder: &str, more: &[&str]| {
        let mut arguments = vec!["export", "quickstart", folder, "-i", INSTANCES[0], "--offline"];
        arguments.extend(more);
        let answer = context.run(arguments);
        answer.expect(exit::OK, &[]);
        answer.stdout
    };
    let name = format!("instance/{}", INSTANCES[0].replace("__", "--"));
    let said = export("gzip", &["--compress", "gzip"]);
    assert!(said.contains(&format!("{name} sha256:")), "{said}");
    assert!(
        said.contains("env/pypi--pyflakes/3.0.1 ") && said.contains("base/bookworm "),
        "{said}"
    );
    let written = record(&export("zstd", &["--json"]));
    for (folder, compressor) in [("gzip", "gzip"), ("zstd", "zstd")] {
        let read = |path: &str| -> serde_json::Value {
            let path = context.project().join(folder).join(path);
            serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap()
        };
        let index = read("oci/index.json");
        let of_name = index["manifests"].as_array().unwrap().iter().find(|entry| {
            entry["annotations"]["org.opencontainers.image.ref.name"] == name.as_str()
        });
        let digest = of_name.unwrap()["digest"].as_str().unwrap().to_owned();
        let evidence = read("manifest.json")["evidence"]["images"].to_string();
        assert!(evidence.contains(&digest), "{compressor}: {digest} in {evidence}");
        let document = read(&format!("oci/blobs/{}", digest.replace(':', "/")));
        let kind = document["layers"][0]["mediaType"].as_str().unwrap();
        assert!(kind.ends_with(&format!("+{compressor}")), "{kind}");
        let audited = context.run(["audit", &format!("{folder}/manifest.json")]);
        audited.expect(exit::OK, &[]);
        assert!(audited.stdout.contains(" 0 wrong, 0 could not be made"), "{audited}");
        if compressor == "zstd" {
            let images = written["images"].as_array().unwrap();
            assert!(images.iter().any(|one| one["name"] == name && one["manifest"] == digest));
        }
    }
    if !installed("umoci") {
        return say_skipped("umoci is not installed");
    }
    let unpack = |layout: &str| {
        let image = format!("{layout}/oci:{name}");
        let bundle = format!("{layout}-bundle");
        let mut umoci = Command::new("umoci");
        umoci.args(["unpack", "--image", &image, &bundle]).current_dir(context.project());
        umoci.output().unwrap()
    };
    let output = unpack("gzip");
    assert!(output.status.success(), "{output:?}");
    assert!(context.project().join("gzip-bundle/rootfs/testbed/setup.py").is_file());
    // The umoci of Debian 12 reads no zstd.
    assert!(!unpack("zstd").status.success());
}

#[test]
fn what_cannot_be_written_as_asked_is_refused_before_any_work() {
    let context = TestContext::quickstart();
    context.write("a-file", "");
    context.write("taken/oci/something", "");
    let before = context.listing("project");
    let cases: [(&[&str], &[&str]); 15] = [
        (&["export", "quickstart", "set.tgz"], &["plain tar file", "*.tar", "--format layout"]),
        (&["export", "quickstart", "SET.TAR.ZST", "--format", "archive"], &["plain tar file"]),
        (
            &["export", "quickstart", "no/such/set.tar"],
            &["there is no folder [DIR]/project/no/such", "make the folder"],
        ),
        (&["export", "quickstart", "taken", "--format", "archive"], &["taken: it is a folder"]),
        (&["export", "quickstart", "set.tar", "--policy", "quick"], &["--policy: an archive"]),
        (&["export", "quickstart", "set.tar", "--runs", "1"], &["--runs: an archive"]),
        (&["export", "quickstart", "folder", "--name", "x/{id}"], &["--name: ", "instance/ID"]),
        (&["export", "quickstart", "a-file"], &["a-file: it is no folder"]),
        (&["build", "quickstart", "--store", "a-file"], &["a-file: it is no folder"]),
        (&["export", "quickstart", "taken"], &["not empty and not an OCI layout"]),
        (&["export", "swebench", "quickstart", "no/rows.jsonl"], &["there is no folder"]),
        (
            &["export", "swebench", "quickstart", "-", "--json"],
            &["--json: standard output is for the rows"],
        ),
        (&["bundle", "pack", "quickstart", "no/bundle"], &["there is no folder"]),
        (&["verify", "quickstart", "--manifest", "no/m.json"], &["there is no folder"]),
        (&["run", "quickstart", "--manifest", "no/m.json"], &["there is no folder"]),
    ];
    for (arguments, words) in cases {
        let answer = context.run(arguments.iter().chain(&["--offline"]));
        answer.expect(exit::BAD_INPUT, &["hint: "]);
        answer.expect(exit::BAD_INPUT, words);
        assert_eq!(answer.stdout, "", "{arguments:?}");
        assert_eq!(context.listing("project"), before, "{arguments:?}");
        assert!(!context.project().join("no").exists(), "{arguments:?}");
    }
}

#[test]
fn full_rows_go_to_a_file_to_standard_output_and_through_a_pipe() {
    let Some(full) = Full::get() else { return };
    let context = TestContext::with_store(&full.store());
    let export = |output: &str, more: &[&str]| {
        let mut arguments = TestContext::both(&["export", "swebench"]);
        arguments.insert(3, output);
        arguments.push("--offline");
        context.run(arguments.into_iter().chain(more.iter().copied()))
    };
    let answer = export("rows.jsonl", &["--all"]);
    answer.expect(exit::OK, &["2 rows in rows.jsonl"]);
    assert_eq!(answer.stdout, "");
    let rows = fs_err::read_to_string(context.project().join("rows.jsonl")).unwrap();
    for name in ["-", "/dev/stdout"] {
        let answer = export(name, &["--all"]);
        answer.expect(exit::OK, &["2 rows in standard output"]);
        assert!(answer.stdout == rows, "{answer}");
    }
    assert!(!context.project().join("-").exists());

    let pipe = context.project().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
    let read = std::thread::spawn(move || fs_err::read_to_string(pipe).unwrap());
    export("pipe", &["--all"]).expect(exit::OK, &["2 rows in pipe"]);
    assert!(read.join().unwrap() == rows);

    // A first look admits nothing.
    let answer = export("none.jsonl", &["--policy", "quick"]);
    answer.expect(exit::CHECK_FAILED, &["nothing is written", "--all", "--policy"]);
    assert!(!context.project().join("none.jsonl").exists());
}

#[test]
fn full_runs_of_another_runtime_are_told_from_those_of_this_one() {
    let (Some(full), Some(dockerd)) = (Full::get(), Dockerd::shared()) else { return };
    let context = TestContext::with_store(&full.store());
    let verify = |more: &[&str]| {
        let arguments = ["verify", "quickstart", "-i", INSTANCES[0], "--runs", "1", "--offline"];
        context.run(arguments.iter().chain(more))
    };
    verify(&[]).expect(exit::OK, &["0 runs made, 2 taken from the store\n"]);
    let docker = ["--runtime", "docker", "--docker-host", &dockerd.host()];
    verify(&docker).expect(exit::OK, &["0 runs made, 2 taken from the store (2 by embedded)\n"]);
}
