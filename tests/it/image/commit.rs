//! A tree becomes a layer: the same bytes from the same content, and an unpacked folder equal to them.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use hallmark::base::Cancel;
use hallmark::image::{
    Compressor, Error, PackRules, Problem, commit_tree, compress, ensure_unpacked, remove_tree,
};

use super::support::{Shop, is_root, listing};

/// A name of 255 bytes.
fn long_name(fill: char) -> String {
    std::iter::repeat_n(fill, 255).collect()
}

/// One of everything that needs no privilege; `backwards` makes it in the other order.
fn make_all(root: &Path, backwards: bool) {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let deep = (0..120).map(|level| format!("d{level}")).collect::<Vec<_>>().join("/");
    let mut parts: Vec<Box<dyn Fn()>> = vec![
        Box::new(|| fs_err::create_dir_all(root.join("a")).unwrap()),
        Box::new(|| fs_err::write(root.join("a-b"), b"x").unwrap()),
        Box::new(|| fs_err::write(root.join("a.b"), b"").unwrap()),
        Box::new(|| fs_err::write(root.join("big"), vec![7; 3_000_001]).unwrap()),
        Box::new(|| {
            fs_err::create_dir_all(root.join("a/empty")).unwrap();
            fs_err::set_permissions(root.join("a/empty"), std::fs::Permissions::from_mode(0o1777))
                .unwrap();
        }),
        Box::new(|| {
            fs_err::write(root.join("setuid"), b"#!/bin/sh\n").unwrap();
            fs_err::set_permissions(root.join("setuid"), std::fs::Permissions::from_mode(0o6755))
                .unwrap();
            fs_err::hard_link(root.join("setuid"), root.join("setuid-2")).unwrap();
        }),
        Box::new(|| symlink("../somewhere/else", root.join("dangling")).unwrap()),
        Box::new(|| symlink(long_name('t'), root.join("long-target")).unwrap()),
        Box::new(|| fs_err::write(root.join(long_name('n')), b"long").unwrap()),
        Box::new(|| fs_err::write(root.join("ünïcode-名前"), b"u").unwrap()),
        Box::new(|| fs_err::write(root.join(OsStr::from_bytes(b"not-utf8-\xff")), b"b").unwrap()),
        Box::new(|| fs_err::write(root.join("new\nline"), b"n").unwrap()),
        Box::new(|| {
            fs_err::create_dir_all(root.join(&deep)).unwrap();
            fs_err::write(root.join(&deep).join(long_name('m')), b"deep").unwrap();
        }),
        Box::new(|| {
            let sparse = fs_err::File::create(root.join("sparse")).unwrap();
            sparse.set_len(1 << 20).unwrap();
        }),
        Box::new(|| {
            fs_err::write(root.join("noted"), b"n").unwrap();
            // Not every filesystem has attributes: then both trees lack them.
            let _ = xattr::set(root.join("noted"), "user.note", b"a\nb\0c");
        }),
    ];
    if backwards {
        parts.reverse();
    }
    for part in parts {
        part();
    }
}

#[test]
fn the_same_content_makes_the_same_bytes() {
    let (one, two) = (Shop::new(), Shop::new());
    let rules = PackRules::root(315_532_800).with_time("/a", 400_000_000);
    let first = one.tree();
    make_all(&first, false);
    let second = two.tree();
    // Other inodes, other times, another order of creation.
    for index in 0..50 {
        fs_err::write(second.join(format!("gone-{index}")), b"x").unwrap();
    }
    for index in 0..50 {
        fs_err::remove_file(second.join(format!("gone-{index}"))).unwrap();
    }
    make_all(&second, true);
    let old = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000, 5);
    fs_err::File::open(second.join("big")).unwrap().file().set_modified(old).unwrap();
    let layers = (one.commit(first, &rules), two.commit(second, &rules));
    assert_eq!(layers.0, layers.1);
    assert_eq!(
        listing(&one.store.layer_path(&layers.0.diff_id)),
        listing(&two.store.layer_path(&layers.1.diff_id))
    );
}

#[test]
fn the_archive_is_sorted_by_its_own_paths() {
    let shop = Shop::new();
    let tree = shop.tree();
    make_all(&tree, false);
    let layer = shop.commit(tree, &PackRules::root(1));
    let archive = shop.archive(&layer);
    let mut names = Vec::new();
    for entry in tar::Archive::new(&archive[..]).entries().unwrap() {
        let entry = entry.unwrap();
        names.push(entry.path_bytes().into_owned());
        assert_eq!(entry.header().mtime().unwrap(), 1);
        assert_eq!((entry.header().uid().unwrap(), entry.header().gid().unwrap()), (0, 0));
    }
    assert_eq!(names[0], b"./");
    assert!(names[1..].is_sorted());
    let place = |name: &[u8]| names.iter().position(|held| held == name).unwrap();
    assert!(place(b"a-b") < place(b"a/") && place(b"a/") < place(b"a/empty/"));
    assert_eq!(names.len(), 137);
}

#[test]
fn the_unpacked_layer_is_what_the_archive_unpacks_to() {
    let shop = Shop::new();
    let tree = shop.tree();
    make_all(&tree, false);
    let layer = shop.commit(tree, &PackRules::root(7).with_time("a", 9));
    let path = shop.store.layer_path(&layer.diff_id);
    let committed = listing(&path);
    assert!(
        committed.iter().any(|line| line.starts_with("a/empty 41777 ") && line.ends_with(" 9.0"))
    );
    // Packed again as it is: the same bytes.
    let gzip =
        compress(&shop.store, &layer, Compressor::Gzip { level: 1 }, &Cancel::new()).unwrap();
    assert_eq!(gzip.media_type, "application/vnd.oci.image.layer.v1.tar+gzip");
    remove_tree(&path).unwrap();
    ensure_unpacked(&shop.store, &layer, &Cancel::new()).unwrap();
    assert_eq!(listing(&path), committed);
}

#[test]
fn base_layers_keep_owners_and_older_files() {
    if !is_root("base_layers_keep_owners_and_older_files") {
        return;
    }
    let shop = Shop::new();
    let tree = shop.tree();
    fs_err::create_dir(tree.join("var")).unwrap();
    for (name, seconds) in [("old", 50), ("new", 500)] {
        let path = tree.join("var").join(name);
        fs_err::write(&path, name).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        fs_err::File::open(&path).unwrap().file().set_modified(time).unwrap();
        std::os::unix::fs::chown(&path, Some(33), Some(44)).unwrap();
    }
    let layer = shop.commit(tree, &PackRules::base(100));
    let lines = listing(&shop.store.layer_path(&layer.diff_id));
    let expected = [
        " 40755 0:0 100.0",
        "var 40755 0:0 100.0",
        "var/new 100644 33:44 100.0 3 11507a0e2f5e",
        "var/old 100644 33:44 50.0 3 cba06b5736fa",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn what_no_layer_can_hold_is_refused_and_the_tree_is_gone() {
    let shop = Shop::new();
    let refused = |make: &dyn Fn(&Path)| {
        let tree = shop.tree();
        make(&tree);
        let error = commit_tree(&shop.store, tree.clone(), &PackRules::root(1), &Cancel::new())
            .unwrap_err();
        assert!(!tree.exists());
        error
    };
    let error = refused(&|tree| fs_err::write(tree.join(".wh.x"), b"").unwrap());
    assert!(
        matches!(&error, Error::Tree { path, problem: Problem::ReservedName } if path == ".wh.x"),
        "{error}"
    );
    if is_root("device nodes are refused") {
        let error = refused(&|tree| {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(
                rustix::fs::CWD,
                tree.join("null"),
                rustix::fs::FileType::CharacterDevice,
                mode,
                rustix::fs::makedev(1, 3),
            )
            .unwrap();
        });
        assert_eq!(error.to_string(), "`null` cannot be part of a layer: it is a device node");
        assert!(error.hint().is_some());
    }
    let cancel = Cancel::new();
    cancel.cancel();
    let tree = shop.tree();
    fs_err::write(tree.join("x"), b"").unwrap();
    let error = commit_tree(&shop.store, tree, &PackRules::root(1), &cancel).unwrap_err();
    assert_eq!(error.to_string(), "interrupted");
    for folder in ["blobs/sha256", "layers", "steps"] {
        let left = fs_err::read_dir(shop.store.root().join(folder)).unwrap().count();
        assert_eq!(left, 0, "{folder}");
    }
}

#[test]
fn sockets_are_left_out() {
    let shop = Shop::new();
    let (with, without) = (shop.tree(), shop.tree());
    for tree in [&with, &without] {
        fs_err::write(tree.join("x"), b"").unwrap();
    }
    drop(std::os::unix::net::UnixListener::bind(with.join("socket")).unwrap());
    let rules = PackRules::root(1);
    let layer = shop.commit(with, &rules);
    assert_eq!(layer, shop.commit(without, &rules));
    assert!(!shop.store.layer_path(&layer.diff_id).join("socket").exists());
}

#[test]
fn trees_deeper_than_the_open_files_are_removed() {
    let shop = Shop::new();
    let tree = shop.tree();
    let mut folder = rustix::fs::open(
        &tree,
        rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )
    .unwrap();
    for _ in 0..3000 {
        rustix::fs::mkdirat(&folder, "d", rustix::fs::Mode::from_raw_mode(0o755)).unwrap();
        let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
        folder = rustix::fs::openat(&folder, "d", flags, rustix::fs::Mode::empty()).unwrap();
    }
    remove_tree(&tree).unwrap();
    assert!(!tree.exists());
    remove_tree(&tree).unwrap();
    let deep = shop.tree();
    fs_err::create_dir(deep.join("x")).unwrap();
    remove_tree(&deep).unwrap();
    assert!(!deep.exists());
}
