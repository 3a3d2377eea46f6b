//! Help texts and usage errors.

use hallmark::cli::exit;

use super::context::{TestContext, snapshot};

const VERBS: [&[&str]; 19] = [
    &[],
    &["run"],
    &["lock"],
    &["bundle"],
    &["bundle", "fetch"],
    &["bundle", "pack"],
    &["bundle", "unpack"],
    &["bundle", "export"],
    &["build"],
    &["collect"],
    &["verify"],
    &["export"],
    &["export", "swebench"],
    &["load"],
    &["push"],
    &["audit"],
    &["report"],
    &["doctor"],
    &["gc"],
];

#[test]
fn every_verb_has_its_help() {
    let context = TestContext::new();
    for verb in VERBS {
        let mut arguments = verb.to_vec();
        arguments.push("--help");
        // The help shows what such variables hold.
        let mut command = context.command(arguments);
        command.env_remove("HALLMARK_STORE").env("COLUMNS", "100");
        let answer = command.output().unwrap();
        assert_eq!(answer.status.code(), Some(0));
        assert_eq!(answer.stderr, b"");
        let name = if verb.is_empty() { "top".to_owned() } else { verb.join("-") };
        snapshot(&format!("help-{name}"), &String::from_utf8(answer.stdout).unwrap());
    }
}

#[test]
fn the_help_lists_every_exit_code() {
    let help = TestContext::new().run(["--help"]).stdout;
    let listed: Vec<u8> = help
        .lines()
        .skip_while(|line| *line != "Exit codes:")
        .skip(1)
        .filter_map(|line| line.split_whitespace().next()?.parse().ok())
        .collect();
    assert_eq!(
        listed,
        [
            exit::OK,
            exit::CHECK_FAILED,
            exit::USAGE,
            exit::BAD_INPUT,
            exit::BUILD_FAILED,
            exit::FETCH_FAILED,
            exit::HOST,
            exit::DAEMON,
            exit::INTERNAL,
            exit::INTERRUPTED,
        ]
    );
}

#[test]
fn a_command_line_that_cannot_be_understood_is_a_usage_error() {
    let context = TestContext::new();
    for arguments in [
        &["frobnicate"][..],
        &["run", "quickstart", "--frobnicate"],
        &["run"],
        &["run", "quickstart", "--jobs", "0"],
        &["run", "quickstart", "--jobs", "many"],
        &["run", "quickstart", "--runs", "0"],
        &["bundle"],
        &["bundle", "frobnicate"],
        &["lock", "quickstart", "--locked", "--refresh"],
        &["gc", "--max-size", "much"],
    ] {
        let answer = context.run(arguments);
        answer.expect(exit::USAGE, &["--help"]);
        assert_eq!(answer.stdout, "", "{arguments:?}");
    }
    assert!(!context.store().exists());
}
