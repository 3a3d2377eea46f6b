//! Any tree survives packing and unpacking, and packs to the same bytes whatever order it was made in.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use hallmark::base::Cancel;
use hallmark::image::{PackRules, ensure_unpacked, remove_tree};
use proptest::prelude::*;

use super::support::{Shop, listing};

#[derive(Debug, Clone)]
enum Node {
    Folder(u32, BTreeMap<Vec<u8>, Node>),
    File(u32, i64, Vec<u8>),
    Symlink(Vec<u8>),
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    // Bytes around `/` and `.` matter for the order; long names for the format.
    let byte =
        prop_oneof![4 => prop::sample::select(b"ab-.~ \n\xff\xc3".to_vec()), 1 => 1_u8..=255];
    let length = prop_oneof![6 => 1_usize..4, 1 => 90_usize..110, 1 => 250_usize..=255];
    length
        .prop_flat_map(move |length| prop::collection::vec(byte.clone(), length))
        .prop_filter("a name", |name| {
            !name.contains(&b'/') && name != b"." && name != b".." && !name.starts_with(b".wh.")
        })
}

fn node() -> impl Strategy<Value = Node> {
    let size = prop_oneof![0_usize..3, 510_usize..515, 2000_usize..3000];
    let content = size.prop_flat_map(|size| prop::collection::vec(any::<u8>(), size));
    let leaf = prop_oneof![
        3 => (0_u32..0o10000, 0_i64..5_000_000_000, content)
            .prop_map(|(mode, time, content)| Node::File(mode, time, content)),
        1 => name().prop_map(Node::Symlink),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        (0_u32..0o10000, prop::collection::btree_map(name(), inner, 0..6))
            .prop_map(|(mode, children)| Node::Folder(mode | 0o700, children))
    })
}

fn make(path: &Path, node: &Node, backwards: bool) {
    match node {
        Node::Folder(mode, children) => {
            fs_err::create_dir_all(path).unwrap();
            let mut children: Vec<_> = children.iter().collect();
            if backwards {
                children.reverse();
            }
            for (name, child) in children {
                make(&path.join(OsStr::from_bytes(name)), child, backwards);
            }
            fs_err::set_permissions(path, std::fs::Permissions::from_mode(*mode)).unwrap();
        }
        Node::File(mode, seconds, content) => {
            fs_err::write(path, content).unwrap();
            let time =
                std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds.unsigned_abs());
            fs_err::File::options()
                .write(true)
                .open(path)
                .unwrap()
                .file()
                .set_modified(time)
                .unwrap();
            let mode = std::fs::Permissions::from_mode(*mode | 0o400);
            fs_err::set_permissions(path, mode).unwrap();
        }
        Node::Symlink(target) => {
            std::os::unix::fs::symlink(OsStr::from_bytes(target), path).unwrap();
        }
    }
}

/// A line of the listing without its fourth field from where the mode is: names hold spaces, modes begin with the type.
fn without_time(line: &str) -> String {
    let owner = format!(
        " {}:{} ",
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw()
    );
    let (name, rest) = line.rsplit_once(&owner).unwrap();
    let rest = rest.split_once(' ').map_or("", |(_, rest)| rest);
    format!("{name} {rest}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_survives_its_archive(
        children in prop::collection::btree_map(name(), node(), 0..6),
        root_rules in any::<bool>(),
    ) {
        let tree = Node::Folder(0o755, children);
        let shop = Shop::new();
        let rules = if root_rules { PackRules::root(99) } else { PackRules::base(2_500_000_000) };
        let (one, two) = (shop.tree(), shop.tree());
        make(&one, &tree, false);
        make(&two, &tree, true);
        let before = listing(&one);
        let layer = shop.commit(one, &rules);
        prop_assert_eq!(layer, shop.commit(two, &rules));
        let path = shop.store.layer_path(&layer.diff_id);
        let committed = listing(&path);
        // Nothing but times (and, of the root, the mode) differs from what was there.
        let timeless = |lines: &[String]| -> Vec<String> {
            lines[1..].iter().map(|line| without_time(line)).collect()
        };
        prop_assert_eq!(timeless(&before), timeless(&committed));
        remove_tree(&path).unwrap();
        ensure_unpacked(&shop.store, &layer, &Cancel::new()).unwrap();
        prop_assert_eq!(listing(&path), committed);
    }
}
