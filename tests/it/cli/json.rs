//! Stdout is data: JSON lines with a version on request, text else; progress goes to stderr; a closed pipe is no fault.

use std::process::Command;

use hallmark::cli::exit;

use super::context::{Answer, TestContext};
use crate::support::Full;

/// Every line is a record; their kinds but for progress, in order of appearance.
#[track_caller]
fn kinds(answer: &Answer) -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    for line in answer.stdout.lines() {
        let record: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        assert_eq!(record["version"], 1, "{line}");
        let kind = record["kind"].as_str().unwrap().to_owned();
        assert!(record.get("value").is_some(), "{line}");
        if kinds.last() != Some(&kind) && kind != "progress" {
            kinds.push(kind);
        }
    }
    kinds
}

#[test]
fn full_every_verb_writes_json_lines_and_nothing_else() {
    let Some(full) = Full::get() else { return };
    let context = TestContext::with_store(&full.store());
    let call = |arguments: &[&str]| {
        let answer = context.run(arguments.iter().chain(&["--json", "--offline"]));
        answer.expect(exit::OK, &[]);
        answer
    };
    let answer = call(&TestContext::both(&["run", "--locked", "--manifest", "m.json"]));
    assert_eq!(kinds(&answer), ["verdict", "runs", "manifest"]);
    assert_eq!(kinds(&call(&TestContext::both(&["lock", "--locked"]))), ["lock"]);
    assert_eq!(kinds(&call(&TestContext::both(&["bundle", "fetch"]))), ["bundle"]);
    assert_eq!(kinds(&call(&TestContext::both(&["build", "--locked"]))), ["digests"]);
    let answer = call(&TestContext::both(&["verify"]));
    assert_eq!(kinds(&answer), ["verdict", "runs"]);
    assert!(answer.stdout.contains(r#"{"made":0,"found":24,"by-others":{}}"#), "{answer}");
    assert_eq!(kinds(&call(&["audit", "m.json"])), ["audit"]);
    assert_eq!(kinds(&call(&["gc", "--dry-run", "--max-age", "0"])), ["removed", "gc"]);
    assert_eq!(kinds(&call(&["doctor"])), ["probe", "address"]);

    // What is done anew is told as events.
    fs_err::remove_dir_all(context.store().join("runs")).unwrap();
    let answer = call(&TestContext::both(&["verify", "--runs", "1"]));
    assert_eq!(kinds(&answer), ["verdict", "runs"]);
    assert!(answer.stdout.contains(r#""name":"pypi__pyflakes-3.1.0 post 1""#), "{answer}");
    assert!(answer.stdout.contains(r#"{"made":4,"found":0,"by-others":{}}"#), "{answer}");
    assert!(answer.stderr.is_empty(), "{answer}");
}

#[test]
fn full_progress_goes_to_stderr_and_quiet_shows_none() {
    let Some(full) = Full::get() else { return };
    let context = TestContext::with_store(&full.store());
    let mut said = Vec::new();
    for arguments in [&["verify", "--runs", "1"][..], &["verify", "--runs", "1", "--quiet"]] {
        fs_err::remove_dir_all(context.store().join("runs")).unwrap();
        let answer = context.run(TestContext::both(arguments).into_iter().chain(["--offline"]));
        answer.expect(exit::OK, &[]);
        assert!(answer.stdout.starts_with("instance "), "{answer}");
        assert_eq!(answer.stdout.lines().count(), 4, "{answer}");
        said.push(answer.stderr);
    }
    assert!(said[0].contains("run pypi__pyflakes-3.1.0 pre 1"), "{}", said[0]);
    assert!(!said[0].contains('\u{1b}'), "colours without a terminal: {}", said[0]);
    assert_eq!(said[1], "");
}

#[test]
fn full_a_closed_pipe_is_no_fault() {
    let Some(full) = Full::get() else { return };
    let context = TestContext::with_store(&full.store());
    let own = context.command([""; 0]);
    for verb in ["gc --dry-run --max-age 0", "gc --dry-run --max-age 0 --json", "--help"] {
        let mut command = Command::new("bash");
        command.env_clear();
        for (name, value) in own.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        let script = format!("$HALLMARK {verb} | true; exit ${{PIPESTATUS[0]}}");
        command.env("HALLMARK", env!("CARGO_BIN_EXE_hallmark")).args(["-c", &script]);
        let output = command.current_dir(context.project()).output().unwrap();
        Answer::of(&output, context.path()).expect(exit::OK, &[]);
    }
}
