//! Wheels that are what they say, and wheels that lie.

use std::collections::BTreeMap;
use std::path::Path;

use hallmark::build::wheel::{Installed, unpack};
use hallmark::resolve::python::Scheme;
use proptest::prelude::*;

use super::scaffold::{WheelMaker, raw_zip};

pub(super) fn scheme() -> Scheme {
    Scheme {
        purelib: "/usr/local/lib/python3.11/dist-packages".to_owned(),
        platlib: "/usr/local/lib/python3.11/plat-packages".to_owned(),
        headers: "/usr/local/include/python3.11".to_owned(),
        scripts: "/usr/local/bin".to_owned(),
        data: "/usr/local".to_owned(),
        python: "/usr/bin/python3".to_owned(),
    }
}

fn try_unpack(bytes: &[u8], file: &str, root: &Path) -> Result<Installed, String> {
    let wheel = tempfile::NamedTempFile::new().unwrap();
    fs_err::write(wheel.path(), bytes).unwrap();
    unpack(wheel.path(), file, &scheme(), root).map_err(|error| error.to_string())
}

/// Every file below `root`: path, mode, contents.
fn tree(root: &Path) -> BTreeMap<String, (u32, String)> {
    use std::os::unix::fs::PermissionsExt as _;
    walkdir::WalkDir::new(root)
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| {
            let path = entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let mode = entry.metadata().unwrap().permissions().mode() & 0o7777;
            (path, (mode, fs_err::read_to_string(entry.path()).unwrap()))
        })
        .collect()
}

#[test]
fn every_kind_of_file_has_its_place() {
    let bytes = WheelMaker::new("My_Dist", "1.0")
        .file("my/__init__.py", "x = 1\n")
        .executable("my/tool.sh", "#!/bin/sh\n")
        .file("my/__pycache__/__init__.cpython-311.pyc", "made elsewhere")
        .file("my/__pycache__/alone.cpython-311.pyc", "no source")
        .file("My_Dist-1.0.data/scripts/run", "#!python -u\nprint()\n")
        .file("My_Dist-1.0.data/scripts/plain", "#!/bin/sh\n")
        .file("My_Dist-1.0.data/scripts/point", "#!python\nold wrapper\n")
        .file("My_Dist-1.0.data/headers/my.h", "int x;\n")
        .file("My_Dist-1.0.data/data/share/my/data.txt", "data\n")
        .file("My_Dist-1.0.data/purelib/pure.py", "")
        .file("My_Dist-1.0.data/platlib/plat.py", "")
        .file("My_Dist-1.0.dist-info/entry_points.txt", "[console_scripts]\npoint = my:main\n")
        .bytes();
    let root = tempfile::tempdir().unwrap();
    let installed = try_unpack(&bytes, "My_Dist-1.0-py3-none-any.whl", root.path()).unwrap();
    assert_eq!((installed.name.as_str(), installed.version.as_str()), ("my-dist", "1.0"));
    let found = tree(root.path());
    let modes: Vec<(&str, u32)> =
        found.iter().map(|(path, (mode, _))| (path.as_str(), *mode)).collect();
    let library = "usr/local/lib/python3.11/dist-packages";
    let expected = [
        ("usr/local/bin/plain".to_owned(), 0o755),
        ("usr/local/bin/point".to_owned(), 0o755),
        ("usr/local/bin/run".to_owned(), 0o755),
        ("usr/local/include/python3.11/My_Dist/my.h".to_owned(), 0o644),
        (format!("{library}/My_Dist-1.0.dist-info/METADATA"), 0o644),
        (format!("{library}/My_Dist-1.0.dist-info/RECORD"), 0o644),
        (format!("{library}/My_Dist-1.0.dist-info/WHEEL"), 0o644),
        (format!("{library}/My_Dist-1.0.dist-info/entry_points.txt"), 0o644),
        (format!("{library}/my/__init__.py"), 0o644),
        (format!("{library}/my/__pycache__/alone.cpython-311.pyc"), 0o644),
        (format!("{library}/my/tool.sh"), 0o755),
        (format!("{library}/pure.py"), 0o644),
        ("usr/local/lib/python3.11/plat-packages/plat.py".to_owned(), 0o644),
        ("usr/local/share/my/data.txt".to_owned(), 0o644),
    ];
    let expected: Vec<(&str, u32)> =
        expected.iter().map(|(path, mode)| (path.as_str(), *mode)).collect();
    assert_eq!(modes, expected);
    assert_eq!(
        installed.files,
        expected.iter().map(|(path, _)| format!("/{path}")).collect::<Vec<_>>()
    );
    assert_eq!(found["usr/local/bin/run"].1, "#!/usr/bin/python3\nprint()\n");
    assert_eq!(
        found["usr/local/bin/point"].1,
        "#!/usr/bin/python3\nimport sys\nfrom my import main\nif __name__ == \"__main__\":\n    sys.exit(main())\n"
    );
    // RECORD lists what was written, scripts included, by relative paths; its hashes are right.
    let record = &found[&format!("{library}/My_Dist-1.0.dist-info/RECORD")].1;
    let mut rows = 0;
    for line in record.lines() {
        let [path, hash, size] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
        rows += 1;
        if path.ends_with("RECORD") {
            assert_eq!((hash, size), ("", ""));
            continue;
        }
        let path = root.path().join(library).join(path);
        let bytes = fs_err::read(&path).unwrap();
        assert_eq!(size, bytes.len().to_string());
        assert_eq!(hash, format!("sha256={}", super::scaffold::base64_url(&bytes)));
    }
    assert_eq!(rows, expected.len());
    assert!(record.contains("../../../bin/run,"), "{record}");
    let mut lines: Vec<_> = record.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, record.lines().collect::<Vec<_>>());
}

#[test]
fn lies_and_attacks_are_refused() {
    let good = || WheelMaker::new("d", "1").file("d.py", "x\n");
    let platform = "Wheel-Version: 1.0\nRoot-Is-Purelib: false\n";
    let table: Vec<(&str, Vec<u8>, &str)> = vec![
        (
            "parent folder",
            good().file("../evil", "").bytes(),
            "`../evil` leaves the wheel's own folder",
        ),
        (
            "absolute",
            good().file("/etc/evil", "").bytes(),
            "`/etc/evil` leaves the wheel's own folder",
        ),
        (
            "inner parent",
            good().file("a/../../evil", "").bytes(),
            "`a/../../evil` leaves the wheel's own folder",
        ),
        (
            "parent in data",
            good().file("d-1.data/scripts/../../evil", "").bytes(),
            "`d-1.data/scripts/../../evil` leaves the wheel's own folder",
        ),
        ("link", good().symlink("link", "/etc/passwd").bytes(), "`link` is a symbolic link"),
        (
            "wrong hash",
            good().row("d.py", "sha256=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "2").bytes(),
            "`d.py`: RECORD says 0000000000000000000000000000000000000000000000000000000000000000, the contents are 73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79dda2aac7d9ac",
        ),
        (
            "wrong size",
            good().row("d.py", "sha256=c8s4WKaHqElMoyMwUwFigvPa050s9iyk553aKqx9msw", "3").bytes(),
            "`d.py`: RECORD says 3 bytes, the archive holds 2",
        ),
        ("no hash", good().row("d.py", "", "").bytes(), "RECORD has no hash of `d.py`"),
        (
            "weak hash",
            good().row("d.py", "md5=AAAA", "2").bytes(),
            "RECORD: `d.py` has a hash of the kind `md5`",
        ),
        ("no row", good().without_row("d.py").bytes(), "RECORD does not list `d.py`"),
        (
            "row of nothing",
            good()
                .row("ghost.py", "sha256=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "2")
                .bytes(),
            "RECORD lists `ghost.py`, which the wheel does not hold",
        ),
        (
            "two entries of one name",
            raw_zip(&[("d.py", b"1", 0o644), ("d.py", b"2", 0o644)]),
            "two entries are named `d.py`",
        ),
        (
            "two entries of one place",
            good().file("d-1.data/purelib/d.py", "y\n").bytes(),
            "`d-1.data/purelib/d.py` and `d.py` both become /usr/local/lib/python3.11/dist-packages/d.py",
        ),
        (
            "file and folder",
            good().file("d.py/x", "").bytes(),
            "/usr/local/lib/python3.11/dist-packages/d.py is a file and the folder of /usr/local/lib/python3.11/dist-packages/d.py/x",
        ),
        (
            "two dist-infos",
            good().file("e-1.dist-info/METADATA", "").bytes(),
            "more than one .dist-info folder: d-1.dist-info, e-1.dist-info",
        ),
        ("another name inside", WheelMaker::new("e", "1").bytes(), "`e-1.dist-info` is not of d 1"),
        (
            "another version inside",
            WheelMaker::new("d", "2").bytes(),
            "`d-2.dist-info` is not of d 1",
        ),
        (
            "another name in METADATA",
            good().file("d-1.dist-info/METADATA", "Name: f\n").bytes(),
            "METADATA is of `f`, the wheel's name says `d`",
        ),
        (
            "newer format",
            good()
                .file("d-1.dist-info/WHEEL", "Wheel-Version: 2.0\nRoot-Is-Purelib: true\n")
                .bytes(),
            "the wheel's format has version 2.0, known is 1",
        ),
        ("no dist-info", raw_zip(&[("d.py", b"", 0o644)]), "no .dist-info folder"),
        (
            "unknown place",
            good().file("d-1.data/etc/x", "").bytes(),
            "`d-1.data/etc/x` has an unknown install path",
        ),
        (
            "bad entry point",
            good()
                .file("d-1.dist-info/entry_points.txt", "[console_scripts]\n../../x = a:b\n")
                .bytes(),
            "the entry point `../../x = a:b` is not `name = module:object`",
        ),
        ("not a zip", b"PK nothing".to_vec(), "not a zip archive, or cut short"),
        ("cut", good().bytes()[..100].to_vec(), "not a zip archive, or cut short"),
        (
            "nothing purelib or not",
            good().file("d-1.dist-info/WHEEL", &platform.replace("false", "maybe")).bytes(),
            "WHEEL does not say whether its root is purelib",
        ),
    ];
    for (name, bytes, problem) in table {
        let root = tempfile::tempdir().unwrap();
        let inside = root.path().join("root");
        fs_err::create_dir(&inside).unwrap();
        let error = try_unpack(&bytes, "d-1-py3-none-any.whl", &inside).unwrap_err();
        assert_eq!(error, format!("d-1-py3-none-any.whl: {problem}"), "{name}");
        let outside: Vec<_> = fs_err::read_dir(root.path()).unwrap().collect();
        assert_eq!(outside.len(), 1, "{name}");
    }
    let root = tempfile::tempdir().unwrap();
    assert!(try_unpack(&good().bytes(), "d-1-py3-none-any.whl", root.path()).is_ok());
    let root = tempfile::tempdir().unwrap();
    assert!(
        try_unpack(&good().bytes(), "d-1.whl", root.path())
            .unwrap_err()
            .contains("not a wheel's name")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the files, RECORD lists each of them with its hash, and a second unpacking gives the same tree.
    #[test]
    fn record_lists_what_is_there(
        files in prop::collection::btree_map("[a-z]{1,3}(/[a-zü ,\"]{1,4})?\\.py", "[ -~]{0,20}", 1..6)
    ) {
        let mut maker = WheelMaker::new("d", "1");
        for (path, text) in &files {
            maker = maker.file(path, text);
        }
        let bytes = maker.bytes();
        let roots = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let trees = roots.each_ref().map(|root| {
            try_unpack(&bytes, "d-1-py3-none-any.whl", root.path()).unwrap();
            tree(root.path())
        });
        prop_assert_eq!(&trees[0], &trees[1]);
        let library = "usr/local/lib/python3.11/dist-packages/";
        let record = &trees[0][&format!("{library}d-1.dist-info/RECORD")].1;
        prop_assert_eq!(record.lines().count(), trees[0].len());
        for (path, text) in &files {
            prop_assert_eq!(&trees[0][&format!("{library}{path}")].1, text);
            prop_assert!(record.contains(&super::scaffold::base64_url(text.as_bytes())));
        }

    }
}
