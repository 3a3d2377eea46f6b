//! One entry of a layer, and its bytes in the archive.
//!
//! Headers are built field by field: ustar, with pax records only where ustar cannot say it. The ambiguities of
//! the format are decided here, once:
//! - a folder's name ends in `/`; the root is `./`; other names have no leading `./`;
//! - names are raw bytes, in ustar fields as in pax records; no `hdrcharset`;
//! - a size over 8 GiB is a pax record, and the field holds 0;
//! - user and group names are empty, devices are 0:0;
//! - pax records come in the order path, linkpath, size, uid, gid, mtime, attributes by name.

use std::collections::BTreeMap;

use tar::{EntryType, Header};

use super::Error;

/// Length of a tar block.
pub(super) const BLOCK: usize = 512;

/// What whiteouts are called in an archive (OCI image specification, layer.md).
pub(super) const WHITEOUT: &[u8] = b".wh.";

/// The name of the entry that makes a folder opaque.
pub(super) const OPAQUE: &[u8] = b".wh..wh..opq";

/// Every pax header has this name, so that it says nothing.
const PAX_NAME: &[u8] = b"./PaxHeaders/0";

/// Attribute names and values.
pub(super) type Attributes = BTreeMap<Vec<u8>, Vec<u8>>;

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File { size: u64 },
    Symlink { target: Vec<u8> },
    HardLink { target: Vec<u8> },
    Fifo,
}

/// One entry as the archive has it; whiteouts are empty files with their special names here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// From the root, without leading or trailing `/`; empty for the root.
    pub(super) path: Vec<u8>,
    pub(super) kind: Kind,
    /// The low twelve bits.
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Whole seconds since 1970.
    pub(super) mtime: i64,
    pub(super) attributes: Attributes,
}

impl Entry {
    /// A whiteout or an opaque mark: nobody sees its metadata, and overlayfs links whiteouts to each other, so
    /// they are all the same.
    pub(super) fn mark(path: Vec<u8>) -> Self {
        Self {
            path,
            kind: Kind::File { size: 0 },
            mode: 0,
            uid: 0,
            gid: 0,
            mtime: 0,
            attributes: Attributes::new(),
        }
    }

    /// Appends the blocks that come before the content.
    pub(super) fn encode(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut header = Header::new_ustar();
        let mut records = Vec::new();
        let (entry_type, size, link) = match &self.kind {
            Kind::Directory => (EntryType::Directory, 0, None),
            Kind::File { size } => (EntryType::Regular, *size, None),
            Kind::Symlink { target } => (EntryType::Symlink, 0, Some(target)),
            Kind::HardLink { target } => (EntryType::Link, 0, Some(target)),
            Kind::Fifo => (EntryType::Fifo, 0, None),
        };
        let mut name = self.path.clone();
        if name.is_empty() {
            name.push(b'.');
        }
        if entry_type == EntryType::Directory {
            name.push(b'/');
        }
        set_name(&mut header, &mut records, &name);
        if let Some(link) = link {
            let field = &mut header.as_ustar_mut().expect("made as ustar").linkname;
            if link.len() <= field.len() {
                field[..link.len()].copy_from_slice(link);
            } else {
                record(&mut records, b"linkpath", link);
            }
        }
        header.set_entry_type(entry_type);
        header.set_mode(self.mode);
        set_number(size, 11, b"size", &mut records, |value| header.set_size(value));
        set_number(self.uid.into(), 7, b"uid", &mut records, |value| header.set_uid(value));
        set_number(self.gid.into(), 7, b"gid", &mut records, |value| header.set_gid(value));
        let mtime = self.mtime.max(0).unsigned_abs();
        set_number(mtime, 11, b"mtime", &mut records, |value| header.set_mtime(value));
        header.set_device_major(0)?;
        header.set_device_minor(0)?;
        for (name, value) in &self.attributes {
            record(&mut records, &[b"SCHILY.xattr.", &name[..]].concat(), value);
        }
        if !records.is_empty() {
            let mut pax = Header::new_ustar();
            let field = &mut pax.as_ustar_mut().expect("made as ustar").name;
            field[..PAX_NAME.len()].copy_from_slice(PAX_NAME);
            pax.set_entry_type(EntryType::XHeader);
            pax.set_mode(0o644);
            pax.set_uid(0);
            pax.set_gid(0);
            pax.set_mtime(0);
            pax.set_device_major(0)?;
            pax.set_device_minor(0)?;
            pax.set_size(records.len() as u64);
            pax.set_cksum();
            out.extend_from_slice(pax.as_bytes());
            out.extend_from_slice(&records);
            out.resize(out.len() + padding(records.len() as u64), 0);
        }
        header.set_cksum();
        out.extend_from_slice(header.as_bytes());
        Ok(())
    }
}

/// Zeros between the end of a content of this length and the next header.
pub(super) fn padding(size: u64) -> usize {
    let rest = usize::try_from(size % BLOCK as u64).expect("less than a block");
    if rest == 0 { 0 } else { BLOCK - rest }
}

/// Puts a name in the ustar fields, split at a `/` where it must be, else in a record.
fn set_name(header: &mut Header, records: &mut Vec<u8>, name: &[u8]) {
    let ustar = header.as_ustar_mut().expect("made as ustar");
    if name.len() <= ustar.name.len() {
        ustar.name[..name.len()].copy_from_slice(name);
        return;
    }
    // The last `/` that leaves a prefix that fits; the slash of a folder at the end is no place to split.
    let split = name[..name.len() - 1]
        .iter()
        .take(ustar.prefix.len() + 1)
        .rposition(|byte| *byte == b'/')
        .filter(|at| *at > 0 && name.len() - at - 1 <= ustar.name.len());
    if let Some(at) = split {
        ustar.prefix[..at].copy_from_slice(&name[..at]);
        ustar.name[..name.len() - at - 1].copy_from_slice(&name[at + 1..]);
    } else {
        let short = &name[name.len() - ustar.name.len()..];
        ustar.name.copy_from_slice(short);
        record(records, b"path", name);
    }
}

fn set_number(value: u64, digits: u32, name: &[u8], records: &mut Vec<u8>, set: impl FnOnce(u64)) {
    if value < 8_u64.pow(digits) {
        set(value);
    } else {
        set(0);
        record(records, name, value.to_string().as_bytes());
    }
}

/// Appends a pax record, `LENGTH NAME=VALUE\n`, where the length counts its own digits.
fn record(records: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    let rest = name.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    records.extend_from_slice(length.to_string().as_bytes());
    records.push(b' ');
    records.extend_from_slice(name);
    records.push(b'=');
    records.extend_from_slice(value);
    records.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &[u8], size: u64) -> Entry {
        Entry { path: path.to_vec(), kind: Kind::File { size }, ..Entry::mark(Vec::new()) }
    }

    fn encoded(entry: &Entry) -> Vec<u8> {
        let mut out = Vec::new();
        entry.encode(&mut out).unwrap();
        assert_eq!(out.len() % BLOCK, 0);
        out
    }

    #[test]
    fn pax_lengths_count_themselves() {
        let mut records = Vec::new();
        record(&mut records, b"path", &[b'x'; 3]);
        assert_eq!(records, b"12 path=xxx\n");
        for length in 0..1200 {
            let mut records = Vec::new();
            record(&mut records, b"a", &vec![b'x'; length]);
            let text = String::from_utf8(records.clone()).unwrap();
            let (digits, _) = text.split_once(' ').unwrap();
            assert_eq!(digits.parse::<usize>().unwrap(), records.len());
        }
    }

    #[test]
    fn headers_are_plain_ustar_where_that_can_say_it() {
        let blocks = encoded(&file(b"a/b", 3));
        assert_eq!(blocks.len(), BLOCK);
        assert_eq!(&blocks[..4], b"a/b\0");
        assert_eq!(&blocks[257..265], b"ustar\x0000");
        assert_eq!(&blocks[124..136], b"00000000003\0");
        // 100 bytes of name, no more; then a split; then a record.
        let name = [b'n'; 100];
        assert_eq!(encoded(&file(&name, 0)).len(), BLOCK);
        let split = [&[b'p'; 155][..], b"/", &name].concat();
        let blocks = encoded(&file(&split, 0));
        assert_eq!((blocks.len(), blocks[345], blocks[499]), (BLOCK, b'p', b'p'));
        for long in [[b'n'; 101].to_vec(), [&[b'p'; 156][..], b"/", &name].concat()] {
            let blocks = encoded(&file(&long, 0));
            assert_eq!((blocks.len(), blocks[156]), (3 * BLOCK, b'x'));
        }
    }

    #[test]
    fn big_numbers_are_records() {
        let limit = 8_u64.pow(11);
        assert_eq!(encoded(&file(b"a", limit - 1)).len(), BLOCK);
        let blocks = encoded(&file(b"a", limit));
        assert_eq!(&blocks[BLOCK..BLOCK + 20], b"19 size=8589934592\n\0");
        let owner = Entry { uid: 2_097_152, gid: 2_097_151, ..file(b"a", 0) };
        assert_eq!(&encoded(&owner)[BLOCK..BLOCK + 16], b"15 uid=2097152\n\0");
    }
}
