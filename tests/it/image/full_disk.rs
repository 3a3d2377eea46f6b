//! A store on a full disk, and one on another filesystem than scratch.

use std::path::Path;

use hallmark::base::{Cancel, Store};
use hallmark::image::{Compressor, PackRules, commit_tree, compress};

use super::support::{Shop, is_root, listing, run};

/// A tmpfs, gone when dropped.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn mount(mebibytes: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("size={mebibytes}m");
        let arguments = ["-t", "tmpfs", "tmpfs", "-o", &options, folder.path().to_str().unwrap()];
        run("mount", &arguments.map(std::ffi::OsStr::new));
        Self(folder)
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

fn noise(length: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes
}

fn files_in(folder: &Path) -> Vec<String> {
    walkdir::WalkDir::new(folder)
        .into_iter()
        .map(|entry| entry.unwrap())
        .filter(|entry| !entry.file_type().is_dir())
        .map(|entry| entry.path().display().to_string())
        .collect()
}

#[test]
fn a_full_disk_leaves_nothing_half_written() {
    if !is_root("a_full_disk_leaves_nothing_half_written") {
        return;
    }
    let disk = Tmpfs::mount(64);
    let scratch = tempfile::tempdir().unwrap();
    let store = Store::open(disk.0.path(), scratch.path()).unwrap();
    let tree = scratch.path().join("tree");
    fs_err::create_dir(&tree).unwrap();
    fs_err::write(tree.join("noise"), noise(80 << 20)).unwrap();
    let error = commit_tree(&store, tree.clone(), &PackRules::root(1), &Cancel::new()).unwrap_err();
    assert!(error.is_disk_full(), "{error}");
    assert!(error.hint().is_some());
    assert_eq!(files_in(disk.0.path()), Vec::<String>::new());
    assert!(!tree.exists());
    // A blob fits, its unpacked layer does not.
    fs_err::create_dir(&tree).unwrap();
    fs_err::write(tree.join("zeros"), vec![0; 80 << 20]).unwrap();
    let error = commit_tree(&store, tree.clone(), &PackRules::root(1), &Cancel::new()).unwrap_err();
    assert!(error.is_disk_full(), "{error}");
    assert_eq!(fs_err::read_dir(disk.0.path().join("layers")).unwrap().count(), 0);
    // And then there is room again.
    fs_err::create_dir(&tree).unwrap();
    fs_err::write(tree.join("noise"), noise(20 << 20)).unwrap();
    commit_tree(&store, tree, &PackRules::root(1), &Cancel::new()).unwrap();
}

#[test]
fn scratch_may_lie_on_another_filesystem() {
    if !is_root("scratch_may_lie_on_another_filesystem") {
        return;
    }
    let disk = Tmpfs::mount(16);
    let shop = Shop::new();
    let store = Store::open(&shop.store.root().join("far"), disk.0.path()).unwrap();
    let fill = |tree: &Path| {
        fs_err::write(tree.join("a"), b"a").unwrap();
        fs_err::hard_link(tree.join("a"), tree.join("b")).unwrap();
    };
    let [far, near] = [store.scratch_dir("tree").unwrap().keep(), shop.tree()];
    fill(&far);
    fill(&near);
    let layer = commit_tree(&store, far.clone(), &PackRules::root(1), &Cancel::new()).unwrap();
    assert!(!far.exists());
    assert_eq!(layer, shop.commit(near, &PackRules::root(1)));
    assert_eq!(
        listing(&store.layer_path(&layer.diff_id)),
        listing(&shop.store.layer_path(&layer.diff_id))
    );
    compress(&store, &layer, Compressor::default(), &Cancel::new()).unwrap();
}
