//! The whole corpus by the preset `benchmark`: hours of runs, so these are asked for by name (docs/testing.md).

use std::fmt::Write as _;

use super::causes::{compared, instance, line};
use super::compare::unstable;
use super::corpus::{RANDOM, Random, Tree, expected, stable_files};
use super::land::{Instance, Land};

/// Seeds of each random kind.
const SEEDS: u32 = 40;
/// Plain runs of the preset `benchmark`.
const RUNS: i32 = 29;
/// How unlikely a result must be under the promise to count against it.
const SIGNIFICANCE: f64 = 0.001;

#[test]
#[ignore = "takes long: see docs/testing.md"]
fn long_each_kind_in_an_instance_of_its_own() {
    let Some(land) = Land::new() else { return };
    let all = stable_files();
    let parts: Vec<_> =
        expected().keys().map(|kind| instance(&land, kind, &[kind.as_str()], &all[..3])).collect();
    let instances: Vec<Instance> = parts.iter().map(|(instance, _)| instance.clone()).collect();
    land.settle(&instances, "");
    let wrong = compared(&land, &parts);
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
#[ignore = "takes long: see docs/testing.md"]
fn long_two_hundred_stable_tests_are_not_accused() {
    let Some(land) = Land::new() else { return };
    let all = stable_files();
    let mut parts = vec![instance(&land, "all", &[], &all)];
    parts.extend(all.iter().map(|file| {
        let name = file.trim_end_matches(".py").replace('_', "-");
        instance(&land, &name, &[], &[file])
    }));
    let instances: Vec<Instance> = parts.iter().map(|(instance, _)| instance.clone()).collect();
    land.settle(&instances, "");
    let (verdicts, said) = land.verify(&["--policy", "benchmark"]);
    let mut wrong = String::new();
    for instance in &instances {
        let verdict = &verdicts.get(&instance.name).unwrap_or_else(|| panic!("{said}"));
        crate::support::say(&line(&instance.name, verdict));
        for (id, found) in unstable(verdict) {
            writeln!(wrong, "{}: {id}: {}", instance.name, found["cause"]).unwrap();
        }
        let runs = verdict["cost"]["runs"].as_u64().unwrap();
        if verdict["status"] != "admitted" || runs > 29 + 11 {
            writeln!(wrong, "{}", line(&instance.name, verdict)).unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// How often a verdict must find this kind: the chance that one of its plain runs fails.
#[expect(clippy::cast_lossless, reason = "numbers of runs are small")]
fn promised(kind: Random) -> f64 {
    let rate = match kind.name {
        "coin-5" => 0.05,
        "coin-10" => 0.1,
        "coin-30" => 0.3,
        // As their files compute it.
        "port-clash" => 1.0 - 31.0 / 32.0 * 30.0 / 32.0,
        "thread-race" => 39.0 / 256.0,
        // Fails whenever it has half a core: the combined runs that take half away must show it.
        "slow-cpu" => return 0.95,
        other => panic!("{other}"),
    };
    1.0 - (1.0_f64 - rate).powf(RUNS as f64)
}

/// The chance of at most `found` of `SEEDS` at this rate.
fn at_most(found: u32, rate: f64) -> f64 {
    let mut sum = 0.0;
    let mut term = (1.0 - rate).powf(f64::from(SEEDS));
    for hits in 0..=found {
        sum += term;
        term *= f64::from(SEEDS - hits) / f64::from(hits + 1) * rate / (1.0 - rate);
    }
    sum
}

#[test]
fn the_binomial_tail_is_right() {
    assert!((at_most(40, 0.95) - 1.0).abs() < 1e-9);
    assert!((at_most(0, 0.05) - 0.128_512_156_565_103).abs() < 1e-12);
    // Computed with whole numbers elsewhere.
    assert!((at_most(21, 0.774) - 0.000_459_159_424_98).abs() < 1e-12);
    assert!((at_most(22, 0.774) - 0.001_415_891_854_56).abs() < 1e-12);
}

#[test]
#[ignore = "takes long: see docs/testing.md"]
fn long_random_kinds_are_found_as_often_as_promised() {
    let Some(land) = Land::new() else { return };
    let name = |kind: Random, seed: u32| format!("{}-{seed}", kind.name);
    let instances: Vec<Instance> = RANDOM
        .into_iter()
        .flat_map(|kind| (0..SEEDS).map(move |seed| (kind, seed)))
        .map(|(kind, seed)| {
            let tree = Tree::land().with_stable(&["test_ledgers.py"]).with_random(kind, seed);
            Instance::new(name(kind, seed), tree)
        })
        .collect();
    land.settle(&instances, "");
    let (verdicts, said) = land.verify(&["--policy", "benchmark"]);
    let mut wrong = String::new();
    for kind in RANDOM {
        let (mut found, mut runs) = (0, 0);
        for seed in 0..SEEDS {
            let verdict = verdicts.get(&name(kind, seed)).unwrap_or_else(|| panic!("{said}"));
            runs += verdict["cost"]["runs"].as_u64().unwrap();
            for (id, accused) in unstable(verdict) {
                if id == kind.id(seed) {
                    found += 1;
                } else {
                    writeln!(wrong, "{}: {id}: {}", name(kind, seed), accused["cause"]).unwrap();
                }
            }
        }
        let (rate, chance) = (promised(kind), at_most(found, promised(kind)));
        let line = format!(
            "{}: {found} of {SEEDS} found, {:.1} promised (p = {chance:.3}), {} runs each",
            kind.name,
            rate * f64::from(SEEDS),
            runs / u64::from(SEEDS)
        );
        crate::support::say(&line);
        if chance < SIGNIFICANCE {
            writeln!(wrong, "{line}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
