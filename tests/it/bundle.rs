//! Locked files on disk.

use std::sync::Arc;

use hallmark::base::{Cancel, Digest, SharedReporter, Store, progress};
use hallmark::bundle;
use hallmark::lock::{FileRef, Origin};

use crate::net::online_client;

mod fetch;
mod gc;
mod pack;
mod sdist;

pub(crate) fn store(folder: &tempfile::TempDir) -> Store {
    Store::open(&folder.path().join("store"), &folder.path().join("scratch")).unwrap()
}

/// Names of what is in the blob folder, temporary files included.
fn blob_names(store: &Store) -> Vec<String> {
    let mut names: Vec<_> = fs_err::read_dir(store.root().join("blobs/sha256"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn silent() -> SharedReporter {
    Arc::new(progress::Silent)
}

/// A file of PyPI with this content.
fn file_of(name: &str, content: &[u8]) -> FileRef {
    FileRef {
        name: name.to_owned(),
        sha256: Digest::of(content),
        size: content.len() as u64,
        origin: Origin::Pypi { project: name.split('-').next().unwrap().to_owned() },
    }
}

#[test]
fn online_fetch_brings_real_files_once() {
    let Some(client) = online_client() else { return };
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let file = |name: &str, hex: &str, size| FileRef {
        name: name.to_owned(),
        sha256: Digest::from_hex(hex).unwrap(),
        size,
        origin: Origin::Pypi { project: "flit-core".to_owned() },
    };
    let files = [
        file(
            "flit_core-2.0-py2.py3-none-any.whl",
            "6315800ae208f0f1de1ee89997e16f69dacc5e18d3fd2a65e4e518e3d78dbdda",
            84102,
        ),
        file(
            "flit_core-2.0.1.tar.gz",
            "96e7708bc88c03b58e0d35f1171197737e701e29a901a8b49c13d3fd21866560",
            22616,
        ),
    ];
    let recording = Arc::new(progress::Recording::default());
    let reporter: SharedReporter = recording.clone();
    let cancel = Cancel::new();
    let report = bundle::fetch(&store, &client, &files, &reporter, &cancel).unwrap();
    assert_eq!(report, bundle::FetchReport { fetched: 2, cached: 0, bytes: 84102 + 22616 });
    let again = bundle::fetch(&store, &client, &files, &reporter, &cancel).unwrap();
    assert_eq!(again, bundle::FetchReport { fetched: 0, cached: 2, bytes: 0 });
    assert_eq!(bundle::verify(&store, &files, &cancel).unwrap().len(), 0);
}
