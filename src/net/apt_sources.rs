//! apt's source lists (sources.list(5)), as far as they say which mirror of Debian main is used.

/// Suites of Debian itself; a list for another distribution or product names other ones.
/// `-security`, `-updates` and `-backports` are other archives or parts.
const SUITES: [&str; 13] = [
    "buster",
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "duke",
    "sid",
    "stable",
    "oldstable",
    "oldoldstable",
    "testing",
    "unstable",
    "experimental",
];

/// The first mirror of Debian main that a one-line-style file (`*.list`) names.
pub(super) fn parse_list(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let line = line.split('#').next().unwrap_or_default();
        let rest = line.trim().strip_prefix("deb")?;
        let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
        let rest = match rest.strip_prefix('[') {
            Some(options) => options.split_once(']')?.1,
            None => rest,
        };
        let mut words = rest.split_whitespace();
        let (uri, suite) = (words.next()?, words.next()?);
        is_mirror(uri, [suite], words).then(|| uri.to_owned())
    })
}

/// The first mirror of Debian main that a deb822-style file (`*.sources`) names.
pub(super) fn parse_deb822(text: &str) -> Option<String> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in text.lines().chain([""]) {
        if line.starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            if let Some(uri) = of_stanza(&fields) {
                return Some(uri);
            }
            fields.clear();
        } else if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = fields.last_mut() {
                value.push(' ');
                value.push_str(line.trim());
            }
        } else if let Some((key, value)) = line.split_once(':') {
            fields.push((key.trim().to_lowercase(), value.trim().to_owned()));
        }
    }
    None
}

fn of_stanza(fields: &[(String, String)]) -> Option<String> {
    let words = |key: &str| {
        fields
            .iter()
            .filter(move |(name, _)| name == key)
            .flat_map(|(_, value)| value.split_whitespace())
            .collect::<Vec<_>>()
    };
    let disabled = words("enabled").iter().any(|word| {
        matches!(word.to_lowercase().as_str(), "no" | "false" | "off" | "0" | "without" | "disable")
    });
    if disabled || !words("types").contains(&"deb") {
        return None;
    }
    words("uris")
        .into_iter()
        .find(|uri| is_mirror(uri, words("suites"), words("components")))
        .map(str::to_owned)
}

fn is_mirror<'a>(
    uri: &str,
    suites: impl IntoIterator<Item = &'a str>,
    components: impl IntoIterator<Item = &'a str>,
) -> bool {
    (uri.starts_with("http://") || uri.starts_with("https://"))
        && suites.into_iter().any(|suite| SUITES.contains(&suite))
        && components.into_iter().any(|component| component == "main")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_the_mirror_of_main() {
        for (text, uri) in [
            ("deb http://m.test/debian bookworm main contrib\n", Some("http://m.test/debian")),
            (
                "deb [signed-by=/k.gpg arch=amd64] https://m.test/debian trixie main\n",
                Some("https://m.test/debian"),
            ),
            ("deb-src http://m.test/debian bookworm main\n", None),
            ("# deb http://m.test/debian bookworm main\n", None),
            ("deb http://m.test/debian-security bookworm-security main\n", None),
            ("deb http://m.test/ubuntu jammy main\n", None),
            ("deb http://m.test/cloud cloud-sdk-bookworm main\n", None),
            ("deb http://m.test/debian bookworm contrib\n", None),
            (
                "deb cdrom:[Debian]/ bookworm main\ndeb http://m.test/debian bookworm main\n",
                Some("http://m.test/debian"),
            ),
            ("deb file:/srv/debian bookworm main\n", None),
            ("deb http://m.test/debian\n", None),
            ("", None),
        ] {
            assert_eq!(parse_list(text).as_deref(), uri, "{text}");
        }
    }

    #[test]
    fn stanzas_name_the_mirror_of_main() {
        for (text, uri) in [
            (
                "Types: deb\n# note\nURIs: http://m.test/debian\nSuites: bookworm bookworm-updates\n\
                 Components: main\nSigned-By: /k.gpg\n",
                Some("http://m.test/debian"),
            ),
            (
                "Types: deb deb-src\nURIs:\n  http://a.test/debian\n http://b.test/debian\nSuites:\n trixie\nComponents: main\n",
                Some("http://a.test/debian"),
            ),
            (
                "Enabled: no\nTypes: deb\nURIs: http://m.test/debian\nSuites: sid\nComponents: main\n",
                None,
            ),
            ("Types: deb-src\nURIs: http://m.test/debian\nSuites: sid\nComponents: main\n", None),
            (
                "Types: deb\nURIs: http://s.test/debian-security\nSuites: bookworm-security\nComponents: main\n\n\
                 types: deb\nuris: http://m.test/debian\nsuites: bookworm\ncomponents: main",
                Some("http://m.test/debian"),
            ),
            ("URIs http://m.test\n\n\n", None),
        ] {
            assert_eq!(parse_deb822(text).as_deref(), uri, "{text}");
        }
    }
}
