//! The archive of a set, read by the programs that other people use.

use std::path::{Path, PathBuf};
use std::process::Command;

use hallmark::base::{Cancel, Digest};
use hallmark::image::{Compressor, Tarball};

use super::set::{Set, reporter};
use crate::support::{Dockerd, installed, say_skipped};

const GZIP: Compressor = Compressor::Gzip { level: 6 };

fn write(set: &Set, compressor: Compressor) -> PathBuf {
    let cancel = Cancel::new();
    let (tarball, _) = Tarball::hybrid(&set.store, &set.named(), compressor, &cancel).unwrap();
    let mut bytes = Vec::new();
    let length = tarball.write(&set.store, &mut bytes, &reporter(), &cancel).unwrap();
    assert_eq!(length, bytes.len() as u64);
    let path = set.path().join(format!("{}.tar", Digest::of(&bytes).short()));
    fs_err::write(&path, bytes).unwrap();
    path
}

/// Runs a program that must succeed; what it printed.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn the_bytes_depend_on_the_images_alone() {
    let (one, two) = (Set::new(1000, 2, 1 << 16, 1 << 16), Set::new(1000, 2, 1 << 16, 1 << 16));
    let (first, second) = (write(&one, GZIP), write(&two, GZIP));
    assert_eq!(fs_err::read(&first).unwrap(), fs_err::read(second).unwrap());
    let mut archive = tar::Archive::new(fs_err::File::open(first).unwrap());
    let paths: Vec<String> = archive
        .entries()
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!((header.mtime().unwrap(), header.uid().unwrap()), (0, 0));
            entry.path().unwrap().display().to_string()
        })
        .collect();
    let mut sorted = paths.clone();
    sorted.sort();
    assert_eq!(paths, sorted);
    // Two folders, three layers, two configs, two manifests, three files that say what is where.
    assert_eq!(paths.len(), 12, "{paths:?}");
}

#[test]
fn docker_loads_it() {
    let Some(dockerd) = Dockerd::shared() else { return };
    let set = Set::new(1100, 2, 1 << 20, 1 << 16);
    let path = write(&set, GZIP);
    dockerd.ask(&["load", "-i", path.to_str().unwrap()]);
    for (index, (name, _)) in set.images.iter().enumerate() {
        let id = dockerd.ask(&["image", "inspect", "--format", "{{.Id}}", name]);
        assert_eq!(id, set.id(index).to_string());
    }
    let version = dockerd.ask(&["version", "--format", "{{.Server.Version}}"]);
    let other = Set::new(1150, 1, 1 << 20, 1 << 16);
    let zstd =
        dockerd.docker(&["load", "-i", write(&other, Compressor::default()).to_str().unwrap()]);
    assert_eq!(zstd.status.success(), !version.starts_with("20.10"), "{zstd:?}");
}

#[test]
fn containerd_imports_it() {
    // A daemon's own containerd is at hand.
    let Some(dockerd) = Dockerd::shared() else { return };
    if !installed("ctr") {
        return say_skipped("ctr is not installed");
    }
    let set = Set::new(1200, 2, 1 << 20, 1 << 16);
    for compressor in [GZIP, Compressor::default()] {
        let path = write(&set, compressor);
        let socket = dockerd.folder().join("exec/containerd/containerd.sock");
        let ctr = |arguments: &[&str]| {
            let mut all = vec!["--address", socket.to_str().unwrap(), "--namespace", "archive"];
            all.extend(arguments);
            run("ctr", &all)
        };
        ctr(&["images", "import", "--no-unpack", path.to_str().unwrap()]);
        let list = ctr(&["images", "list", "-q"]);
        for (name, _) in &set.images {
            assert!(list.lines().any(|line| line.ends_with(&format!("/{name}"))), "{name}: {list}");
        }
        let content = ctr(&["content", "list", "-q"]);
        assert!(content.contains(&set.id(0).to_string()), "{content}");
        for image in list.lines() {
            ctr(&["images", "remove", image]);
        }
    }
}

#[test]
fn podman_loads_it() {
    if !installed("podman") || !crate::support::is_real_root() {
        return say_skipped("podman is not installed, or this is not root");
    }
    for (count, compressor) in
        [(1, GZIP), (2, GZIP), (1, Compressor::default()), (2, Compressor::default())]
    {
        let set = Set::new(1300, count, 1 << 20, 1 << 16);
        let path = write(&set, compressor);
        let folder = set.path().join("podman");
        let podman = |arguments: &[&str]| {
            let root = folder.to_str().unwrap();
            let mut all = vec!["--root", root, "--runroot", root, "--storage-driver", "vfs"];
            all.extend(arguments);
            run("podman", &all)
        };
        podman(&["load", "-i", path.to_str().unwrap()]);
        for (index, (name, _)) in set.images.iter().enumerate() {
            let id = podman(&["image", "inspect", "--format", "{{.Id}}", name]);
            assert_eq!(id, set.id(index).hex(), "{count} {compressor:?}");
        }
    }
}

#[test]
fn skopeo_reads_both_of_its_faces() {
    if !installed("skopeo") {
        return say_skipped("skopeo is not installed");
    }
    let set = Set::new(1400, 2, 1 << 20, 1 << 16);
    let path = write(&set, GZIP);
    let read = |transport: &str, path: &Path, name: &str| {
        let source = format!("{transport}:{}:{name}", path.display());
        let config = run("skopeo", &["inspect", "--config", "--raw", &source]);
        Digest::of(config)
    };
    for (index, (name, _)) in set.images.iter().enumerate() {
        assert_eq!(read("docker-archive", &path, name), set.id(index));
        assert_eq!(read("oci-archive", &path, &name.replace("__", "--")), set.id(index));
    }
    let zstd = write(&set, Compressor::default());
    assert_eq!(read("oci-archive", &zstd, &set.images[0].0.replace("__", "--")), set.id(0));
}
