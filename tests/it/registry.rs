//! Registries: a real one for what works, a server that lies for what must not.

use std::path::Path;

use hallmark::base::{Arch, Cancel, Digest};
use hallmark::image::{Image, ImageConfig, Layer, PackRules};
use hallmark::net::registry::Registries;
use hallmark::net::{Client, Config, Host};

pub(crate) use crate::image::support::Shop;
use crate::net::eager;

mod hostile;
mod knock;
mod locks;
mod login;
mod pull;
mod push;
mod tokens;
mod uploads;

/// A client of a host that has no configuration but this.
pub(crate) fn client(registries: Registries) -> Client {
    let env = std::collections::BTreeMap::new();
    let config =
        Config::read(&Host { env: &env, home: None, root: Path::new("/nonexistent") }).unwrap();
    Client::new(Config { registries, patience: eager(), ..config }, &Cancel::new()).unwrap()
}

/// A layer of one file with so many bytes that do not compress.
pub(crate) fn layer(shop: &Shop, name: &str, size: usize) -> Layer {
    let tree = shop.tree();
    fs_err::write(tree.join(name), noise(name, size)).unwrap();
    shop.commit(tree, &PackRules::root(0))
}

/// An image of these layers.
pub(crate) fn image(layers: &[Layer]) -> Image {
    Image {
        key: Digest::of("key"),
        arch: Arch::HOST,
        layers: layers.to_vec(),
        config: ImageConfig {
            env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
            ..ImageConfig::default()
        },
        created: 1_000_000_000,
    }
}

/// Bytes that look random and are always the same.
pub(crate) fn noise(seed: &str, size: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size + 32);
    let mut block = Digest::of(seed);
    while bytes.len() < size {
        bytes.extend_from_slice(block.as_bytes());
        block = Digest::of(block.as_bytes());
    }
    bytes.truncate(size);
    bytes
}
