//! Tests of `spec`: one fixture per rule, read under a path of its own.
//!
//! ```text
//! tests/fixtures/spec/
//!   valid/<case>.toml        parsed as specs/<repo folder>/<version>.toml
//!   valid/<case>/            a whole `specs` folder; the spec is the version that the other files serve
//!   invalid/                 the same, with the faults that snapshots/ holds
//!   base/{valid,invalid}/    base image definitions
//! ```

use std::path::{Path, PathBuf};

use hallmark::spec::{self, SpecFile};
use proptest::prelude::*;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/spec")
}

/// A case's name, the spec's file and the files it may inherit from.
type Case = (String, SpecFile, Vec<SpecFile>);

fn cases(kind: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for entry in
        walkdir::WalkDir::new(fixtures().join(kind)).min_depth(1).max_depth(1).sort_by_file_name()
    {
        let path = entry.unwrap().into_path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            let mut files: Vec<SpecFile> = walkdir::WalkDir::new(&path)
                .sort_by_file_name()
                .into_iter()
                .map(Result::unwrap)
                .filter(|entry| entry.file_type().is_file())
                .map(|entry| {
                    let inside = entry.path().strip_prefix(&path).unwrap();
                    let text = fs_err::read_to_string(entry.path()).unwrap();
                    SpecFile::new(Path::new("specs").join(inside), text)
                })
                .collect();
            let main = PathBuf::from("specs/acme__widget/1.0.toml");
            let at = files.iter().position(|file| file.path == main).unwrap();
            let file = files.remove(at);
            // The spec itself is beside its parents, as on disk.
            files.push(file.clone());
            cases.push((name, file, files));
        } else {
            let text = fs_err::read_to_string(&path).unwrap();
            let folder = if text.contains("pypi/") { "pypi__foo-bar" } else { "acme__widget" };
            let file = SpecFile::new(format!("specs/{folder}/1.0.toml"), text);
            cases.push((name, file, Vec::new()));
        }
    }
    assert!(cases.len() >= 3, "{kind}");
    cases
}

fn snapshot(group: &str, name: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => fixtures().join("snapshots"),
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(format!("{group}-{name}"), text);
    });
}

#[test]
fn valid_specs_parse_to_what_they_say() {
    for (name, file, others) in cases("valid") {
        let spec = spec::parse(&file, &others).unwrap_or_else(|errors| panic!("{name}:\n{errors}"));
        snapshot("valid", &name, &serde_json::to_string_pretty(&spec).unwrap());
    }
}

#[test]
fn every_fault_is_shown_with_its_place_and_the_way_out() {
    for (name, file, others) in cases("invalid") {
        let errors = spec::parse(&file, &others).expect_err(&name);
        for error in errors.iter() {
            assert!(error.line >= 1 && error.column >= 1, "{name}: {error:?}");
            assert!(!error.hint.is_empty() && !error.message.is_empty(), "{name}: {error:?}");
        }
        snapshot("invalid", &name, &errors.render(false));
        assert!(errors.render(true).contains("\u{1b}["), "{name}");
    }
}

#[test]
fn base_definitions_are_read_by_the_same_rules() {
    for kind in ["valid", "invalid"] {
        for entry in walkdir::WalkDir::new(fixtures().join("base").join(kind))
            .min_depth(1)
            .sort_by_file_name()
        {
            let path = entry.unwrap().into_path();
            let file_name = path.file_name().unwrap().to_str().unwrap();
            let file = SpecFile::new(
                Path::new("images").join(file_name),
                fs_err::read_to_string(&path).unwrap(),
            );
            let text = match spec::parse_base(&file) {
                Ok(base) => serde_json::to_string_pretty(&base).unwrap(),
                Err(errors) => errors.to_string(),
            };
            assert_eq!(text.starts_with('{'), kind == "valid", "{file_name}: {text}");
            snapshot(&format!("base-{kind}"), &file_name.replace(".toml", ""), &text);
        }
    }
}

#[test]
fn every_committed_spec_and_base_is_valid_and_loads_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let specs = spec::load_all(&root.join("specs")).unwrap_or_else(|error| panic!("\n{error}"));
    for spec in &specs {
        let again = spec::load(&root.join("specs"), &spec.repo, &spec.version).unwrap();
        assert_eq!(&again, spec);
        let base = spec::load_base(&root.join("images"), &spec.base).unwrap();
        assert_eq!(base.name, spec.base);
    }
    let error = spec::load_base(&root.join("images"), "buster").unwrap_err();
    assert_eq!(
        error.hint().as_deref(),
        Some("write it, or use one of these: bookworm, bullseye, trixie")
    );
}

#[test]
fn what_is_not_there_is_named_with_what_is() {
    let folder = tempfile::tempdir().unwrap();
    let specs = folder.path().join("specs");
    fs_err::create_dir_all(specs.join("acme__widget")).unwrap();
    let valid = fs_err::read_to_string(fixtures().join("valid/minimal.toml")).unwrap();
    fs_err::write(specs.join("acme__widget/1.0.toml"), &valid).unwrap();
    fs_err::write(specs.join("acme__widget/_defaults.toml"), "").unwrap();
    assert_eq!(spec::load(&specs, "acme/widget", "1.0").unwrap().python, "3.11");
    let error = spec::load(&specs, "acme/widget", "1.1").unwrap_err();
    assert!(error.to_string().ends_with("acme__widget/1.1.toml"), "{error}");
    assert_eq!(error.hint().as_deref(), Some("write it, or use one of these: 1.0"));
    let error = spec::load(&specs, "acme/gadget", "1.1").unwrap_err();
    assert_eq!(error.hint().as_deref(), Some("write it; `docs/spec.md` describes the format"));
    // A fault of a shared file is one fault, however many specs inherit it.
    fs_err::write(specs.join("acme__widget/2.0.toml"), valid.replace("\"1.0\"", "\"2.0\""))
        .unwrap();
    fs_err::write(specs.join("acme__widget/_defaults.toml"), "colour = 1").unwrap();
    let spec::Error::Invalid(errors) = spec::load_all(&specs).unwrap_err() else {
        panic!("not the faults")
    };
    assert_eq!(errors.len(), 1);
}

/// Blocks of `[table]` with its lines; the lines before the first table are the first block.
fn blocks(text: &str) -> Vec<Vec<String>> {
    let mut blocks = vec![Vec::new()];
    for line in text.lines().filter(|line| !line.is_empty()) {
        if line.starts_with('[') {
            blocks.push(Vec::new());
        }
        blocks.last_mut().unwrap().push(line.to_owned());
    }
    blocks
}

fn quiet() -> ProptestConfig {
    // A failing case is shown; it belongs into a test of its own, not into a file of seeds.
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(quiet())]

    #[test]
    fn the_order_of_keys_and_tables_means_nothing(seed in any::<prop::sample::Index>(), turn in 0..97_usize) {
        let text = fs_err::read_to_string(fixtures().join("valid/full.toml")).unwrap();
        let path = "specs/acme__widget/1.0.toml";
        let expected = spec::parse(&SpecFile::new(path, text.as_str()), &[]).unwrap();
        let mut blocks = blocks(&text);
        for (index, block) in blocks.iter_mut().enumerate() {
            let head = usize::from(index > 0);
            let length = block.len() - head;
            block[head..].rotate_left((turn + index) % length);
            let (left, right) = (head + seed.index(length), head + (turn * 7) % length);
            block.swap(left, right);
        }
        let tables = blocks.len() - 1;
        blocks[1..].rotate_left(turn % tables);
        let shuffled = blocks.concat().join("\n");
        let spec = spec::parse(&SpecFile::new(path, shuffled), &[]).unwrap();
        prop_assert_eq!(spec.env_hash().unwrap(), expected.env_hash().unwrap());
        prop_assert_eq!(spec, expected);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}") {
        let file = SpecFile::new("specs/acme__widget/1.0.toml", text);
        if let Err(errors) = spec::parse(&file, &[]) {
            errors.render(false);
        }
        let _ = spec::parse_base(&file);
    }

    #[test]
    fn no_requirement_makes_the_parser_panic(
        text in "[a-z.-]{0,3} ?(\\[[a-b,._-]{0,5}\\]?)? ?([<>=!~]{1,3}[0-9.*a-z!+-]{0,6},?){0,2}( ?;.{0,20})?",
        marker in "(python_version|extra|os_name|sys_platform|implementation_version|'3') ?(<|>=|==|!=|~=|in|not in|===) ?('[0-9.a-z* -]{0,5}'|platform_version|python_full_version)",
    ) {
        let list = serde_json::to_string(&[text.clone(), format!("{text};{marker}"), format!("a; {marker} and not ({marker} or {marker})"), format!("a; {marker} and {marker} or {marker}")]).unwrap();
        let spec = format!("[dependencies]\nrequirements = {list}");
        let _ = spec::parse(&SpecFile::new("specs/acme__widget/1.0.toml", spec), &[]);
    }

    #[test]
    fn no_edit_of_a_spec_makes_the_parser_panic(
        at in any::<prop::sample::Index>(),
        cut in 0..40_usize,
        insert in "[\\[\\]{}=\"'.#\\\\\n\u{0}\u{7f}a-zé0-9,-]{0,12}",
    ) {
        let text = fs_err::read_to_string(fixtures().join("valid/full.toml")).unwrap();
        let mut chars: Vec<char> = text.chars().collect();
        let start = at.index(chars.len());
        let end = (start + cut).min(chars.len());
        chars.splice(start..end, insert.chars());
        let text: String = chars.into_iter().collect();
        let file = SpecFile::new("specs/acme__widget/1.0.toml", text);
        if let Err(errors) = spec::parse(&file, &[]) {
            prop_assert!(!errors.is_empty());
            errors.render(false);
        }
    }
}

#[test]
fn the_committed_schemas_are_those_of_the_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema");
    for (name, schema) in [("spec", spec::schema()), ("base", spec::base_schema())] {
        let path = folder.join(format!("{name}.schema.json"));
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let update = option_env!("HALLMARK_UPDATE_SCHEMAS").is_some();
        if update {
            fs_err::write(&path, &text).unwrap();
        }
        assert_eq!(
            fs_err::read_to_string(&path).unwrap_or_default(),
            text,
            "run the tests with HALLMARK_UPDATE_SCHEMAS=1 set while compiling"
        );
    }
}
