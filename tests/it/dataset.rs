//! Tests of `dataset`.

use std::path::{Path, PathBuf};

use hallmark::dataset::{self, Error, Source};
use hallmark::spec::{self, SpecFile};
use proptest::prelude::*;
use serde_json::{Value, json};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/dataset")
}

fn git_row(id: &str) -> Value {
    json!({
        "instance_id": id, "repo": "acme/widget", "version": "1.0",
        "base_commit": "0123456789abcdef0123456789abcdef01234567", "patch": "p", "test_patch": "t",
        "FAIL_TO_PASS": ["a"], "PASS_TO_PASS": [],
    })
}

fn pair_row() -> Value {
    let sdist = |version: &str, digit: &str| {
        json!({
            "version": version, "file": format!("foo-bar-{version}.tar.gz"),
            "sha256": format!("sha256:{}", digit.repeat(64)), "size": 10,
        })
    };
    json!({
        "instance_id": "pypi__foo-bar-1.1", "repo": "pypi/foo-bar", "version": "1.0",
        "pair": { "package": "foo-bar", "base": sdist("1.0", "a"), "fixed": sdist("1.1", "b") },
    })
}

/// The faults of a file, one a line.
fn faults(bytes: impl AsRef<[u8]>) -> String {
    let error = dataset::parse("rows", bytes.as_ref()).unwrap_err();
    let Error::Invalid { faults, .. } = &error else { panic!("{error}") };
    assert!(faults.iter().all(|fault| !fault.hint.is_empty()), "{error}");
    assert_eq!(error.hint().as_deref(), Some(faults[0].hint.as_str()));
    error.to_string()
}

#[test]
fn three_shapes_and_three_kinds_of_lists_are_one_split() {
    let split = dataset::load(&fixtures().join("rows.jsonl")).unwrap();
    assert_eq!(split.name, "rows");
    assert_eq!(split.instances.len(), 4);
    // The lists come as JSON list, JSON string and Python repr; the ids hold spaces, quotes, line ends and more.
    let first = split.instances[0].fail_to_pass.clone().unwrap();
    assert_eq!(
        first,
        [
            "tests/test_a.py::test_grüße[naïve café]",
            "tests/test_a.py::test_x[a - b]",
            "tests/test_a.py::test_emoji[🦀]",
            "tests/test_a.py::test_nl[a\nb]",
        ]
    );
    for instance in &split.instances[..3] {
        assert_eq!(instance.fail_to_pass, split.instances[0].fail_to_pass);
        assert_eq!(instance.pass_to_pass, split.instances[0].pass_to_pass);
        assert_eq!(instance.extra["problem_statement"], "Grüße\n");
    }
    let Source::Git { url, .. } = &split.instances[1].source else { panic!() };
    assert_eq!(url.as_deref(), Some("/srv/mirrors/widget.git"));
    assert!(
        matches!(&split.instances[3].source, Source::Pair(pair) if pair.fixed.version == "1.1")
    );
    assert_eq!(split.instances[3].fail_to_pass, None);
    for other in ["rows.json", "keyed.json"] {
        let other = dataset::load(&fixtures().join(other)).unwrap();
        assert_eq!(other.instances, split.instances);
        assert_eq!(other.hash().unwrap(), split.hash().unwrap());
        assert_eq!(dataset::write(&other), dataset::write(&split));
    }
}

#[test]
fn what_is_written_reads_as_it_was_and_writes_the_same_bytes() {
    let split = dataset::load(&fixtures().join("rows.jsonl")).unwrap();
    let text = dataset::write(&split);
    let again = dataset::parse("rows", text.as_bytes()).unwrap();
    assert_eq!(again, split);
    assert_eq!(dataset::write(&again), text);
    let first = text.lines().next().unwrap();
    assert!(first.starts_with(r#"{"instance_id":"acme__widget-1","repo":"acme/widget","version":"1.0","base_commit":""#), "{first}");
    assert!(first.ends_with(r#""hints_text":"","nested":{"a":{"c":true,"d":[1.5,null]},"b":1},"problem_statement":"Grüße\n","subsets":["lite"]}"#), "{first}");
}

#[test]
fn broken_files_are_refused_with_the_line() {
    let good = git_row("a-1").to_string();
    for (bytes, expected) in [
        (String::new(), "rows: line 1: there are no rows"),
        ("\n \n".to_owned(), "rows: line 3: there are no rows"),
        ("[]".to_owned(), "rows: line 1: there are no rows"),
        ("{}".to_owned(), "rows: line 1: there are no rows"),
        (
            format!("{good}\n{}", &good[..good.len() - 9]),
            "rows: line 2: the file ends in the middle of a row",
        ),
        (format!("{good}\n{}\n", &good[..9]), "rows: line 2: the file ends in the middle of a row"),
        (
            format!("[{good},\n{}", &good[..40]),
            "rows: line 2: the file ends in the middle of a row",
        ),
        (format!("[{good}"), "rows: line 1: the file ends in the middle of a row"),
        (format!("[{good},\n"), "rows: line 1: the file ends in the middle of a row"),
        (
            format!("{{\"a-1\":\n{}", &good[..40]),
            "rows: line 2: the file ends in the middle of a row",
        ),
        (format!("{good}\n{good}x\n"), "rows: line 2: trailing characters at column "),
        (format!("{}\n{good}", &good[..20]), "rows: line 1: EOF while parsing a"),
        (format!("[{good} {good}]"), "rows: line 1: expected a comma or `]` after the row"),
        (format!("[{good}]\n{good}"), "rows: line 2: something follows the last row"),
        (
            format!("[{good}, 7]"),
            "rows: line 1: invalid type: integer `7`, expected a row, which is an object",
        ),
        (
            good.replacen('{', "{\"repo\": \"x/y\",", 1),
            "rows: line 1: the field \"repo\" stands twice",
        ),
        ("instance_id,repo\n".to_owned(), "rows: line 1: this is not JSON that holds rows"),
        ("PAR1\0\0".to_owned(), "rows: line 1: this is a Parquet file"),
    ] {
        let text = faults(&bytes);
        assert!(text.starts_with(expected), "{bytes}\n{text}");
    }
    let latin = [git_row("a-1").to_string().as_bytes(), b"\n\"\xe9\""].concat();
    assert_eq!(faults(latin), "rows: line 2: the file is not UTF-8");
    let deep = format!("{{\"x\":{}", "[".repeat(200_000));
    assert!(faults(deep).contains("recursion limit exceeded"));
    // A last line without its line end is whole, and a byte order mark is no fault.
    assert!(dataset::parse("rows", format!("\u{feff}{good}").as_bytes()).is_ok());
}

#[test]
fn ids_that_are_no_file_names_are_refused() {
    let long = "x".repeat(4096);
    for id in ["", "a/b", "..", ".", "../../etc", "a\0b", "a\nb", "-a", ".a", "a b", "é", &long] {
        let text = faults(git_row(id).to_string());
        assert!(text.contains("cannot be an instance id"), "{id:?}: {text}");
        assert!(text.len() < 500, "a long id is cut: {text}");
    }
    let rows = format!("{}\n\n{}", git_row("a-1"), git_row("a-1"));
    assert_eq!(faults(rows), "rows: line 3: a-1: the id stands in line 1 already");
    let keyed = format!("{{\"a-1\": {}}}", git_row("a-2"));
    assert_eq!(faults(keyed), "rows: line 1: a-2: the row's key is \"a-1\"");
    let twice = format!("{{\"a-1\": {0},\n\"a-1\": {0}}}", git_row("a-1"));
    assert_eq!(faults(twice), "rows: line 2: a-1: the id stands in line 1 already");
}

#[test]
fn faulty_rows_are_all_named() {
    for (field, value, expected) in [
        ("repo", Value::Null, "`repo` is missing"),
        ("repo", json!("widget"), "\"widget\" is not a repository"),
        ("repo", json!("../widget"), "\"../widget\" is not a repository"),
        ("version", Value::Null, "`version` is missing"),
        ("version", json!(1.0), "`version` is not a string"),
        ("version", json!("../1.0"), "\"../1.0\" cannot be a version"),
        ("base_commit", Value::Null, "`base_commit` is missing"),
        ("base_commit", json!("main"), "the base commit \"main\" is not a commit"),
        ("base_commit", json!("A".repeat(40)), "is not a commit"),
        ("patch", Value::Null, "`patch` is missing"),
        ("test_patch", json!(["x"]), "`test_patch` is not a string"),
        (
            "FAIL_TO_PASS",
            json!(7),
            "`FAIL_TO_PASS`: it is neither a list nor a string that holds one",
        ),
        ("FAIL_TO_PASS", json!([7]), "`FAIL_TO_PASS`: one of its ids is not a string"),
        ("FAIL_TO_PASS", json!("{}"), "`FAIL_TO_PASS`: the string holds JSON that is not a list"),
        ("FAIL_TO_PASS", json!("['a' 'b']"), "two strings have no comma between them"),
        ("FAIL_TO_PASS", json!(""), "the string is neither a JSON list nor a Python one"),
        ("FAIL_TO_PASS", json!(["a", "a"]), "`FAIL_TO_PASS`: it has the id \"a\" twice"),
        ("PASS_TO_PASS", json!([""]), "`PASS_TO_PASS`: one of its ids is empty"),
        ("PASS_TO_PASS", json!(["a"]), "the test \"a\" is in FAIL_TO_PASS and in PASS_TO_PASS"),
        ("instance_id", Value::Null, "`instance_id` is missing"),
    ] {
        let mut row = git_row("a-1");
        row[field] = value;
        let text = faults(row.to_string());
        assert!(text.contains(expected), "{field}: {text}");
    }
    let mut second = git_row("a-2");
    second["repo"] = Value::Null;
    second["base_commit"] = json!("HEAD");
    let mut third = git_row("a-3");
    third.as_object_mut().unwrap().remove("patch");
    let text = faults(format!("{}\n{second}\n{third}", git_row("a-1")));
    assert_eq!(
        text,
        "rows: line 2: a-2: `repo` is missing\n\
         rows: line 2: a-2: the base commit \"HEAD\" is not a commit\n\
         rows: line 3: a-3: `patch` is missing"
    );
}

#[test]
fn a_pair_row_is_consistent_or_refused() {
    assert!(dataset::parse("rows", pair_row().to_string().as_bytes()).is_ok());
    for (pointer, value, expected) in [
        (
            "/instance_id",
            json!("foo"),
            "the id of the pair: expected \"pypi__foo-bar-1.1\", got \"foo\"",
        ),
        ("/repo", json!("acme/foo-bar"), "the repo of the pair: expected \"pypi/foo-bar\""),
        ("/version", json!("1.1"), "the version of the pair: expected \"1.0\", got \"1.1\""),
        (
            "/pair/package",
            json!("Foo_Bar"),
            "the package of the pair: expected \"foo-bar\", got \"Foo_Bar\"",
        ),
        ("/pair/base/version", json!("1.1"), "the pair's releases are the same"),
        ("/pair/base/file", json!("../foo-bar-1.0.tar.gz"), "is not the sdist of foo-bar 1.0"),
        ("/pair/fixed/file", json!("foo-bar-1.0.tar.gz"), "is not the sdist of foo-bar 1.1"),
        ("/pair/fixed/size", json!(0), "an sdist is never empty"),
        (
            "/pair/fixed/sha256",
            json!("b".repeat(64)),
            "expected `sha256:` and 64 lower-case hex digits",
        ),
        ("/pair/fixed", json!({"version": "1.1"}), "`pair`: missing field"),
        ("/pair", json!([]), "`pair`: "),
    ] {
        let mut row = pair_row();
        *row.pointer_mut(pointer).unwrap() = value;
        let text = faults(row.to_string());
        assert!(text.contains(expected), "{pointer}: {text}");
    }
    let mut row = pair_row();
    row["pair"]["base"]["url"] = json!("x");
    assert!(faults(row.to_string()).contains("unknown field `url`"));
    let mut row = pair_row();
    row["patch"] = json!("");
    assert!(faults(row.to_string()).contains("a pair row has no `patch`"));
}

#[test]
fn a_row_and_its_spec_name_the_same_release() {
    let spec_text = fs_err::read_to_string(fixtures().join("../spec/valid/pair.toml")).unwrap();
    let spec = spec::parse(&SpecFile::new("specs/pypi__foo-bar/1.0.toml", spec_text), &[]).unwrap();
    let mut row = pair_row();
    row["pair"]["base"]["file"] = json!("Foo_Bar-1.0.tar.gz");
    row["pair"]["base"]["size"] = json!(48_230);
    row["pair"]["base"]["sha256"] =
        json!("sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    let instance = |row: &Value| {
        dataset::parse("rows", row.to_string().as_bytes()).unwrap().instances.remove(0)
    };
    dataset::check_spec(&instance(&row), &spec).unwrap();
    row["pair"]["base"]["size"] = json!(48_231);
    assert_eq!(
        dataset::check_spec(&instance(&row), &spec).unwrap_err().to_string(),
        "pypi__foo-bar-1.1: length of the base sdist: expected 48231, got 48230"
    );
    assert_eq!(
        dataset::check_spec(&instance(&git_row("a-1")), &spec).unwrap_err().to_string(),
        "a-1: repository of the spec: expected acme/widget, got pypi/foo-bar"
    );
}

#[test]
fn the_committed_rows_have_their_specs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let split = dataset::load(&root.join("images/quickstart.rows.jsonl")).unwrap();
    assert_eq!(split.name, "quickstart");
    assert!(split.instances.len() >= 8);
    for instance in &split.instances {
        let spec = spec::load(&root.join("specs"), &instance.repo, &instance.version).unwrap();
        dataset::check_spec(instance, &spec).unwrap();
    }
    let text = fs_err::read_to_string(root.join("images/quickstart.rows.jsonl")).unwrap();
    assert_eq!(dataset::write(&split), text);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test asks where the corpus is")]
fn the_corpus_reads_whole() {
    let Some(corpus) = std::env::var_os("HALLMARK_CORPUS") else {
        #[expect(clippy::print_stderr, reason = "a skipped test says so")]
        {
            eprintln!("skipped: HALLMARK_CORPUS does not name the folder with the corpus");
        }
        return;
    };
    let split = dataset::load(&Path::new(&corpus).join("swebench-rows.jsonl")).unwrap();
    assert_eq!(split.instances.len(), 328);
    for instance in &split.instances {
        assert!(!instance.fail_to_pass.as_ref().unwrap().is_empty(), "{}", instance.id);
        assert!(instance.extra.contains_key("problem_statement"));
    }
    let again = dataset::parse(&split.name, dataset::write(&split).as_bytes()).unwrap();
    assert_eq!(again, split);
}

fn quiet() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(quiet())]

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = dataset::parse("rows", &bytes);
    }

    #[test]
    fn no_edit_of_a_file_makes_the_reader_panic(
        shape in 0..3_usize,
        at in any::<prop::sample::Index>(),
        cut in 0..40_usize,
        insert in "[\\[\\]{}:,\"'\\\\ua0-9é \n\u{0}-]{0,8}",
    ) {
        let file = ["rows.jsonl", "rows.json", "keyed.json"][shape];
        let mut bytes = fs_err::read(fixtures().join(file)).unwrap();
        let start = at.index(bytes.len());
        let end = (start + cut).min(bytes.len());
        bytes.splice(start..end, insert.into_bytes());
        if let Ok(split) = dataset::parse("rows", &bytes) {
            prop_assert_eq!(dataset::parse("rows", dataset::write(&split).as_bytes()).unwrap(), split);
        }
    }

    #[test]
    fn every_id_survives_the_round_trip(ids in prop::collection::btree_set(".{1,20}", 1..5), extra in ".{0,20}") {
        let mut row = git_row("a-1");
        row["FAIL_TO_PASS"] = json!(ids);
        row["extra"] = json!({ extra.clone(): extra });
        let split = dataset::parse("rows", row.to_string().as_bytes()).unwrap();
        let again = dataset::parse("rows", dataset::write(&split).as_bytes()).unwrap();
        prop_assert_eq!(&again, &split);
        let read: Vec<_> = split.instances[0].fail_to_pass.clone().unwrap();
        prop_assert_eq!(read, ids.into_iter().collect::<Vec<_>>());
    }
}
