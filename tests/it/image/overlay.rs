//! Upper dirs of real overlay mounts become layers, and say the same when they are unpacked elsewhere.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use hallmark::base::Cancel;
use hallmark::image::{EntryKind, Layer, PackRules, ensure_unpacked, merged, remove_tree};

use super::support::{Overlay, Shop, is_root, listing};

pub(crate) fn rules() -> PackRules {
    PackRules::base(1_000_000_000)
}

/// A base, and a layer on it with every kind of change.
pub(crate) fn two_layers(shop: &Shop) -> [Layer; 2] {
    let base = shop.tree();
    for folder in ["kept/below", "replaced/below", "removed/below", "renamed/below", "etc"] {
        fs_err::create_dir_all(base.join(folder)).unwrap();
        fs_err::write(base.join(folder).join("file"), folder).unwrap();
    }
    for name in ["gone-1", "gone-2", "to-folder", "edited", "linked", "chmod", "moved"] {
        fs_err::write(base.join("etc").join(name), name).unwrap();
    }
    fs_err::create_dir(base.join("to-file")).unwrap();
    fs_err::write(base.join("to-file/inside"), b"").unwrap();
    let base = shop.commit(base, &rules());
    let overlay = Overlay::mount(shop, &[base]);
    let root = overlay.root();
    change(&root);
    [base, shop.commit(overlay.upper(), &rules())]
}

fn change(root: &Path) {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    let etc = root.join("etc");
    fs_err::remove_file(etc.join("gone-1")).unwrap();
    fs_err::remove_file(etc.join("gone-2")).unwrap();
    fs_err::remove_dir_all(root.join("removed")).unwrap();
    fs_err::remove_dir_all(root.join("replaced")).unwrap();
    fs_err::create_dir(root.join("replaced")).unwrap();
    fs_err::write(root.join("replaced/new"), b"new").unwrap();
    fs_err::remove_file(etc.join("to-folder")).unwrap();
    fs_err::create_dir(etc.join("to-folder")).unwrap();
    fs_err::write(etc.join("to-folder/inside"), b"").unwrap();
    fs_err::remove_dir_all(root.join("to-file")).unwrap();
    fs_err::write(root.join("to-file"), b"a file now").unwrap();
    // Overlayfs cannot rename a folder of a lower layer here: mv copies it.
    super::support::run(
        "mv",
        &[root.join("renamed").as_os_str(), root.join("after-rename").as_os_str()],
    );
    fs_err::rename(etc.join("moved"), root.join("kept/moved")).unwrap();
    fs_err::write(etc.join("edited"), b"edited again").unwrap();
    fs_err::hard_link(etc.join("linked"), root.join("kept/linked-too")).unwrap();
    fs_err::set_permissions(etc.join("chmod"), std::fs::Permissions::from_mode(0o4711)).unwrap();
    chown(root.join("kept/below/file"), Some(33), Some(33)).unwrap();
    symlink("/etc/edited", root.join("kept/symlink")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, etc.join("fifo"), rustix::fs::Mode::from_raw_mode(0o640))
        .unwrap();
    fs_err::write(root.join("kept/capable"), b"#!").unwrap();
    // cap_net_raw+ep, revision 2: what setcap writes.
    let capability = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    xattr::set(root.join("kept/capable"), "security.capability", &capability).unwrap();
    xattr::set(root.join("kept/capable"), "user.note", b"noted").unwrap();
    let long = format!("{}/{}", "p".repeat(200), "q".repeat(250));
    fs_err::create_dir(root.join("p".repeat(200))).unwrap();
    fs_err::write(root.join(long), b"long").unwrap();
}

#[test]
fn an_upper_dir_says_the_same_after_packing_and_unpacking() {
    if !is_root("an_upper_dir_says_the_same_after_packing_and_unpacking") {
        return;
    }
    let shop = Shop::new();
    let layers = two_layers(&shop);
    let path = shop.store.layer_path(&layers[1].diff_id);
    let committed = listing(&path);
    let text = committed.join("\n");
    // Whiteouts and opaque marks stay in the form that overlayfs reads, everything else of it is gone.
    for line in ["etc/gone-1 20000 0:0 0.0 0", "removed 20000 0:0 0.0 0"] {
        assert!(committed.iter().any(|held| held == line), "{line}\n{text}");
    }
    assert!(text.contains("replaced 40755 0:0 1000000000.0 user.overlay.opaque=y"), "{text}");
    assert!(!text.contains("overlay.origin") && !text.contains("overlay.impure"), "{text}");
    // What a mount shows does not change when the layer is unpacked from its archive.
    let before = Overlay::mount(&shop, &layers);
    let shown = listing(&before.root());
    drop(before);
    remove_tree(&path).unwrap();
    ensure_unpacked(&shop.store, &layers[1], &Cancel::new()).unwrap();
    assert_eq!(listing(&path), committed);
    let after = Overlay::mount(&shop, &layers);
    // The root of a mount is that of its fresh upper dir.
    assert_eq!(listing(&after.root())[1..], shown[1..]);
    assert!(!after.root().join("replaced/below").exists());
    assert!(!after.root().join("removed").exists());
}

#[test]
fn the_archive_of_an_upper_dir_speaks_oci() {
    if !is_root("the_archive_of_an_upper_dir_speaks_oci") {
        return;
    }
    let shop = Shop::new();
    let [_, layer] = two_layers(&shop);
    let archive = shop.archive(&layer);
    let mut names = Vec::new();
    for entry in tar::Archive::new(&archive[..]).entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
        if let Some(extensions) = entry.pax_extensions().unwrap() {
            for extension in extensions {
                let key = extension.unwrap().key().unwrap().to_owned();
                let known = ["path", "SCHILY.xattr.security.capability", "SCHILY.xattr.user.note"];
                assert!(known.contains(&key.as_str()), "{key}");
            }
        }
        if name.ends_with("linked-too") {
            assert_eq!(entry.link_name_bytes().unwrap().as_ref(), b"etc/linked");
        }
        names.push(name);
    }
    for name in [
        "etc/.wh.gone-1",
        "etc/.wh.gone-2",
        ".wh.removed",
        ".wh.renamed",
        "etc/.wh.moved",
        "to-file",
        "after-rename/below/file",
        "kept/moved",
    ] {
        assert!(names.iter().any(|held| held == name), "{name}: {names:?}");
    }
    let at = names.iter().position(|name| name == "replaced/").unwrap();
    assert_eq!(names[at + 1], "replaced/.wh..wh..opq");
    assert!(!names.iter().any(|name| name.contains(".wh.to-f")), "{names:?}");
}

#[test]
fn the_merged_view_is_what_a_mount_shows() {
    if !is_root("the_merged_view_is_what_a_mount_shows") {
        return;
    }
    let shop = Shop::new();
    let layers = two_layers(&shop);
    let overlay = Overlay::mount(&shop, &layers);
    let merged = merged(&shop.store, &layers, &Cancel::new()).unwrap();
    let mut seen = Vec::new();
    // The root of a mount is that of its fresh upper dir, so it is left out.
    for entry in merged.walk(Path::new("/")).unwrap().skip(1) {
        let entry = entry.unwrap();
        let path = overlay.root().join(&entry.path);
        let meta = fs_err::symlink_metadata(&path).unwrap();
        if entry.kind == EntryKind::File {
            assert_eq!(fs_err::read(&entry.location).unwrap(), fs_err::read(&path).unwrap());
            assert_eq!(entry.size, meta.len());
        }
        assert_eq!(
            (entry.mode, entry.uid, entry.gid, entry.mtime),
            (meta.mode() & 0o7777, meta.uid(), meta.gid(), meta.mtime()),
            "{}",
            path.display()
        );
        assert_eq!(merged.lookup(&entry.path).unwrap().unwrap(), entry);
        seen.push(path);
    }
    let mut mounted: Vec<_> = walkdir::WalkDir::new(overlay.root())
        .min_depth(1)
        .into_iter()
        .map(|e| e.unwrap().into_path())
        .collect();
    mounted.sort();
    seen.sort();
    assert_eq!(seen, mounted);
    for gone in ["etc/gone-1", "removed", "removed/below/file", "replaced/below", "to-file/inside"]
    {
        assert_eq!(merged.lookup(Path::new(gone)).unwrap(), None, "{gone}");
    }
    let file = merged.lookup(Path::new("/kept/below/file")).unwrap().unwrap();
    assert_eq!((file.layer, file.uid), (1, 33));
    let untouched = merged.lookup(Path::new("etc/file")).unwrap().unwrap();
    assert_eq!(untouched.layer, 0);
    let below: Vec<_> = merged.walk(Path::new("etc/to-folder")).unwrap().collect();
    assert_eq!(below.len(), 2);
}

#[test]
fn a_copied_up_part_of_a_file_is_refused() {
    use hallmark::image::{Error, Problem, commit_tree};
    let shop = Shop::new();
    let tree = shop.tree();
    fs_err::write(tree.join("part"), b"").unwrap();
    if xattr::set(tree.join("part"), "user.overlay.metacopy", b"").is_err() {
        super::support::skip("a_copied_up_part_of_a_file_is_refused", "no user attributes here");
        return;
    }
    let error = commit_tree(&shop.store, tree, &rules(), &Cancel::new()).unwrap_err();
    assert!(matches!(error, Error::Tree { problem: Problem::Partial, .. }), "{error}");
}
