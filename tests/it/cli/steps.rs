//! Specs whose steps fail, through the binary.

use std::path::Path;

use hallmark::base::clock::Stopwatch;
use hallmark::cli::exit;

use super::context::{Answer, TestContext};
use crate::support::Full;

const ID: &str = "pypi__voluptuous-0.15.2";
const SPEC: &str = "specs/pypi__voluptuous/0.15.1.toml";
const LOCK: &str = "lockfiles/pypi__voluptuous/0.15.1/lock.x86_64.toml";

/// Builds the instance with other install commands, over the same locked packages.
fn build_with(install: &str) -> Option<(TestContext, Answer)> {
    let full = Full::get()?;
    let context = TestContext::with_store(&full.store());
    let text = context.read(SPEC);
    let hash = |context: &TestContext| {
        let specs = context.project().join("specs");
        let spec = hallmark::spec::load(Path::new(&specs), "pypi/voluptuous", "0.15.1").unwrap();
        spec.env_hash().unwrap().to_string()
    };
    let before = hash(&context);
    context.write(SPEC, &format!("{text}\n[commands]\ninstall = [{install}]\n"));
    context.replace(LOCK, &before, &hash(&context));
    let answer = context.run(["build", "quickstart", "-i", ID, "--locked", "--offline"]);
    Some((context, answer))
}

#[test]
fn full_an_install_command_that_fails_shows_its_last_words() {
    let install = r#""echo some; echo words >&2; exit 7""#;
    let Some((context, answer)) = build_with(install) else { return };
    answer
        .expect(exit::BUILD_FAILED, &["instance pypi__voluptuous-0.15.2", "exit code 7", "words"]);
    assert_eq!(fs_err::read_dir(context.scratch()).unwrap().count(), 0);
}

#[test]
fn full_an_install_command_may_not_change_the_work_tree() {
    let install = r#""pip install --no-deps --no-build-isolation --no-index -e .", "echo x > left-over.txt; echo x >> README.md""#;
    let Some((_, answer)) = build_with(install) else { return };
    answer.expect(exit::BUILD_FAILED, &["left-over.txt", "README.md"]);
}

#[test]
fn full_an_install_command_that_wants_a_network_fails_at_once() {
    let install =
        r#""python -c \"import socket; socket.create_connection(('192.0.2.1', 80), 60)\"""#;
    let watch = Stopwatch::start();
    let Some((_, answer)) = build_with(install) else { return };
    answer.expect(exit::BUILD_FAILED, &["Network is unreachable"]);
    assert!(watch.elapsed().as_secs() < 50, "{:?}", watch.elapsed());
}

#[test]
fn full_an_extra_that_does_not_exist_is_refused_with_those_that_do() {
    let Some(full) = Full::get() else { return };
    if crate::net::online_client().is_none() {
        return;
    }
    let context = TestContext::with_store(&full.store());
    context.replace(SPEC, "[dependencies]", "[dependencies]\nextras = [\"speed\"]");
    let before = context.listing("project");
    let answer = context.run(["lock", "quickstart", "-i", ID]);
    answer.expect(exit::BAD_INPUT, &["pypi__voluptuous/0.15.1", "has no extra `speed`", "hint: "]);
    assert_eq!(context.listing("project"), before);
}
