//! The corpus in plain conditions: everything passes but what is said to fail.

use std::collections::BTreeSet;

use super::corpus::{Expected, RANDOM, Tree, expected, folder, stable_files, stable_ids};
use super::land::{Instance, Land};

#[test]
fn the_corpus_is_whole() {
    let expected = expected();
    let folders: BTreeSet<String> = fs_err::read_dir(folder().join("kinds"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(folders, expected.keys().cloned().collect());
    for (kind, cases) in &expected {
        let wrong = cases.iter().filter(|case| case.cause != Expected::Stable).count();
        assert!(wrong >= 2, "{kind} has {wrong} unstable tests");
        for case in cases {
            let sensitive = matches!(case.cause, Expected::Sensitive | Expected::Fails);
            assert_eq!(sensitive, !case.axes.is_empty(), "{}", case.id);
            let order = case.axes == ["order"];
            assert_eq!(order, !(case.polluter.is_empty() && case.setter.is_empty()), "{}", case.id);
        }
    }
    for kind in RANDOM {
        let id = kind.id(7);
        let name = id.rsplit("::").next().unwrap();
        let tree = Tree::land().with_random(kind, 7);
        let holds = tree.files.values().any(|text| text.contains(&format!("def {name}(")));
        assert!(holds && tree.pass_to_pass.contains(&id), "{}", kind.name);
    }
    let stable = stable_ids();
    assert_eq!((stable.len(), stable_files().len()), (200, 10));
    assert_eq!(stable.iter().collect::<BTreeSet<_>>().len(), 200);
}

#[test]
fn full_in_plain_conditions_the_corpus_passes() {
    let Some(land) = Land::new() else { return };
    let mut all = Tree::land().with_stable(&stable_files());
    for kind in expected().keys().filter(|kind| *kind != "non-root-only") {
        all = all.with_kind(kind, land.scratch());
    }
    let refusing = Tree::land().with_kind("non-root-only", land.scratch());
    let mut fails: Vec<String> =
        expected()["non-root-only"].iter().map(|case| case.id.clone()).collect();
    fails.sort();
    land.settle(&[Instance::new("all", all), Instance::new("refusing", refusing)], "");
    let (verdicts, said) = land.verify(&["--runs", "2"]);
    let reasons = |name: &str| verdicts[name]["reasons"].as_array().unwrap();
    assert_eq!(verdicts["all"]["status"], "provisional", "{said}\n{:#}", verdicts["all"]);
    let accused = reasons("all").iter().filter(|reason| reason["effect"] != "holds-back").count();
    assert_eq!(accused, 0, "{:#}", verdicts["all"]);
    assert_eq!(verdicts["refusing"]["status"], "rejected");
    assert_eq!(reasons("refusing")[0]["tests"], serde_json::json!(fails));
}
