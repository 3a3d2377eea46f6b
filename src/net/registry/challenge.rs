//! What a registry asks for with `WWW-Authenticate` (RFC 9110 section 11.6.1; the token flow is the CNCF distribution
//! project's "Token Authentication Specification").

/// How to come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// User and password with each request.
    Basic,
    /// A token, from where.
    Bearer {
        /// The address of the token server.
        realm: String,
        /// The registry, as that server knows it.
        service: Option<String>,
        /// What the token must allow.
        scope: Option<String>,
    },
}

/// The first challenge of these header values that is known here; tokens before passwords.
pub(super) fn parse<'a>(values: impl Iterator<Item = &'a str>) -> Option<Challenge> {
    let mut basic = None;
    for value in values {
        let (scheme, rest) = value.trim().split_once(' ').unwrap_or((value.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            basic = Some(Challenge::Basic);
        } else if scheme.eq_ignore_ascii_case("bearer") {
            let parameters = parameters(rest);
            let find = |name: &str| {
                let found = parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
                found.map(|(_, value)| value.clone())
            };
            if let Some(realm) = find("realm") {
                return Some(Challenge::Bearer {
                    realm,
                    service: find("service"),
                    scope: find("scope"),
                });
            }
        }
    }
    basic
}

/// `key="value", key=value`.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((key, tail)) = rest.split_once('=') {
        let key = key.trim_matches([' ', ',', '\t']).to_owned();
        let mut value = String::new();
        if let Some(quoted) = tail.strip_prefix('"') {
            let mut characters = quoted.char_indices();
            let mut end = quoted.len();
            while let Some((at, character)) = characters.next() {
                match character {
                    '"' => {
                        end = at + 1;
                        break;
                    }
                    '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
                    other => value.push(other),
                }
            }
            rest = &quoted[end..];
        } else {
            let (plain, tail) = tail.split_once(',').unwrap_or((tail, ""));
            value.push_str(plain.trim());
            rest = tail;
        }
        found.push((key, value));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Challenge {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Challenge::Bearer { realm: realm.to_owned(), service: own(service), scope: own(scope) }
    }

    #[test]
    fn challenges_are_read_in_their_variants() {
        for (values, expected) in [
            (
                vec![
                    r#"Bearer realm="https://auth.example/token",service="r.example",scope="repository:a/b:pull,push""#,
                ],
                Some(bearer(
                    "https://auth.example/token",
                    Some("r.example"),
                    Some("repository:a/b:pull,push"),
                )),
            ),
            (
                vec![r#"bearer Realm="https://a.example/t""#],
                Some(bearer("https://a.example/t", None, None)),
            ),
            (
                vec!["Bearer realm=https://a.example/t, service=x"],
                Some(bearer("https://a.example/t", Some("x"), None)),
            ),
            (vec![r#"Basic realm="Registry""#], Some(Challenge::Basic)),
            (
                vec!["Basic realm=x", r#"Bearer realm="https://a.example/t""#],
                Some(bearer("https://a.example/t", None, None)),
            ),
            (vec![r#"Bearer realm="a\"b"#], Some(bearer("a\"b", None, None))),
            (vec![r#"Bearer service="x""#], None),
            (vec!["Digest realm=x"], None),
            (vec![""], None),
            (vec![], None),
        ] {
            assert_eq!(parse(values.iter().copied()), expected, "{values:?}");
        }
    }
}
