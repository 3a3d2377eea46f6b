//! The rooms' order: a room imports only rooms above it, and only what their `mod.rs` shows.

use std::collections::BTreeMap;
use std::path::Path;

/// From the top: data flows down.
const ROOMS: [&str; 17] = [
    "base", "net", "spec", "dataset", "lock", "bundle", "image", "runtime", "resolve", "build",
    "results", "verify", "manifest", "export", "report", "pipeline", "cli",
];

/// Modules of `base` that are part of its surface besides what `mod.rs` re-exports.
fn visible_modules(room: &Path) -> Vec<String> {
    let text = fs_err::read_to_string(room.join("mod.rs")).unwrap();
    text.lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn rooms_import_only_rooms_above_them() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let ranks: BTreeMap<&str, usize> =
        ROOMS.iter().enumerate().map(|(rank, room)| (*room, rank)).collect();
    let mut faults = Vec::new();
    let mut seen = 0;
    for entry in walkdir::WalkDir::new(&source).sort_by_file_name() {
        let entry = entry.unwrap();
        if entry.path().extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let relative = entry.path().strip_prefix(&source).unwrap();
        let room = relative.components().next().unwrap().as_os_str().to_str().unwrap().to_owned();
        if relative.components().count() == 1 || room == "bin" {
            continue;
        }
        let Some(rank) = ranks.get(room.as_str()) else {
            faults.push(format!("{room}: a room that the table does not know"));
            continue;
        };
        for (number, line) in fs_err::read_to_string(entry.path()).unwrap().lines().enumerate() {
            let code = line.split("//").next().unwrap();
            for rest in code.split("crate::").skip(1) {
                seen += 1;
                let mut names = rest
                    .split(|c: char| !c.is_alphanumeric() && c != '_')
                    .filter(|name| !name.is_empty());
                let Some(target) = names.next() else { continue };
                let Some(target_rank) = ranks.get(target) else { continue };
                let place = format!("{}:{}", relative.display(), number + 1);
                if target_rank > rank {
                    faults.push(format!(
                        "{place}: {room} must not import {target}, which lies below it"
                    ));
                }
                if target != room
                    && let Some(module) = rest.strip_prefix(&format!("{target}::"))
                    && let Some(module) = module.split("::").next()
                    && source.join(target).join(module).with_extension("rs").exists()
                    && !visible_modules(&source.join(target)).contains(&module.to_owned())
                {
                    faults.push(format!(
                        "{place}: {target}::{module} is not part of the surface of {target}"
                    ));
                }
            }
        }
    }
    assert!(seen > 10, "the test no longer sees the imports");
    assert_eq!(faults, Vec::<String>::new());
}
