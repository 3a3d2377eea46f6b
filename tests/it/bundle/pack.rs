//! One file for a machine without a network.

use std::path::Path;

use hallmark::base::{Cancel, Digest, Store, canon};
use hallmark::bundle::{self, Error, PackReport};
use hallmark::lock::FileRef;
use serde_json::json;

use super::{blob_names, file_of, silent, store};

fn contents() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("a-1.0-py3-none-any.whl", vec![1; 1000]),
        ("b-1.0.tar.gz", Vec::new()),
        ("c-1.0.tar.gz", (0..2048_u32).flat_map(u32::to_le_bytes).collect()),
        ("d-1.0.whl", vec![4; 512]),
        ("same-as-d-1.0.whl", vec![4; 512]),
    ]
}

fn filled(store: &Store) -> Vec<FileRef> {
    contents()
        .iter()
        .map(|(name, content)| {
            store.put_blob(content).unwrap();
            file_of(name, content)
        })
        .collect()
}

fn pack(store: &Store, files: &[FileRef], out: &Path) -> Result<PackReport, Error> {
    bundle::pack(store, files, out, &silent(), &Cancel::new())
}

fn unpack(store: &Store, path: &Path) -> Result<PackReport, Error> {
    bundle::unpack(store, path, &silent(), &Cancel::new())
}

#[test]
fn a_bundle_travels_in_one_file_that_is_always_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let from = store(&folder);
    let mut files = filled(&from);
    let out = folder.path().join("bundle.tar");
    let packed = pack(&from, &files, &out).unwrap();
    assert_eq!((packed.written, packed.files.len()), (4, 5));
    let bytes = fs_err::read(&out).unwrap();
    assert_eq!(bytes.len() as u64, packed.size);

    files.reverse();
    files.push(files[0].clone());
    pack(&from, &files, &out).unwrap();
    assert_eq!(fs_err::read(&out).unwrap(), bytes);

    // An outside reader sees a plain tar.
    let mut archive = tar::Archive::new(bytes.as_slice());
    let names: Vec<_> = archive
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().display().to_string())
        .collect();
    assert_eq!(names[0], "hallmark-bundle.json");
    assert!(names[1..].is_sorted() && names.len() == 5, "{names:?}");

    let elsewhere = tempfile::tempdir().unwrap();
    let to = store(&elsewhere);
    let unpacked = unpack(&to, &out).unwrap();
    assert_eq!((unpacked.written, &unpacked.files), (4, &packed.files));
    assert_eq!(blob_names(&to), blob_names(&from));
    assert_eq!(bundle::verify(&to, &files, &Cancel::new()).unwrap().len(), 0);
    assert_eq!(unpack(&to, &out).unwrap().written, 0);
}

#[test]
fn what_is_not_there_is_not_packed() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let files = filled(&store);
    let out = folder.path().join("bundle.tar");
    // Damaged, with the right length.
    fs_err::write(store.blob_path(&files[0].sha256), [9; 1000]).unwrap();
    assert!(matches!(
        pack(&store, &files, &out),
        Err(Error::Base(hallmark::base::Error::DigestMismatch { .. }))
    ));
    fs_err::remove_file(store.blob_path(&files[0].sha256)).unwrap();
    assert!(matches!(pack(&store, &files, &out), Err(Error::Missing { .. })));
    assert!(!out.exists());
    assert_eq!(bundle::missing(&store, &files).unwrap(), [files[0].clone()]);
}

#[test]
fn a_damaged_archive_brings_in_nothing_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let from = store(&folder);
    let files = filled(&from);
    let out = folder.path().join("bundle.tar");
    pack(&from, &files, &out).unwrap();
    let good = fs_err::read(&out).unwrap();
    let known = blob_names(&from);
    let bad = folder.path().join("bad.tar");

    let mut cases: Vec<(String, Vec<u8>)> = Vec::new();
    for length in [0, 1, 511, 512, 600, 1024, good.len() / 2, good.len() - 1024, good.len() - 1] {
        cases.push((format!("cut to {length}"), good[..length].to_vec()));
    }
    for place in (0..good.len()).step_by(97) {
        let mut bytes = good.clone();
        bytes[place] ^= 0x20;
        cases.push((format!("bit flipped at {place}"), bytes));
    }
    cases.push(("longer".to_owned(), [good.as_slice(), &[0; 512]].concat()));
    cases.push(("not ours".to_owned(), vec![b'x'; 4096]));
    for (what, bytes) in cases {
        let elsewhere = tempfile::tempdir().unwrap();
        let to = store(&elsewhere);
        fs_err::write(&bad, &bytes).unwrap();
        let result = unpack(&to, &bad);
        assert!(result.is_err(), "{what} was taken");
        for name in blob_names(&to) {
            assert!(known.contains(&name), "{what} brought in {name}");
            let bytes = fs_err::read(to.root().join("blobs/sha256").join(&name)).unwrap();
            assert_eq!(Digest::of(bytes).hex(), name, "{what}");
        }
    }
}

/// An archive written by a stranger.
fn archive(path: &Path, index: &serde_json::Value, entries: &[(&str, &[u8])]) {
    let mut out = Vec::new();
    let index = canon::to_vec(index).unwrap();
    let all =
        std::iter::once(("hallmark-bundle.json", index.as_slice())).chain(entries.iter().copied());
    for (name, content) in all {
        let mut header = tar::Header::new_ustar();
        // `set_path` would refuse the names of interest.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_entry_type(tar::EntryType::Regular);
        header.set_cksum();
        out.extend(header.as_bytes());
        out.extend(content);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    fs_err::write(path, out).unwrap();
}

/// What it is, its index, its entries, and what must be said of it.
type Forged<'a> = (&'a str, serde_json::Value, Vec<(&'a str, &'a [u8])>, &'a str);

#[test]
fn a_forged_archive_is_refused_with_the_reason() {
    let a = file_of("a-1.whl", b"aaa");
    let b = file_of("b-1.whl", b"bbb");
    let name = |file: &FileRef| format!("blobs/sha256/{}", file.sha256.hex());
    let (low, high) = if a.sha256 < b.sha256 { (&a, &b) } else { (&b, &a) };
    let bytes = |file: &FileRef| if file == &a { &b"aaa"[..] } else { b"bbb" };
    let (low_name, high_name) = (name(low), name(high));
    let evil = FileRef { name: "../evil".to_owned(), ..a.clone() };
    let two = json!({ "files": [a, b], "version": 1 });
    let low_entry = (low_name.as_str(), bytes(low));
    let high_entry = (high_name.as_str(), bytes(high));
    let table: Vec<Forged<'_>> = vec![
        ("in order", two.clone(), vec![low_entry, high_entry], ""),
        ("out of order", two.clone(), vec![high_entry, low_entry], "in the place of"),
        ("twice", two.clone(), vec![low_entry, low_entry], "in the place of"),
        (
            "traversal",
            two.clone(),
            vec![low_entry, ("../../x", b"bbb")],
            "holds `../../x` in the place",
        ),
        (
            "absolute",
            two.clone(),
            vec![low_entry, ("/etc/x", b"bbb")],
            "holds `/etc/x` in the place",
        ),
        ("one too few", two.clone(), vec![low_entry], "its index says"),
        ("one too many", two.clone(), vec![low_entry, high_entry, high_entry], "its index says"),
        ("other bytes", two, vec![low_entry, (high_name.as_str(), b"xxx")], "expected sha256:"),
        (
            "newer",
            json!({ "files": {}, "version": 2 }),
            vec![],
            "bundle format 2, this hallmark reads 1",
        ),
        ("no version", json!({ "files": [] }), vec![], "missing field `version`"),
        (
            "a path",
            json!({ "files": [evil], "version": 1 }),
            vec![],
            "\"../evil\" is not a file name",
        ),
        ("unsorted", json!({ "files": [b, a], "version": 1 }), vec![], "not sorted"),
        ("named twice", json!({ "files": [a, a], "version": 1 }), vec![], "names a file twice"),
        ("more", json!({ "extra": 1, "files": [], "version": 1 }), vec![], "unknown field `extra`"),
    ];
    for (what, index, entries, reason) in table {
        let folder = tempfile::tempdir().unwrap();
        let to = store(&folder);
        let path = folder.path().join("forged.tar");
        archive(&path, &index, &entries);
        match unpack(&to, &path) {
            Ok(_) => assert_eq!(reason, "", "{what} was taken"),
            Err(error) => {
                let text = error.to_string();
                assert!(!reason.is_empty() && text.contains(reason), "{what}: {text}");
            }
        }
        assert!(blob_names(&to).iter().all(|name| !name.starts_with('.')), "{what}");
    }
}
