//! `RECORD`: the list of a distribution's files with hash and size, as CSV (PEP 376, 427).

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256, Sha384, Sha512};

/// A row's hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowHash {
    /// None: allowed for `RECORD` itself and its signatures.
    Absent,
    /// One of the algorithms that the specification allows.
    Sha256(Vec<u8>),
    /// See [`RowHash::Sha256`].
    Sha384(Vec<u8>),
    /// See [`RowHash::Sha256`].
    Sha512(Vec<u8>),
}

/// What `RECORD` says of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) hash: RowHash,
    pub(crate) size: Option<u64>,
}

/// Reads a `RECORD`; rows by path. Rows of folders (a trailing slash) are left out.
pub(crate) fn parse(text: &str) -> Result<BTreeMap<String, Row>, String> {
    let mut rows = BTreeMap::new();
    for (path, hash, size) in csv(text)? {
        if path.ends_with('/') {
            continue;
        }
        let hash = match hash.split_once('=') {
            None if hash.is_empty() => RowHash::Absent,
            Some((algorithm, value)) => {
                let bytes = base64_url(value)
                    .ok_or_else(|| format!("the hash of `{path}` is not URL-safe base64"))?;
                match algorithm {
                    "sha256" => RowHash::Sha256(bytes),
                    "sha384" => RowHash::Sha384(bytes),
                    "sha512" => RowHash::Sha512(bytes),
                    _ => return Err(format!("`{path}` has a hash of the kind `{algorithm}`")),
                }
            }
            None => return Err(format!("the hash of `{path}` has no algorithm")),
        };
        let size = match size.as_str() {
            "" => None,
            digits => {
                Some(digits.parse().map_err(|_| format!("the size of `{path}` is no number"))?)
            }
        };
        if rows.insert(path.clone(), Row { hash, size }).is_some() {
            return Err(format!("`{path}` has two rows"));
        }
    }
    Ok(rows)
}

/// Hashes a file with what its row asks for.
pub(crate) enum RowHasher {
    /// See [`RowHash`].
    Absent,
    /// See [`RowHash`].
    Sha256(Sha256, Vec<u8>),
    /// See [`RowHash`].
    Sha384(Sha384, Vec<u8>),
    /// See [`RowHash`].
    Sha512(Sha512, Vec<u8>),
}

impl RowHasher {
    pub(crate) fn new(hash: &RowHash) -> Self {
        match hash {
            RowHash::Absent => Self::Absent,
            RowHash::Sha256(expected) => Self::Sha256(Sha256::new(), expected.clone()),
            RowHash::Sha384(expected) => Self::Sha384(Sha384::new(), expected.clone()),
            RowHash::Sha512(expected) => Self::Sha512(Sha512::new(), expected.clone()),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Absent => {}
            Self::Sha256(hasher, _) => hasher.update(bytes),
            Self::Sha384(hasher, _) => hasher.update(bytes),
            Self::Sha512(hasher, _) => hasher.update(bytes),
        }
    }

    /// Whether the hash is the promised one, else the promised and the actual one in hex.
    pub(crate) fn check(self) -> Result<(), (String, String)> {
        let (expected, actual) = match self {
            Self::Absent => return Ok(()),
            Self::Sha256(hasher, expected) => (expected, hasher.finalize().to_vec()),
            Self::Sha384(hasher, expected) => (expected, hasher.finalize().to_vec()),
            Self::Sha512(hasher, expected) => (expected, hasher.finalize().to_vec()),
        };
        if expected == actual { Ok(()) } else { Err((hex::encode(expected), hex::encode(actual))) }
    }
}

/// Writes a `RECORD` of `files` (path, digest, size), sorted by path, with `record` itself without hash.
pub(crate) fn write(files: &BTreeMap<String, (crate::base::Digest, u64)>, record: &str) -> String {
    let mut rows: BTreeMap<&str, String> = files
        .iter()
        .map(|(path, (digest, size))| {
            let bytes = hex::decode(digest.hex()).expect("a digest is hex");
            (path.as_str(), format!("sha256={},{size}", to_base64_url(&bytes)))
        })
        .collect();
    rows.insert(record, ",".to_owned());
    let mut text = String::new();
    for (path, rest) in rows {
        if path.contains(['"', ',']) {
            text.push_str(&format!("\"{}\"", path.replace('"', "\"\"")));
        } else {
            text.push_str(path);
        }
        text.push(',');
        text.push_str(&rest);
        text.push('\n');
    }
    text
}

/// The rows of a CSV text of three columns, as Python's `csv` module writes them.
fn csv(text: &str) -> Result<Vec<(String, String, String)>, String> {
    let mut rows = Vec::new();
    let mut row = vec![String::new()];
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    let mut finish = |row: &mut Vec<String>| -> Result<(), String> {
        let taken = std::mem::replace(row, vec![String::new()]);
        match <[String; 3]>::try_from(taken) {
            Ok([path, hash, size]) => rows.push((path, hash, size)),
            // An empty line.
            Err(row) if row == [String::new()] => {}
            Err(row) => return Err(format!("the row `{}` has not three columns", row.join(","))),
        }
        Ok(())
    };
    while let Some(c) = chars.next() {
        let field = row.last_mut().expect("a row has a field");
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if field.is_empty() => quoted = true,
            ',' if !quoted => row.push(String::new()),
            '\r' if !quoted && chars.peek() == Some(&'\n') => {}
            '\n' if !quoted => finish(&mut row)?,
            _ => field.push(c),
        }
    }
    if quoted {
        return Err("a quoted field does not end".to_owned());
    }
    finish(&mut row)?;
    Ok(rows)
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn to_base64_url(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for position in 0..=chunk.len() {
            text.push(ALPHABET[(word >> (18 - 6 * position)) as usize & 63].into());
        }
    }
    text
}

/// The bytes of URL-safe base64; padding is tolerated, since some old tools wrote it.
fn base64_url(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    let mut bytes = Vec::new();
    let (mut word, mut bits) = (0_u32, 0);
    for byte in text.bytes() {
        let value = ALPHABET.iter().position(|&known| known == byte)?;
        word = word << 6 | u32::try_from(value).ok()?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(word >> bits & 0xff).ok()?);
        }
    }
    (bits < 6 && word & ((1 << bits) - 1) == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::Digest;

    #[test]
    fn rows_are_read_as_python_writes_them() {
        let rows = parse(
            "a.py,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\r\n\"b,\"\"c\"\"\",,\n",
        )
        .unwrap();
        let hash = RowHash::Sha256(hex::decode(Digest::of("abc").hex()).unwrap());
        assert_eq!(rows["a.py"], Row { hash, size: Some(3) });
        assert_eq!(rows["b,\"c\""], Row { hash: RowHash::Absent, size: None });
    }

    #[test]
    fn lies_are_named() {
        for (text, problem) in [
            ("a,,\na,,\n", "`a` has two rows"),
            ("a,md5=AAAA,1\n", "`a` has a hash of the kind `md5`"),
            ("a,sha256=!,1\n", "the hash of `a` is not URL-safe base64"),
            ("a,abc,1\n", "the hash of `a` has no algorithm"),
            ("a,,x\n", "the size of `a` is no number"),
            ("a,b\n", "the row `a,b` has not three columns"),
            ("\"a,,", "a quoted field does not end"),
        ] {
            assert_eq!(parse(text).unwrap_err(), problem, "{text}");
        }
    }

    proptest! {
        /// What is written reads back, whatever the names.
        #[test]
        fn what_is_written_reads_back(files in prop::collection::btree_map("[^/\r\n\0][^\r\n\0]{0,8}[^/\r\n\0]", any::<[u8; 5]>(), 0..8)) {
            let files: BTreeMap<String, (Digest, u64)> =
                files.into_iter().map(|(path, bytes)| (path, (Digest::of(bytes), 5))).collect();
            let rows = parse(&write(&files, "RECORD,own")).unwrap();
            prop_assert_eq!(rows.len(), files.len() + 1);
            prop_assert_eq!(&rows["RECORD,own"], &Row { hash: RowHash::Absent, size: None });
            for (path, (digest, size)) in files {
                let hash = RowHash::Sha256(hex::decode(digest.hex()).unwrap());
                prop_assert_eq!(&rows[&path], &Row { hash, size: Some(size) });
            }
        }

        /// Reading never panics.
        #[test]
        fn reading_never_panics(text in ".*") {
            let _ = parse(&text);
        }
    }
}
