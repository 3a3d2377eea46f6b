//! Small images that share a layer.

use std::path::Path;

use hallmark::base::progress::Recording;
use hallmark::base::{Arch, Cancel, Digest, SharedReporter, Store};
use hallmark::image::{
    Image, ImageConfig, Layer, NamedImage, PackRules, commit_tree, config_digest,
};
use hallmark::runtime::docker::{Endpoint, Engine, LoadReport};

/// A store with images.
pub(super) struct Set {
    folder: tempfile::TempDir,
    pub(super) store: Store,
    pub(super) images: Vec<(String, Image)>,
}

impl Set {
    /// `count` images over one layer of `base` bytes, each with `own` bytes of its own. Layers of one
    /// `seed` are the same in every set.
    pub(super) fn new(seed: u64, count: u64, base: usize, own: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store =
            Store::open(&folder.path().join("store"), &folder.path().join("scratch")).unwrap();
        let mut set = Self { folder, store, images: Vec::new() };
        let base = set.layer("base", seed, base);
        for number in 0..count {
            let own = set.layer(&format!("own-{number}"), seed + number + 1, own);
            let image = Image {
                key: Digest::of("key"),
                arch: Arch::HOST,
                layers: vec![base, own],
                config: ImageConfig {
                    env: [("PATH".to_owned(), "/bin".to_owned())].into(),
                    working_dir: "/testbed".to_owned(),
                    labels: [("org.example.number".to_owned(), number.to_string())].into(),
                    ..ImageConfig::default()
                },
                created: 1_000_000_000,
            };
            set.images.push((format!("set{seed}/owner__name-{number}:latest"), image));
        }
        set
    }

    fn layer(&self, name: &str, seed: u64, length: usize) -> Layer {
        let tree = self.store.scratch_dir("tree").unwrap().keep();
        fs_err::write(tree.join(name), noise(seed, length)).unwrap();
        commit_tree(&self.store, tree, &PackRules::root(1_000_000_000), &Cancel::new()).unwrap()
    }

    pub(super) fn named(&self) -> Vec<NamedImage<'_>> {
        self.images.iter().map(|(name, image)| NamedImage { name, image }).collect()
    }

    pub(super) fn id(&self, index: usize) -> Digest {
        config_digest(&self.images[index].1).unwrap()
    }

    pub(super) fn load(&self, engine: &Engine) -> LoadReport {
        self.load_with(engine, &Cancel::new())
    }

    pub(super) fn load_with(&self, engine: &Engine, cancel: &Cancel) -> LoadReport {
        engine.load(&self.named(), &self.store, &reporter(), cancel)
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

pub(super) fn reporter() -> SharedReporter {
    std::sync::Arc::new(Recording::default())
}

pub(super) fn engine(socket: &Path) -> Engine {
    Engine::connect(&[Endpoint::Unix(socket.to_owned())], &Cancel::new()).unwrap()
}

/// Bytes that do not compress.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
