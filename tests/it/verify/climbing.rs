//! The ladder from its first rung to the verdict, over instances that exist as a rule only.

use hallmark::base::canon;
use hallmark::results::Outcome;
use hallmark::verify::{
    Axis, Cause, Clock, OrderCause, PatchName, Phase, Policy, Profile, Remedy, Rule, RunOutcome,
    RunRecord, RunRequest, Setting, Status, Verdict, Warning, combined_runs, wanted,
};

use super::world::{World, passed_if, time_out};

fn rules(verdict: &Verdict) -> Vec<Rule> {
    verdict.reasons.iter().map(|reason| reason.rule).collect()
}

fn cause<'a>(verdict: &'a Verdict, id: &str) -> &'a Cause {
    let mut found = verdict.unstable.iter().filter(|test| test.id == id);
    let first = found.next().unwrap_or_else(|| panic!("{id} is not unstable: {verdict:#?}"));
    assert_eq!(found.next(), None, "{id}");
    &first.cause
}

/// The axes of a sensitive test.
fn axes(verdict: &Verdict, id: &str) -> Vec<Axis> {
    match cause(verdict, id) {
        Cause::Sensitive { settings, .. } => settings.iter().map(Setting::axis).collect(),
        other => panic!("{id}: {other:?}"),
    }
}

#[test]
fn a_stable_instance_costs_what_its_policy_says() {
    for (policy, runs, status) in [
        (Policy::benchmark(), [2, 3, 29, 4], Status::Admitted),
        (Policy::training(), [2, 3, 14, 4], Status::Admitted),
        (Policy::release(), [2, 3, 59, 4], Status::Admitted),
        (Policy::quick(), [2, 3, 3, 4], Status::Provisional),
    ] {
        let mut world = World::new(5);
        let verdict = world.climb(&policy);
        assert_eq!((world.cost(), verdict.status), (runs, status), "{}", policy.name);
        assert_eq!((verdict.unstable.len(), verdict.failures), (0, 0));
        assert_eq!(usize::try_from(verdict.cost.runs), Ok(world.records.len()));
        assert_eq!(verdict.conditions.len(), 4);
        assert_eq!(verdict.proposed_timeout, Some(3.0));
    }
}

#[test]
fn rungs_come_one_after_the_other() {
    let policy = Policy::benchmark();
    let mut world = World::new(2);
    let lists = world.lists();
    let mut rungs = Vec::new();
    loop {
        let requests = wanted(&policy, &lists, &world.records);
        if requests.is_empty() {
            break;
        }
        rungs.push(requests.len());
        for request in requests {
            world.records.push(world.run(&request));
        }
    }
    assert_eq!(rungs, [2, 6, 4, 26]);
    let seeds: Vec<String> = world.records[..2].iter().map(|run| run.profile.to_string()).collect();
    assert_eq!(seeds, ["plain", "hash seed 1"]);
}

#[test]
fn each_axis_is_found_and_pinned_or_set_aside() {
    let mut total = 0;
    for axis in Axis::ALL {
        let id = "t/c.py::minds";
        let mut world = World::new(20).sensitive(id, move |profile| profile.get(axis).is_some());
        let verdict = world.climb(&Policy::benchmark());
        // The order axis has runs of its own, which leave tests out.
        if axis != Axis::Order {
            assert_eq!(axes(&verdict, id), [axis]);
        }
        let aside = [Axis::Clock, Axis::Cpu, Axis::Load, Axis::DirectoryOrder].contains(&axis);
        let (status, rule) = if aside {
            (Status::AdmittedWithQuarantine, Rule::PassToPassIsSensitive)
        } else {
            (Status::Admitted, Rule::EnoughCleanRuns)
        };
        assert_eq!((verdict.status, rules(&verdict)[0]), (status, rule), "{axis}: {verdict:#?}");
        assert!(rules(&verdict).contains(&Rule::PassToPassIsSensitive));
        let [_, _, plain, others] = world.cost();
        assert_eq!(plain, 29, "{axis}");
        assert!(others <= 10, "{axis}: {others}");
        total += others - 4;
    }
    assert!(total <= 14 * 3, "{total}");
}

#[test]
fn many_axes_in_one_instance_share_their_runs() {
    let mut world = World::new(200);
    for axis in Axis::ALL.into_iter().filter(|axis| *axis != Axis::Order) {
        for number in 0..2 {
            world = world.sensitive(&format!("t/c.py::{axis}{number}"), move |profile| {
                profile.get(axis).is_some()
            });
        }
    }
    let verdict = world.climb(&Policy::benchmark());
    for axis in Axis::ALL.into_iter().filter(|axis| *axis != Axis::Order) {
        for number in 0..2 {
            assert_eq!(axes(&verdict, &format!("t/c.py::{axis}{number}")), [axis]);
        }
        let group = [format!("t/c.py::{axis}0"), format!("t/c.py::{axis}1")];
        assert!(verdict.groups.contains(&group.to_vec()), "{axis}: {:?}", verdict.groups);
    }
    assert_eq!(verdict.status, Status::AdmittedWithQuarantine);
    assert!(world.cost()[3] <= 4 + 24, "{:?}", world.cost());
}

#[test]
fn a_summer_time_edge_needs_clock_and_zone() {
    let id = "t/c.py::edge";
    let edge = |profile: &Profile| {
        let clock = profile.get(Axis::Clock);
        matches!(clock, Some(Setting::Clock { clock: Clock::At { .. } }))
            && profile.get(Axis::Zone).is_some()
    };
    let mut world = World::new(20).sensitive(id, edge);
    let verdict = world.climb(&Policy::benchmark());
    assert_eq!(axes(&verdict, id), [Axis::Clock, Axis::Zone]);
    assert!(world.cost()[3] <= 4 + 9, "{:?}", world.cost());
}

#[test]
fn polluters_and_setters_are_named() {
    let after = |id: &'static str| move |before: &[String]| before.iter().any(|one| one == id);
    let (polluter, setter) = ("t/p.py::pollutes", "t/a.py::sets");
    let mut world = World::new(0).with(setter, |_, _| Outcome::Passed);
    for number in 0..60 {
        world = world.with(&format!("t/m.py::stable{number}"), |_, _| Outcome::Passed);
    }
    let mut world = world
        .with("t/n.py::victim0", move |_, before| passed_if(!after(polluter)(before)))
        .with("t/n.py::victim1", move |_, before| passed_if(!after(polluter)(before)))
        .with("t/n.py::needs0", move |_, before| passed_if(after(setter)(before)))
        .with("t/n.py::needs1", move |_, before| passed_if(after(setter)(before)))
        .with(polluter, |_, _| Outcome::Passed);
    let verdict = world.climb(&Policy::benchmark());
    for number in 0..2 {
        let Cause::Sensitive { settings, order: Some(order) } =
            cause(&verdict, &format!("t/n.py::victim{number}"))
        else {
            panic!("{verdict:#?}")
        };
        assert_eq!(settings.len(), 1);
        assert_eq!(*order, OrderCause::Polluter { tests: vec![polluter.to_owned()] });
        let Cause::Sensitive { order: Some(order), .. } =
            cause(&verdict, &format!("t/n.py::needs{number}"))
        else {
            panic!("{verdict:#?}")
        };
        assert_eq!(*order, OrderCause::MissingSetter { tests: vec![setter.to_owned()] });
    }
    // Order is pinned: hallmark runs tests as collected.
    assert_eq!(verdict.status, Status::Admitted);
    assert!(world.cost()[3] <= 50, "{:?}", world.cost());
}

#[test]
fn what_fails_as_root_and_passes_as_a_user_is_told() {
    let id = "t/c.py::as_user";
    let mut world = World::new(20).sensitive(id, |profile| profile.get(Axis::User).is_none());
    let verdict = world.climb(&Policy::benchmark());
    let Cause::Needs { settings } = cause(&verdict, id) else { panic!("{verdict:#?}") };
    assert_eq!(settings.iter().map(Setting::axis).collect::<Vec<_>>(), [Axis::User]);
    assert_eq!(verdict.status, Status::Rejected);
    assert_eq!(rules(&verdict)[0], Rule::PassToPassIsSensitive);
    // One that fails everywhere costs the combined runs and no more.
    let mut world = World::new(20).sensitive(id, |_| true);
    let verdict = world.climb(&Policy::benchmark());
    assert_eq!((verdict.status, world.cost()), (Status::Rejected, [2, 3, 3, 4]));
    assert_eq!(rules(&verdict)[0], Rule::PassToPassFailsAfter);
}

#[test]
fn a_condition_that_breaks_everything_hides_nothing() {
    let id = "t/c.py::dir";
    let mut world = World::new(20)
        .sensitive(id, |profile| {
            matches!(
                profile.get(Axis::DirectoryOrder),
                Some(Setting::DirectoryOrder { descending: false })
            )
        })
        .changed(|request, record| {
            if request.phase == Phase::Post && request.profile.get(Axis::User).is_some() {
                record.outcome = RunOutcome::EnvError { reason: "no home".to_owned() };
                record.tests.clear();
            }
        });
    let verdict = world.climb(&Policy { max_quarantined: 1.0, ..Policy::benchmark() });
    assert_eq!(axes(&verdict, "t/b.py::stable00"), [Axis::User]);
    let causes: Vec<&Cause> =
        verdict.unstable.iter().filter(|test| test.id == id).map(|test| &test.cause).collect();
    assert_eq!(causes.len(), 2, "{causes:#?}");
    assert_eq!(verdict.quarantined, [id]);
}

#[test]
fn a_failure_that_does_not_come_again_is_flaky() {
    let first = combined_runs(&Axis::ALL.into()).remove(0);
    let id = "t/c.py::once";
    let again = first.clone();
    let mut world =
        World::new(20).with(id, move |run, _| passed_if(run.profile != first || run.repeat > 0));
    let verdict = world.climb(&Policy::benchmark());
    assert_eq!(*cause(&verdict, id), Cause::Flaky);
    assert_eq!((verdict.status, world.cost()), (Status::AdmittedWithQuarantine, [2, 3, 29, 5]));
    let key = world.records.iter().find(|run| run.profile == again).unwrap().key;
    assert_eq!(verdict.unstable[0].evidence, [key]);
    assert_eq!((verdict.runs, verdict.failures), (29, 0));
}

#[test]
fn a_plain_failure_sets_aside_once_and_starts_again() {
    let id = "t/c.py::coin";
    // It goes on failing after it was set aside, which must not start the count again.
    let mut world = World::new(20).with(id, |run, _| {
        passed_if(run.phase == Phase::Pre || !run.profile.is_plain() || run.repeat % 7 != 6)
    });
    let verdict = world.climb(&Policy::benchmark());
    assert_eq!(*cause(&verdict, id), Cause::Flaky);
    assert_eq!(verdict.status, Status::AdmittedWithQuarantine);
    assert_eq!((verdict.runs, verdict.failures, world.cost()[2]), (29, 0, 7 + 29));
    assert_eq!(verdict.quarantined, [id]);
    // A policy that refuses flaky tests ends at the first failure.
    world.records.clear();
    let verdict = world.climb(&Policy { flaky: Remedy::Reject, ..Policy::benchmark() });
    assert_eq!((verdict.status, world.cost()), (Status::Rejected, [2, 3, 7, 4]));
    // A FAIL_TO_PASS test is never set aside by default.
    let mut world = World::new(2);
    world.tests[0].1 = Box::new(|run, _| passed_if(run.phase == Phase::Post && run.repeat != 9));
    let verdict = world.climb(&Policy::benchmark());
    assert_eq!((verdict.status, world.cost()[2]), (Status::Rejected, 10));
    assert_eq!(rules(&verdict)[0], Rule::FailToPassIsFlaky);
}

#[test]
fn too_many_flaky_tests_reject() {
    let mut world = World::new(17);
    for number in 0..3 {
        world = world.with(&format!("t/c.py::coin{number}"), move |run, _| {
            passed_if(
                run.phase == Phase::Pre || !run.profile.is_plain() || run.repeat != 5 + number,
            )
        });
    }
    let verdict = world.climb(&Policy::benchmark());
    assert_eq!(verdict.status, Status::Rejected);
    assert_eq!(rules(&verdict)[0], Rule::TooManyQuarantined);
    assert_eq!(world.cost()[2], 8);
}

#[test]
fn no_more_runs_than_the_verdict_needs() {
    let broken = |outcome: RunOutcome, of: fn(&RunRequest) -> bool| {
        World::new(3).changed(move |request, record| {
            if of(request) {
                record.outcome = outcome.clone();
                record.tests.clear();
                record.ids.clear();
            }
        })
    };
    let patch = RunOutcome::PatchError {
        patch: PatchName::Gold,
        file: Some("a.py".to_owned()),
        hunk: Some(2),
        message: "error: patch failed".to_owned(),
    };
    let gold = |request: &RunRequest| request.phase != Phase::Pre;
    let policy = Policy::benchmark();
    let mut world = broken(patch, gold);
    let verdict = world.climb(&policy);
    assert_eq!((verdict.status, world.cost()), (Status::Rejected, [1, 0, 0, 0]));
    assert!(verdict.reasons[0].text.contains("hunk 2 of a.py"), "{}", verdict.reasons[0].text);
    let none = RunOutcome::EnvError { reason: "no test was collected".to_owned() };
    let mut world = broken(none, gold);
    let verdict = world.climb(&policy);
    assert_eq!((verdict.status, world.cost()), (Status::Rejected, [2, 0, 1, 0]));
    assert_eq!(rules(&verdict)[0], Rule::BrokenAfter);
    // Nothing fails before.
    let mut world = World::new(3);
    world.tests[0].1 = Box::new(|_, _| Outcome::Passed);
    let verdict = world.climb(&policy);
    assert_eq!((verdict.status, world.cost()), (Status::Rejected, [2, 1, 0, 0]));
    // The fix does not mend.
    let mut world = World::new(3);
    world.tests[0].1 = Box::new(|_, _| Outcome::Failed);
    let verdict = world.climb(&policy);
    assert_eq!((verdict.status, world.cost()), (Status::Rejected, [2, 3, 3, 0]));
    assert_eq!(rules(&verdict)[0], Rule::FailToPassFailsAfter);
}

#[test]
fn a_timeout_counts_once_it_is_confirmed_alone() {
    // Slow under load: alone it passes.
    let slow = |request: &RunRequest| {
        request.phase == Phase::Post && request.profile.is_plain() && request.repeat == 7
    };
    let policy = Policy::benchmark();
    let mut world = World::new(3).changed(move |request, record| {
        if slow(request) && !request.alone {
            time_out(record);
        }
    });
    let verdict = world.climb(&policy);
    assert_eq!((verdict.status, verdict.runs, verdict.failures), (Status::Admitted, 29, 0));
    assert!(verdict.warnings.contains(&Warning::SlowUnderLoad { runs: 1 }));
    assert_eq!(world.cost()[2], 30);
    // It hangs alone too.
    let mut world = World::new(3).changed(move |request, record| {
        if slow(request) {
            time_out(record);
        }
    });
    let verdict = world.climb(&policy);
    assert_eq!((verdict.status, rules(&verdict)[0]), (Status::Rejected, Rule::BrokenAfter));
    assert_eq!(world.cost()[2], 9);
    // One test ran out of time: the others of that run still count.
    let id = "t/c.py::slow";
    let mut world =
        World::new(20).with(id, |_, _| Outcome::Passed).changed(move |request, record| {
            if slow(request) && !request.alone {
                for (test, reason) in
                    [(id, "timeout: more than 5 s"), ("t/b.py::stable03", "assert")]
                {
                    let result = record.tests.get_mut(test).unwrap();
                    result.outcome = Outcome::Failed;
                    result.reason = Some(reason.to_owned());
                }
            }
        });
    let verdict = world.climb(&policy);
    assert_eq!(verdict.quarantined, ["t/b.py::stable03"]);
    assert_eq!(verdict.status, Status::AdmittedWithQuarantine);
    // Before the gold patch a hang is confirmed once.
    let mut world = World::new(3).changed(|request, record| {
        if request.phase == Phase::Pre {
            time_out(record);
        }
    });
    let verdict = world.climb(&policy);
    assert_eq!((verdict.status, world.cost()), (Status::Admitted, [2, 4, 29, 4]));
    assert!(verdict.warnings.contains(&Warning::CutBefore { runs: 3 }));
}

#[test]
fn what_hangs_at_random_is_excused_once() {
    let id = "t/c.py::race";
    let late = |times: &'static [u32]| {
        move |request: &RunRequest, record: &mut RunRecord| {
            let plain = request.phase == Phase::Post && request.profile.is_plain();
            if plain && !request.alone && times.contains(&request.repeat) {
                let result = record.tests.get_mut(id).unwrap();
                result.outcome = Outcome::Failed;
                result.reason = Some("timeout: more than 5 s".to_owned());
            }
        }
    };
    let with = |times| World::new(20).with(id, |_, _| Outcome::Passed).changed(late(times));
    let policy = Policy::benchmark();
    let mut world = with(&[4]);
    let verdict = world.climb(&policy);
    assert_eq!((verdict.status, world.cost()[2]), (Status::Admitted, 30));
    // The third time needs no run alone.
    let mut world = with(&[4, 11, 20]);
    let verdict = world.climb(&policy);
    assert_eq!(
        (verdict.status, cause(&verdict, id)),
        (Status::AdmittedWithQuarantine, &Cause::Flaky)
    );
    assert_eq!((verdict.quarantined.as_slice(), verdict.failures), ([id.to_owned()].as_slice(), 0));
    assert_eq!((verdict.runs, world.cost()[2]), (29, 5 + 29 + 2));
    // The whole run.
    let hangs = |request: &RunRequest, record: &mut RunRecord| {
        let plain = request.phase == Phase::Post && request.profile.is_plain();
        if plain && !request.alone && [4, 11].contains(&request.repeat) {
            time_out(record);
        }
    };
    let verdict = World::new(3).changed(hangs).climb(&policy);
    assert_eq!((verdict.status, rules(&verdict)[0]), (Status::Rejected, Rule::BrokenAfter));
    assert!(verdict.reasons[0].text.starts_with("2 of "), "{}", verdict.reasons[0].text);
}

#[test]
fn an_order_that_the_runner_did_not_keep_says_nothing() {
    let id = "t/c.py::minds";
    let mut world = World::new(20)
        .sensitive(id, |profile| profile.get(Axis::Zone).is_some())
        .changed(|request, record| {
            if request.profile.get(Axis::Order).is_some() {
                record.disobeyed = vec!["order".to_owned()];
            }
        });
    let verdict = world.climb(&Policy::benchmark());
    assert_eq!(axes(&verdict, id), [Axis::Zone]);
    assert!(verdict.warnings.contains(&Warning::NotVaried { axes: vec![Axis::Order] }));
    // Nor without ids to make it from.
    let mut world = World::new(3).changed(|_, record| record.ids.clear());
    let verdict = world.climb(&Policy::benchmark());
    assert!(verdict.warnings.contains(&Warning::NotVaried { axes: vec![Axis::Order] }));
}

#[test]
fn a_probe_that_breaks_off_is_not_asked_for_again() {
    let (id, polluter) = ("t/n.py::victim", "t/p.py::pollutes");
    let after = move |before: &[String]| before.iter().any(|one| one == polluter);
    let breaking = |outcome: RunOutcome, only: bool| {
        let mut world = World::new(40)
            .with(id, move |_, before| passed_if(!after(before)))
            .with(polluter, |_, _| Outcome::Passed)
            .changed(move |request, record| {
                let chosen = request.phase == Phase::Post
                    && record.tests.len() < 43
                    && request.profile.get(Axis::Order).is_some();
                if chosen && only {
                    record.disobeyed = vec!["only".to_owned()];
                } else if chosen {
                    record.outcome = outcome.clone();
                    record.tests.clear();
                }
            });
        let verdict = world.climb(&Policy::benchmark());
        let Cause::Sensitive { order: Some(order), .. } = cause(&verdict, id) else {
            panic!("{verdict:#?}")
        };
        assert_eq!(*order, OrderCause::NotFound);
        assert!(world.cost()[3] <= 24, "{:?}", world.cost());
    };
    breaking(RunOutcome::Oom, false);
    breaking(RunOutcome::Timeout, false);
    breaking(RunOutcome::ParserError { problems: Vec::new() }, false);
    breaking(RunOutcome::Completed, true);
}

#[test]
fn results_that_cannot_be_read_clear_nothing() {
    let id = "t/c.py::minds";
    let mut world = World::new(20)
        .sensitive(id, |profile| profile.get(Axis::Zone).is_some())
        .changed(|request, record| {
            if request.phase == Phase::Post && request.profile.get(Axis::User).is_some() {
                record.outcome = RunOutcome::ParserError { problems: Vec::new() };
            }
        });
    let verdict = world.climb(&Policy::benchmark());
    assert_eq!(verdict.status, Status::Provisional, "{verdict:#?}");
    assert!(rules(&verdict).contains(&Rule::TooFewConditions));
}

#[test]
fn runs_that_hallmark_failed_to_make_are_made_otherwise() {
    let ours = |record: &mut RunRecord| {
        record.outcome = RunOutcome::InfraError { reason: "no space".to_owned() };
        record.tests.clear();
    };
    let mut world = World::new(3).changed(move |request, record| {
        if request.phase == Phase::Post && request.repeat == 0 {
            ours(record);
        }
    });
    let verdict = world.climb(&Policy::benchmark());
    assert_eq!((verdict.status, verdict.runs), (Status::Admitted, 29));
    assert!(verdict.warnings.contains(&Warning::InfraErrors { runs: 5 }));
    // A host that fails always is given up, and that is said.
    let mut world = World::new(3).changed(move |_, record| ours(record));
    let verdict = world.climb(&Policy::benchmark());
    assert_eq!((verdict.status, world.records.len()), (Status::Provisional, 8));
    assert!(rules(&verdict).contains(&Rule::TooManyInfraErrors));
}

#[test]
fn budgets_end_the_ladder() {
    let mut world = World::new(3);
    let verdict = world.climb(&Policy { time_budget: Some(10.0), ..Policy::benchmark() });
    assert_eq!((verdict.status, world.records.len()), (Status::Provisional, 10));
    assert_eq!(rules(&verdict)[0], Rule::TimeBudgetIsSpent);
    assert!(rules(&verdict).contains(&Rule::TooFewRuns));
    // Without probes a cause stays within what combined runs say.
    let id = "t/c.py::minds";
    let mut world = World::new(20).sensitive(id, |profile| profile.get(Axis::Clock).is_some());
    let verdict = world.climb(&Policy { max_probes: 0, ..Policy::benchmark() });
    let Cause::NotIsolated { settings } = cause(&verdict, id) else { panic!("{verdict:#?}") };
    assert!(settings.iter().any(|setting| setting.axis() == Axis::Clock));
    assert_eq!((verdict.status, world.cost()), (Status::AdmittedWithQuarantine, [2, 3, 29, 4]));
    assert!(verdict.warnings.contains(&Warning::SearchCut { probes: 0 }));
    // What makes a test pass was not looked for.
    let mut world = World::new(20).sensitive(id, |profile| profile.get(Axis::User).is_none());
    let verdict = world.climb(&Policy { max_probes: 0, ..Policy::benchmark() });
    assert_eq!(
        (verdict.status, rules(&verdict)[0]),
        (Status::Rejected, Rule::PassToPassIsSensitive)
    );
    assert!(verdict.reasons[0].text.contains("not followed: mend"), "{}", verdict.reasons[0].text);
}

#[test]
fn a_search_that_was_stopped_rejects_nothing() {
    let id = "t/c.py::minds";
    let policy = Policy {
        sensitive: Axis::ALL.map(|axis| (axis, Remedy::Reject)).into(),
        ..Policy::benchmark()
    };
    // Ten runs are two collections, six plain ones and two of the combined.
    for (fails_plain, runs) in [(false, 10.0), (false, 13.0), (true, 10.0), (true, 13.0)] {
        let minds = |profile: &Profile| profile.get(Axis::Zone).is_some();
        let mut world = World::new(20).sensitive(id, move |profile| minds(profile) != fails_plain);
        let verdict = world.climb(&Policy { time_budget: Some(runs), ..policy.clone() });
        assert_eq!(verdict.status, Status::Provisional, "{fails_plain} {runs}: {verdict:#?}");
        let open = verdict.reasons.iter().find(|reason| reason.rule == Rule::CauseIsOpen);
        assert_eq!(open.unwrap().tests, [id]);
        assert!(rules(&verdict).contains(&Rule::TimeBudgetIsSpent));
        assert_eq!(verdict.quarantined, [""; 0]);
    }
    let mut world = World::new(20).sensitive(id, move |profile| profile.get(Axis::Zone).is_some());
    assert_eq!(world.climb(&policy).status, Status::Rejected);
}

#[test]
fn an_axis_that_rejects_does_so_for_the_mended_test_too() {
    let mut world = World::new(20);
    world.tests[0].1 = Box::new(|run, _| {
        passed_if(run.phase != Phase::Pre && run.profile.get(Axis::Zone).is_none())
    });
    let mut policy = Policy { flaky_fail_to_pass: Remedy::Quarantine, ..Policy::benchmark() };
    policy.sensitive.insert(Axis::Zone, Remedy::Reject);
    let verdict = world.climb(&policy);
    assert_eq!(
        (verdict.status, rules(&verdict)[0]),
        (Status::Rejected, Rule::FailToPassIsSensitive)
    );
    assert_eq!(verdict.unstable[0].remedy, Remedy::Reject);
}

#[test]
fn ids_that_change_are_never_expected() {
    let mut world = World::new(20).with("t/c.py::set[a-b]", |_, _| Outcome::Passed).changed(
        |request, record| {
            if request.phase == Phase::Collect && !request.profile.is_plain() {
                record.ids.pop();
                record.ids.push("t/c.py::set[b-a]".to_owned());
                record.ids.swap(1, 2);
            }
        },
    );
    let verdict = world.climb(&Policy::benchmark());
    assert_eq!(verdict.status, Status::AdmittedWithQuarantine);
    assert_eq!(verdict.quarantined, ["t/c.py::set[a-b]"]);
    assert_eq!(*cause(&verdict, "t/c.py::set[a-b]"), Cause::UnstableId);
    assert_eq!(*cause(&verdict, "t/c.py::set[b-a]"), Cause::UnstableId);
    assert!(rules(&verdict).contains(&Rule::IdIsUnstable));
    assert!(verdict.warnings.contains(&Warning::CollectionOrder { tests: 2 }));
}

#[test]
fn the_order_of_records_changes_nothing() {
    let id = "t/c.py::minds";
    let policy = Policy::benchmark();
    let mut world = World::new(12)
        .sensitive(id, |profile| profile.get(Axis::Locale).is_some())
        .with("t/c.py::coin", |run, _| passed_if(run.repeat != 4));
    let lists = world.lists();
    let mut seed = 7_u64;
    while let Some(request) = wanted(&policy, &lists, &world.records).into_iter().next() {
        let mut shuffled = world.records.clone();
        for at in (1..shuffled.len()).rev() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.swap(at, (seed >> 33) as usize % (at + 1));
        }
        assert_eq!(wanted(&policy, &lists, &shuffled), wanted(&policy, &lists, &world.records));
        let verdict = canon::to_vec(&world.judge(&policy)).unwrap();
        world.records = shuffled;
        assert_eq!(canon::to_vec(&world.judge(&policy)).unwrap(), verdict);
        world.records.push(world.run(&request));
    }
}
