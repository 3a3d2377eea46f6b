//! A split of instances with every outcome, cause and oddity, made in code.

use std::collections::BTreeMap;

use hallmark::base::{Arch, Digest};
use hallmark::report::{Excerpt, Facts, LayerSize, Part, ReportInput, Stream, summarise};
use hallmark::runtime::Gap;
use hallmark::verify::{
    Cause, Clock, Comparison, Condition, Cost, Count, Cpu, Difference, Effect, ListName, Lists,
    LogRef, MissingTest, NearMiss, Nearness, NetworkTest, OrderCause, Phase, Policy, Profile,
    Reason, Remedy, Rule, RunRecord, Setting, Status, TestOrder, UnstableTest, Verdict, Warning,
    judge, upper_bound,
};
use serde_json::json;

/// What an attacker would like to see unescaped.
pub(crate) const HOSTILE: [&str; 7] = [
    "</script><script>document.title='owned'</script>",
    "\"><img src=x onerror=\"document.title='owned'\">",
    "' onmouseover='alert(1)' x='",
    "<!--",
    "t.py::a\u{202e}cba\u{2066}::\u{200b}b",
    "t.py::null\0bell\u{7}esc\u{1b}[31mred\nnew\r\ttab",
    "]]></style></title></textarea></svg><style>*{display:none}</style>",
];

/// One run. `tests` are ids with a letter: `p`, `f`, `e`, `s`, `x`, `X`.
pub(crate) fn run(
    instance: &str,
    phase: Phase,
    repeat: u32,
    profile: &Profile,
    tests: &[(String, char)],
) -> RunRecord {
    let nothing = json!({ "sha256": Digest::of(b""), "size": 0 });
    let result = |letter: &char, at: usize| {
        let outcome = match letter {
            'p' => "passed",
            'f' => "failed",
            'e' => "error",
            's' => "skipped",
            'x' => "xfailed",
            'X' => "xpassed",
            other => panic!("{other}"),
        };
        let seconds = f64::from(u32::try_from(at % 17).unwrap()) * 0.01;
        let reason = (*letter == 'f').then_some("AssertionError: assert {'b', 'a'} == ['a', 'b']");
        json!({ "outcome": outcome, "seconds": seconds, "reason": reason })
    };
    let tests: BTreeMap<&str, serde_json::Value> = tests
        .iter()
        .enumerate()
        .map(|(at, (id, letter))| (id.as_str(), result(letter, at)))
        .collect();
    let seed = f64::from(repeat % 7) * 0.037
        + f64::from(u32::try_from(profile.settings().len()).unwrap()) * 0.11;
    serde_json::from_value(json!({
        "version": 2,
        "key": Digest::of(format!("{instance} {phase:?} {repeat} {profile:?}")),
        "instance": instance,
        "phase": phase,
        "repeat": repeat,
        "profile": profile,
        "image": Digest::of("image"),
        "run-hash": Digest::of("run"),
        "runner": Digest::of("runner"),
        "patches": [],
        "layers": [],
        "command": ["python", "-m", "pytest"],
        "outcome": { "kind": "completed" },
        "status": { "exited": 0 },
        "session-ended": true,
        "collected": tests.len(),
        "tests": tests,
        "collection-errors": {},
        "collection-skips": {},
        "nonce": "",
        "stdout": nothing,
        "stderr": nothing,
        "report": nothing,
        "wall": 1.2 + seed,
        "cpu": 1.0 + seed,
        "peak-memory": 61_000_000 + 100_000 * u64::from(repeat),
        "oom-killed": false,
        "network-attempts": { "packets": 0, "lookups": 0 },
        "gaps": [],
        "slots": 2,
    }))
    .unwrap()
}

/// Ids of a suite like real ones.
pub(crate) fn suite(tests: usize) -> Vec<String> {
    (0..tests)
        .map(|number| {
            let (file, class) = (number / 40, number / 10 % 4);
            format!(
                "tests/unit/test_module_{file}.py::TestThing{class}::test_case_{number}[a-{}]",
                number % 10
            )
        })
        .collect()
}

/// The four combined runs of the ladder.
pub(crate) fn combined() -> Vec<Profile> {
    let zone = |zone: &str| Setting::Zone { zone: zone.to_owned() };
    let clock = |days| Setting::Clock { clock: Clock::Shifted { days } };
    let order = |order| Setting::Order { order };
    vec![
        Profile::of([
            order(TestOrder::ReversedFiles),
            Setting::HashSeed { seed: 1 },
            clock(400),
            zone("Asia/Kathmandu"),
            Setting::User { uid: 1000, gid: 1000 },
        ]),
        Profile::of([
            order(TestOrder::Shuffled { seed: 7 }),
            Setting::HashSeed { seed: 2 },
            Setting::Cpu { cpu: Cpu::OneCore },
            Setting::Network { ipv6: false },
        ]),
        Profile::of([
            order(TestOrder::Shuffled { seed: 8 }),
            clock(-3650),
            Setting::Locale { locale: "tr_TR.UTF-8".to_owned() },
            Setting::OpenFiles { limit: 64 },
        ]),
        Profile::of([
            Setting::HashSeed { seed: 3 },
            zone("America/St_Johns"),
            Setting::SharedMemory { bytes: 1 << 20 },
            Setting::HostName { name: "other".to_owned() },
            Setting::Load { copies: 4 },
        ]),
    ]
}

/// An instance and the runs of a ladder: `letter` says how a test went in a run (phase, number among those of its conditions, profile).
pub(crate) fn ladder(
    id: &str,
    tests: &[String],
    fail: usize,
    plain: u32,
    letter: &dyn Fn(usize, Phase, u32, &Profile) -> char,
) -> (Lists, Vec<RunRecord>) {
    let lists =
        Lists { fail_to_pass: tests[..fail].to_vec(), pass_to_pass: tests[fail..].to_vec() };
    let mut runs = Vec::new();
    let mut add = |phase, repeat, profile: &Profile| {
        let letters: Vec<(String, char)> = tests
            .iter()
            .enumerate()
            .map(|(at, id)| (id.clone(), letter(at, phase, repeat, profile)))
            .collect();
        runs.push(run(id, phase, repeat, profile, &letters));
    };
    for repeat in 0..3 {
        add(Phase::Pre, repeat, &Profile::plain());
    }
    for repeat in 0..plain {
        add(Phase::Post, repeat, &Profile::plain());
    }
    if plain > 3 {
        for profile in combined() {
            add(Phase::Post, 0, &profile);
        }
    }
    for repeat in 0..2 {
        let mut collection = run(id, Phase::Collect, repeat, &Profile::plain(), &[]);
        collection.ids = tests.to_vec();
        runs.push(collection);
    }
    (lists, runs)
}

fn layers(own: &str) -> Vec<LayerSize> {
    let layer = |part, name: String, size: u64| LayerSize {
        part,
        diff_id: Digest::of(name),
        size,
        compressed: Some(size / 3),
    };
    let base = [("base", 61_000_000), ("python", 38_400_000)];
    let mut layers: Vec<LayerSize> =
        base.map(|(name, size)| layer(Part::Base, name.to_owned(), size)).into();
    layers.extend(
        (0..18_u64)
            .map(|at| layer(Part::Environment, format!("wheel {at}"), 400_000 + at * at * 90_000)),
    );
    layers.push(layer(Part::Instance, format!("testbed {own}"), 4_200_000));
    layers
}

fn facts(id: &str, lists: Lists, verdict: Verdict) -> Facts {
    Facts {
        id: id.to_owned(),
        environment: "demo/package 1.0".to_owned(),
        lists,
        verdict,
        layers: layers(id),
        absent: Vec::new(),
    }
}

pub(crate) fn policy() -> Policy {
    Policy::benchmark()
}

fn strings(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

fn reason(effect: Effect, rule: Rule, text: &str, tests: &[String]) -> Reason {
    Reason { effect, rule, text: text.to_owned(), tests: tests.to_vec() }
}

fn unstable(
    id: &str,
    cause: Cause,
    remedy: Remedy,
    failures: u64,
    evidence: Vec<Digest>,
) -> UnstableTest {
    let plain = Count { runs: 29, failures, bound: upper_bound(29, failures, 0.95) };
    let outcomes =
        serde_json::from_value(json!({ "passed": 29 - failures, "failed": failures })).unwrap();
    UnstableTest {
        id: id.to_owned(),
        list: ListName::PassToPass,
        cause,
        remedy,
        plain,
        outcomes,
        evidence,
    }
}

/// A clean instance.
fn admitted() -> hallmark::report::InstanceReport {
    let tests = suite(240);
    let (lists, runs) =
        ladder("demo__stable-1.0", &tests, 3, 29, &|at, phase, _, _| match (at, phase) {
            (0..=2, Phase::Pre) => 'f',
            (9, _) => 'x',
            _ => 'p',
        });
    let verdict = Verdict {
        status: Status::Admitted,
        reasons: vec![reason(
            Effect::Admits,
            Rule::EnoughCleanRuns,
            "29 clean runs after the gold patch, as `benchmark` asks for",
            &[],
        )],
        runs: 29,
        failures: 0,
        bound: upper_bound(29, 0, 0.95),
        proposed_timeout: Some(5.1),
        cost: Cost { runs: 38, wall: 49.3 },
        unstable: Vec::new(),
        quarantined: Vec::new(),
        warnings: vec![Warning::PassesBefore { tests: tests[..1].to_vec() }],
        ..judge(&lists, &runs, &policy())
    };
    summarise(facts("demo__stable-1.0", lists, verdict), &runs, Vec::new())
}

/// Every cause.
fn quarantined() -> hallmark::report::InstanceReport {
    let id = "demo__causes-2.3";
    let tests = suite(120);
    let (lists, mut runs) = ladder(id, &tests, 2, 29, &|at, phase, repeat, profile| {
        let other = !profile.is_plain();
        match (at, phase) {
            (0 | 1, Phase::Pre) => 'f',
            (10, Phase::Post) if !other && repeat % 11 == 4 => 'f',
            (11 | 12, Phase::Post) if !other && repeat % 13 == 5 => 'e',
            (20, Phase::Post) if profile.get(hallmark::verify::Axis::HashSeed).is_some() => 'f',
            (21 | 22, Phase::Post) if profile.get(hallmark::verify::Axis::Order).is_some() => 'f',
            (23, Phase::Post) if profile.get(hallmark::verify::Axis::Clock).is_some() => 'f',
            (24, Phase::Post) if other => 's',
            _ => 'p',
        }
    });
    // Probes: a few tests alone.
    let only = |ids: &[usize]| {
        let tests = ids.iter().map(|at| tests[*at].clone()).collect();
        Profile::of([Setting::Order { order: TestOrder::Only { tests } }])
    };
    for (ids, letters) in
        [(vec![21], "p"), (vec![5, 21], "pf"), (vec![22], "f"), (vec![6, 22], "pp")]
    {
        let asked: Vec<(String, char)> =
            ids.iter().map(|at| tests[*at].clone()).zip(letters.chars()).collect();
        runs.push(run(id, Phase::Post, 0, &only(&ids), &asked));
    }
    let failed = |at: usize| -> Vec<Digest> {
        runs.iter()
            .filter(|run| run.phase == Phase::Post)
            .filter(|run| {
                run.tests.get(&tests[at]).is_some_and(|result| !result.outcome.satisfies())
            })
            .map(|run| run.key)
            .collect()
    };
    let order = |cause| Cause::Sensitive {
        settings: vec![Setting::Order { order: TestOrder::Shuffled { seed: 7 } }],
        order: Some(cause),
    };
    let clock = vec![Setting::Clock { clock: Clock::Shifted { days: 400 } }];
    let hash = vec![Setting::HashSeed { seed: 1 }];
    let quarantined =
        vec![tests[10].clone(), tests[11].clone(), tests[12].clone(), tests[23].clone()];
    let verdict = Verdict {
        status: Status::AdmittedWithQuarantine,
        reasons: vec![
            reason(
                Effect::Quarantines,
                Rule::PassToPassIsFlaky,
                "4 PASS_TO_PASS tests are set aside",
                &quarantined,
            ),
            reason(
                Effect::Admits,
                Rule::EnoughCleanRuns,
                "29 clean runs of the remaining tests",
                &[],
            ),
        ],
        runs: 29,
        failures: 0,
        bound: upper_bound(29, 0, 0.95),
        conditions: combined()
            .into_iter()
            .map(|profile| Condition {
                profile,
                runs: 1,
                failures: 1,
                unavailable: vec![Gap::CpuLimit],
            })
            .collect(),
        unstable: vec![
            unstable(&tests[10], Cause::Flaky, Remedy::Quarantine, 3, failed(10)),
            unstable(&tests[11], Cause::Flaky, Remedy::Quarantine, 2, failed(11)),
            unstable(&tests[12], Cause::Flaky, Remedy::Quarantine, 2, failed(12)),
            unstable(
                &tests[20],
                Cause::Sensitive { settings: hash.clone(), order: None },
                Remedy::Pin,
                0,
                failed(20),
            ),
            unstable(
                &tests[21],
                order(OrderCause::Polluter { tests: vec![tests[5].clone()] }),
                Remedy::Pin,
                0,
                failed(21),
            ),
            unstable(
                &tests[22],
                order(OrderCause::MissingSetter { tests: tests[2..9].to_vec() }),
                Remedy::Pin,
                0,
                failed(22),
            ),
            unstable(
                &tests[23],
                Cause::Sensitive { settings: clock, order: None },
                Remedy::Quarantine,
                0,
                failed(23),
            ),
            unstable(
                &tests[25],
                Cause::Needs { settings: vec![Setting::User { uid: 1000, gid: 1000 }] },
                Remedy::Pin,
                0,
                Vec::new(),
            ),
            unstable(
                &tests[24],
                Cause::NotIsolated { settings: combined()[3].settings().to_vec() },
                Remedy::Pin,
                0,
                failed(24),
            ),
            unstable(
                "tests/test_ids.py::test_object[<object at 0x7f00>]",
                Cause::UnstableId,
                Remedy::Pin,
                0,
                Vec::new(),
            ),
        ],
        quarantined,
        groups: vec![tests[11..13].to_vec(), tests[50..60].to_vec()],
        network: vec![
            NetworkTest { id: tests[30].clone(), packets: 12, lookups: 0 },
            NetworkTest { id: tests[31].clone(), packets: 0, lookups: 4 },
        ],
        cost: Cost { runs: 42, wall: 67.0 },
        proposed_timeout: Some(6.0),
        warnings: vec![
            Warning::Network { runs: 29 },
            Warning::Skipped { tests: tests[60..70].to_vec() },
        ],
        ..judge(&lists, &runs, &policy())
    };
    let log = LogRef { sha256: Digest::of("log"), size: 48_211 };
    let lines = "tests/unit/test_module_0.py ..........F.....  [100%]\n\n=== FAILURES ===\n__ TestThing1.test_case_10[a-0] __\n\n    def test_case_10(self):\n>       assert set_of(x) == ['a', 'b']\nE       AssertionError: assert {'b', 'a'} == ['a', 'b']\n\ntests/unit/test_module_0.py:118: AssertionError\n=== 1 failed, 119 passed in 1.31s ===";
    let excerpt = |run, stream, text: Result<&str, &str>| Excerpt {
        run,
        stream,
        log,
        text: text.map(str::to_owned).map_err(str::to_owned),
        cut: true,
    };
    let excerpts = vec![
        excerpt(10, Stream::Stdout, Ok(lines)),
        excerpt(10, Stream::Stderr, Ok("DeprecationWarning: datetime.utcnow() is deprecated")),
        excerpt(11, Stream::Stdout, Err("the log is not in this store")),
    ];
    summarise(facts(id, lists, verdict), &runs, excerpts)
}

/// Every way in which a run ends, missing ids and a comparison.
fn rejected() -> hallmark::report::InstanceReport {
    let id = "demo__broken-0.9";
    let tests = suite(60);
    let (mut lists, mut runs) = ladder(id, &tests, 4, 9, &|at, phase, _, _| match (at, phase) {
        (0..=3, Phase::Pre) | (1 | 2, Phase::Post) => 'f',
        (30..=39, _) => 's',
        _ => 'p',
    });
    lists.fail_to_pass.push("tests/test_x.py::test_clipped[a".to_owned());
    lists.pass_to_pass.push("tests/test_x.py::test_gone".to_owned());
    let outcomes = [
        json!({ "kind": "timeout" }),
        json!({ "kind": "oom" }),
        json!({ "kind": "disk-full" }),
        json!({ "kind": "build-failed", "how": "exit code 1", "tail": "error: command 'gcc' failed\n" }),
        json!({ "kind": "patch-error", "patch": "gold", "file": "lib.py", "hunk": 2, "message": "error: patch failed: lib.py:50" }),
        json!({ "kind": "env-error", "reason": "no test was collected" }),
        json!({ "kind": "parser-error", "problems": [{ "kind": "exit-status", "failures": 3 }] }),
        json!({ "kind": "infra-error", "reason": "the launcher died" }),
    ];
    let after = runs.iter_mut().filter(|run| run.phase == Phase::Post && run.profile.is_plain());
    for (run, outcome) in after.skip(1).zip(outcomes) {
        run.outcome = serde_json::from_value(outcome).unwrap();
        if !matches!(run.outcome.as_str(), "timeout" | "parser-error") {
            run.tests.clear();
        } else if run.outcome.as_str() == "timeout" {
            while run.tests.len() > 20 {
                run.tests.pop_last();
            }
            run.wall = 61.0;
        }
    }
    let near = |how, id: &str| NearMiss { how, id: id.to_owned() };
    let verdict = Verdict {
        status: Status::Rejected,
        reasons: vec![
            reason(
                Effect::Rejects,
                Rule::FailToPassFailsAfter,
                "2 FAIL_TO_PASS tests fail after the gold patch in every run",
                &tests[1..3],
            ),
            reason(
                Effect::Rejects,
                Rule::BrokenAfter,
                "7 runs after the gold patch did not complete",
                &[],
            ),
            reason(Effect::HoldsBack, Rule::TooFewRuns, "9 of 29 runs", &[]),
        ],
        runs: 9,
        failures: 9,
        bound: 1.0,
        unstable: Vec::new(),
        groups: Vec::new(),
        quarantined: Vec::new(),
        cost: Cost { runs: 18, wall: 161.0 },
        missing: vec![
            MissingTest {
                id: "tests/test_x.py::test_clipped[a".to_owned(),
                taken_for: None,
                near: vec![
                    near(Nearness::Clipped, "tests/test_x.py::test_clipped[a b]"),
                    near(Nearness::Clipped, "tests/test_x.py::test_clipped[a c]"),
                ],
            },
            MissingTest {
                id: "tests/test_x.py::test_gone".to_owned(),
                taken_for: None,
                near: Vec::new(),
            },
        ],
        comparison: Comparison {
            fail_to_pass: Difference {
                missing: strings(&["tests/test_x.py::test_clipped[a"]),
                unexpected: tests[3..4].to_vec(),
            },
            pass_to_pass: Difference {
                missing: strings(&["tests/test_x.py::test_gone"]),
                unexpected: tests[40..60].to_vec(),
            },
        },
        warnings: vec![Warning::InfraErrors { runs: 1 }],
        ..judge(&lists, &runs, &policy())
    };
    summarise(facts(id, lists, verdict), &runs, Vec::new())
}

/// Three runs on a host that lacks much, most of whose records are elsewhere.
fn provisional() -> hallmark::report::InstanceReport {
    let id = "demo__early-0.1";
    let tests = suite(12);
    let (lists, mut runs) =
        ladder(id, &tests, 12, 3, &|_, phase, _, _| if phase == Phase::Pre { 'f' } else { 'p' });
    for run in &mut runs {
        run.gaps = vec![Gap::MemoryLimit, Gap::BlackHole];
        run.cpu = None;
        run.peak_memory = None;
        run.network_attempts = None;
    }
    // One that was confirmed alone, and one of a second verification.
    let letters: Vec<(String, char)> = tests.iter().map(|id| (id.clone(), 'p')).collect();
    for (repeat, alone, series) in [(0, true, ""), (0, false, "2030-01")] {
        let mut again = run(id, Phase::Post, repeat, &Profile::plain(), &letters);
        again.alone = alone;
        series.clone_into(&mut again.series);
        again.key = Digest::of(format!("{alone} {series}"));
        runs.push(again);
    }
    let verdict = Verdict {
        status: Status::Provisional,
        warnings: vec![Warning::FailToPassIsEverything],
        ..judge(&lists, &runs, &policy())
    };
    let mut facts = facts(id, lists, verdict);
    facts.absent =
        (0..4).map(|at| (Digest::of([at]), "its record is not in this store".to_owned())).collect();
    summarise(facts, &runs, Vec::new())
}

/// Names, ids, reasons and logs that want out.
fn hostile() -> hallmark::report::InstanceReport {
    let long = "€<&\"".repeat(260_000);
    let mut tests: Vec<String> = HOSTILE.map(|id| format!("tests/t.py::{id}")).into();
    tests.push(format!("tests/t.py::{long}"));
    let id = "evil__\"><script>document.title='owned'</script>\u{202e}1";
    let (lists, mut runs) = ladder(id, &tests, 2, 5, &|at, phase, repeat, _| {
        if phase == Phase::Pre || (at == 3 && repeat == 2) { 'f' } else { 'p' }
    });
    for run in &mut runs {
        for (at, result) in run.tests.values_mut().enumerate() {
            result.reason = Some(HOSTILE[at % HOSTILE.len()].to_owned());
        }
    }
    let key = runs.iter().find(|run| run.phase == Phase::Post && run.repeat == 2).unwrap().key;
    let settings = vec![
        Setting::Zone { zone: HOSTILE[0].to_owned() },
        Setting::HostName { name: HOSTILE[4].to_owned() },
    ];
    let verdict = Verdict {
        status: Status::Rejected,
        reasons: vec![reason(Effect::Rejects, Rule::FailToPassIsFlaky, HOSTILE[1], &tests)],
        unstable: vec![
            unstable(
                &tests[3],
                Cause::Sensitive {
                    settings,
                    order: Some(OrderCause::Polluter { tests: tests.clone() }),
                },
                Remedy::Reject,
                1,
                vec![key],
            ),
            unstable(&tests[7], Cause::Flaky, Remedy::Reject, 1, vec![key]),
        ],
        groups: vec![tests.clone()],
        quarantined: tests.clone(),
        network: vec![NetworkTest { id: HOSTILE[2].to_owned(), packets: u64::MAX, lookups: 1 }],
        missing: vec![MissingTest {
            id: HOSTILE[3].to_owned(),
            taken_for: Some(HOSTILE[4].to_owned()),
            near: vec![NearMiss { how: Nearness::Whitespace, id: HOSTILE[5].to_owned() }],
        }],
        comparison: Comparison {
            fail_to_pass: Difference { missing: tests.clone(), unexpected: tests.clone() },
            pass_to_pass: Difference::default(),
        },
        warnings: vec![
            Warning::Skipped { tests: tests.clone() },
            Warning::NotCollected { reason: HOSTILE[1].to_owned() },
        ],
        ..judge(&lists, &runs, &policy())
    };
    let mut facts = facts(id, lists, verdict);
    facts.environment = HOSTILE[6].to_owned();
    facts.absent = vec![(key, HOSTILE[0].to_owned())];
    let excerpts = HOSTILE
        .iter()
        .map(|text| Excerpt {
            run: 6,
            stream: Stream::Stdout,
            log: LogRef { sha256: Digest::of(text), size: text.len() as u64 },
            text: Ok((*text).to_owned()),
            cut: false,
        })
        .collect();
    summarise(facts, &runs, excerpts)
}

fn split(name: &str, instances: Vec<hallmark::report::InstanceReport>) -> ReportInput {
    ReportInput {
        split: name.to_owned(),
        platform: Arch::Amd64,
        hallmark: "0.1.0".to_owned(),
        digests: None,
        policy: policy(),
        slots: 2,
        gaps: vec![Gap::CpuLimit],
        instances,
    }
}

/// All but the hostile one.
pub(crate) fn sample() -> ReportInput {
    split("demo", vec![rejected(), quarantined(), provisional(), admitted()])
}

/// The hostile one, in a split whose name is no better.
pub(crate) fn hostile_sample() -> ReportInput {
    split(HOSTILE[0], vec![hostile(), admitted()])
}

/// One instance whose tests all go their own ways, as under a broken machine: no two rows are the same.
pub(crate) fn chaos(tests: usize) -> ReportInput {
    let ids = suite(tests);
    let (lists, runs) = ladder("owner__chaos", &ids, 4, 29, &|at, phase, repeat, profile| {
        // The bits of a number mixed from all of them (splitmix64).
        let mut mixed = at as u64 * 1000
            + u64::from(repeat) * 10
            + profile.settings().len() as u64
            + phase as u64;
        for (shift, factor) in [(30, 0xbf58_476d_1ce4_e5b9), (27, 0x94d0_49bb_1331_11eb)] {
            mixed = (mixed ^ (mixed >> shift)).wrapping_mul(factor);
        }
        if (mixed >> 31).is_multiple_of(2) { 'p' } else { 'f' }
    });
    let verdict = judge(&lists, &runs, &policy());
    split("chaos", vec![summarise(facts("owner__chaos", lists, verdict), &runs, Vec::new())])
}

/// A split of so many instances, runs and tests, every third with flaky tests.
pub(crate) fn large(instances: usize, plain: u32, tests: usize) -> ReportInput {
    let ids = suite(tests);
    // Two are made of records; the others are these under other names: making them all takes minutes.
    let models = [true, false].map(|unlucky| {
        let (lists, runs) =
            ladder("owner__package", &ids, 4, plain, &|at, phase, repeat, profile| {
                let fails = unlucky && at % 250 == 7 && repeat as usize % 9 == at % 9;
                match phase {
                    Phase::Pre if at < 4 => 'f',
                    Phase::Post if fails && profile.is_plain() => 'f',
                    _ => 'p',
                }
            });
        let verdict = judge(&lists, &runs, &policy());
        summarise(facts("owner__package", lists, verdict), &runs, Vec::new())
    });
    let reports = (0..instances)
        .map(|number| {
            let mut report = models[usize::from(number % 3 > 0)].clone();
            report.facts.id = format!("owner__package-{number}");
            report.facts.layers = layers(&report.facts.id);
            let telling: Vec<usize> = (1..)
                .zip(&report.runs)
                .filter(|(_, run)| run.is_telling())
                .map(|(run, _)| run)
                .take(3)
                .collect();
            // What is left of each log in a split of this size.
            let line = format!("{number} a line of a log with some words\n");
            let text = line.repeat(2_000_000 / instances / 2 / line.len());
            report.excerpts = telling
                .into_iter()
                .map(|run| Excerpt {
                    run,
                    stream: Stream::Stdout,
                    log: LogRef { sha256: Digest::of(&line), size: 9999 },
                    text: Ok(text.clone()),
                    cut: true,
                })
                .collect();
            report
        })
        .collect();
    split("large", reports)
}
