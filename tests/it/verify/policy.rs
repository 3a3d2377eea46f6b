//! Policies in TOML.

use std::path::Path;

use hallmark::verify::{Axis, Policy, Remedy, policy_schema, upper_bound};

fn parse(text: &str) -> Policy {
    Policy::parse("images/strict.policy.toml", text).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Message and hint of each fault.
fn faults(text: &str) -> Vec<(String, String)> {
    let errors = Policy::parse("p.toml", text).unwrap_err();
    assert!(errors.render(false).contains("p.toml:"), "{errors}");
    errors.iter().map(|error| (error.message.clone(), error.hint.clone())).collect()
}

#[test]
fn what_is_not_stated_is_the_preset() {
    let policy = parse("[admission]\n");
    assert_eq!(policy, Policy { name: "strict".to_owned(), ..Policy::benchmark() });
    for name in Policy::PRESETS {
        let preset = Policy::named(name).unwrap();
        assert_eq!(preset.name, name);
        let read = parse(&format!("[admission]\npreset = \"{name}\"\n"));
        assert_eq!(read, Policy { name: "strict".to_owned(), ..preset });
    }
    assert_eq!(Policy::named("bench"), None);
    assert_eq!(Policy::parse("quick.toml", "[admission]").unwrap().name, "quick");
}

#[test]
fn every_key_is_read() {
    let policy = parse(
        r#"
[admission]
preset = "training"
bound = "5 %"
confidence = 0.99
pre-runs = 5
axes = ["clock", "order", "user"]
flaky = "reject"
flaky-fail-to-pass = "quarantine"
max-quarantined = "25%"
max-probes = 7
time-budget = "2 h"
require-memory-limit = false

[admission.sensitive]
clock = "reject"
user = "quarantine"
"#,
    );
    let mut sensitive = Policy::training().sensitive;
    sensitive.insert(Axis::Clock, Remedy::Reject);
    sensitive.insert(Axis::User, Remedy::Quarantine);
    let expected = Policy {
        name: "strict".to_owned(),
        runs: 90,
        pre_runs: 5,
        confidence: 0.99,
        provisional: false,
        axes: [Axis::Order, Axis::Clock, Axis::User].into(),
        flaky: Remedy::Reject,
        flaky_fail_to_pass: Remedy::Quarantine,
        sensitive,
        max_quarantined: 0.25,
        max_probes: 7,
        time_budget: Some(7200.0),
        require_memory_limit: false,
    };
    assert_eq!(policy, expected);
    assert!(upper_bound(90, 0, 0.99) <= 0.05 && upper_bound(89, 0, 0.99) > 0.05);
}

#[test]
fn a_bound_is_the_fewest_runs_that_show_it() {
    for (bound, runs) in [("0.2", 14), ("0.1", 29), ("\"5 %\"", 59), ("1", 1), ("0.01", 299)] {
        assert_eq!(parse(&format!("[admission]\nbound = {bound}\n")).runs, runs, "{bound}");
    }
    // More runs than the bound needs are no contradiction.
    assert_eq!(parse("[admission]\nbound = 0.1\nruns = 40\n").runs, 40);
}

#[test]
fn each_fault_names_the_way_out() {
    for (text, message, hint) in [
        ("", "`admission` is missing", "write a table `[admission]`"),
        ("[admision]", "unknown key `admision`", "did you mean `admission`?"),
        (
            "[admission]\npreset = \"benchmrak\"",
            "there is no preset \"benchmrak\"",
            "did you mean \"benchmark\"?",
        ),
        (
            "[admission]\npreset = \"x\"",
            "there is no preset \"x\"",
            "the presets are: quick, training, benchmark, release",
        ),
        ("[admission]\nruns = 0", "`runs` is out of range", "write a number from 1 to 10000"),
        (
            "[admission]\npre-runs = 0",
            "`pre-runs` is out of range",
            "write a number from 1 to 10000",
        ),
        (
            "[admission]\nruns = 10\nbound = 0.1",
            "`runs = 10` bounds the rate at 25.9 %, and `bound` asks for 10.0 %",
            "write `runs = 29`, or remove one of both",
        ),
        (
            "[admission]\nbound = 0.0001",
            "no number of runs up to 10000 shows a rate below this bound",
            "write a larger bound, such as 0.1",
        ),
        (
            "[admission]\nconfidence = 1.0",
            "`confidence` is out of range",
            "write a number from 0.5 to below 1, such as 0.95",
        ),
        (
            "[admission]\nbound = 10",
            "this share is larger than the whole",
            "write a number from 0 to 1, or per cent: `0.1` or `\"10 %\"`",
        ),
        (
            "[admission]\nflaky = \"pin\"",
            "`flaky` cannot be \"pin\": no condition explains what is flaky, so none can be held",
            "write \"quarantine\" or \"reject\"",
        ),
        (
            "[admission]\nflaky = \"rejct\"",
            "there is no remedy \"rejct\"",
            "did you mean \"reject\"?",
        ),
        ("[admission]\naxes = [\"clok\"]", "there is no axis \"clok\"", "did you mean \"clock\"?"),
        (
            "[admission]\naxes = [\"clock\", \"clock\"]",
            "the axis \"clock\" is there twice",
            "remove one",
        ),
        (
            "[admission]\naxes = [\"order\"]\nsensitive = { zone = \"quarantine\" }",
            "`sensitive.zone` says what to do about tests that `axes` does not look for",
            "add \"zone\" to `axes`, or remove `sensitive.zone`",
        ),
        (
            "[admission.sensitive]\nload = \"pin\"",
            "`sensitive.load` cannot be \"pin\": no machine holds it still",
            "write \"quarantine\" or \"reject\"",
        ),
        (
            "[admission]\nflaky = \"quarantine\"\nmax-quarantined = 0",
            "`max-quarantined` lets no test be set aside, and `flaky` sets tests aside",
            "raise `max-quarantined`, or write `flaky = \"reject\"`",
        ),
        (
            "[admission]\nmax-quarantined = 0\nsensitive = { user = \"quarantine\" }",
            "`max-quarantined` lets no test be set aside, and `sensitive.user` sets tests aside",
            "raise `max-quarantined`, or write `sensitive.user = \"reject\"`",
        ),
        (
            "[admission]\ntime-budget = \"0 s\"",
            "`time-budget` leaves time for no run",
            "write a duration from 1 s on, such as \"2 h\", or remove it",
        ),
        (
            "[admission]\ntime-budget = \"2 hours\"",
            "\"2 hours\" is not a duration",
            "write \"2 h\"",
        ),
        (
            "[admission]\nmax-probes = -1",
            "this number is negative or too large",
            "write a whole number from 0",
        ),
    ] {
        assert_eq!(faults(text), [(message.to_owned(), hint.to_owned())], "{text}");
    }
}

#[test]
fn all_faults_are_told_at_once() {
    let text =
        "[admission]\npreset = \"quik\"\nruns = 0\nflaky = \"pin\"\naxes = [\"x\"]\nunknown = 1\n";
    assert_eq!(faults(text).len(), 5, "{:?}", faults(text));
    assert!(!faults("[admission\nruns = 1").is_empty());
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,80}|\\[admission\\]\n([a-z-]{1,16} = [0-9\"a-z.%\\[\\]{}=]{0,12}\n){0,4}") {
        if let Err(errors) = Policy::parse("p.toml", &text) {
            proptest::prop_assert!(!errors.is_empty());
            errors.render(false);
        }
    }
}

#[test]
fn the_committed_schema_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema/policy.schema.json");
    let text = serde_json::to_string_pretty(&policy_schema()).unwrap() + "\n";
    if option_env!("HALLMARK_UPDATE_SCHEMAS").is_some() {
        fs_err::write(&path, &text).unwrap();
    }
    assert_eq!(
        fs_err::read_to_string(&path).unwrap_or_default(),
        text,
        "run the tests with HALLMARK_UPDATE_SCHEMAS=1 set while compiling"
    );
}
