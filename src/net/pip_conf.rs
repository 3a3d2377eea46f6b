//! pip's configuration files, as far as they say where the index is and how to reach it.
//!
//! The format is Python's `RawConfigParser`: sections, `key = value` or `key: value`, lines that go
//! on indented, `#` and `;` comments. Keys are case-insensitive, `_` counts as `-`.
//! `find-links`, `extra-index-url`, `constraint` and `no-index` are never taken: they would let the host change what a lock holds.

use std::collections::BTreeMap;

/// The sections that count for a download, weakest first.
const SECTIONS: [&str; 3] = ["global", "install", "download"];

/// The settings of one file that this program takes.
pub(super) fn parse(text: &str) -> BTreeMap<String, String> {
    let mut found: BTreeMap<(usize, String), String> = BTreeMap::new();
    let mut rank = None;
    let mut last: Option<(usize, String)> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with([' ', '\t'])
            && let Some(key) = &last
        {
            let value = found.entry(key.clone()).or_default();
            if !value.is_empty() {
                value.push('\n');
            }
            value.push_str(trimmed);
            continue;
        }
        last = None;
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            rank = SECTIONS.iter().position(|section| *section == name.trim());
            continue;
        }
        let Some(rank) = rank else { continue };
        let Some((key, value)) = trimmed.split_once(['=', ':']) else { continue };
        let key = key.trim().to_lowercase().replace('_', "-");
        if !matches!(key.as_str(), "index-url" | "cert" | "proxy") {
            continue;
        }
        found.insert((rank, key.clone()), value.trim().to_owned());
        last = Some((rank, key));
    }
    // Sorted by rank first, so that the strongest section wins.
    found
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|((_, key), value)| (key, value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_index_and_nothing_that_changes_a_lock() {
        let table: [(&str, &[(&str, &str)]); 8] = [
            (
                "[global]\nindex-url = https://a.test/simple\n",
                &[("index-url", "https://a.test/simple")],
            ),
            ("[global]\nINDEX_URL: https://a.test/s\n", &[("index-url", "https://a.test/s")]),
            ("[global]\nindex-url =\n    https://a.test/s\n", &[("index-url", "https://a.test/s")]),
            (
                "[download]\nindex-url = https://d.test\n[global]\nindex-url = https://g.test\n\
                 [install]\nindex-url = https://i.test\n",
                &[("index-url", "https://d.test")],
            ),
            ("[list]\nindex-url = https://l.test\n", &[]),
            (
                "[global]\nfind-links = /opt/wheels\nextra-index-url = https://x.test\n\
                 constraint = c.txt\nno-index = true\n",
                &[],
            ),
            (
                "# x\n[global]\n; y\ncert = /ca.pem\nproxy = p.test:3128\ntimeout = 60\n",
                &[("cert", "/ca.pem"), ("proxy", "p.test:3128")],
            ),
            ("index-url = https://stray.test\n[global\nnonsense\n= x\n", &[]),
        ];
        for (text, expected) in table {
            let expected: BTreeMap<String, String> =
                expected.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
