//! Reads tar archives from anywhere: ustar, GNU long names, pax. Nothing is believed: checksums are checked, numbers
//! and names bounded, and memory never depends on what a header claims.
//!
//! Decided once: the archive ends at its first empty block or where the bytes end between two entries; what follows is
//! read (for the digest) and ignored. Global pax headers are ignored, sparse files refused, times are cut to whole
//! seconds and times before 1970 become 1970.

use std::io::{self, Read};

use tar::{EntryType, Header};

use super::Error;
use super::attributes;
use super::entry::{Attributes, BLOCK, Entry, Kind, padding};
use super::error::Problem;

/// The most that names and attributes of one entry may take.
const MOST_RECORDS: u64 = 1 << 20;

/// The longest path that a system call takes.
const PATH_MAX: usize = 4095;

/// The longest name in a folder.
const NAME_MAX: usize = 255;

/// An archive that is being read.
pub(super) struct Archive<R> {
    reader: R,
    offset: u64,
    /// Bytes that may be read in all.
    limit: u64,
    buffer: Vec<u8>,
}

/// Records that apply to the next entry.
#[derive(Default)]
struct Pending {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    uid: Option<u64>,
    gid: Option<u64>,
    mtime: Option<i64>,
    attributes: Attributes,
}

impl<R: Read> Archive<R> {
    pub(super) fn new(reader: R, limit: u64) -> Self {
        Self { reader, offset: 0, limit, buffer: vec![0; 128 << 10] }
    }

    /// The next entry. The content of a file must be taken with [`Archive::content`] before the next one.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, Error> {
        let mut pending = Pending::default();
        loop {
            let Some(header) = self.header()? else { return Ok(None) };
            let size = header.entry_size().map_err(|_| self.damaged("size of an entry"))?;
            match header.entry_type() {
                EntryType::XHeader => {
                    let bytes = self.records(size)?;
                    self.pax(&bytes, &mut pending)?;
                }
                EntryType::XGlobalHeader => drop(self.records(size)?),
                EntryType::GNULongName => pending.path = Some(terminated(self.records(size)?)),
                EntryType::GNULongLink => pending.link = Some(terminated(self.records(size)?)),
                _ => return Self::entry(&header, size, pending).map(Some),
            }
        }
    }

    /// Gives the content of the entry that was read last, piece by piece.
    pub(super) fn content(
        &mut self,
        entry: &Entry,
        size: u64,
        mut take: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.offset.saturating_add(size) > self.limit {
            return Err(Error::archive(&entry.path, Problem::TooBig { limit: self.limit }));
        }
        let mut left = size;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(self.buffer.len());
            let count = self.reader.read(&mut self.buffer[..most])?;
            if count == 0 {
                return Err(self.damaged("it ends in the middle of a file"));
            }
            self.offset += count as u64;
            left -= count as u64;
            take(&self.buffer[..count])?;
        }
        let mut rest = [0; BLOCK];
        self.exact(&mut rest[..padding(size)])
    }

    /// Reads to the end of the bytes.
    pub(super) fn finish(mut self) -> Result<R, Error> {
        loop {
            let count = self.reader.read(&mut self.buffer)?;
            self.offset += count as u64;
            if count == 0 {
                return Ok(self.reader);
            }
            if self.offset > self.limit {
                return Err(Error::archive(b"end", Problem::TooBig { limit: self.limit }));
            }
        }
    }

    fn damaged(&self, problem: &'static str) -> Error {
        Error::Damaged { offset: self.offset, problem }
    }

    fn header(&mut self) -> Result<Option<Header>, Error> {
        let mut header = Header::new_old();
        let bytes = header.as_mut_bytes();
        let mut filled = 0;
        while filled < BLOCK {
            match self.reader.read(&mut bytes[filled..])? {
                0 if filled == 0 => return Ok(None),
                0 => return Err(self.damaged("it ends in the middle of a header")),
                count => filled += count,
            }
        }
        self.offset += BLOCK as u64;
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let sum = bytes.iter().enumerate().map(|(at, byte)| {
            // The checksum counts its own field as spaces.
            if (148..156).contains(&at) { u32::from(b' ') } else { u32::from(*byte) }
        });
        let sum: u32 = sum.sum();
        if header.cksum().ok() != Some(sum) {
            return Err(self.damaged("the checksum of a header is wrong"));
        }
        Ok(Some(header))
    }

    fn exact(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.reader.read_exact(bytes).map_err(|error| {
            if error.kind() == io::ErrorKind::UnexpectedEof {
                self.damaged("it ends in the middle of an entry")
            } else {
                error.into()
            }
        })?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn records(&mut self, size: u64) -> Result<Vec<u8>, Error> {
        if size > MOST_RECORDS {
            return Err(self.damaged("names and attributes of an entry take over 1 MiB"));
        }
        let size = usize::try_from(size).expect("at most 1 MiB");
        let mut bytes = vec![0; size + padding(size as u64)];
        self.exact(&mut bytes)?;
        bytes.truncate(size);
        Ok(bytes)
    }

    fn pax(&self, mut bytes: &[u8], pending: &mut Pending) -> Result<(), Error> {
        let damaged = || self.damaged("a pax record does not read");
        while !bytes.is_empty() {
            let space = bytes.iter().take(8).position(|byte| *byte == b' ').ok_or_else(damaged)?;
            let length: usize = number(&bytes[..space]).ok_or_else(damaged)?;
            if length <= space + 1 || length > bytes.len() || bytes[length - 1] != b'\n' {
                return Err(damaged());
            }
            let record = &bytes[space + 1..length - 1];
            let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(damaged)?;
            let (name, value) = (&record[..equals], &record[equals + 1..]);
            match name {
                b"path" => pending.path = Some(value.to_vec()),
                b"linkpath" => pending.link = Some(value.to_vec()),
                b"size" => pending.size = Some(number(value).ok_or_else(damaged)?),
                b"uid" => pending.uid = Some(number(value).ok_or_else(damaged)?),
                b"gid" => pending.gid = Some(number(value).ok_or_else(damaged)?),
                b"mtime" => pending.mtime = Some(seconds(value).ok_or_else(damaged)?),
                _ if name.starts_with(b"GNU.sparse.") => {
                    return Err(self.damaged("sparse files are not supported"));
                }
                _ => {
                    if let Some(name) = name.strip_prefix(b"SCHILY.xattr.")
                        && attributes::is_allowed(name)
                    {
                        pending.attributes.insert(name.to_vec(), value.to_vec());
                    }
                }
            }
            bytes = &bytes[length..];
        }
        Ok(())
    }

    fn entry(header: &Header, size: u64, pending: Pending) -> Result<Entry, Error> {
        let name = pending.path.unwrap_or_else(|| header.path_bytes().into_owned());
        let refuse = |problem| Error::archive(&name, problem);
        let field = |field| refuse(Problem::Header { field });
        let path = checked_path(&name).map_err(refuse)?;
        let link = || -> Result<Vec<u8>, Error> {
            let link = pending
                .link
                .clone()
                .or_else(|| header.link_name_bytes().map(std::borrow::Cow::into_owned))
                .unwrap_or_default();
            if link.is_empty() || link.contains(&0) {
                return Err(refuse(Problem::LinkTarget { target: super::error::readable(&link) }));
            }
            if link.len() > PATH_MAX { Err(refuse(Problem::TooLong)) } else { Ok(link) }
        };
        let size = pending.size.unwrap_or(size);
        let kind = match header.entry_type() {
            // Before ustar, a folder was a file whose name ended in a slash.
            EntryType::Regular | EntryType::Continuous if name.ends_with(b"/") => Kind::Directory,
            EntryType::Regular | EntryType::Continuous => Kind::File { size },
            EntryType::Directory => Kind::Directory,
            EntryType::Symlink => Kind::Symlink { target: link()? },
            EntryType::Link => {
                let target = link()?;
                let checked = checked_path(&target).map_err(|_| {
                    refuse(Problem::LinkTarget { target: super::error::readable(&target) })
                })?;
                Kind::HardLink { target: checked }
            }
            EntryType::Fifo => Kind::Fifo,
            EntryType::Char | EntryType::Block => return Err(refuse(Problem::Device)),
            _ => return Err(refuse(Problem::Type)),
        };
        if size != 0 && !matches!(kind, Kind::File { .. }) {
            return Err(field("a size where there is no content"));
        }
        let id = |given: Option<u64>, held: io::Result<u64>, name| {
            let id = given.map_or(held, Ok).map_err(|_| field(name))?;
            u32::try_from(id).map_err(|_| field(name))
        };
        let mtime = match pending.mtime {
            Some(mtime) => mtime,
            // The first byte of a negative number in base 256.
            None if header.as_old().mtime[0] == 0xff => 0,
            None => header
                .mtime()
                .ok()
                .and_then(|mtime| i64::try_from(mtime).ok())
                .ok_or_else(|| field("time"))?,
        };
        Ok(Entry {
            path,
            kind,
            mode: header.mode().map_err(|_| field("mode"))? & 0o7777,
            uid: id(pending.uid, header.uid(), "user id")?,
            gid: id(pending.gid, header.gid(), "group id")?,
            mtime,
            attributes: pending.attributes,
        })
    }
}

/// A name from an archive as a path from the root: relative, without `.`, `..` and doubled slashes.
fn checked_path(name: &[u8]) -> Result<Vec<u8>, Problem> {
    if name.is_empty() || name.contains(&0) {
        return Err(Problem::BadName);
    }
    if name[0] == b'/' {
        return Err(Problem::Absolute);
    }
    let mut path = Vec::with_capacity(name.len());
    for part in name.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => return Err(Problem::Escapes),
            _ if part.len() > NAME_MAX => return Err(Problem::TooLong),
            _ => {
                if !path.is_empty() {
                    path.push(b'/');
                }
                path.extend_from_slice(part);
            }
        }
    }
    if path.len() > PATH_MAX { Err(Problem::TooLong) } else { Ok(path) }
}

fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The whole seconds of a decimal number; negative ones are 0.
fn seconds(value: &[u8]) -> Option<i64> {
    let negative = value.first() == Some(&b'-');
    let digits = &value[usize::from(negative)..];
    let whole = digits.split(|byte| *byte == b'.').next().expect("a split has a part");
    let whole = number(whole)?;
    Some(if negative { 0 } else { whole })
}

/// A GNU long name without the NUL at its end.
fn terminated(mut name: Vec<u8>) -> Vec<u8> {
    if name.last() == Some(&0) {
        name.pop();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_paths_inside() {
        for (name, expected) in [
            (&b"a/b"[..], Ok(&b"a/b"[..])),
            (b"./a//b/./", Ok(b"a/b")),
            (b"./", Ok(b"")),
            (b"..a/...", Ok(b"..a/...")),
            (b"/a", Err(Problem::Absolute)),
            (b"a/../b", Err(Problem::Escapes)),
            (b"..", Err(Problem::Escapes)),
            (b"", Err(Problem::BadName)),
            (b"a\0b", Err(Problem::BadName)),
            (&[b'a'; 256], Err(Problem::TooLong)),
            (&b"a/".repeat(2049)[..], Err(Problem::TooLong)),
        ] {
            let path = checked_path(name);
            assert_eq!(path.as_deref(), expected.as_ref().copied(), "{}", name.escape_ascii());
        }
    }

    #[test]
    fn times_are_whole_and_not_before_1970() {
        for (text, expected) in [
            ("12", Some(12)),
            ("12.999", Some(12)),
            ("-3.5", Some(0)),
            ("", None),
            ("+1", None),
            ("1e3", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(seconds(text.as_bytes()), expected, "{text}");
        }
    }
}
