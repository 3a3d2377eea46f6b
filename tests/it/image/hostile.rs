//! Archives that lie, escape or explode: each is refused by its own error, and nothing is left.

use std::io::{Read, Write as _};
use std::path::Path;

use hallmark::base::Cancel;
use hallmark::image::{Error, Limits, Problem, import_layer, unpack};
use tar::{EntryType, Header};

use super::support::{Shop, is_root, listing};

/// One entry, written field by field so that it can say what no sane writer would.
fn entry(name: &[u8], entry_type: EntryType, link: &[u8], content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_ustar();
    let ustar = header.as_ustar_mut().unwrap();
    ustar.name[..name.len()].copy_from_slice(name);
    ustar.linkname[..link.len()].copy_from_slice(link);
    header.set_entry_type(entry_type);
    header.set_mode(0o644);
    header.set_uid(rustix::process::geteuid().as_raw().into());
    header.set_gid(rustix::process::getegid().as_raw().into());
    header.set_mtime(7);
    header.set_size(content.len() as u64);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn file(name: &str) -> Vec<u8> {
    entry(name.as_bytes(), EntryType::Regular, b"", b"x")
}

fn folder(name: &str) -> Vec<u8> {
    entry(name.as_bytes(), EntryType::Directory, b"", b"")
}

fn symlink(name: &str, target: &str) -> Vec<u8> {
    entry(name.as_bytes(), EntryType::Symlink, target.as_bytes(), b"")
}

fn hard_link(name: &str, target: &str) -> Vec<u8> {
    entry(name.as_bytes(), EntryType::Link, target.as_bytes(), b"")
}

fn pax(records: &[u8]) -> Vec<u8> {
    entry(b"pax", EntryType::XHeader, b"", records)
}

/// A header that claims a size without having the bytes.
fn claiming(size: u64) -> Vec<u8> {
    let mut header = Header::new_ustar();
    header.as_ustar_mut().unwrap().name[0] = b'a';
    header.set_entry_type(EntryType::Regular);
    header.set_size(size);
    header.set_mode(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    header.as_bytes().to_vec()
}

fn archive(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = entries.concat();
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn unpacked(bytes: impl Read, limits: &Limits) -> (tempfile::TempDir, Result<(), Error>) {
    let outer = tempfile::tempdir().unwrap();
    let target = outer.path().join("target");
    fs_err::create_dir(&target).unwrap();
    let result = unpack(bytes, &target, limits, &Cancel::new());
    // Whatever happens, nothing appears beside the target.
    assert_eq!(fs_err::read_dir(outer.path()).unwrap().count(), 1);
    (outer, result)
}

#[test]
fn hostile_entries_are_named_and_refused() {
    let outside = tempfile::tempdir().unwrap();
    let victim = outside.path().join("victim");
    fs_err::write(&victim, b"safe").unwrap();
    let outside = outside.path().to_str().unwrap();
    let link_problem = |target: &str| Problem::LinkTarget { target: target.to_owned() };
    let parent = |parent: &str| Problem::Parent { parent: parent.to_owned() };
    let table: Vec<(&str, Vec<Vec<u8>>, &str, Problem)> = vec![
        ("absolute", vec![file("/etc/passwd")], "/etc/passwd", Problem::Absolute),
        ("up", vec![file("../x")], "../x", Problem::Escapes),
        ("up inside", vec![file("a/../../x")], "a/../../x", Problem::Escapes),
        ("up in pax", vec![pax(b"13 path=../x\n"), file("a")], "../x", Problem::Escapes),
        ("NUL", vec![pax(b"12 path=a\0b\n"), file("a")], "a\\x00b", Problem::BadName),
        ("no name", vec![entry(b"", EntryType::Regular, b"", b"")], "/", Problem::BadName),
        (
            "through a symlink",
            vec![symlink("out", outside), file("out/victim")],
            "out/victim",
            parent("out"),
        ),
        (
            "through two",
            vec![folder("a"), symlink("a/b", ".."), symlink("a/b/c", "..")],
            "a/b/c",
            parent("a/b"),
        ),
        ("through a file", vec![file("a"), file("a/b")], "a/b", parent("a")),
        ("over a symlink", vec![symlink("a", outside), file("a")], "a", Problem::Duplicate),
        ("twice", vec![file("a"), file("./a")], "a", Problem::Duplicate),
        ("folder twice", vec![folder("a"), folder("a/")], "a", Problem::Duplicate),
        ("root twice", vec![folder("./"), folder(".")], "/", Problem::Duplicate),
        ("root is a file", vec![file(".")], "/", Problem::Duplicate),
        (
            "link out",
            vec![hard_link("a", "../../etc/passwd")],
            "a",
            link_problem("../../etc/passwd"),
        ),
        ("link to absolute", vec![hard_link("a", "/etc/passwd")], "a", link_problem("/etc/passwd")),
        ("link to nothing", vec![hard_link("a", "b")], "a", link_problem("b")),
        ("link to itself", vec![hard_link("a", "a")], "a", link_problem("a")),
        ("link to a folder", vec![folder("b"), hard_link("a", "b")], "a", link_problem("b")),
        (
            "link through a symlink",
            vec![symlink("out", outside), hard_link("a", "out/victim")],
            "a",
            link_problem("out/victim"),
        ),
        ("device", vec![entry(b"null", EntryType::Char, b"", b"")], "null", Problem::Device),
        ("disk", vec![entry(b"sda", EntryType::Block, b"", b"")], "sda", Problem::Device),
        ("sparse", vec![entry(b"s", EntryType::GNUSparse, b"", b"")], "s", Problem::Type),
        ("whiteout of ..", vec![file("a/.wh...")], "a/.wh...", Problem::Escapes),
        ("whiteout of .", vec![file(".wh..")], ".wh..", Problem::Escapes),
        ("whiteout of nothing", vec![file(".wh.")], ".wh.", Problem::Escapes),
        ("aufs", vec![file(".wh..wh.plnk")], ".wh..wh.plnk", Problem::Escapes),
        ("folder whiteout", vec![folder(".wh.a")], ".wh.a", Problem::ReservedName),
        (
            "long name",
            vec![pax(&[b"270 path=", &[b'n'; 260][..], b"\n"].concat()), file("a")],
            "",
            { Problem::TooLong },
        ),
        (
            "big id",
            vec![pax(b"18 uid=4294967296\n"), file("a")],
            "a",
            Problem::Header { field: "user id" },
        ),
    ];
    for (case, entries, expected_entry, expected) in table {
        if case.starts_with("whiteout") && !is_root(case) {
            continue;
        }
        let (_outer, result) = unpacked(&archive(&entries)[..], &Limits::default());
        match result {
            Err(Error::Archive { entry, problem }) => {
                assert_eq!(problem, expected, "{case}");
                if !expected_entry.is_empty() {
                    assert_eq!(entry, expected_entry, "{case}");
                }
            }
            other => panic!("{case}: {other:?}"),
        }
    }
    assert_eq!(fs_err::read(&victim).unwrap(), b"safe");
}

#[test]
fn damaged_archives_are_refused_with_the_place() {
    let mut bad_sum = archive(&[file("a")]);
    bad_sum[0] = b'b';
    let cut_header = file("a")[..100].to_vec();
    let cut_content = file("a")[..600].to_vec();
    for (case, bytes, offset, problem) in [
        ("checksum", bad_sum, 512, "the checksum of a header is wrong"),
        ("cut header", cut_header, 0, "it ends in the middle of a header"),
        ("cut content", cut_content, 513, "it ends in the middle of an entry"),
        ("8 GiB that are not there", claiming(8 << 30), 512, "it ends in the middle of a file"),
        ("pax", archive(&[pax(b"99 path=x\n")]), 1024, "a pax record does not read"),
        ("pax number", archive(&[pax(b"11 size=-1\n")]), 1024, "a pax record does not read"),
        ("not an archive", vec![b'#'; 2048], 512, "the checksum of a header is wrong"),
    ] {
        match unpacked(&bytes[..], &Limits::default()).1 {
            Err(Error::Damaged { offset: at, problem: what }) => {
                assert_eq!((at, what), (offset, problem), "{case}");
            }
            other => panic!("{case}: {other:?}"),
        }
    }
}

#[test]
fn bombs_stop_at_their_limit() {
    let limits = Limits { bytes: 1 << 20, entries: 10 };
    // A header that claims too much is refused before anything is read or written.
    let (_outer, result) = unpacked(&claiming(2 << 20)[..], &limits);
    let problem = Problem::TooBig { limit: 1 << 20 };
    assert!(matches!(result, Err(Error::Archive { problem: p, .. }) if p == problem));
    // A pax header of 8 GiB takes no memory.
    let mut huge = Header::new_ustar();
    huge.set_entry_type(EntryType::XHeader);
    huge.set_size(8 << 30);
    huge.set_cksum();
    let endless = huge.as_bytes().chain(std::io::repeat(b'1'));
    let (_outer, result) = unpacked(endless, &Limits::default());
    assert!(matches!(result, Err(Error::Damaged { .. })), "{result:?}");
    // Zeros after the end.
    let (_outer, result) = unpacked(std::io::repeat(0), &limits);
    assert!(matches!(result, Err(Error::Archive { problem: p, .. }) if p == problem));
    let many: Vec<Vec<u8>> = (0..11).map(|index| file(&format!("f{index}"))).collect();
    let (_outer, result) = unpacked(&archive(&many)[..], &limits);
    assert!(
        matches!(result, Err(Error::Archive { problem: Problem::TooMany { limit: 10 }, entry })
            if entry == "f10")
    );
    // 32 MiB of zeros in a few KiB of gzip, for a layer.
    let shop = Shop::new();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&claiming(100 << 30)).unwrap();
    for _ in 0..32 {
        gzip.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let blob = shop.store.put_blob(&gzip.finish().unwrap()).unwrap();
    let error = import_layer(&shop.store, &blob, &Cancel::new()).unwrap_err();
    assert!(matches!(error, Error::Archive { problem: Problem::TooBig { .. }, .. }), "{error}");
    assert_eq!(fs_err::read_dir(shop.store.root().join("layers")).unwrap().count(), 0);
}

#[test]
fn layers_from_outside_come_in_whole() {
    if !is_root("layers_from_outside_come_in_whole") {
        return;
    }
    let shop = Shop::new();
    // GNU long names, folders that were forgotten, a whiteout beside what replaces it, a time with a fraction.
    let long = "l".repeat(150);
    let bytes = archive(&[
        file("a/b/forgotten"),
        file("a/.wh.gone"),
        file("a/.wh.replaced"),
        folder("a/replaced"),
        folder("a/other"),
        file("a/other/.wh..wh..opq"),
        pax(b"14 mtime=9.75\n30 SCHILY.xattr.user.note=yes\n34 SCHILY.xattr.trusted.x=dropped\n"),
        file("a/noted"),
        entry(b"././@LongLink", EntryType::GNULongName, b"", format!("{long}\0").as_bytes()),
        file("short"),
        symlink("a/absolute", "/etc"),
        hard_link("a/again", "./a/noted"),
    ]);
    let plain = shop.store.put_blob(&bytes).unwrap();
    let layer = import_layer(&shop.store, &plain, &Cancel::new()).unwrap();
    assert_eq!(layer.diff_id, plain);
    let lines = listing(&shop.store.layer_path(&layer.diff_id));
    let x = " 1 2d711642b726";
    let expected = [
        " 40755 0:0 0.0".to_owned(),
        "a 40755 0:0 0.0".to_owned(),
        "a/absolute 120777 0:0 7.0 -> /etc".to_owned(),
        format!("a/again 100644 0:0 9.0{x} =a/again user.note=yes"),
        "a/b 40755 0:0 0.0".to_owned(),
        format!("a/b/forgotten 100644 0:0 7.0{x}"),
        "a/gone 20000 0:0 0.0 0".to_owned(),
        format!("a/noted 100644 0:0 9.0{x} =a/again user.note=yes"),
        "a/other 40644 0:0 7.0 user.overlay.opaque=y".to_owned(),
        "a/replaced 40644 0:0 7.0 user.overlay.opaque=y".to_owned(),
        format!("{long} 100644 0:0 7.0{x}"),
    ];
    assert_eq!(lines, expected);
    // The same archive compressed is the same layer.
    let zstd = shop.store.put_blob(&zstd::encode_all(&bytes[..], 1).unwrap()).unwrap();
    assert_eq!(import_layer(&shop.store, &zstd, &Cancel::new()).unwrap(), layer);
}

#[test]
fn a_blob_that_was_changed_on_disk_makes_no_layer() {
    use hallmark::image::{Compressor, PackRules, compress, ensure_unpacked, remove_tree};
    let shop = Shop::new();
    let tree = shop.tree();
    fs_err::write(tree.join("a"), vec![b'a'; 100_000]).unwrap();
    let layer = shop.commit(tree, &PackRules::root(1));
    let blob = compress(&shop.store, &layer, Compressor::default(), &Cancel::new()).unwrap();
    let path = shop.store.blob_path(&blob.digest);
    let mut bytes = fs_err::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs_err::write(&path, bytes).unwrap();
    remove_tree(&shop.store.layer_path(&layer.diff_id)).unwrap();
    ensure_unpacked(&shop.store, &layer, &Cancel::new()).unwrap_err();
    assert!(!Path::new(&shop.store.layer_path(&layer.diff_id)).exists());
    assert_eq!(fs_err::read_dir(shop.store.root().join("layers")).unwrap().count(), 0);
}
