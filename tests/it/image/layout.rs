//! OCI layouts, read by the programs that other people use.

use std::ffi::OsStr;
use std::path::Path;

use hallmark::base::{Arch, Cancel, Digest};
use hallmark::image::{
    Compressor, Error, Image, ImageConfig, Layer, config_digest, layout, manifest,
};

use super::overlay::two_layers;
use super::support::{Overlay, Shop, has_program, is_root, listing, run};

fn image(layers: &[Layer]) -> Image {
    Image {
        key: Digest::of("key"),
        arch: Arch::HOST,
        layers: layers.to_vec(),
        config: ImageConfig {
            env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
            working_dir: "/testbed".to_owned(),
            labels: [("org.example.spec".to_owned(), "x".to_owned())].into(),
            ..ImageConfig::default()
        },
        created: 1_000_000_000,
    }
}

fn small(shop: &Shop) -> Image {
    let tree = shop.tree();
    fs_err::write(tree.join("file"), b"x").unwrap();
    image(&[shop.commit(tree, &super::overlay::rules())])
}

#[test]
fn the_config_does_not_depend_on_the_compressor() {
    let shop = Shop::new();
    let image = small(&shop);
    let cancel = Cancel::new();
    let zstd = manifest(&shop.store, &image, Compressor::default(), &cancel).unwrap();
    let gzip = manifest(&shop.store, &image, Compressor::Gzip { level: 6 }, &cancel).unwrap();
    assert_eq!(zstd.config, gzip.config);
    assert_eq!(zstd.config, config_digest(&image).unwrap());
    assert_ne!(zstd.manifest, gzip.manifest);
    assert_eq!(manifest(&shop.store, &image, Compressor::default(), &cancel).unwrap(), zstd);
    let record = zstd.layers[0].compressor.clone().unwrap();
    assert_eq!((record.compressor.as_str(), record.level), ("zstd", 3));
}

#[test]
fn a_layout_takes_only_its_own_folder_and_good_names() {
    let shop = Shop::new();
    let image = small(&shop);
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, folder: &Path| {
        let images = [(name, &image)];
        layout::write(&shop.store, &images, folder, Compressor::default(), &Cancel::new())
    };
    let error = write("two words", folder.path()).unwrap_err();
    assert!(matches!(error, Error::Name { .. }), "{error}");
    let inside = folder.path().join("layout");
    let written = write("one", &inside).unwrap();
    let index = fs_err::read(inside.join("index.json")).unwrap();
    assert_eq!(write("one", &inside).unwrap(), written);
    assert_eq!(fs_err::read(inside.join("index.json")).unwrap(), index);
    let error = write("one", folder.path()).unwrap_err();
    assert!(matches!(error, Error::NotALayout { .. }), "{error}");
}

#[test]
fn skopeo_reads_and_copies_a_layout() {
    if !has_program("skopeo_reads_and_copies_a_layout", "skopeo") {
        return;
    }
    let shop = Shop::new();
    let image = small(&shop);
    let folder = tempfile::tempdir().unwrap();
    for (name, compressor) in
        [("zstd", Compressor::default()), ("gzip", Compressor::Gzip { level: 6 })]
    {
        let path = folder.path().join(name);
        let images = [("one", &image), ("sub/two:1.0", &image)];
        let written =
            layout::write(&shop.store, &images, &path, compressor, &Cancel::new()).unwrap();
        for (index, tag) in ["one", "sub/two:1.0"].into_iter().enumerate() {
            let source = format!("oci:{}:{tag}", path.display());
            let text = run("skopeo", &["inspect", &source].map(OsStr::new));
            let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
            assert_eq!(value["Digest"], written[index].manifest.to_string());
            assert_eq!(value["Created"], "2001-09-09T01:46:40Z");
            assert_eq!(value["Architecture"], Arch::HOST.oci());
            assert_eq!(value["Layers"][0], written[index].layers[0].digest.to_string());
        }
        let source = format!("oci:{}:one", path.display());
        let copy = folder.path().join(format!("{name}-copy"));
        let target = format!("oci:{}:one", copy.display());
        run("skopeo", &["--insecure-policy", "copy", &source, &target].map(OsStr::new));
        let hex = written[0].manifest.hex();
        let held = fs_err::read(copy.join("blobs/sha256").join(hex)).unwrap();
        assert_eq!(Digest::of(held), written[0].manifest);
    }
}

#[test]
fn umoci_unpacks_what_a_mount_shows() {
    let test = "umoci_unpacks_what_a_mount_shows";
    if !is_root(test) || !has_program(test, "umoci") {
        return;
    }
    let shop = Shop::new();
    let layers = two_layers(&shop);
    let image = image(&layers);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("layout");
    // The umoci of Debian 12 reads no zstd.
    let compressor = Compressor::Gzip { level: 6 };
    layout::write(&shop.store, &[("one", &image)], &path, compressor, &Cancel::new()).unwrap();
    let bundle = folder.path().join("bundle");
    let source = format!("{}:one", path.display());
    run("umoci", &["unpack", "--image", &source, bundle.to_str().unwrap()].map(OsStr::new));
    let overlay = Overlay::mount(&shop, &layers);
    let unpacked = bundle.join("rootfs");
    // The root of a mount is that of its fresh upper dir.
    assert_eq!(listing(&unpacked)[1..], listing(&overlay.root())[1..]);
}
