//! PEP 503 pages: one anchor per file. Just enough HTML for what index servers write.

use super::pypi::Row;

/// The anchors of a page.
pub(super) fn parse(text: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        rest = &rest[start..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let Some((tag, attributes, after)) = open_tag(rest) else {
            rest = &rest[1..];
            continue;
        };
        rest = after;
        if tag != "a" {
            continue;
        }
        let value = |name: &str| {
            attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
        };
        let Some(url) = value("href") else { continue };
        let text = after.split('<').next().unwrap_or_default();
        let name = unescape(text).trim().to_owned();
        let sha256 = url
            .split_once('#')
            .and_then(|(_, fragment)| fragment.split('&').find_map(|f| f.strip_prefix("sha256=")))
            .map(str::to_owned);
        rows.push(Row {
            name,
            url,
            sha256,
            size: None,
            upload_time: None,
            requires_python: value("data-requires-python"),
            yanked: value("data-yanked"),
        });
    }
    rows
}

type Attributes = Vec<(String, String)>;

/// Reads `<name key="value" ...>`: the name, the attributes, and what follows.
fn open_tag(text: &str) -> Option<(String, Attributes, &str)> {
    let inner = text.strip_prefix('<')?;
    let name_end = inner.find(|c: char| !c.is_ascii_alphanumeric())?;
    let name = inner[..name_end].to_ascii_lowercase();
    if name.is_empty() {
        return None;
    }
    let mut rest = &inner[name_end..];
    let mut attributes = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
        if let Some(after) = rest.strip_prefix('>') {
            return Some((name, attributes, after));
        }
        let key_end = rest.find(|c: char| c.is_whitespace() || matches!(c, '=' | '>' | '/'))?;
        let key = rest[..key_end].to_ascii_lowercase();
        rest = rest[key_end..].trim_start();
        let mut value = String::new();
        if let Some(after) = rest.strip_prefix('=') {
            rest = after.trim_start();
            let (raw, after) = if let Some(quoted) = rest.strip_prefix(['"', '\'']) {
                quoted.split_once(rest.chars().next()?)?
            } else {
                rest.split_at(rest.find(|c: char| c.is_whitespace() || c == '>')?)
            };
            value = unescape(raw);
            rest = after;
        } else if key.is_empty() {
            return None;
        }
        attributes.push((key, value));
    }
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let entity = rest.find(';').filter(|end| *end <= 10).map(|end| (&rest[1..end], end + 1));
        let decoded = entity.and_then(|(name, length)| Some((character(name)?, length)));
        let (c, length) = decoded.unwrap_or(('&', 1));
        out.push(c);
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

fn character(entity: &str) -> Option<char> {
    match entity {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = entity.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_rows() {
        let text = "<!DOCTYPE html><html><head><meta name='x'></head><body>\n\
            <!-- <a href=\"no.whl\">no.whl</a> -->\n\
            <a href=\"../f/a-1.whl#sha256=00&amp;x=1\" data-requires-python=\"&gt;=3.6, &lt;4\">a-1.whl</a><br/>\n\
            <A HREF='b-1.tar.gz' data-yanked>b-1.tar.gz </A>\n\
            <a data-yanked=\"bad &#34;x&#x22;\" href=c.zip>c.zip</a> <a>none</a> a < b <";
        let rows = parse(text);
        let seen: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    row.name.as_str(),
                    row.url.as_str(),
                    row.sha256.as_deref(),
                    row.requires_python.as_deref(),
                    row.yanked.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("a-1.whl", "../f/a-1.whl#sha256=00&x=1", Some("00"), Some(">=3.6, <4"), None),
                ("b-1.tar.gz", "b-1.tar.gz", None, None, Some("")),
                ("c.zip", "c.zip", None, None, Some("bad \"x\"")),
            ]
        );
    }

    #[test]
    fn broken_pages_end() {
        for text in
            ["<a", "<a href", "<a href=\"x", "<a href=x", "<!--", "<", "<a =", "&", "<a =\"\">"]
        {
            let _ = parse(text);
        }
    }
}
