//! Sizes and durations with units: `"4 GiB"`, `"30 min"`; a bare number is bytes or seconds.

/// Units of size, in bytes. Binary only: a `GB` is read as 10^9 by some and 2^30 by others.
const SIZES: [(&str, u64); 5] =
    [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

/// Units of time, in seconds.
const TIMES: [(&str, f64); 4] = [("ms", 0.001), ("s", 1.0), ("min", 60.0), ("h", 3600.0)];

/// Pattern of a size, for the schema.
pub(super) const SIZE_PATTERN: &str = "^[0-9]+(\\.[0-9]+)? ?(B|KiB|MiB|GiB|TiB)$";

/// Pattern of a duration, for the schema.
pub(super) const TIME_PATTERN: &str = "^[0-9]+(\\.[0-9]+)? ?(ms|s|min|h)$";

/// Reads a size in bytes; `Err` is the hint.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let Some((_, factor)) = SIZES.iter().find(|(name, _)| *name == unit) else {
        return Err(match unit.to_ascii_lowercase().as_str() {
            "k" | "kb" => format!("write \"{number} KiB\""),
            "m" | "mb" => format!("write \"{number} MiB\""),
            "g" | "gb" | "gib" => format!("write \"{number} GiB\""),
            "t" | "tb" => format!("write \"{number} TiB\""),
            _ => "the units are B, KiB, MiB, GiB and TiB".to_owned(),
        });
    };
    let wrong = || "write a number and a unit, such as \"4 GiB\"".to_owned();
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(*factor).ok_or_else(wrong);
    }
    #[expect(clippy::cast_precision_loss, reason = "units are powers of two")]
    let bytes = decimal(number).ok_or_else(wrong)? * *factor as f64;
    // 2^53: below it every whole number of bytes is exact.
    if bytes.fract() == 0.0 && bytes < 9_007_199_254_740_992.0 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked above"
        )]
        Ok(bytes as u64)
    } else {
        Err("it is not a whole number of bytes".to_owned())
    }
}

/// Reads a duration in seconds; `Err` is the hint.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text);
    let Some((_, factor)) = TIMES.iter().find(|(name, _)| *name == unit) else {
        return Err(match unit {
            "m" | "mins" | "minute" | "minutes" => format!("write \"{number} min\""),
            "sec" | "secs" | "second" | "seconds" => format!("write \"{number} s\""),
            "hour" | "hours" | "hr" => format!("write \"{number} h\""),
            _ => "the units are ms, s, min and h".to_owned(),
        });
    };
    let number = decimal(number)
        .ok_or_else(|| "write a number and a unit, such as \"30 min\"".to_owned())?;
    Ok(number * factor)
}

fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.strip_prefix(' ').unwrap_or(unit))
}

/// Digits with at most one dot between them: no sign, exponent or infinity.
fn decimal(text: &str) -> Option<f64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (digits(whole) && digits(fraction)).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("4 GiB", 4 << 30),
            ("4GiB", 4 << 30),
            ("0.5 GiB", 1 << 29),
            ("64 MiB", 64 << 20),
            ("7 B", 7),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        assert_eq!(size("4 GB"), Err("write \"4 GiB\"".to_owned()));
        assert_eq!(size("512m"), Err("write \"512 MiB\"".to_owned()));
        for bad in [
            "",
            "GiB",
            "-1 GiB",
            "1e3 B",
            ". B",
            "1. B",
            "1.2.3 B",
            "0.3 B",
            "4  GiB",
            "99999999999999999999 B",
            "18446744073709551615 KiB",
        ] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations() {
        for (text, expected) in
            [("30 min", 1800.0), ("90s", 90.0), ("1.5 h", 5400.0), ("250 ms", 0.25)]
        {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        assert_eq!(seconds("5 m"), Err("write \"5 min\"".to_owned()));
        for bad in ["", "s", "-1 s", "inf s", "1e9 s", "1 fortnight"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
