//! The judge and the derivation of lists, over records made by hand.

use std::collections::{BTreeMap, BTreeSet};

use std::path::Path;

use hallmark::base::{Digest, Store, canon};
use hallmark::results::{Outcome, TestResult};
use hallmark::runtime::Gap;
use hallmark::verify::{
    Cause, Comparison, DeriveError, Difference, Effect, Lists, LogRef, PatchName, Phase, Policy,
    Profile, Remedy, Rule, RunOutcome, RunRecord, Status, UnstableTest, Warning, derive_lists,
    judge, load, record_key, upper_bound,
};

/// A record whose tests are written `name=letter`: p, f, e, s, x.
pub(crate) fn record(phase: Phase, repeat: u32, tests: &str) -> RunRecord {
    let nothing = LogRef { sha256: Digest::of(b""), size: 0 };
    let outcome = |letter: &str| match letter {
        "p" => Outcome::Passed,
        "f" => Outcome::Failed,
        "e" => Outcome::Error,
        "s" => Outcome::Skipped,
        "x" => Outcome::Xfailed,
        other => panic!("{other}"),
    };
    let tests: BTreeMap<String, TestResult> = tests
        .split(',')
        .filter(|one| !one.is_empty())
        .map(|one| {
            let (id, letter) = one.rsplit_once('=').unwrap();
            let result = TestResult::new(outcome(letter));
            (id.to_owned(), result)
        })
        .collect();
    RunRecord {
        version: 1,
        key: Digest::of(format!("{phase:?} {repeat}")),
        instance: "i".to_owned(),
        phase,
        series: String::new(),
        repeat,
        alone: false,
        profile: Profile::plain(),
        image: Digest::of("image"),
        run_hash: Digest::of("run"),
        runner: Digest::of("runner"),
        tools: BTreeMap::new(),
        patches: Vec::new(),
        layers: Vec::new(),
        command: Vec::new(),
        outcome: RunOutcome::Completed,
        status: None,
        source: hallmark::results::Source::Stream,
        disobeyed: Vec::new(),
        session_ended: true,
        collected: Some(tests.len() as u64),
        ids: Vec::new(),
        tests,
        collection_errors: BTreeMap::new(),
        collection_skips: BTreeMap::new(),
        nonce: String::new(),
        stdout: nothing,
        stderr: nothing,
        report: nothing,
        wall: 1.0,
        cpu: None,
        peak_memory: None,
        oom_killed: false,
        network_attempts: None,
        gaps: Vec::new(),
        runtime: hallmark::runtime::EMBEDDED.to_owned(),
        slots: 1,
    }
}

fn runs(phase: Phase, tests: &[&str]) -> Vec<RunRecord> {
    (0..).zip(tests).map(|(repeat, tests)| record(phase, repeat, tests)).collect()
}

fn lists(fail: &[&str], pass: &[&str]) -> Lists {
    let owned = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
    Lists { fail_to_pass: owned(fail), pass_to_pass: owned(pass) }
}

/// The runs of both phases, and two collections.
fn both(pre: &[RunRecord], post: &[RunRecord]) -> Vec<RunRecord> {
    [&runs(Phase::Collect, &["", ""]), pre, post].concat()
}

/// A policy that three runs can meet.
fn three() -> Policy {
    Policy { name: "three".to_owned(), runs: 3, ..plain() }
}

/// The default in plain conditions only.
fn plain() -> Policy {
    Policy { axes: BTreeSet::new(), ..Policy::benchmark() }
}

/// Name, `pre` runs, `post` runs, the verdict and a rule among its reasons.
type Case = (&'static str, [&'static str; 3], [&'static str; 3], Status, Rule);

#[test]
fn each_rule_decides_on_its_own() {
    let good = ["a=p,b=p"; 3];
    let bad = ["a=f,b=p"; 3];
    let cases: [Case; 12] = [
        ("clean", bad, good, Status::Admitted, Rule::EnoughCleanRuns),
        ("missing before", ["b=p"; 3], good, Status::Admitted, Rule::EnoughCleanRuns),
        ("skipped before", ["a=s,b=p"; 3], good, Status::Admitted, Rule::EnoughCleanRuns),
        (
            "passes before once",
            ["a=f,b=p", "a=p,b=p", "a=f,b=p"],
            good,
            Status::Rejected,
            Rule::NothingFailsBefore,
        ),
        ("F2P fails after", bad, ["a=f,b=p"; 3], Status::Rejected, Rule::FailToPassFailsAfter),
        ("F2P missing after", bad, ["b=p"; 3], Status::Rejected, Rule::FailToPassFailsAfter),
        ("F2P skipped after", bad, ["a=s,b=p"; 3], Status::Rejected, Rule::FailToPassFailsAfter),
        (
            "F2P flaky",
            bad,
            ["a=p,b=p", "a=f,b=p", "a=p,b=p"],
            Status::Rejected,
            Rule::FailToPassIsFlaky,
        ),
        ("P2P fails after", bad, ["a=p,b=e"; 3], Status::Rejected, Rule::PassToPassFailsAfter),
        ("P2P missing after", bad, ["a=p"; 3], Status::Rejected, Rule::PassToPassFailsAfter),
        // After a quarantine the clean runs start again: one is too few.
        (
            "P2P flaky",
            bad,
            ["a=p,b=p", "a=p,b=f", "a=p,b=p"],
            Status::Provisional,
            Rule::PassToPassIsFlaky,
        ),
        ("P2P xfails", ["a=f,b=x"; 3], ["a=p,b=x"; 3], Status::Admitted, Rule::EnoughCleanRuns),
    ];
    for (name, pre, post, status, rule) in cases {
        let verdict = judge(
            &lists(&["a"], &["b"]),
            &both(&runs(Phase::Pre, &pre), &runs(Phase::Post, &post)),
            &three(),
        );
        assert_eq!(verdict.status, status, "{name}: {verdict:?}");
        assert!(verdict.reasons.iter().any(|reason| reason.rule == rule), "{name}: {verdict:?}");
        let strongest = verdict.reasons[0].effect;
        assert_eq!(strongest == Effect::Rejects, status == Status::Rejected, "{name}");
        // What was not run is no reason for a rejection.
        let held = verdict.reasons.iter().any(|reason| reason.effect == Effect::HoldsBack);
        assert_eq!(held, status == Status::Provisional, "{name}");
    }
}

#[test]
fn outcomes_of_runs_count_as_evidence() {
    let cases: [(Phase, RunOutcome, Status, Option<Rule>); 9] = [
        (Phase::Post, RunOutcome::Timeout, Status::Rejected, Some(Rule::BrokenAfter)),
        (Phase::Post, RunOutcome::Oom, Status::Rejected, Some(Rule::BrokenAfter)),
        (Phase::Post, RunOutcome::DiskFull, Status::Rejected, Some(Rule::BrokenAfter)),
        (
            Phase::Post,
            RunOutcome::BuildFailed { how: "exit code 1".to_owned(), tail: String::new() },
            Status::Rejected,
            Some(Rule::BrokenAfter),
        ),
        (
            Phase::Post,
            RunOutcome::EnvError { reason: "no".to_owned() },
            Status::Rejected,
            Some(Rule::BrokenAfter),
        ),
        (
            Phase::Post,
            RunOutcome::ParserError { problems: Vec::new() },
            Status::Rejected,
            Some(Rule::BrokenAfter),
        ),
        (
            Phase::Pre,
            RunOutcome::PatchError {
                patch: PatchName::Test,
                file: Some("x".to_owned()),
                hunk: Some(2),
                message: "error".to_owned(),
            },
            Status::Rejected,
            Some(Rule::BrokenBefore),
        ),
        // An import error before the fix is what the fix is for.
        (Phase::Pre, RunOutcome::EnvError { reason: "import".to_owned() }, Status::Admitted, None),
        (
            Phase::Post,
            RunOutcome::InfraError { reason: "ours".to_owned() },
            Status::Provisional,
            Some(Rule::TooFewRuns),
        ),
    ];
    for (phase, outcome, status, rule) in cases {
        let mut pre = runs(Phase::Pre, &["a=f,b=p"; 3]);
        let mut post = runs(Phase::Post, &["a=p,b=p"; 3]);
        let broken = if phase == Phase::Pre { &mut pre[1] } else { &mut post[1] };
        broken.outcome = outcome.clone();
        broken.tests.clear();
        let mut records = both(&pre, &post);
        if outcome == RunOutcome::Timeout {
            // It counts once it was confirmed.
            let verdict = judge(&lists(&["a"], &["b"]), &records, &three());
            assert_eq!(verdict.status, Status::Provisional);
            assert!(verdict.reasons.iter().any(|one| one.rule == Rule::TimeoutIsUnconfirmed));
            records.push(RunRecord { alone: true, ..post[1].clone() });
        }
        let verdict = judge(&lists(&["a"], &["b"]), &records, &three());
        assert_eq!(verdict.status, status, "{outcome:?}: {verdict:?}");
        if let Some(rule) = rule {
            assert!(verdict.reasons.iter().any(|reason| reason.rule == rule), "{verdict:?}");
        }
    }
}

#[test]
fn three_runs_and_missing_limits_are_provisional() {
    let pre = runs(Phase::Pre, &["a=f"; 3]);
    let mut post = runs(Phase::Post, &["a=p"; 3]);
    let verdict = judge(&lists(&["a"], &[]), &both(&pre, &post), &plain());
    assert_eq!((verdict.status, verdict.runs), (Status::Provisional, 3));
    assert!((verdict.bound - 0.631_597).abs() < 1e-6, "{}", verdict.bound);
    assert!(
        verdict.summary().contains("0 of 3 runs failed, rate below 63.2 %"),
        "{}",
        verdict.summary()
    );
    assert!(verdict.warnings.contains(&Warning::FailToPassIsEverything));
    post[0].gaps = vec![Gap::MemoryLimit];
    let verdict = judge(&lists(&["a"], &[]), &both(&pre, &post), &three());
    assert_eq!(verdict.status, Status::Provisional);
    assert_eq!(verdict.reasons[0].rule, Rule::NoMemoryLimit);
    // 29 clean runs meet the default.
    let post = runs(Phase::Post, &["a=p"; 29]);
    let verdict = judge(&lists(&["a"], &[]), &both(&pre, &post), &plain());
    assert_eq!((verdict.status, verdict.failures), (Status::Admitted, 0));
    assert!(verdict.bound < 0.1);
    assert!((verdict.bound - upper_bound(29, 0, 0.95)).abs() < f64::EPSILON);
    let verdict = judge(&lists(&["a"], &[]), &[], &plain());
    assert_eq!((verdict.status, verdict.runs), (Status::Provisional, 0));
    assert_eq!(judge(&lists(&[], &["a"]), &both(&pre, &post), &three()).status, Status::Rejected);
}

#[test]
fn a_quarantine_starts_the_count_again() {
    let mut tests = vec!["a=p,b=p"; 2];
    tests.push("a=p,b=f");
    tests.extend(["a=p,b=p"; 3]);
    let (pre, post) = (runs(Phase::Pre, &["a=f,b=p"; 3]), runs(Phase::Post, &tests));
    let verdict = judge(&lists(&["a"], &["b"]), &both(&pre, &post), &three());
    assert_eq!(verdict.status, Status::AdmittedWithQuarantine);
    assert_eq!((verdict.runs, verdict.failures, verdict.quarantined), (3, 0, vec!["b".to_owned()]));
    let flaky = &verdict.unstable[0];
    assert_eq!(flaky.outcomes, BTreeMap::from([(Outcome::Passed, 5), (Outcome::Failed, 1)]));
    let strict = Policy { flaky: Remedy::Reject, ..three() };
    let verdict = judge(&lists(&["a"], &["b"]), &both(&pre, &post), &strict);
    assert_eq!((verdict.status, verdict.runs, verdict.failures), (Status::Rejected, 6, 1));
}

#[test]
fn cut_ids_are_expected_of_all_tests_that_they_stand_for() {
    let pre = runs(Phase::Pre, &["t::a[x y]=f,t::b[x y]=p,t::b[x z]=p"; 3]);
    let good = "t::a[x y]=p,t::b[x y]=p,t::b[x z]=p";
    let post = runs(Phase::Post, &[good; 3]);
    let expected = lists(&["t::a[x"], &["t::b[x"]);
    let verdict = judge(&expected, &both(&pre, &post), &three());
    assert_eq!(verdict.status, Status::Admitted, "{verdict:?}");
    let taken: Vec<_> =
        verdict.missing.iter().map(|one| (&*one.id, one.taken_for.as_deref())).collect();
    assert_eq!(
        taken,
        [
            ("t::a[x", Some("t::a[x y]")),
            ("t::b[x", Some("t::b[x y]")),
            ("t::b[x", Some("t::b[x z]")),
        ]
    );
    assert_eq!(verdict.comparison, Comparison::default());
    // One of them fails: so does the id that stands for it, once.
    for bad in ["t::a[x y]=p,t::b[x y]=p,t::b[x z]=f", "t::a[x y]=p,t::b[x y]=f,t::b[x z]=f"] {
        let verdict = judge(&expected, &both(&pre, &runs(Phase::Post, &[bad; 3])), &three());
        assert_eq!(verdict.status, Status::Rejected);
        assert_eq!(verdict.reasons[0].rule, Rule::PassToPassFailsAfter);
        assert_eq!(verdict.reasons[0].tests, ["t::b[x"]);
    }
    // Flaky in one of them: it is set aside, and the other one goes on.
    let flaky = runs(Phase::Post, &[good, "t::a[x y]=p,t::b[x y]=p,t::b[x z]=f", good, good, good]);
    let verdict = judge(&expected, &both(&pre, &flaky), &three());
    assert_eq!(verdict.status, Status::AdmittedWithQuarantine, "{verdict:?}");
    assert_eq!(verdict.quarantined, ["t::b[x"]);
    // What is expected under its own name is not what a cut id means.
    let mixed = lists(&["t::a[x"], &["t::b[x", "t::b[x y]"]);
    let verdict = judge(&mixed, &both(&pre, &post), &three());
    let missing = verdict.missing.iter().find(|one| one.id == "t::b[x").unwrap();
    assert_eq!((missing.taken_for.as_ref(), missing.near.len()), (None, 2));
}

#[test]
fn a_published_test_that_passes_before_is_reported_and_not_fatal() {
    let pre = runs(Phase::Pre, &["a=f,c=p"; 3]);
    let post = runs(Phase::Post, &["a=p,c=p"; 3]);
    let verdict = judge(&lists(&["a", "c"], &[]), &both(&pre, &post), &three());
    assert_eq!(verdict.status, Status::Admitted);
    assert!(verdict.warnings.contains(&Warning::PassesBefore { tests: vec!["c".to_owned()] }));
}

#[test]
fn what_is_set_aside_does_not_show_the_fault() {
    let pre = runs(Phase::Pre, &["a=p,b=f"; 3]);
    let post = runs(Phase::Post, &["a=p,b=p", "a=p,b=f", "a=p,b=p"]);
    let policy = Policy { flaky_fail_to_pass: Remedy::Quarantine, ..three() };
    let verdict = judge(&lists(&["a", "b"], &[]), &both(&pre, &post), &policy);
    let reason = &verdict.reasons[0];
    assert_eq!((verdict.status, reason.rule), (Status::Rejected, Rule::NothingFailsBefore));
    assert_eq!(reason.tests, ["a"]);
}

#[test]
fn replaying_records_gives_the_same_bytes() {
    let pre = runs(Phase::Pre, &["a=f,b=p"; 3]);
    let post = runs(Phase::Post, &["a=p,b=p", "a=p,b=f", "a=p,b=p"]);
    let expected = lists(&["a"], &["b"]);
    let first = canon::to_vec(&judge(&expected, &both(&pre, &post), &three())).unwrap();
    let shuffled: Vec<RunRecord> = [2, 0, 1].map(|at: usize| post[at].clone()).into();
    let replayed: Vec<RunRecord> = shuffled
        .iter()
        .map(|run| serde_json::from_slice(&canon::to_vec(run).unwrap()).unwrap())
        .collect();
    let again = judge(&lists(&["a", "a"], &["b"]), &both(&pre, &replayed), &three());
    assert_eq!(canon::to_vec(&again).unwrap(), first);
    let read: hallmark::verify::Verdict = serde_json::from_slice(&first).unwrap();
    assert_eq!(canon::to_vec(&read).unwrap(), first);
}

#[test]
fn a_duration_in_an_expected_id_is_seen_through() {
    let pre = runs(Phase::Pre, &["t::a=f,t::b=p"; 3]);
    let post = runs(Phase::Post, &["t::a=p,t::b=p"; 3]);
    let verdict = judge(&lists(&["t::a (0.12s)"], &["t::B"]), &both(&pre, &post), &three());
    assert_eq!(verdict.missing.len(), 2);
    assert_eq!((verdict.missing[0].taken_for.as_ref(), verdict.missing[0].near.len()), (None, 1));
    assert_eq!(verdict.missing[1].taken_for.as_deref(), Some("t::a"));
    assert_eq!(verdict.reasons[0].rule, Rule::PassToPassFailsAfter);
    assert!(verdict.reasons[0].text.contains("(1 missing): compare"));
    // Two expected ids are never taken for one test.
    let verdict = judge(&lists(&["t::a (0.12s)"], &["t::a (0.30s)"]), &both(&pre, &post), &three());
    assert_eq!(verdict.missing.iter().filter(|one| one.taken_for.is_some()).count(), 0);
}

#[test]
fn the_lists_of_the_dataset_are_compared() {
    let pre = runs(Phase::Pre, &["a=f,b=p,c=p,d=f,x=x,y=x"; 3]);
    let post = runs(Phase::Post, &["a=p,b=p,c=p,d=p,x=x,y=x"; 3]);
    let verdict = judge(&lists(&["a", "c"], &["b", "gone", "x"]), &both(&pre, &post), &three());
    let difference = |missing: &[&str], unexpected: &[&str]| {
        let owned = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        Difference { missing: owned(missing), unexpected: owned(unexpected) }
    };
    assert_eq!(verdict.comparison.fail_to_pass, difference(&["c"], &["d"]));
    assert_eq!(verdict.comparison.pass_to_pass, difference(&["gone"], &["c"]));
}

#[test]
fn each_outcome_says_what_to_do() {
    let gold = RunOutcome::PatchError {
        patch: PatchName::Gold,
        file: Some("a.py".to_owned()),
        hunk: Some(2),
        message: "error: patch failed".to_owned(),
    };
    let outcomes = [
        RunOutcome::Timeout,
        RunOutcome::Oom,
        RunOutcome::DiskFull,
        RunOutcome::OutputFull,
        RunOutcome::BuildFailed { how: "exit code 1".to_owned(), tail: "x".to_owned() },
        gold,
        RunOutcome::EnvError { reason: "no test was collected".to_owned() },
        RunOutcome::ParserError { problems: Vec::new() },
        RunOutcome::InfraError { reason: "x".to_owned() },
    ];
    let texts: BTreeSet<String> = outcomes.iter().map(RunOutcome::explain_with_advice).collect();
    assert_eq!(texts.len(), outcomes.len());
    for (text, outcome) in texts.iter().zip(&outcomes) {
        assert!(!text.contains('\n') && outcome.advice().is_some(), "{text}");
    }
    assert_eq!(RunOutcome::Completed.explain_with_advice(), "completed");
}

#[test]
fn a_new_verdict_tells_what_changed() {
    let pre = runs(Phase::Pre, &["a=f,b=p,c=p"; 3]);
    let clean = runs(Phase::Post, &["a=p,b=p,c=p"; 3]);
    let expected = lists(&["a"], &["b", "c"]);
    let old = judge(&expected, &both(&pre, &clean), &three());
    assert_eq!(old.changes(&old), Vec::<String>::new());
    let flaky = runs(
        Phase::Post,
        &["a=p,b=p,c=p", "a=p,b=f,c=p", "a=p,b=p,c=p", "a=p,b=p,c=p", "a=p,b=p,c=p"],
    );
    let new = judge(&expected, &both(&pre, &flaky), &three());
    let changes = new.changes(&old);
    assert!(changes[0].starts_with("was admitted, is admitted-with-quarantine: 1 PASS_TO_PASS"));
    assert_eq!(changes[1..], ["b is flaky", "b is set aside"]);
    assert_eq!(
        old.changes(&new)[1..],
        ["b was flaky, and failed in no run now", "b is no longer set aside"]
    );
    // All its causes are compared.
    let mut both_causes = new.clone();
    both_causes.unstable.push(UnstableTest { cause: Cause::UnstableId, ..new.unstable[0].clone() });
    assert_eq!(both_causes.changes(&new), ["b was flaky, is flaky, of an unstable id"]);
}

#[test]
fn records_of_the_first_version_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), &folder.path().join("scratch")).unwrap();
    let text = fs_err::read(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/verify/record-v1.json"),
    )
    .unwrap();
    let key: Digest = serde_json::from_slice::<serde_json::Value>(&text).unwrap()["key"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    fs_err::create_dir_all(store.run_path(&key)).unwrap();
    fs_err::write(store.run_path(&key).join("record.json"), &text).unwrap();
    let record = load(&store, &key).unwrap().unwrap();
    assert_eq!((record.version, record.profile.is_plain(), record.repeat), (1, true, 2));
    assert_eq!((record.series.as_str(), record.alone, record.ids.len()), ("", false, 0));
    assert_eq!(record.outcome_of("t.py::a"), Outcome::Passed);
    // Its key is that of its own time.
    assert_eq!(record_key(&record, &["make".to_owned()]).unwrap(), key);
    assert_ne!(record_key(&record, &[]).unwrap(), key);
}

#[test]
fn lists_are_derived_from_every_repeat() {
    let pre = runs(Phase::Pre, &["f=f,p=p,u=f,s=s,b=f,r=p,g=p,e=e,x=x"; 2]);
    let post = runs(
        Phase::Post,
        &["f=p,p=p,u=p,s=p,b=f,r=f,n=p,e=p,once=p,x=p", "f=p,p=p,u=f,s=p,b=f,r=f,n=p,e=p,x=p"],
    );
    let derived = derive_lists(&pre, &post).unwrap();
    assert_eq!(derived.lists, lists(&["e", "f", "n"], &["p"]));
    assert_eq!(derived.unstable, ["once", "u"]);
    assert_eq!(derived.fail_both, ["b"]);
    assert_eq!(derived.pass_to_fail, ["r"]);
    assert_eq!(derived.skipped, ["s", "x"]);
    assert_eq!(derived.gone, ["g"]);
}

#[test]
fn instances_without_fail_to_pass_are_refused_with_the_reason() {
    let same = runs(Phase::Pre, &["a=p,b=f"]);
    let error = derive_lists(&same, &runs(Phase::Post, &["a=p,b=f"])).unwrap_err();
    assert_eq!(error, DeriveError::NoFailToPass { passed: 1, failed: 1, skipped: 0, unstable: 0 });
    let mut broken = runs(Phase::Post, &["a=p"]);
    broken[0].outcome = RunOutcome::Timeout;
    assert!(matches!(
        derive_lists(&same, &broken),
        Err(DeriveError::Broken { phase: "after", .. })
    ));
    assert!(matches!(derive_lists(&[], &broken), Err(DeriveError::NoRuns { phase: "before" })));
    // Before the fix a run may break off.
    let mut pre = runs(Phase::Pre, &[""]);
    pre[0].outcome = RunOutcome::EnvError { reason: "import".to_owned() };
    let derived = derive_lists(&pre, &runs(Phase::Post, &["a=p"])).unwrap();
    assert_eq!(derived.lists, lists(&["a"], &[]));
    // What it did not reach for the time says nothing.
    let mut pre = runs(Phase::Pre, &["a=f"; 2]);
    pre[1].outcome = RunOutcome::Timeout;
    let post = runs(Phase::Post, &["a=p,b=p"]);
    let derived = derive_lists(&pre, &post).unwrap();
    assert_eq!((derived.lists, derived.unstable), (lists(&["a"], &[]), vec!["b".to_owned()]));
    pre[1].alone = true;
    assert_eq!(derive_lists(&pre, &post).unwrap().lists, lists(&["a", "b"], &[]));
}
