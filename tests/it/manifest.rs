//! The manifest of a real small split, and an audit that must see every byte that changes.

use std::path::{Path, PathBuf};

use hallmark::base::{Arch, Digest, Store};
use hallmark::dataset::{Instance, Source, Split};
use hallmark::image::{Compressor, Image};
use hallmark::lock::{BaseLock, Deb, EnvLock, FileRef, Origin, PythonFile, PythonPackage};
use hallmark::manifest::{
    AuditReport, InstanceInput, Manifest, ManifestInput, Problem, audit, build, parse, schema,
    write,
};
use hallmark::spec::Spec;
use hallmark::verify::{LogKind, LogRef, Phase, Policy, RunRecord, derive_lists, log_path};

use crate::verify::support::{Bench, adds, spec};

#[test]
fn the_committed_schema_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema/manifest.schema.json");
    let text = schema().unwrap();
    if option_env!("HALLMARK_UPDATE_SCHEMAS").is_some() {
        fs_err::write(&path, &text).unwrap();
    }
    assert_eq!(
        fs_err::read_to_string(&path).unwrap_or_default(),
        text,
        "run the tests with HALLMARK_UPDATE_SCHEMAS=1 set while compiling"
    );
}

/// A split of one instance, verified.
pub(crate) struct Made {
    pub(crate) bench: Bench,
    pub(crate) spec: Spec,
    split: Split,
    base_lock: BaseLock,
    env_lock: EnvLock,
    small: Image,
    sdist: FileRef,
    runs: Vec<RunRecord>,
}

impl Made {
    pub(crate) fn new() -> Option<Self> {
        let bench = Bench::new(&[("lib.py", "x = 1\n")])?;
        let store = &bench.store;
        let gold = "diff --git a/lib.py b/lib.py\n--- a/lib.py\n+++ b/lib.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n";
        let test = adds(
            "tests/test_x.py",
            "import lib\ndef test_x():\n    assert lib.x == 2\ndef test_p(): pass\n",
        );
        let spec = spec();
        let mut runs = Vec::new();
        for phase in [Phase::Pre, Phase::Post] {
            for repeat in 0..2 {
                runs.push(bench.run(&spec, phase, repeat, [gold, &test]));
            }
        }
        let deb = store.put_blob(b"a deb").unwrap();
        let wheel = store.put_blob(b"a wheel").unwrap();
        let sdist = store.put_blob(b"an sdist").unwrap();
        let base_lock = BaseLock {
            base_hash: Digest::of("base"),
            arch: Arch::HOST,
            suite: "bookworm".to_owned(),
            as_of: jiff::Timestamp::UNIX_EPOCH,
            inrelease: Digest::of("inrelease"),
            packages_index: Digest::of("packages"),
            python: "3.11".to_owned(),
            debs: vec![Deb {
                name: "a".to_owned(),
                version: "1".to_owned(),
                path: "pool/main/a/a/a_1_all.deb".to_owned(),
                sha256: deb,
                size: 5,
            }],
            image: None,
        };
        let env_lock = EnvLock {
            env_hash: spec.env_hash().unwrap(),
            arch: Arch::HOST,
            base: "bookworm".to_owned(),
            base_lock: base_lock.digest().unwrap(),
            debs: Vec::new(),
            packages: vec![PythonPackage {
                name: "w".to_owned(),
                version: "1".to_owned(),
                file: PythonFile {
                    name: "w-1-py3-none-any.whl".to_owned(),
                    sha256: wheel,
                    size: 7,
                    upload_time: None,
                },
            }],
            build_environments: Vec::new(),
            built: Vec::new(),
        };
        // The testbed's layer alone stands for the base: unpacking Python again and again takes long.
        let mut small = bench.image.clone();
        small.layers.remove(0);
        small.key = Digest::of("base image");
        let sdist = FileRef {
            name: "s-1.tar.gz".to_owned(),
            sha256: sdist,
            size: 8,
            origin: Origin::Pypi { project: "s".to_owned() },
        };
        let source = Source::Git {
            url: None,
            base_commit: "0".repeat(40),
            gold_patch: gold.to_owned(),
            test_patch: test,
        };
        let instance = Instance {
            id: bench.id.clone(),
            repo: spec.repo.clone(),
            version: spec.version.clone(),
            source,
            fail_to_pass: None,
            pass_to_pass: None,
            extra: serde_json::Map::new(),
        };
        let split = Split { name: "s".to_owned(), instances: vec![instance] };
        Some(Self { bench, spec, split, base_lock, env_lock, small, sdist, runs })
    }

    fn store(&self) -> &Store {
        &self.bench.store
    }

    pub(crate) fn manifest(&self) -> Manifest {
        let of = |phase: Phase| -> Vec<RunRecord> {
            self.runs.iter().filter(|run| run.phase == phase).cloned().collect()
        };
        let lists = derive_lists(&of(Phase::Pre), &of(Phase::Post)).unwrap().lists;
        let policy = Policy::benchmark();
        let instance = InstanceInput {
            tools_lock: None,
            instance: &self.split.instances[0],
            spec: &self.spec,
            base_lock: &self.base_lock,
            base: &self.small,
            env_lock: &self.env_lock,
            env: &self.small,
            image: &self.bench.image,
            files: std::slice::from_ref(&self.sdist),
            lists: &lists,
            runs: &self.runs,
        };
        let input = ManifestInput {
            split: &self.split,
            instances: &[instance],
            policy: &policy,
            compressor: Compressor::default(),
            version: "0.0.0",
        };
        build(self.store(), &input, &self.bench.cancel).unwrap()
    }

    fn audit(&self, manifest: &Manifest) -> AuditReport {
        audit(self.store(), manifest, &self.bench.cancel).unwrap()
    }
}

/// Changes one byte in the middle of a file, runs `check`, and changes it back.
fn flipped(path: &Path, check: impl FnOnce()) {
    let bytes = fs_err::read(path).unwrap();
    let mut changed = bytes.clone();
    // A file that is empty cannot have a byte changed: it gets one.
    match changed.len() {
        0 => changed.push(b'x'),
        length => changed[length / 2] ^= 1,
    }
    fs_err::write(path, &changed).unwrap();
    check();
    fs_err::write(path, &bytes).unwrap();
}

#[test]
fn online_an_audit_sees_every_byte() {
    let Some(made) = Made::new() else { return };
    let manifest = made.manifest();
    let store = made.store();
    // Same values, same bytes; and the text reads back.
    let text = write(&manifest).unwrap();
    assert_eq!(write(&made.manifest()).unwrap(), text);
    assert_eq!(parse("m", &text).unwrap(), manifest);
    let report = made.audit(&manifest);
    assert!(report.passed(), "{:#?}", (report.findings, report.unchecked));
    assert!(report.checks > 60 && report.bytes > 1 << 20, "{} {}", report.checks, report.bytes);

    let subject = &manifest.subject;
    let instance = subject.instances.values().next().unwrap();
    let evidence = manifest.evidence.instances.values().next().unwrap();
    let images = &manifest.evidence.images[&instance.image.image.key];
    let run = &evidence.runs[2];
    let blob = |digest: &Digest| store.blob_path(digest);
    let log = |kind: LogKind| log_path(store, &run.key, kind);
    let place = "instances/owner__name-1";
    // File, where the finding is, whether the verdict can still be judged.
    let cases: Vec<(PathBuf, String, bool)> = vec![
        (blob(&subject.split.hash), "split".to_owned(), true),
        (blob(&subject.bases["bookworm"].lock), "bases/bookworm/lock".to_owned(), true),
        (blob(&made.base_lock.debs[0].sha256), "bases/bookworm/files/a_1_all.deb".to_owned(), true),
        (
            blob(&subject.environments["owner__name/1.0"].lock),
            "environments/owner__name/1.0/lock".to_owned(),
            true,
        ),
        (
            blob(&made.env_lock.packages[0].file.sha256),
            "environments/owner__name/1.0/files/w-1-py3-none-any.whl".to_owned(),
            true,
        ),
        (blob(&made.sdist.sha256), format!("{place}/files/s-1.tar.gz"), true),
        (blob(&instance.patches[0].sha256), format!("{place}/patches/gold"), true),
        (blob(&instance.patches[1].sha256), format!("{place}/patches/test"), true),
        (blob(&instance.image.config), format!("{place}/image/config"), true),
        (blob(&images.manifest), format!("{place}/image/manifest"), true),
        (blob(&images.layers[0].digest), format!("{place}/image/layers/0"), true),
        (blob(&manifest.evidence.run_layers[0].blob.digest), "run-layers/0".to_owned(), true),
        (
            store.run_path(&run.key).join("record.json"),
            format!("{place}/runs/post-0/record"),
            false,
        ),
        (log(LogKind::Stdout), format!("{place}/runs/post-0/stdout"), true),
        (log(LogKind::Stderr), format!("{place}/runs/post-0/stderr"), true),
        (log(LogKind::Report), format!("{place}/runs/post-0/report"), true),
    ];
    for (path, place, judged) in cases {
        flipped(&path, || {
            let report = made.audit(&manifest);
            assert_eq!(report.findings.len(), 1, "{place}: {:#?}", report.findings);
            let finding = &report.findings[0];
            assert_eq!(finding.place, place);
            let right = matches!(finding.problem, Problem::Bytes { .. } | Problem::Size { .. });
            assert!(right, "{finding:?}");
            assert_eq!(report.unchecked.is_empty(), judged, "{place}: {:?}", report.unchecked);
        });
    }
    assert!(made.audit(&manifest).passed());
}

/// A lie.
type Change = fn(&mut Manifest);

#[test]
fn online_an_audit_does_not_believe_the_manifest() {
    let Some(made) = Made::new() else { return };
    let manifest = made.manifest();
    let id = "owner__name-1";
    let changes: [(&str, Change, &[&str]); 6] = [
        (
            "a better verdict",
            |manifest| {
                let evidence = manifest.evidence.instances.values_mut().next().unwrap();
                evidence.verdict.runs = 29;
            },
            &["evidence", "instances/owner__name-1/verdict"],
        ),
        (
            "another limit",
            |manifest| {
                let environment = manifest.subject.environments.values_mut().next().unwrap();
                environment.spec["limits"]["timeout"] = 1.into();
            },
            &["environments/owner__name/1.0", "subject"],
        ),
        (
            "another expected test",
            |manifest| {
                let instance = manifest.subject.instances.values_mut().next().unwrap();
                instance.lists.pass_to_pass.push("tests/test_x.py::test_none".to_owned());
            },
            &["instances/owner__name-1/verdict", "subject"],
        ),
        (
            "another layer",
            |manifest| {
                let instance = manifest.subject.instances.values_mut().next().unwrap();
                instance.image.image.layers[1].diff_id = Digest::of("x");
            },
            &[
                "instances/owner__name-1/image",
                "instances/owner__name-1/image",
                "instances/owner__name-1/image/layers/1",
                "subject",
            ],
        ),
        (
            "another runner",
            |manifest| manifest.subject.runner = Digest::of("x"),
            &[
                "instances/owner__name-1/runs/post-0",
                "instances/owner__name-1/runs/post-1",
                "instances/owner__name-1/runs/pre-0",
                "instances/owner__name-1/runs/pre-1",
                "subject",
            ],
        ),
        ("another host", |manifest| manifest.host.slots = 99, &["host"]),
    ];
    for (name, change, places) in changes {
        let mut changed = manifest.clone();
        change(&mut changed);
        let report = made.audit(&changed);
        let found: Vec<&str> = report.findings.iter().map(|one| one.place.as_str()).collect();
        assert_eq!(found, places, "{name}: {:#?}", report.findings);
    }
    // What is not here is no finding.
    let path = made.store().blob_path(&made.sdist.sha256);
    fs_err::remove_file(path).unwrap();
    let report = made.audit(&manifest);
    assert_eq!(report.findings, []);
    assert_eq!(report.unchecked.len(), 1);
    assert_eq!(report.unchecked[0].place, format!("instances/{id}/files/s-1.tar.gz"));
    assert!(!report.passed());
}

#[test]
fn online_an_audit_trusts_a_stream_no_more_than_the_run_did() {
    let Some(mut made) = Made::new() else { return };
    let key = made.runs[2].key;
    let path = log_path(made.store(), &key, LogKind::Report);
    let mut stream = fs_err::read(&path).unwrap();
    stream.extend_from_slice(b"a line of somebody else\n");
    fs_err::write(&path, &stream).unwrap();
    // Every digest is right, and every outcome is the same.
    made.runs[2].report = LogRef { sha256: Digest::of(&stream), size: stream.len() as u64 };
    let record = serde_json::to_vec(&made.runs[2]).unwrap();
    fs_err::write(made.store().run_path(&key).join("record.json"), record).unwrap();
    let report = made.audit(&made.manifest());
    assert_eq!(report.findings.len(), 1, "{:#?}", report.findings);
    let finding = &report.findings[0];
    assert_eq!(finding.place, "instances/owner__name-1/runs/post-0/report");
    assert!(matches!(finding.problem, Problem::Contradiction { .. }), "{finding:?}");
}

#[test]
fn what_is_no_manifest_is_refused() {
    for (text, expected) in [
        ("", "x is not a manifest"),
        ("{\"version\": 1}", "x has version 1, but this hallmark reads 2"),
        ("{\"version\": 2}", "x is not a manifest"),
        ("{\"version\": 3}", "x has version 3, but this hallmark reads up to 2"),
    ] {
        let error = parse("x", text.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().is_some());
    }
}
