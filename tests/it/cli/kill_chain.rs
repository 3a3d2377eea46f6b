//! Killed in the middle, again and again: a split with a packed bundle and no network ends in the same digests and verdicts as
//! one that nobody disturbed, and nothing is left over.
//!
//! The first kills fall into the build of the base, which begins again each time; then the base is given, so that the rest has
//! its share. The waits are random but seeded. They grow while nothing new is kept. When the split is done before the next kill,
//! everything but the base is removed, and the chain goes on.

use std::time::Duration;

use hallmark::base::clock::Stopwatch;
use hallmark::cli::exit;

use super::context::TestContext;
use super::interrupt::{pid, start};
use super::leftovers::{assert_nothing_runs, assert_scratch_is_empty};
use crate::support::{Full, copy};

/// Any; printed when the chain breaks.
const SEED: u64 = 20_240_229;

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }
}

struct Chain<'a> {
    full: &'a Full,
    context: TestContext,
    arguments: Vec<&'static str>,
    killed: Vec<u32>,
    ends: usize,
}

impl Chain<'_> {
    /// Kills hallmark after so long. `false` where it was done before; then it was done well.
    fn kill_after(&mut self, wait: Duration) -> bool {
        let mut child = start(&self.context, &self.arguments);
        let watch = Stopwatch::start();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if watch.elapsed() >= wait {
                rustix::process::kill_process(pid(&child), rustix::process::Signal::KILL).unwrap();
                child.wait().unwrap();
                break None;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let said = || fs_err::read_to_string(self.context.path().join("stderr")).unwrap();
        assert!(!said().contains("panicked"), "{}", said());
        self.killed.push(child.id());
        match status {
            None => true,
            Some(status) => {
                assert_eq!(status.code(), Some(i32::from(exit::OK)), "seed {SEED}\n{}", said());
                self.ends += 1;
                self.check_end();
                false
            }
        }
    }

    /// Digests and verdicts are those of the undisturbed run, and all of it is in the store.
    fn check_end(&self) {
        assert_nothing_runs(&self.context, &self.killed);
        assert_scratch_is_empty(&self.context);
        let read = |path: &std::path::Path| -> serde_json::Value {
            serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap()
        };
        let manifest = self.context.project().join("m.json");
        let (expected, actual) = (read(&self.full.manifest()), read(&manifest));
        assert_eq!(actual["subject"], expected["subject"], "seed {SEED}");
        assert_eq!(actual["digests"]["subject"], expected["digests"]["subject"]);
        for (id, instance) in expected["evidence"]["instances"].as_object().unwrap() {
            let verdict = &actual["evidence"]["instances"][id]["verdict"];
            assert_ne!(verdict, &serde_json::Value::Null, "{id}");
            // Times are those of other runs.
            let timeless = |verdict: &serde_json::Value| {
                let mut verdict = verdict.clone();
                verdict["proposed-timeout"].take();
                verdict["cost"]["wall"].take();
                verdict
            };
            assert_eq!(timeless(verdict), timeless(&instance["verdict"]), "seed {SEED}: {id}");
        }
        let answer = self.context.run(["audit", "m.json", "--offline"]);
        answer.expect(exit::OK, &[]);
    }

    /// What the store holds: the more, the further.
    fn kept(&self) -> usize {
        ["steps", "runs", "layers"]
            .iter()
            .filter_map(|name| fs_err::read_dir(self.context.store().join(name)).ok())
            .map(Iterator::count)
            .sum()
    }

    /// The base as if it had been built here.
    fn give_base(&self) {
        for part in self.full.base_parts() {
            let folder = self.context.store().join(part.parent().unwrap());
            copy(&self.full.store().join(&part), &folder, "-al");
        }
    }

    /// Everything but the base is to be done again.
    fn start_over(&self) {
        for name in ["steps", "runs", "layers", "trees"] {
            fs_err::remove_dir_all(self.context.store().join(name)).unwrap();
            fs_err::create_dir_all(self.context.store().join(name)).unwrap();
        }
        fs_err::remove_file(self.context.project().join("m.json")).unwrap();
        self.give_base();
    }
}

fn chain(in_base: usize, after_base: usize) {
    let Some(full) = Full::get() else { return };
    let context = TestContext::quickstart();
    context
        .run(["bundle", "unpack", full.bundle().to_str().unwrap(), "--offline"])
        .expect(exit::OK, &[]);
    let arguments = TestContext::both(&["run", "--offline", "--locked", "--manifest", "m.json"]);
    let mut chain = Chain { full, context, arguments, killed: Vec::new(), ends: 0 };
    let mut random = Random(SEED);
    for _ in 0..in_base {
        assert!(chain.kill_after(Duration::from_millis(200 + random.below(6000))));
        assert_nothing_runs(&chain.context, &chain.killed);
    }
    assert_eq!(chain.context.listing("store/layers"), Vec::<String>::new());
    chain.give_base();
    let mut kills = 0;
    let mut window = 1000;
    while kills < after_base {
        let before = chain.kept();
        if chain.kill_after(Duration::from_millis(20 + random.below(window))) {
            kills += 1;
            assert_nothing_runs(&chain.context, &chain.killed);
            window = if chain.kept() > before { 1000 } else { window + 500 };
        } else {
            chain.start_over();
        }
    }
    while chain.kill_after(Duration::from_mins(10)) {}
    assert!(chain.ends > 0);
}

#[test]
fn full_kill_chain_of_six() {
    chain(1, 5);
}

#[test]
#[ignore = "takes minutes; see the top of cli.rs"]
fn kill_chain_of_fifty() {
    chain(3, 47);
}
