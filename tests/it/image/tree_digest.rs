//! The tree digest: the same for the same root filesystem, however it is cut.

use std::path::Path;

use hallmark::base::Cancel;
use hallmark::image::{PackRules, merged, tree_digest, write_listing};

use super::support::{Overlay, Shop, is_root};

fn fill(tree: &Path, part: &str) {
    fs_err::create_dir_all(tree.join("shared")).unwrap();
    fs_err::write(tree.join("shared").join(part), part).unwrap();
    fs_err::create_dir_all(tree.join(part)).unwrap();
    std::os::unix::fs::symlink(part, tree.join(part).join("link")).unwrap();
}

#[test]
fn cutting_does_not_change_the_tree() {
    let shop = Shop::new();
    let rules = PackRules::root(5);
    let one = shop.tree();
    let [first, second] = [shop.tree(), shop.tree()];
    for (part, tree) in [("a", &first), ("b", &second)] {
        fill(&one, part);
        fill(tree, part);
    }
    let one = shop.commit(one, &rules);
    let [first, second] = [first, second].map(|tree| shop.commit(tree, &rules));
    let digest = |layers: &[_]| tree_digest(&shop.store, layers, &Cancel::new()).unwrap();
    assert_eq!(digest(&[one]), digest(&[first, second]));
    assert_eq!(digest(&[one]), digest(&[second, first]));
    assert_eq!(digest(&[one]), digest(&[first, one]));
    assert_ne!(digest(&[one]), digest(&[first]));
}

#[test]
fn the_listing_says_everything() {
    let shop = Shop::new();
    let tree = shop.tree();
    fill(&tree, "a");
    fs_err::write(tree.join("two words\n"), b"").unwrap();
    let layer = shop.commit(tree, &PackRules::root(5));
    let merged = merged(&shop.store, &[layer], &Cancel::new()).unwrap();
    let mut text = Vec::new();
    write_listing(&merged, &mut text, &Cancel::new()).unwrap();
    let a = hallmark::base::Digest::of("a");
    let empty = hallmark::base::Digest::of("");
    let expected = format!(
        "hallmark-tree 1\n\
         d 755 0 0 - - - /\n\
         d 755 0 0 - - - a\n\
         l 777 0 0 5 61 - a/link\n\
         d 755 0 0 - - - shared\n\
         f 644 0 0 5 {a} - shared/a\n\
         f 644 0 0 5 {empty} - two words\\n\n"
    );
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

#[test]
fn deleting_is_the_same_as_never_having_had() {
    if !is_root("deleting_is_the_same_as_never_having_had") {
        return;
    }
    let shop = Shop::new();
    let rules = PackRules::root(5);
    let [with, without] = [shop.tree(), shop.tree()];
    fill(&with, "a");
    fill(&with, "b");
    fill(&without, "a");
    let [with, without] = [with, without].map(|tree| shop.commit(tree, &rules));
    let overlay = Overlay::mount(&shop, &[with]);
    fs_err::remove_dir_all(overlay.root().join("b")).unwrap();
    fs_err::remove_file(overlay.root().join("shared/b")).unwrap();
    let top = shop.commit(overlay.upper(), &rules);
    let digest = |layers: &[_]| tree_digest(&shop.store, layers, &Cancel::new()).unwrap();
    assert_eq!(digest(&[with, top]), digest(&[without]));
}
