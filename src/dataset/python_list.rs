//! A list of strings as Python's `repr` writes it: `['a', "b's", 'c\n']`.

/// Reads the list; `Err` says what is wrong.
pub(super) fn parse(text: &str) -> Result<Vec<String>, String> {
    let mut rest = text.trim();
    rest = rest.strip_prefix('[').ok_or("it does not start with `[`")?;
    let mut items = Vec::new();
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix(']') {
            return if after.is_empty() {
                Ok(items)
            } else {
                Err("something follows the `]`".into())
            };
        }
        let (item, after) = string(rest)?;
        items.push(item);
        rest = after.trim_start();
        if let Some(after) = rest.strip_prefix(',') {
            rest = after;
        } else if rest.starts_with(['\'', '"']) {
            // Python would join the two; what is meant is an array printed by numpy.
            return Err("two strings have no comma between them".into());
        } else if !rest.starts_with(']') {
            return Err(if rest.is_empty() {
                "it ends without `]`"
            } else {
                "it holds more than strings"
            }
            .into());
        }
    }
}

/// One string literal, and what follows it.
fn string(text: &str) -> Result<(String, &str), String> {
    // Python 2 wrote u'...'.
    let text = text.strip_prefix(['u', 'U']).unwrap_or(text);
    let quote = match text.chars().next() {
        Some(quote @ ('\'' | '"')) => quote,
        Some(_) => return Err("it holds more than strings".into()),
        None => return Err("it ends without `]`".into()),
    };
    if text.starts_with("'''") || text.starts_with("\"\"\"") {
        return Err("it holds a string in three quotes, which repr never writes".into());
    }
    let mut out = String::new();
    let mut chars = text[1..].char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            c if c == quote => return Ok((out, &text[1 + at + c.len_utf8()..])),
            '\n' => return Err("a string goes over the end of a line".into()),
            '\\' => {
                let used = escape(&text[1 + at + 1..], &mut out)?;
                for _ in text[1 + at + 1..][..used].chars() {
                    chars.next();
                }
            }
            c => out.push(c),
        }
    }
    Err("a string is not closed".into())
}

/// Reads what follows a backslash into `out` and says how many bytes it took.
fn escape(text: &str, out: &mut String) -> Result<usize, String> {
    let Some(c) = text.chars().next() else { return Err("a string is not closed".into()) };
    let simple = match c {
        '\\' | '\'' | '"' => Some(c),
        'a' => Some('\x07'),
        'b' => Some('\x08'),
        'f' => Some('\x0c'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'v' => Some('\x0b'),
        _ => None,
    };
    if let Some(simple) = simple {
        out.push(simple);
        return Ok(1);
    }
    let (prefix, radix, digits, exact) = match c {
        '\n' => return Ok(1),
        'x' => (1, 16, 2, true),
        'u' => (1, 16, 4, true),
        'U' => (1, 16, 8, true),
        '0'..='7' => (0, 8, 3, false),
        'N' => return Err("it names a character by `\\N`, which repr never writes".into()),
        other => {
            // Python keeps the backslash of an escape that it does not know.
            out.push('\\');
            out.push(other);
            return Ok(other.len_utf8());
        }
    };
    let number: String =
        text[prefix..].chars().take(digits).take_while(|c| c.is_digit(radix)).collect();
    if exact && number.len() != digits {
        return Err(format!("`\\{c}` needs {digits} hex digits"));
    }
    let code = u32::from_str_radix(&number, radix).map_err(|_| "an escape is too large")?;
    out.push(char::from_u32(code).ok_or_else(|| format!("`\\{c}{number}` is not a character"))?);
    Ok(prefix + number.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repr_writes_is_read() {
        // Each made by Python 3's repr of the list on the right, but for the last four.
        for (text, expected) in [
            ("[]", vec![]),
            ("['a']", vec!["a"]),
            (r#"["it's", 'say "x"']"#, vec!["it's", "say \"x\""]),
            (r#"['both \' and "']"#, vec!["both ' and \""]),
            (
                r"['a\\b', 'n\n', 't\t', 'r\r', '\x00\x7f', '\x1b[0m']",
                vec!["a\\b", "n\n", "t\t", "r\r", "\0\x7f", "\x1b[0m"],
            ),
            (
                r"['é', '\u200b', '\xa0', '\U000e0001']",
                vec!["é", "\u{200b}", "\u{a0}", "\u{e0001}"],
            ),
            ("['t[a, b]', 'x y']", vec!["t[a, b]", "x y"]),
            (" [ u'a' ,\n 'b', ] ", vec!["a", "b"]),
            (r"['\d', '\101', '\0']", vec!["\\d", "A", "\0"]),
            ("['\\é']", vec!["\\é"]),
            ("['a\\\nb']", vec!["ab"]),
        ] {
            assert_eq!(
                parse(text),
                Ok(expected.into_iter().map(str::to_owned).collect()),
                "{text}"
            );
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for bad in [
            "",
            "[",
            "a",
            "['a'",
            "['a",
            "['a']x",
            "['a' 'b']",
            "[1]",
            "[None]",
            "['a', 1]",
            "[b'a']",
            "[r'a']",
            "['''a''']",
            r"['\x4']",
            r"['\ud800']",
            r"['\N{DASH}']",
            r"['\U00110000']",
            "['a\nb']",
            "['\\",
            "{'a'}",
            "['a',,]",
            "('a',)",
            "[['a']]",
            "['\\xé0']",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
