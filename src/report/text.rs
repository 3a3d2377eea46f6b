//! Text from outside, made visible: characters that nobody sees, that move others or that a browser may not
//! read are shown as escapes. Markup is maud's to escape; it never sees a value that was not escaped.

use std::borrow::Cow;
use std::fmt::Write as _;

use maud::Render;

use crate::base::Digest;

/// Ids longer than this are shown by their ends.
const CLIP: usize = 400;
/// How much of such an id is shown of its start and of its end.
const KEPT: [usize; 2] = [240, 120];

/// Whether a character hides, moves or looks like nothing: controls (line feed and tab apart), direction marks, zero
/// widths, fillers, line separators, tags and noncharacters.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{fdd0}'..='\u{fdef}' | '\u{e0000}'..='\u{e0fff}')
        || u32::from(c) & 0xfffe == 0xfffe
}

/// The escape of a character that is not shown as it is.
fn escape(out: &mut String, c: char) {
    let written = match c {
        '\n' => out.write_str("\\n"),
        '\t' => out.write_str("\\t"),
        '\r' => out.write_str("\\r"),
        c if u32::from(c) < 0x100 => write!(out, "\\x{:02x}", u32::from(c)),
        c => write!(out, "\\u{{{:x}}}", u32::from(c)),
    };
    written.expect("a string takes everything");
}

fn escaped(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if hidden(c) { escape(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// One line of text, for a page or a terminal: hidden characters, line feeds and tabs as escapes.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_hidden(c) || matches!(c, '\n' | '\t'))
}

/// Several lines: as [`visible`], but line feeds and tabs stay.
pub(super) fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// The whole page once more: whatever value was written without [`visible`] is made visible here.
pub(super) fn sweep(page: String) -> String {
    match visible_lines(&page) {
        Cow::Borrowed(_) => page,
        Cow::Owned(swept) => swept,
    }
}

/// Bytes of a log as text: what is not UTF-8 as `\xff`.
pub(super) fn from_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}").expect("a string takes everything");
        }
    }
    out
}

/// An id's ends and what was left out between them, where it is too long to show.
fn clipped(id: &str) -> Option<(&str, &str)> {
    if id.len() <= CLIP {
        return None;
    }
    Some((&id[..id.floor_char_boundary(KEPT[0])], &id[id.ceil_char_boundary(id.len() - KEPT[1])..]))
}

/// An id as code, which may be broken after `::`: escapes marked, so that they cannot be taken for the id's own backslashes; a very long one
/// by its ends, its length and its digest.
pub(super) struct Id<'a>(pub(super) &'a str);

impl Render for Id<'_> {
    fn render_to(&self, out: &mut String) {
        out.push_str("<code>");
        let whole = clipped(self.0).is_none();
        for (at, part) in self.0.split("::").enumerate() {
            if !whole {
                render_name(out, self.0);
                break;
            }
            if at > 0 {
                out.push_str("::<wbr>");
            }
            render_characters(out, part);
        }
        out.push_str("</code>");
    }
}

/// As [`Id`], without the element around it.
pub(super) fn render_name(out: &mut String, id: &str) {
    if let Some((head, tail)) = clipped(id) {
        render_characters(out, head);
        let digest = Digest::of(id).short();
        write!(out, "<i>… {} in all, sha256 {digest} …</i>", byte_size(id.len() as u64))
            .expect("a string takes everything");
        render_characters(out, tail);
    } else {
        render_characters(out, id);
    }
}

fn render_characters(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(|c| is_hidden(c) || matches!(c, '\n' | '\t')) {
        rest[..at].render_to(out);
        let c = rest[at..].chars().next().expect("it was found there");
        out.push_str("<i>");
        escape(out, c);
        out.push_str("</i>");
        rest = &rest[at + c.len_utf8()..];
    }
    rest.render_to(out);
}

/// Bytes with a decimal unit and one digit.
pub fn byte_size(bytes: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    units.iter().find(|(unit, _)| bytes >= *unit).map_or_else(
        || format!("{bytes} B"),
        |(unit, name)| format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
    )
}

/// A share as a percentage with one digit, as a verdict's summary writes it.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Seconds, as exact as anyone reads them.
pub(super) fn seconds(seconds: f64) -> String {
    if seconds < 9.995 {
        format!("{seconds:.2} s")
    } else if seconds < 600.0 {
        format!("{seconds:.1} s")
    } else if seconds < 36_000.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
}

/// `1 run`, `2 runs`.
pub(super) fn counted(count: usize, one: &str, more: &str) -> String {
    format!("{} {}", thousands(count), if count == 1 { one } else { more })
}

/// A number with commas.
pub(super) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(id: &str) -> String {
        Id(id).render().into_string()
    }

    #[test]
    fn what_hides_or_moves_is_shown() {
        assert_eq!(visible("t.py::a[ü 日本 ✓]"), "t.py::a[ü 日本 ✓]");
        assert_eq!(visible("a\u{202e}b\nc\td\r\u{1b}[0m\0"), "a\\u{202e}b\\nc\\td\\r\\x1b[0m\\x00");
        assert_eq!(visible_lines("a\nb\tc\u{200b}"), "a\nb\tc\\u{200b}");
        assert_eq!(
            visible("\u{85}\u{fffe}\u{1ffff}\u{e0041}\u{feff}"),
            "\\x85\\u{fffe}\\u{1ffff}\\u{e0041}\\u{feff}"
        );
        assert_eq!(sweep("<p>\u{2066}x".to_owned()), "<p>\\u{2066}x");
        assert_eq!(from_bytes(b"a\xff\xc3\xa4\xe2\x82"), "a\\xffä\\xe2\\x82");
    }

    #[test]
    fn ids_are_escaped_and_their_escapes_marked() {
        assert_eq!(
            rendered("</script><a href=\"x\">&\u{202e}\n\\n"),
            "<code>&lt;/script&gt;&lt;a href=&quot;x&quot;&gt;&amp;<i>\\u{202e}</i><i>\\n</i>\\n</code>"
        );
    }

    #[test]
    fn a_long_id_is_shown_by_its_ends() {
        let id = format!("start{}end", "ä<".repeat(400_000));
        let shown = rendered(&id);
        assert!(shown.len() < 1500, "{}", shown.len());
        assert!(
            shown.starts_with("<code>startä&lt;") && shown.ends_with("ä&lt;end</code>"),
            "{shown}"
        );
        assert!(shown.contains("<i>… 1.2 MB in all, sha256 "), "{shown}");
        assert_ne!(shown, rendered(&id.replacen("startä", "startß", 1)));
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [1, 12, 999, 1000, 1_234_567].map(thousands),
            ["1", "12", "999", "1,000", "1,234,567"]
        );
        assert_eq!((byte_size(1_550_000), byte_size(12)), ("1.5 MB".to_owned(), "12 B".to_owned()));
        assert_eq!([0.098_141_01, 1.0, 0.0].map(percent), ["9.8 %", "100.0 %", "0.0 %"]);
        assert_eq!(
            [0.004, 9.99, 59.96, 3600.0, 36_000.0].map(seconds),
            ["0.00 s", "9.99 s", "60.0 s", "60 min", "10.0 h"]
        );
        assert_eq!(
            (counted(1, "run", "runs"), counted(0, "run", "runs")),
            ("1 run".to_owned(), "0 runs".to_owned())
        );
    }
}
