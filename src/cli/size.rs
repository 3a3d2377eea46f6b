//! Sizes as people write them.

/// Reads bytes: a number, or one with `K`, `M`, `G` or `T` (powers of 1024).
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        Some((at, 'T' | 't')) => (&text[..at], 40),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift)).ok_or_else(|| {
        format!("{text:?} is not a size: write a number of bytes, or one with K, M, G or T")
    })
}

/// Writes bytes with a decimal unit.
pub(crate) fn format(bytes: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    units.iter().find(|(unit, _)| bytes >= *unit).map_or_else(
        || format!("{bytes} B"),
        |(unit, name)| format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_and_write() {
        assert_eq!(parse("20G"), Ok(20 << 30));
        assert_eq!(parse("17"), Ok(17));
        for bad in ["", "G", "1.5G", "99999999999T", "-1"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert_eq!(format(1_550_000), "1.5 MB");
        assert_eq!(format(12), "12 B");
    }
}
