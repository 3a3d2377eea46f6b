//! Cuts bytes into clean lines.

use std::borrow::Cow;

/// The lines of a text: without ANSI sequences, without what a carriage return overwrote, in UTF-8.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    let ended = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    ended.split(|byte| *byte == b'\n').map(clean)
}

/// One line.
fn clean(line: &[u8]) -> Cow<'_, str> {
    // CRLF, and CRCRLF of a terminal in between.
    let mut line = line;
    while let Some(shorter) = line.strip_suffix(b"\r") {
        line = shorter;
    }
    let line = line.rsplit(|byte| *byte == b'\r').next().unwrap_or(line);
    if !line.contains(&0x1b) {
        return String::from_utf8_lossy(line);
    }
    let mut out = Vec::with_capacity(line.len());
    let mut bytes = line.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != 0x1b {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            // CSI: parameters and intermediates, then one final byte.
            Some(b'[') => while bytes.next().is_some_and(|byte| !(0x40..=0x7e).contains(&byte)) {},
            // OSC: to BEL or ESC \.
            Some(b']') => {
                while let Some(byte) = bytes.next() {
                    if byte == 0x07 {
                        break;
                    }
                    if byte == 0x1b {
                        bytes.next();
                        break;
                    }
                }
            }
            // Any other sequence is two bytes.
            _ => {}
        }
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cleaned() {
        for (bytes, expected) in [
            (&b"a\nb"[..], &["a", "b"][..]),
            (b"a\r\nb\r\r\n", &["a", "b"]),
            (b"10%\r50%\rdone\n", &["done"]),
            (b"\x1b[1;32mPASSED\x1b[0m t\n", &["PASSED t"]),
            (b"\x1b]8;;link\x07x\x1b]8;;\x1b\\y\x1b(z", &["xyz"]),
            // A character in two halves with a colour between them.
            (b"\xc3\x1b[0m\xa4", &["\u{e4}"]),
            (b"\xff\xc3", &["\u{fffd}\u{fffd}"]),
            (b"", &[""]),
            (b"\x1b", &[""]),
            (b"\x1b[", &[""]),
        ] {
            let found: Vec<_> = lines(bytes).collect();
            assert_eq!(found, expected, "{bytes:?}");
        }
    }
}
