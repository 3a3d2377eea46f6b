//! Locks of images that no base can be made of: said with the image, the place in it and a way out.

use std::sync::Arc;

use hallmark::base::{Arch, Cancel, Digest, SharedReporter, progress};
use hallmark::lock::{self, BaseLock, LockedBlob, LockedImage};
use hallmark::runtime::Workbench;
use hallmark::runtime::fake::Fake;

use crate::image::support::Shop;

/// A lock of an image with these layers and variables, whose files are in the store.
fn locked(shop: &Shop, layers: &[&[u8]], variables: &[&str]) -> BaseLock {
    let put = |bytes: &[u8]| LockedBlob {
        sha256: shop.store.put_blob(bytes).unwrap(),
        size: bytes.len() as u64,
    };
    let config = serde_json::json!({
        "architecture": Arch::HOST.oci(), "os": "linux", "config": { "Env": variables },
        "rootfs": {
            "type": "layers",
            "diff_ids": layers.iter().map(|bytes| Digest::of(bytes).to_string()).collect::<Vec<_>>(),
        },
    });
    BaseLock {
        base_hash: Digest::of("definition"),
        arch: Arch::HOST,
        suite: "bookworm".to_owned(),
        as_of: "2025-05-17T08:00:00Z".parse().unwrap(),
        inrelease: Digest::of("inrelease"),
        packages_index: Digest::of("packages"),
        python: "3.11".to_owned(),
        debs: Vec::new(),
        image: Some(LockedImage {
            repository: "team/base".to_owned(),
            digest: Digest::of("index"),
            manifest: Digest::of("manifest"),
            config: put(config.to_string().as_bytes()),
            layers: layers.iter().map(|bytes| put(bytes)).collect(),
        }),
    }
}

#[test]
fn a_lock_without_layers_reads() {
    let lock = locked(&Shop::new(), &[], &[]);
    let text = lock::write_base(&lock).unwrap();
    assert_eq!(lock::parse_base("x", &text).unwrap(), lock);
}

#[test]
fn what_is_wrong_with_an_image_is_said_with_its_name_and_a_way_out() {
    let good = [0_u8; 1024];
    // The first bytes are gzip's, and nothing else is.
    let no_gzip: &[u8] = b"\x1f\x8b\x00nothing that any program wrote";
    let no_tar = [b'x'; 2048];
    for (says, layers, variables) in [
        ("it has no layers", vec![], vec![]),
        ("layer 2 of 2 (sha256:", vec![&good[..], no_gzip], vec![]),
        ("layer 1 of 1 (sha256:", vec![&no_tar[..]], vec![]),
        (r#"its variable "A" holds a NUL"#, vec![&good[..]], vec!["A=b\0c"]),
        (r#"its variable "=x" has no name"#, vec![&good[..]], vec!["=x"]),
    ] {
        let shop = Shop::new();
        let lock = locked(&shop, &layers, &variables);
        let (runtime, cancel) = (Fake::default(), Cancel::new());
        let reporter: SharedReporter = Arc::new(progress::Silent);
        let bench = Workbench {
            store: &shop.store,
            runtime: &runtime,
            reporter: &reporter,
            cancel: &cancel,
        };
        let error = hallmark::build::base(bench, &lock).unwrap_err();
        let told = error.to_string();
        let name = format!("the image team/base@{}", Digest::of("index"));
        assert!(told.contains(says) && told.contains(&name), "{says}: {told}");
        assert!(error.hint().unwrap().contains("choose another image"), "{says}");
        assert!(runtime.calls().is_empty(), "nothing of it ran");
    }
}
