//! Zip archives (wheels), read strictly and written canonically.
//!
//! Readers of zip files disagree about archives that contradict themselves, which has been used to show one
//! content to a checker and another to an installer. So this one refuses every contradiction: two entries of one name, a
//! local header that differs from the central directory, bytes between the directory and the end record, wrong lengths
//! and checksums, encryption, methods other than stored and deflate.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use flate2::Crc;
use flate2::read::DeflateDecoder;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END64: u32 = 0x0606_4b50;
const END64_LOCATOR: u32 = 0x0706_4b50;

/// Longest central directory that is read: 200,000 entries of 300 bytes.
const DIRECTORY_LIMIT: u64 = 64 << 20;

/// What an archive promises of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Path inside, as written.
    pub(crate) name: String,
    /// Unpacked length.
    pub(crate) size: u64,
    /// Unix mode, 0 where the archive has none.
    pub(crate) mode: u32,
    packed: u64,
    method: u16,
    crc: u32,
    offset: u64,
}

impl Entry {
    /// Whether any execute bit is set.
    pub(crate) fn is_executable(&self) -> bool {
        self.mode & 0o111 != 0
    }

    /// Whether it says that it is a symbolic link.
    pub(crate) fn is_symlink(&self) -> bool {
        self.mode & 0o170_000 == 0o120_000
    }
}

/// An open archive.
pub(crate) struct Archive {
    file: fs_err::File,
    /// Files in the order of the directory; entries of folders are left out.
    pub(crate) entries: Vec<Entry>,
}

fn invalid(problem: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem.into())
}

/// Little-endian fields of a record, one after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (head, rest) =
            self.0.split_first_chunk::<N>().ok_or_else(|| invalid("a record is cut short"))?;
        self.0 = rest;
        Ok(*head)
    }

    fn u16(&mut self) -> io::Result<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> io::Result<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> io::Result<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn bytes(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let (head, rest) =
            self.0.split_at_checked(count).ok_or_else(|| invalid("a record is cut short"))?;
        self.0 = rest;
        Ok(head.to_vec())
    }
}

impl Archive {
    /// Reads the directory of the archive at `path`.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = fs_err::File::open(path)?;
        let length = file.metadata()?.len();
        let (start, count, end) = find_directory(&file, length)?;
        if start > end || end - start > DIRECTORY_LIMIT {
            return Err(invalid("the zip directory lies outside of the file or is too long"));
        }
        let mut bytes = vec![0; usize::try_from(end - start).map_err(|_| invalid("too long"))?];
        file.file().read_exact_at(&mut bytes, start)?;
        let mut fields = Fields(&bytes);
        let mut entries = Vec::new();
        let mut names = BTreeSet::new();
        for _ in 0..count {
            let entry = central_entry(&mut fields)?;
            if !names.insert(entry.name.clone()) {
                return Err(invalid(format!("two entries are named `{}`", entry.name)));
            }
            if entry.name.ends_with('/') {
                if entry.size != 0 {
                    return Err(invalid(format!("the folder `{}` has contents", entry.name)));
                }
                continue;
            }
            entries.push(entry);
        }
        if !fields.0.is_empty() {
            return Err(invalid("the zip directory is longer than its number of entries says"));
        }
        Ok(Self { file, entries })
    }

    /// The entry of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// The contents of `entry`; the last read fails unless length and checksum are the promised ones.
    pub(crate) fn reader(&self, entry: &Entry) -> io::Result<impl Read> {
        let mut header = [0; 30];
        self.file.file().read_exact_at(&mut header, entry.offset)?;
        let mut fields = Fields(&header);
        let signature = fields.u32()?;
        let _version = fields.u16()?;
        let flags = fields.u16()?;
        let method = fields.u16()?;
        let _: [u8; 16] = fields.take()?;
        let (name_length, extra_length) = (fields.u16()?, fields.u16()?);
        let mut name = vec![0; usize::from(name_length)];
        self.file.file().read_exact_at(&mut name, entry.offset + 30)?;
        if signature != LOCAL || name != entry.name.as_bytes() || method != entry.method {
            return Err(invalid(format!("the local header of `{}` differs", entry.name)));
        }
        if flags & 1 != 0 {
            return Err(invalid(format!("`{}` is encrypted", entry.name)));
        }
        let start = entry.offset + 30 + u64::from(name_length) + u64::from(extra_length);
        let raw = Window { file: self.file.file(), position: start, left: entry.packed };
        let inner = if entry.method == 0 {
            Contents::Stored(raw)
        } else {
            Contents::Deflated(Box::new(DeflateDecoder::new(io::BufReader::with_capacity(
                64 << 10,
                raw,
            ))))
        };
        Ok(Checked { inner, entry: entry.clone(), crc: Crc::new() })
    }

    /// The whole contents of `entry`.
    pub(crate) fn read(&self, entry: &Entry) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader(entry)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Start, number of entries and end of the central directory.
fn find_directory(file: &fs_err::File, length: u64) -> io::Result<(u64, u64, u64)> {
    let tail_length = length.min(22 + 0xffff);
    let tail_start = length - tail_length;
    let mut tail = vec![0; usize::try_from(tail_length).map_err(|_| invalid("too long"))?];
    file.file().read_exact_at(&mut tail, tail_start)?;
    let position = (0..=tail.len().saturating_sub(22))
        .rev()
        .find(|&at| {
            tail.len() >= at + 22
                && tail[at..].starts_with(&END.to_le_bytes())
                && usize::from(u16::from_le_bytes([tail[at + 20], tail[at + 21]]))
                    == tail.len() - at - 22
        })
        .ok_or_else(|| invalid("not a zip archive, or cut short"))?;
    let end = tail_start + position as u64;
    let mut fields = Fields(&tail[position + 4..]);
    let _: [u8; 4] = fields.take()?;
    let (_, count) = (fields.u16()?, fields.u16()?);
    let (size, start) = (fields.u32()?, fields.u32()?);
    if count != u16::MAX && size != u32::MAX && start != u32::MAX {
        if u64::from(start) + u64::from(size) != end {
            return Err(invalid("bytes lie between the zip directory and its end record"));
        }
        return Ok((u64::from(start), u64::from(count), end));
    }
    let mut locator = [0; 20];
    let at = end.checked_sub(20).ok_or_else(|| invalid("a zip64 record is missing"))?;
    file.file().read_exact_at(&mut locator, at)?;
    let mut fields = Fields(&locator);
    if fields.u32()? != END64_LOCATOR {
        return Err(invalid("a zip64 record is missing"));
    }
    let _disk = fields.u32()?;
    let record_at = fields.u64()?;
    let mut record = [0; 56];
    if record_at.checked_add(56) != Some(at) {
        return Err(invalid("the zip64 end record is not where it should be"));
    }
    file.file().read_exact_at(&mut record, record_at)?;
    let mut fields = Fields(&record);
    if fields.u32()? != END64 {
        return Err(invalid("a zip64 record is missing"));
    }
    let _: [u8; 28] = fields.take()?;
    let (count, size, start) = (fields.u64()?, fields.u64()?, fields.u64()?);
    if start.checked_add(size) != Some(record_at) {
        return Err(invalid("bytes lie between the zip directory and its end record"));
    }
    Ok((start, count, record_at))
}

fn central_entry(fields: &mut Fields<'_>) -> io::Result<Entry> {
    if fields.u32()? != CENTRAL {
        return Err(invalid("the zip directory is damaged"));
    }
    let made_by = fields.u16()?;
    let _needs = fields.u16()?;
    let flags = fields.u16()?;
    let method = fields.u16()?;
    let _time: [u8; 4] = fields.take()?;
    let crc = fields.u32()?;
    let (packed, size) = (fields.u32()?, fields.u32()?);
    let (name_length, extra_length, comment_length) = (fields.u16()?, fields.u16()?, fields.u16()?);
    let _disk: [u8; 4] = fields.take()?;
    let attributes = fields.u32()?;
    let offset = fields.u32()?;
    let name = String::from_utf8(fields.bytes(usize::from(name_length))?)
        .map_err(|_| invalid("a file name is not UTF-8"))?;
    let extra = fields.bytes(usize::from(extra_length))?;
    fields.bytes(usize::from(comment_length))?;
    if name.is_empty() || name.contains(['\0', '\n', '\r', '\\']) {
        return Err(invalid(format!("`{}` is not a usable file name", name.escape_debug())));
    }
    if flags & 1 != 0 {
        return Err(invalid(format!("`{name}` is encrypted")));
    }
    if method != 0 && method != 8 {
        return Err(invalid(format!("`{name}` is compressed by the unknown method {method}")));
    }
    let mut entry = Entry {
        name,
        size: size.into(),
        // Only Unix hosts write a mode there.
        mode: if made_by >> 8 == 3 { attributes >> 16 } else { 0 },
        packed: packed.into(),
        method,
        crc,
        offset: offset.into(),
    };
    let mut extra = Fields(&extra);
    while extra.0.len() >= 4 {
        let (kind, length) = (extra.u16()?, extra.u16()?);
        let body = extra.bytes(usize::from(length))?;
        if kind != 1 {
            continue;
        }
        let mut body = Fields(&body);
        for (short, value) in
            [(size, &mut entry.size), (packed, &mut entry.packed), (offset, &mut entry.offset)]
        {
            if short == u32::MAX {
                *value = body.u64()?;
            }
        }
    }
    if method == 0 && entry.size != entry.packed {
        return Err(invalid(format!("`{}` is stored with two lengths", entry.name)));
    }
    Ok(entry)
}

/// A part of a file, read without moving the file's own position.
struct Window<'a> {
    file: &'a std::fs::File,
    position: u64,
    left: u64,
}

impl Read for Window<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.file.read_at(&mut buffer[..wanted], self.position)?;
        self.position += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}

enum Contents<'a> {
    Stored(Window<'a>),
    Deflated(Box<DeflateDecoder<io::BufReader<Window<'a>>>>),
}

/// Demands length and checksum at the end, and stops where the promised length is passed.
struct Checked<'a> {
    inner: Contents<'a>,
    entry: Entry,
    crc: Crc,
}

impl Read for Checked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = match &mut self.inner {
            Contents::Stored(inner) => inner.read(buffer),
            Contents::Deflated(inner) => inner.read(buffer),
        }
        .map_err(|error| invalid(format!("`{}` does not unpack: {error}", self.entry.name)))?;
        self.crc.update(&buffer[..read]);
        // `Crc::amount` wraps at 4 GiB, so the length is judged by its low half and by the checksum.
        #[expect(clippy::cast_possible_truncation, reason = "compared modulo 2^32 on purpose")]
        let expected = self.entry.size as u32;
        if read == 0 && (self.crc.amount() != expected || self.crc.sum() != self.entry.crc) {
            return Err(invalid(format!(
                "`{}` has another length or checksum than the archive promises",
                self.entry.name
            )));
        }
        Ok(read)
    }
}

/// Writes an archive of `files` (name, contents, executable), canonically: in the given order, stored, every time
/// 1980-01-01T00:00:00, modes 0644 and 0755. Stored, since the bytes of a compressor change with its version.
pub(crate) fn write_stored(
    out: &mut impl Write,
    files: impl IntoIterator<Item = io::Result<(String, Vec<u8>, bool)>>,
) -> io::Result<()> {
    // 1980-01-01 as an MS-DOS date; the time is 0.
    const DATE: u16 = 0x21;
    let mut directory = Vec::new();
    let mut count: u16 = 0;
    let mut offset: u64 = 0;
    for file in files {
        let (name, contents, executable) = file?;
        let too_long = |_| invalid(format!("`{name}` is too long for an archive of ours"));
        let size = u32::try_from(contents.len()).map_err(too_long)?;
        let at = u32::try_from(offset).map_err(too_long)?;
        let name_length = u16::try_from(name.len()).map_err(too_long)?;
        let mut crc = Crc::new();
        crc.update(&contents);
        // Version 2.0, UTF-8 names, stored.
        let mut common = Vec::new();
        for half in [20, 1 << 11, 0, 0, DATE] {
            common.extend_from_slice(&u16::to_le_bytes(half));
        }
        for word in [crc.sum(), size, size] {
            common.extend_from_slice(&word.to_le_bytes());
        }
        common.extend_from_slice(&name_length.to_le_bytes());
        common.extend_from_slice(&0_u16.to_le_bytes());

        let mut local = LOCAL.to_le_bytes().to_vec();
        local.extend_from_slice(&common);
        local.extend_from_slice(name.as_bytes());
        out.write_all(&local)?;
        out.write_all(&contents)?;
        offset += local.len() as u64 + u64::from(size);

        directory.extend_from_slice(&CENTRAL.to_le_bytes());
        // Made on Unix (3), version 2.0.
        directory.extend_from_slice(&0x0314_u16.to_le_bytes());
        directory.extend_from_slice(&common);
        for half in [0_u16; 3] {
            directory.extend_from_slice(&half.to_le_bytes());
        }
        let mode: u32 = if executable { 0o100_755 } else { 0o100_644 };
        directory.extend_from_slice(&(mode << 16).to_le_bytes());
        directory.extend_from_slice(&at.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
        count = count
            .checked_add(1)
            .filter(|count| *count != u16::MAX)
            .ok_or_else(|| invalid("too many files for an archive of ours"))?;
    }
    let too_long = |_| invalid("too long for an archive of ours");
    let start = u32::try_from(offset).map_err(too_long)?;
    let size = u32::try_from(directory.len()).map_err(too_long)?;
    out.write_all(&directory)?;
    let mut end = END.to_le_bytes().to_vec();
    for half in [0, 0, count, count] {
        end.extend_from_slice(&u16::to_le_bytes(half));
    }
    end.extend_from_slice(&size.to_le_bytes());
    end.extend_from_slice(&start.to_le_bytes());
    end.extend_from_slice(&0_u16.to_le_bytes());
    out.write_all(&end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn stored(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let rows = files.iter().map(|(name, text)| Ok(((*name).to_owned(), text.to_vec(), false)));
        write_stored(&mut bytes, rows).unwrap();
        bytes
    }

    fn problem(bytes: &[u8]) -> String {
        let file = file(bytes);
        match Archive::open(file.path()) {
            Err(error) => error.to_string(),
            Ok(archive) => archive
                .entries
                .iter()
                .find_map(|entry| archive.read(entry).err())
                .expect("the archive is bad")
                .to_string(),
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let bytes = stored(&[("a/b", b"one"), ("ü", b""), ("dir/", b"")]);
        let file = file(&bytes);
        let archive = Archive::open(file.path()).unwrap();
        let read: Vec<_> = archive
            .entries
            .iter()
            .map(|entry| (entry.name.as_str(), archive.read(entry).unwrap(), entry.mode))
            .collect();
        assert_eq!(read, [("a/b", b"one".to_vec(), 0o100_644), ("ü", Vec::new(), 0o100_644)]);
    }

    #[test]
    fn contradictions_are_refused() {
        let good = stored(&[("a", b"one"), ("b", b"two")]);
        assert_eq!(problem(&stored(&[("a", b"x"), ("a", b"y")])), "two entries are named `a`");
        assert_eq!(problem(&stored(&[("d/", b"y")])), "the folder `d/` has contents");
        assert_eq!(problem(&stored(&[("a\\b", b"y")])), "`a\\\\b` is not a usable file name");
        assert_eq!(problem(&good[..good.len() - 1]), "not a zip archive, or cut short");
        assert_eq!(problem(b""), "not a zip archive, or cut short");

        // The first local header gets another name than the directory.
        let mut renamed = good.clone();
        renamed[30] = b'z';
        assert_eq!(problem(&renamed), "the local header of `a` differs");

        // A flipped byte of the contents.
        let mut flipped = good.clone();
        flipped[31] ^= 1;
        assert!(problem(&flipped).starts_with("`a` has another length or checksum"));

        // Something between the directory and the end record.
        let mut gap = good.clone();
        gap.splice(good.len() - 22..good.len() - 22, *b"gap!");
        assert!(problem(&gap).starts_with("bytes lie between"), "{}", problem(&gap));

        // One entry less than there are.
        let mut short = good;
        let at = short.len() - 22 + 8;
        short[at] = 1;
        short[at + 2] = 1;
        assert!(problem(&short).starts_with("the zip directory is longer"));
    }
}
