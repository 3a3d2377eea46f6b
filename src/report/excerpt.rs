//! The last lines of logs, as a terminal would have left them.

use std::io::{Read, Seek as _, SeekFrom};
use std::path::Path;

use super::Error;
use super::text::{from_bytes, visible_lines};
use crate::base::{Cancel, HashingReader};
use crate::verify::LogRef;

/// How much of a log's end is read.
const TAIL: u64 = 64 * 1024;
/// How much is read at once while the whole log is checked.
const CHUNK: usize = 1 << 20;
/// Longest line; the rest is cut.
const LINE: usize = 400;
/// Columns between tab stops.
const TAB: usize = 8;

/// A stream of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// A word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "standard output",
            Self::Stderr => "standard error",
        }
    }
}

/// The end of a log, or why it is not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The run's number.
    pub run: usize,
    /// Which stream.
    pub stream: Stream,
    /// The log.
    pub log: LogRef,
    /// Its last lines, or why they are not shown.
    pub text: Result<String, String>,
    /// Whether something stands before them.
    pub cut: bool,
}

/// The last `lines` lines (at most `bytes` bytes) of a log, once the whole of it was checked against its digest; else why not.
/// Also whether anything was left out.
pub(super) fn tail(
    path: &Path,
    log: LogRef,
    (lines, bytes): (usize, usize),
    cancel: &Cancel,
) -> Result<(Result<String, String>, bool), Error> {
    let mut file = match fs_err::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok((Err("the log is not in this store".to_owned()), false));
        }
        Err(error) => return Err(error.into()),
    };
    let mut reader = HashingReader::new(&mut file);
    let mut chunk = vec![0; CHUNK];
    loop {
        cancel.check()?;
        if reader.read(&mut chunk)? == 0 {
            break;
        }
    }
    let (_, digest, size) = reader.finish();
    if (digest, size) != (log.sha256, log.size) {
        return Ok((Err("the log in this store is not the recorded one".to_owned()), false));
    }
    let start = size.saturating_sub(TAIL);
    file.seek(SeekFrom::Start(start))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    if start > 0 {
        // Not from the middle of a line, or of a character.
        let at = end.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        end.drain(..at);
    }
    let (text, cut) = last_lines(&end, lines, bytes);
    Ok((Ok(text), cut || start > 0))
}

/// The last lines of a log as text: escape sequences gone, overwritten progress gone, what is left of controls and what
/// is not UTF-8 as escapes. Also whether lines were left out.
pub(super) fn last_lines(log: &[u8], lines: usize, bytes: usize) -> (String, bool) {
    let text = from_bytes(log);
    let mut kept: Vec<String> = Vec::new();
    let mut size = 0;
    let mut left = false;
    for line in text.trim_end_matches([' ', '\t', '\r', '\n']).lines().rev() {
        let line = shown(line);
        if kept.len() == lines || size + line.len() > bytes {
            left = true;
            break;
        }
        size += line.len() + 1;
        kept.push(line);
    }
    kept.reverse();
    (kept.join("\n"), left)
}

/// A line as a terminal leaves it.
fn shown(line: &str) -> String {
    let plain = without_escapes(line);
    // Progress that was written over: the last state that has text.
    let last = plain.rsplit('\r').find(|part| !part.is_empty()).unwrap_or_default();
    let mut out = String::with_capacity(last.len());
    let mut column = 0;
    for c in last.chars() {
        if c == '\t' {
            let wide = TAB - column % TAB;
            out.extend(std::iter::repeat_n(' ', wide));
            column += wide;
        } else {
            out.push(c);
            column += 1;
        }
        if column > LINE {
            out.push_str(" …");
            break;
        }
    }
    visible_lines(&out).into_owned()
}

/// The text without ECMA-48 control sequences: CSI (colours, cursor), OSC and other strings, two-character escapes.
fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => match rest.next() {
                Some('[') => while rest.next_if(|c| !('@'..='~').contains(c)).is_some() {},
                Some(']' | 'P' | 'X' | '^' | '_') => {
                    // Up to BEL or ST; the backslash of ST is the character after the escape.
                    while rest.next_if(|c| !matches!(c, '\u{7}' | '\u{1b}')).is_some() {}
                    if rest.next() == Some('\u{1b}') {
                        rest.next_if_eq(&'\\');
                    }
                    continue;
                }
                Some('(' | ')' | '*' | '+' | '#' | '%') => {}
                _ => continue,
            },
            '\u{9b}' => while rest.next_if(|c| !('@'..='~').contains(c)).is_some() {},
            _ => {
                out.push(c);
                continue;
            }
        }
        // The last character of the sequence.
        rest.next();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(log: &[u8]) -> String {
        last_lines(log, 1000, 1 << 20).0
    }

    #[test]
    fn a_log_reads_as_a_terminal_left_it() {
        assert_eq!(
            all(b"\x1b[31;1mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x1b\\ \x1b(Bend\x1bM"),
            "red link end"
        );
        assert_eq!(all(b" 1%\r 50%\r100%\r\ndone\r\n"), "100%\ndone");
        assert_eq!(all(b"a\tb\xff\x00\x08"), "a       b\\xff\\x00\\x08");
        assert_eq!(all("\u{202e}x\u{2028}".as_bytes()), "\\u{202e}x\\u{2028}");
        // An escape at the very end, cut off.
        for cut in
            ["a\u{1b}", "a\u{1b}[", "a\u{1b}[3", "a\u{1b}]0;x", "a\u{1b}]0;x\u{1b}", "a\u{1b}("]
        {
            assert_eq!(all(cut.as_bytes()), "a", "{cut:?}");
        }
        assert_eq!(all(b""), "");
    }

    #[test]
    fn the_last_lines_and_no_more() {
        let log = (0..100).map(|n| format!("line {n}\n")).collect::<String>();
        assert_eq!(last_lines(log.as_bytes(), 2, 1000), ("line 98\nline 99".to_owned(), true));
        assert_eq!(last_lines(log.as_bytes(), 100, 14), ("line 99".to_owned(), true));
        assert_eq!(last_lines(b"x\ny\n\n", 2, 100), ("x\ny".to_owned(), false));
        let long = last_lines("ä".repeat(10_000).as_bytes(), 5, 10_000).0;
        assert_eq!(long.chars().count(), LINE + 3);
    }

    #[test]
    fn only_the_recorded_bytes_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout");
        let cancel = Cancel::new();
        let bytes: Vec<u8> = (0..30_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
        let log = LogRef { sha256: crate::base::Digest::of(&bytes), size: bytes.len() as u64 };
        let read = || tail(&path, log, (2, 1000), &cancel).unwrap();
        assert_eq!(read(), (Err("the log is not in this store".to_owned()), false));
        fs_err::write(&path, &bytes).unwrap();
        assert_eq!(read(), (Ok("line 29998\nline 29999".to_owned()), true));
        fs_err::write(&path, &bytes[1..]).unwrap();
        assert_eq!(read().0, Err("the log in this store is not the recorded one".to_owned()));
    }
}
