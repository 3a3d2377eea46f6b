//! What the tests of this room share: a store, a look at a tree that is not ours, and who runs them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use hallmark::base::{Cancel, Digest, Store};
use hallmark::image::{Compressor, Layer, PackRules, commit_tree};

/// A store and scratch in a folder that goes away.
pub(crate) struct Shop {
    _folder: tempfile::TempDir,
    pub(crate) store: Store,
}

impl Shop {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store =
            Store::open(&folder.path().join("store"), &folder.path().join("scratch")).unwrap();
        Self { _folder: folder, store }
    }

    /// A fresh folder in scratch that commit takes.
    pub(crate) fn tree(&self) -> PathBuf {
        self.store.scratch_dir("tree").unwrap().keep()
    }

    pub(crate) fn commit(&self, tree: PathBuf, rules: &PackRules) -> Layer {
        commit_tree(&self.store, tree, rules, &Cancel::new()).unwrap()
    }

    /// The uncompressed archive of a layer that was just committed.
    pub(crate) fn archive(&self, layer: &Layer) -> Vec<u8> {
        let cancel = Cancel::new();
        let blob =
            hallmark::image::compress(&self.store, layer, Compressor::default(), &cancel).unwrap();
        let bytes = self.store.read_blob(&blob.digest).unwrap();
        let archive = zstd::decode_all(&bytes[..]).unwrap();
        assert_eq!(Digest::of(&archive), layer.diff_id);
        assert_eq!(archive.len() as u64, layer.size);
        archive
    }
}

/// Everything that can be said of a tree, one line per path: made with the standard library alone.
pub(crate) fn listing(root: &Path) -> Vec<String> {
    let mut firsts: BTreeMap<(u64, u64), String> = BTreeMap::new();
    let mut lines = Vec::new();
    for entry in walkdir::WalkDir::new(root).sort_by_file_name() {
        let entry = entry.unwrap();
        let path = entry.path();
        let name =
            path.strip_prefix(root).unwrap().as_os_str().as_bytes().escape_ascii().to_string();
        let meta = fs_err::symlink_metadata(path).unwrap();
        let kind = meta.file_type();
        let mut line = format!(
            "{name} {:o} {}:{} {}.{}",
            meta.mode(),
            meta.uid(),
            meta.gid(),
            meta.mtime(),
            meta.mtime_nsec()
        );
        if kind.is_symlink() {
            let target = fs_err::read_link(path).unwrap();
            write!(line, " -> {}", target.as_os_str().as_bytes().escape_ascii()).unwrap();
        } else if kind.is_file() {
            let bytes = fs_err::read(path).unwrap();
            write!(line, " {} {}", bytes.len(), Digest::of(&bytes).short()).unwrap();
        } else if kind.is_char_device() || kind.is_block_device() {
            write!(line, " {}", meta.rdev()).unwrap();
        }
        // Whiteouts are linked to each other by overlayfs, which nobody sees.
        if !kind.is_dir() && !kind.is_char_device() && meta.nlink() > 1 {
            let first = firsts.entry((meta.dev(), meta.ino())).or_insert_with(|| name.clone());
            write!(line, " ={first}").unwrap();
        }
        if kind.is_file() || kind.is_dir() {
            let attributes: BTreeMap<String, String> = xattr::list(path)
                .unwrap()
                .map(|attribute| {
                    let value = xattr::get(path, &attribute).unwrap().unwrap();
                    let attribute = attribute.as_bytes().escape_ascii().to_string();
                    (attribute, value.escape_ascii().to_string())
                })
                .filter(|(attribute, _)| attribute != "security.selinux")
                .collect();
            for (attribute, value) in attributes {
                write!(line, " {attribute}={value}").unwrap();
            }
        }
        lines.push(line);
    }
    lines
}

/// Whether the tests run as root; says so when not.
pub(crate) fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip(test, "needs root");
    }
    root
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn skip(test: &str, reason: &str) {
    eprintln!("skipped {test}: {reason}");
}
/// Whether a program is installed; says so when not.
pub(crate) fn has_program(test: &str, program: &str) -> bool {
    let found = std::process::Command::new(program).arg("--version").output().is_ok();
    if !found {
        skip(test, &format!("{program} is not installed"));
    }
    found
}

/// Runs a program that must succeed, and gives what it printed.
pub(crate) fn run(program: &str, arguments: &[&std::ffi::OsStr]) -> Vec<u8> {
    let output = std::process::Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// An overlay mount over unpacked layers, as the runtime makes it; gone when dropped.
pub(crate) struct Overlay {
    folder: hallmark::base::Scratch,
}

impl Overlay {
    /// Mounts `layers` (bottom first) under a fresh upper dir.
    pub(crate) fn mount(shop: &Shop, layers: &[Layer]) -> Self {
        let folder = shop.store.scratch_dir("overlay").unwrap();
        for name in ["upper", "work", "merged"] {
            fs_err::create_dir(folder.path().join(name)).unwrap();
        }
        let lowers: Vec<String> = layers
            .iter()
            .rev()
            .map(|layer| shop.store.layer_path(&layer.diff_id).to_str().unwrap().to_owned())
            .collect();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let options = format!(
            "userxattr,lowerdir={},upperdir={},workdir={}",
            lowers.join(":"),
            path("upper"),
            path("work")
        );
        let arguments = ["-t", "overlay", "overlay", "-o", &options, &path("merged")];
        run("mount", &arguments.map(std::ffi::OsStr::new));
        Self { folder }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("merged")
    }

    /// Unmounts and gives the upper dir.
    pub(crate) fn upper(self) -> PathBuf {
        let upper = self.folder.path().join("upper");
        let taken = self.folder.path().with_extension("upper");
        run("umount", &[self.root().as_os_str()]);
        fs_err::rename(upper, &taken).unwrap();
        taken
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        // Unmounted before when the upper dir was taken.
        let _ = std::process::Command::new("umount").arg(self.root()).output();
    }
}
