//! Hides functions of a shared library from the dynamic linker, in its bytes.
//!
//! The linker passes over local symbols when it looks one up, while the library's own calls still find them. So a
//! library that is loaded before all others replaces just the functions that stay visible.

/// Binding of a symbol that nobody outside can see.
const LOCAL: u8 = 0;
/// Bindings that others can see: global and weak.
const VISIBLE: [u8; 2] = [1, 2];
/// The symbol is a function.
const FUNCTION: u8 = 2;
/// Section type of the dynamic symbols.
const DYNAMIC_SYMBOLS: u64 = 11;
/// Length of a section's header and of a symbol.
const SECTION: usize = 64;
const SYMBOL: usize = 24;

/// Makes local every function that the library offers, but those in `kept`; returns the names of the kept ones
/// that it has. Understands what Debian's 64-bit processors have: ELF64, little-endian.
pub(super) fn hide_functions(library: &mut [u8], kept: &[&str]) -> Result<Vec<String>, String> {
    if library.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err("it is no 64-bit little-endian ELF file".to_owned());
    }
    let sections = section(library, 0x28, 8)?;
    let count = number(library, 0x3c, 2)?;
    let header = |index: u64| -> Result<usize, String> {
        let at = usize::try_from(index).ok().and_then(|index| index.checked_mul(SECTION));
        at.and_then(|at| at.checked_add(sections)).ok_or_else(cut)
    };
    let mut symbols = None;
    for index in 0..count {
        let at = header(index)?;
        if number(library, at.saturating_add(4), 4)? == DYNAMIC_SYMBOLS {
            symbols = Some(at);
        }
    }
    let symbols = symbols.ok_or("it has no dynamic symbols")?;
    let names = section(
        library,
        header(number(library, symbols.saturating_add(0x28), 4)?)?.saturating_add(0x18),
        8,
    )?;
    let (start, length) = (
        section(library, symbols.saturating_add(0x18), 8)?,
        section(library, symbols.saturating_add(0x20), 8)?,
    );
    let mut found = Vec::new();
    for at in (start..start.checked_add(length).ok_or_else(cut)?).step_by(SYMBOL).skip(1) {
        let kind = number(library, at.saturating_add(4), 1)?;
        let kind = u8::try_from(kind).expect("one byte");
        let defined = number(library, at.saturating_add(6), 2)? != 0;
        if !defined || kind & 0xf != FUNCTION || !VISIBLE.contains(&(kind >> 4)) {
            continue;
        }
        let name = names.checked_add(section(library, at, 4)?).ok_or_else(cut)?;
        let name = library.get(name..).ok_or_else(cut)?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(name).into_owned();
        if kept.contains(&name.as_str()) {
            found.push(name);
        } else {
            library[at + 4] = LOCAL << 4 | FUNCTION;
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn cut() -> String {
    "it is cut short".to_owned()
}

/// A little-endian number of so many bytes.
fn number(library: &[u8], at: usize, length: usize) -> Result<u64, String> {
    let bytes = at.checked_add(length).and_then(|end| library.get(at..end)).ok_or_else(cut)?;
    Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// An offset or length in the file.
fn section(library: &[u8], at: usize, length: usize) -> Result<usize, String> {
    usize::try_from(number(library, at, length)?).map_err(|_| cut())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_library_is_refused() {
        for bytes in [&b""[..], b"\x7fELF\x01\x01", b"\x7fELF\x02\x01", &[0; 100]] {
            assert!(hide_functions(&mut bytes.to_vec(), &[]).is_err());
        }
        // Offsets that point anywhere.
        let mut wild = vec![0xff; 4096];
        wild[..6].copy_from_slice(b"\x7fELF\x02\x01");
        assert!(hide_functions(&mut wild, &[]).is_err());
    }

    /// One section of symbols and one of names, after the header.
    fn library(symbols: &[(&str, u8, u16)]) -> Vec<u8> {
        let mut names = vec![0];
        let mut table = vec![0; SYMBOL];
        for (name, kind, section) in symbols {
            table.extend(u32::try_from(names.len()).unwrap().to_le_bytes());
            table.extend([*kind, 0]);
            table.extend(section.to_le_bytes());
            table.extend([0; 16]);
            names.extend(name.bytes().chain([0]));
        }
        let start = SECTION + 2 * SECTION;
        let mut bytes = vec![0; start];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[0x28..0x30].copy_from_slice(&(SECTION as u64).to_le_bytes());
        bytes[0x3c..0x3e].copy_from_slice(&2_u16.to_le_bytes());
        let mut section = |number: usize, kind: u32, at: usize, length: usize| {
            let header = &mut bytes[SECTION + number * SECTION..][..SECTION];
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            header[0x18..0x20].copy_from_slice(&(at as u64).to_le_bytes());
            header[0x20..0x28].copy_from_slice(&(length as u64).to_le_bytes());
        };
        section(0, 3, start + table.len(), names.len());
        section(1, 11, start, table.len());
        bytes.extend(table);
        bytes.extend(names);
        bytes
    }

    #[test]
    fn offered_functions_become_local_but_for_the_kept() {
        let symbols = [
            ("time", 0x12, 7),
            ("sleep", 0x12, 7),
            ("sleep", 0x22, 7),
            ("imported", 0x12, 0),
            ("data", 0x11, 7),
            ("private", 0x02, 7),
        ];
        let mut bytes = library(&symbols);
        assert_eq!(hide_functions(&mut bytes, &["time", "none"]).unwrap(), ["time"]);
        let mut expected = symbols;
        (expected[1].1, expected[2].1) = (0x02, 0x02);
        assert_eq!(bytes, library(&expected));
        // Cut anywhere, it is refused or read as far as it goes, never past its end.
        for length in 0..bytes.len() {
            let _ = hide_functions(&mut bytes[..length].to_vec(), &["time"]);
        }
    }
}
