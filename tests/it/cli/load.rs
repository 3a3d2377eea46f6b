//! `hallmark load` and the archive of `hallmark export`.

use std::os::unix::net::UnixListener;

use hallmark::cli::exit;

use super::context::TestContext;
use crate::support::{Dockerd, Full, INSTANCES};

/// Names as the official harness expects them.
fn names() -> [String; 2] {
    INSTANCES.map(|id| format!("sweb.eval.x86_64.{id}:latest"))
}

#[test]
fn a_split_is_loaded_under_the_names_of_the_harness() {
    let (Some(full), Some(dockerd)) = (Full::get(), Dockerd::shared()) else { return };
    let context = TestContext::with_store(&full.store());
    let mut arguments = TestContext::both(&["load"]);
    let host = dockerd.host();
    arguments.extend(["--offline", "--docker-host", &host]);
    let answer = context.run(&arguments);
    answer.expect(exit::OK, &["in Docker ", ": 2 of 2 images; ", " layers sent"]);
    for name in names() {
        let id = dockerd.ask(&["image", "inspect", "--format", "{{.Id}}", &name]);
        assert!(answer.stdout.contains(&format!("{name} {id} loaded\n")), "{answer}");
    }
    let work_dir =
        dockerd.ask(&["image", "inspect", "--format", "{{.Config.WorkingDir}}", &names()[0]]);
    assert_eq!(work_dir, "/testbed");

    arguments.push("--json");
    let answer = context.run(&arguments);
    answer.expect(exit::OK, &[]);
    let record: serde_json::Value = answer
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .find(|line| line["kind"] == "load")
        .unwrap();
    assert_eq!(record["value"]["bytes-sent"], 0);
    assert_eq!(record["value"]["images"][1]["was-there"], true);
    for name in names() {
        dockerd.ask(&["rmi", &name]);
    }
}

#[test]
fn an_archive_is_loaded_by_docker_under_names_of_ones_own() {
    let (Some(full), Some(dockerd)) = (Full::get(), Dockerd::shared()) else { return };
    let context = TestContext::with_store(&full.store());
    let mut arguments = TestContext::both(&["export"]);
    let file = context.path().join("set.tar");
    arguments.insert(2, file.to_str().unwrap());
    arguments.extend(["--offline", "--name", "registry.example/sets/{id_1776}:{arch}"]);
    let answer = context.run(&arguments);
    answer.expect(exit::OK, &[]);
    assert!(answer.stdout.starts_with("2 images in [DIR]/set.tar"), "{answer}");
    let first = fs_err::read(&file).unwrap();
    dockerd.ask(&["load", "-i", file.to_str().unwrap()]);
    let name = format!("registry.example/sets/{}:x86_64", INSTANCES[0].replace("__", "_1776_"));
    dockerd.ask(&["image", "inspect", &name]);
    context.run(&arguments).expect(exit::OK, &[]);
    assert!(first == fs_err::read(&file).unwrap(), "the same images make other bytes");
}

#[test]
fn without_a_daemon_it_is_said_before_any_work() {
    let context = TestContext::quickstart();
    let load = |host: &str| {
        let mut arguments = TestContext::both(&["load"]);
        arguments.extend(["--offline", "--docker-host", host]);
        context.run(arguments)
    };
    load("unix:///nonexistent/d.sock")
        .expect(exit::DAEMON, &["no Docker daemon answers", "there is no such socket", "hint: "]);
    let socket = context.path().join("d.sock");
    drop(UnixListener::bind(&socket).unwrap());
    load(&format!("unix://{}", socket.display())).expect(exit::DAEMON, &["nobody listens"]);
    load("ssh://host").expect(exit::BAD_INPUT, &["ssh:// is not supported", "hint: "]);
}

#[test]
fn a_template_that_cannot_name_images_is_refused() {
    let context = TestContext::quickstart();
    for (template, word) in [("{name}", "there is no {name}"), ("same:latest", "alike")] {
        let mut arguments = TestContext::both(&["load"]);
        arguments.extend(["--name", template]);
        context.run(arguments).expect(exit::BAD_INPUT, &[word]);
    }
}
