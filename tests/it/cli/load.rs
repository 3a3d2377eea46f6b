//! `hallmark load`, and names of images.

use std::os::unix::net::UnixListener;

use hallmark::cli::exit;

use super::context::{Answer, TestContext};
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
    let verbs: [&[&str]; 3] = [
        &["load", "quickstart"],
        &["export", "quickstart", "set.tar"],
        &["export", "swebench", "quickstart", "rows.jsonl"],
    ];
    for verb in verbs {
        for (template, word) in [
            ("{name}", "there is no {name}"),
            ("same:latest", "alike"),
            ("X/{id}", "only its tag may have upper case"),
        ] {
            let arguments = verb.iter().copied().chain(["--name", template]);
            context.run(arguments).expect(exit::BAD_INPUT, &[word, "hint: write a name"]);
        }
    }
    assert!(!context.store().exists(), "refused before any work");
}

#[test]
fn a_context_that_is_not_there_and_a_daemon_that_wants_tls_are_told() {
    let context = TestContext::quickstart();
    let load = |variables: &[(&str, &str)]| {
        let mut command = context.command(["load", "quickstart", "--offline"]);
        command.envs(variables.iter().copied());
        Answer::of(&command.output().unwrap(), context.path())
    };
    load(&[("DOCKER_CONTEXT", "other")]).expect(
        exit::BAD_INPUT,
        &["DOCKER_CONTEXT: Docker has no context `other`", "hint: `docker context ls`"],
    );
    load(&[("DOCKER_TLS_VERIFY", "1"), ("DOCKER_HOST", "tcp://127.0.0.1:1")])
        .expect(exit::BAD_INPUT, &["DOCKER_TLS_VERIFY is set", "no TLS", "hint: ", "ssh -NL"]);
    load(&[("DOCKER_TLS_VERIFY", ""), ("DOCKER_HOST", "tcp://127.0.0.1:1")])
        .expect(exit::DAEMON, &["nobody listens"]);
}
