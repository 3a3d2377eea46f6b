//! PEP 508 requirements, checked and written in one form.
//!
//! The reader is ours: the crate for this (pep508_rs 0.9.2) panics on some names and markers. Versions follow
//! PEP 440; URLs are refused, since a lock takes files from the index only.

use std::ops::Range;

use super::marker;
use super::names::{is_package_name, normalize_package_name};

/// What is wrong with a requirement, and where in its text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequirementFault {
    pub(super) part: Range<usize>,
    pub(super) message: String,
    pub(super) hint: String,
}

const HINT: &str = "write a name, optional extras and versions: \"name[extra]>=1.0,<2\"";

/// The operators of PEP 440, longest first.
pub(super) const OPERATORS: [&str; 8] = ["===", "~=", "==", "!=", "<=", ">=", "<", ">"];

/// Reads a text from left to right.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(super) fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    /// Takes `token` if it comes next.
    pub(super) fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    /// Takes all that fits.
    pub(super) fn take(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let taken = &rest[..rest.find(|c| !fits(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    /// A fault from `start` up to here, or of the next character where that would be nothing.
    pub(super) fn fault(&self, start: usize, message: impl Into<String>) -> RequirementFault {
        let next = self.rest().chars().next().map_or(0, char::len_utf8);
        let end = if self.at > start { self.at } else { self.at + next };
        RequirementFault { part: start..end, message: message.into(), hint: HINT.to_owned() }
    }
}

/// The requirement in its normal form: names as PEP 503 says, extras sorted, one kind of spacing and quotes.
pub(super) fn normalize(text: &str) -> Result<String, RequirementFault> {
    let mut cursor = Cursor { text, at: 0 };
    cursor.skip_space();
    let whole = |message: String, hint: &str| RequirementFault {
        part: 0..text.len(),
        message,
        hint: hint.to_owned(),
    };
    if cursor.rest().starts_with('-') {
        return Err(whole(
            format!("`{}` is an option of pip, not a requirement", text.trim().escape_debug()),
            "requirement files have their own key, `requirement-files`; indexes are configuration",
        ));
    }
    let is_path =
        cursor.rest().starts_with(['.', '/']) || text.contains("://") && !text.contains('@');
    if is_path {
        return Err(whole("a path or an address is not a requirement".to_owned(), HINT));
    }
    let name = name(&mut cursor, "a package")?;
    let mut out = name.clone();
    cursor.skip_space();
    if cursor.eat("[") {
        let extras = extras(&mut cursor)?;
        if !extras.is_empty() {
            out = format!("{out}[{}]", extras.join(","));
        }
    }
    cursor.skip_space();
    if cursor.rest().starts_with('@') {
        return Err(whole(
            format!("`{name}` is taken from an address, which a lock cannot hold"),
            "write a released version: \"name==1.0\"",
        ));
    }
    out.push_str(&specifiers(&mut cursor)?.join(","));
    cursor.skip_space();
    if cursor.eat(";") {
        let marker = marker::normalize(&mut cursor)?;
        out = format!("{out} ; {marker}");
    }
    cursor.skip_space();
    if cursor.rest().is_empty() {
        return Ok(out);
    }
    let start = cursor.at;
    cursor.at = text.len();
    Err(cursor.fault(start, "this does not belong to the requirement"))
}

fn name(cursor: &mut Cursor<'_>, what: &str) -> Result<String, RequirementFault> {
    let start = cursor.at;
    let name = cursor.take(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if is_package_name(name) {
        return Ok(normalize_package_name(name));
    }
    let message = match (name, cursor.rest().chars().next()) {
        ("", None) => format!("the name of {what} is missing"),
        ("", Some(next)) => format!("the name of {what} does not start with {next:?}"),
        (name, _) => format!("{name:?} is not the name of {what}"),
    };
    Err(cursor.fault(start, message))
}

fn extras(cursor: &mut Cursor<'_>) -> Result<Vec<String>, RequirementFault> {
    let mut extras = Vec::new();
    cursor.skip_space();
    if cursor.eat("]") {
        return Ok(extras);
    }
    loop {
        cursor.skip_space();
        extras.push(name(cursor, "an extra")?);
        cursor.skip_space();
        if cursor.eat("]") {
            break;
        }
        if !cursor.eat(",") {
            return Err(cursor.fault(cursor.at, "extras end with `]` and have commas between them"));
        }
    }
    extras.sort();
    extras.dedup();
    Ok(extras)
}

fn specifiers(cursor: &mut Cursor<'_>) -> Result<Vec<String>, RequirementFault> {
    let mut out = Vec::new();
    let in_parentheses = cursor.eat("(");
    cursor.skip_space();
    if !in_parentheses && (cursor.rest().is_empty() || cursor.rest().starts_with(';')) {
        return Ok(out);
    }
    loop {
        cursor.skip_space();
        let start = cursor.at;
        let Some(operator) = OPERATORS.into_iter().find(|operator| cursor.eat(operator)) else {
            let message = format!("here must be one of {}", OPERATORS.join(" "));
            return Err(cursor.fault(start, message));
        };
        cursor.skip_space();
        let version = cursor.take(|c| !c.is_whitespace() && !",;)".contains(c));
        if !fits(operator, version) {
            let message = format!("{version:?} is not a version that `{operator}` can take");
            return Err(cursor.fault(start, message));
        }
        out.push(format!("{operator}{version}"));
        cursor.skip_space();
        if !cursor.eat(",") {
            break;
        }
    }
    if in_parentheses && !cursor.eat(")") {
        return Err(cursor.fault(cursor.at, "the parenthesis is not closed"));
    }
    Ok(out)
}

/// Whether PEP 440 allows the version after the operator.
fn fits(operator: &str, version: &str) -> bool {
    match operator {
        "===" => !version.is_empty() && version.chars().all(|c| c.is_ascii_graphic()),
        "==" | "!=" => {
            let release = version.strip_suffix(".*");
            is_version(release.unwrap_or(version))
                && release.is_none_or(|release| !release.contains('+') && !release.contains("dev"))
        }
        "~=" => {
            let release: String =
                version.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
            is_version(version)
                && !version.contains('+')
                && release.split('.').filter(|part| !part.is_empty()).count() >= 2
        }
        _ => is_version(version) && !version.contains('+'),
    }
}

/// Whether the text is a version as PEP 440's appendix B accepts it.
pub(super) fn is_version(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let mut cursor = Cursor { text: &text, at: 0 };
    let digits = |cursor: &mut Cursor<'_>| !cursor.take(|c| c.is_ascii_digit()).is_empty();
    let separator = |cursor: &mut Cursor<'_>| {
        let _ = cursor.eat(".") || cursor.eat("-") || cursor.eat("_");
    };
    cursor.eat("v");
    if !digits(&mut cursor) {
        return false;
    }
    if cursor.eat("!") && !digits(&mut cursor) {
        return false;
    }
    loop {
        let before = cursor;
        if !(cursor.eat(".") && digits(&mut cursor)) {
            cursor = before;
            break;
        }
    }
    for labels in [
        &["alpha", "beta", "preview", "pre", "rc", "a", "b", "c"][..],
        &["post", "rev", "r"],
        &["dev"],
    ] {
        let before = cursor;
        separator(&mut cursor);
        if labels.iter().any(|label| cursor.eat(label)) {
            let number = cursor;
            separator(&mut cursor);
            if !digits(&mut cursor) {
                cursor = number;
            }
        } else {
            cursor = before;
            // A post release may be just a dash and a number.
            if labels.contains(&"post") && !(cursor.eat("-") && digits(&mut cursor)) {
                cursor = before;
            }
        }
    }
    if cursor.eat("+") {
        loop {
            if cursor.take(|c| c.is_ascii_alphanumeric()).is_empty() {
                return false;
            }
            let before = cursor.at;
            separator(&mut cursor);
            if cursor.at == before {
                break;
            }
        }
    }
    cursor.rest().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_form_for_each_requirement() {
        for (text, normal) in [
            ("pytest", "pytest"),
            (" Foo_Bar >= 1.0, < 2 ", "foo-bar>=1.0,<2"),
            ("foo (>=1,!=1.2)", "foo>=1,!=1.2"),
            ("foo.bar[B,a, b]==1.*", "foo-bar[a,b]==1.*"),
            ("foo[]", "foo"),
            ("foo===2011k", "foo===2011k"),
            ("tomli>=1 ; python_version<'3.11'", "tomli>=1 ; python_version < \"3.11\""),
            (
                "a; (os_name=='nt' or extra in \"x y\") and 'linux' not  in sys_platform",
                "a ; (os_name == \"nt\" or extra in \"x y\") and \"linux\" not in sys_platform",
            ),
        ] {
            assert_eq!(normalize(text).as_deref(), Ok(normal), "{text}");
        }
    }

    #[test]
    fn what_a_lock_cannot_hold_is_refused() {
        for bad in [
            "",
            " ",
            "-r requirements.txt",
            "-e .",
            ".",
            "./local",
            "/a",
            "foo @ https://example.org/foo.zip",
            "git+https://example.org/foo",
            "foo==",
            "foo>=1 bar",
            "foo; python_version<",
            "fö",
            "foo===\0",
            "a-]",
            "a-",
            "a- ",
            "a[b-]",
            "a[b,c.]",
            "a[b",
            "a[b,]",
            "a_[b]",
            "foo>=1,",
            "foo>1.*",
            "foo~=1",
            "foo<1+local",
            "foo=1",
            "foo>=2011k",
            "foo (>=1",
            "foo;",
            "foo; 'a' == 'b'",
            "foo; nonsense == '1'",
            "foo; os_name == 'a",
            "foo; (os_name == 'a'",
            "foo; os_name == 'a' and",
            "foo; os_name not 'a'",
        ] {
            assert!(normalize(bad).is_err(), "{bad}");
        }
        let deep = format!("foo; {}os_name == 'a'{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(normalize(&deep).is_err());
        assert_eq!(normalize("foo>=1.0,<<2").unwrap_err().part, 9..12);
    }

    #[test]
    fn versions_follow_pep_440() {
        for good in [
            "1",
            "1.0",
            "2012.4",
            "1!1.0",
            "1.0a1",
            "1.0.alpha-2",
            "1.0-rc.1",
            "1.0.post1",
            "1.0-1",
            "1.0.dev3",
            "1.0rc1.post2.dev3",
            "v1.0",
            "1.0+ubuntu-1",
            "1.0+abc.5",
            "1.0preview",
            "1.0C1",
            "1.0.r4",
        ] {
            assert!(is_version(good), "{good}");
        }
        for bad in [
            "", "v", "a", "1.", "1..2", "1!", "1.0+", "1.0+a..b", "1.0 ", "1.x", "1.0-a-b",
            "2011k", "1.0+é",
        ] {
            assert!(!is_version(bad), "{bad}");
        }
    }
}
