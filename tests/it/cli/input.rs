//! Bad input: a message with the place and the way out, the documented exit code, nothing written.

use hallmark::cli::exit;

use super::context::{BASE, SPEC, TestContext, row, snapshot};

/// The verb refuses the project, says so as on file, and leaves project and store as they were.
#[track_caller]
fn refused(context: &TestContext, arguments: &[&str], name: &str) {
    let before = context.listing("project");
    let answer = context.run(arguments);
    assert_eq!(answer.code, Some(i32::from(exit::BAD_INPUT)), "{name}: {answer}");
    assert!(answer.stderr.contains("hint: "), "{name}: no way out in\n{answer}");
    assert_eq!(answer.stdout, "", "{name}");
    snapshot(name, &answer.stderr);
    assert_eq!(context.listing("project"), before, "{name}");
    let written: Vec<String> =
        context.listing("store").into_iter().filter(|line| !line.starts_with("locks/")).collect();
    assert!(written.is_empty(), "{name}: {} files, as {}", written.len(), written[0]);
}

#[test]
fn specs_with_faults_are_refused() {
    let cases = [
        ("unknown-key", SPEC.replace("python = ", "pyton = \"x\"\npython = ")),
        ("wrong-type", SPEC.replace("python = \"3.11\"", "python = 3.11")),
        ("duplicate-table", format!("{SPEC}\n[limits]\ntimeout = \"1 min\"\n")),
        ("missing-python", SPEC.replace("python = \"3.11\"\n", "")),
        ("cyclic-inheritance", format!("inherits = \"2.0.toml\"\n{SPEC}")),
        (
            "path-out-of-its-folder",
            SPEC.replace(
                "requirements = [",
                "requirement-files = [\"../../secret.txt\"]\nrequirements = [",
            ),
        ),
        ("parent-out-of-its-folder", format!("inherits = \"../2.0.toml\"\n{SPEC}")),
        (
            "every-fault-at-once",
            SPEC.replace("python = \"3.11\"", "pyton = 3").replace("10 min", "soon"),
        ),
        ("not-toml", format!("{SPEC}\n[limits\n")),
    ];
    for (name, text) in cases {
        let context = TestContext::demo(&text);
        if name == "cyclic-inheritance" {
            context.write("specs/pypi__demo/2.0.toml", "inherits = \"1.0.toml\"\n");
        }
        refused(&context, &["build", "demo"], &format!("spec-{name}"));
    }
}

#[test]
fn a_spec_or_a_base_that_is_not_there_is_refused() {
    let context = TestContext::demo(SPEC);
    fs_err::rename(
        context.project().join("specs/pypi__demo/1.0.toml"),
        context.project().join("specs/pypi__demo/0.9.toml"),
    )
    .unwrap();
    refused(&context, &["build", "demo"], "spec-not-there");

    let context = TestContext::demo(&SPEC.replace("bookworm", "sid"));
    refused(&context, &["build", "demo"], "base-not-there");
    let context = TestContext::demo(SPEC);
    context.write("images/bookworm.toml", &BASE.replace("suite", "sweet"));
    refused(&context, &["build", "demo"], "base-unknown-key");
}

#[test]
fn rows_with_faults_are_refused() {
    let long = "a".repeat(4096);
    let good = row("pypi__demo-1.1");
    let cases = [
        ("slash", row("pypi/demo-1.1")),
        ("parent", row("..")),
        ("nul", row("pypi__demo\0-1.1")),
        ("newline", row("pypi__demo\n-1.1")),
        ("long", row(&long)),
        ("twice", format!("{good}\n{good}")),
        ("clipped", format!("{good}\n{}", &good[..good.len() / 2])),
        ("file-name", good.replace("demo-1.1.tar.gz", "../demo-1.1.tar.gz")),
        ("file-name-nul", good.replace("demo-1.1.tar.gz", "demo\\u0000-1.1.tar.gz")),
        ("empty", String::new()),
    ];
    for (name, text) in cases {
        let context = TestContext::demo(SPEC);
        context.write("images/demo.rows.jsonl", &format!("{text}\n"));
        refused(&context, &["build", "demo"], &format!("rows-{name}"));
    }
}

#[test]
fn what_does_not_exist_is_refused_with_what_does() {
    let context = TestContext::demo(SPEC);
    refused(&context, &["run", "demos"], "no-such-split");
    refused(&context, &["run", "demo", "-i", "pypi__demo-9"], "no-such-instance");
    refused(&context, &["run", "./rows.jsonl"], "no-such-file");
    let elsewhere = TestContext::new();
    // Above the working folder there is a project: the one that is tested.
    refused(&elsewhere, &["run", "demo", "--project", "/"], "not-a-project");
    refused(&elsewhere, &["audit", "manifest.json"], "no-such-manifest");
    refused(&elsewhere, &["bundle", "unpack", "bundle"], "no-such-bundle");
}

#[test]
fn a_missing_or_stale_lock_is_refused_when_it_must_hold() {
    let context = TestContext::demo(SPEC);
    refused(&context, &["lock", "demo", "--locked"], "lock-missing");
    refused(&context, &["build", "demo", "--locked", "--offline"], "lock-missing-build");

    let context = TestContext::quickstart();
    let spec = "specs/pypi__pyflakes/3.0.1.toml";
    context.replace(spec, "[dependencies]", "[dependencies]\nextras = [\"fast\"]");
    refused(&context, &TestContext::both(&["lock", "--locked"]), "lock-stale");

    // A lock that a hand, or a merge, has changed.
    let context = TestContext::quickstart();
    let pylock = "lockfiles/pypi__pyflakes/3.0.1/pylock.toml";
    context.replace(pylock, "sha256 = \"b6a85871", "sha256 = \"b6a85872");
    refused(&context, &TestContext::both(&["lock", "--locked"]), "lock-edited");
    let context = TestContext::quickstart();
    context.replace("lockfiles/_bases/bookworm/lock.x86_64.toml", "version = 1", "version = 99");
    refused(&context, &TestContext::both(&["lock", "--locked"]), "lock-newer");
}
