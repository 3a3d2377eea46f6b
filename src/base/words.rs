//! Words for people to read: those of strangers, and numbers of things.

/// More than anybody reads of them.
const LONGEST: usize = 300;

/// What a stranger wrote, as it may be shown: without characters that steer a terminal or turn the direction of a line (Unicode
/// Standard Annex 9, "Explicit Directional Formatting"), in one line, and not too much of it.
pub fn harmless(text: &str) -> String {
    let steers =
        |c: &char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let in_a_line = |c: char| if c.is_whitespace() { ' ' } else { c };
    text.chars().map(in_a_line).filter(|c| !steers(c)).take(LONGEST).collect()
}

/// A number of things whose plural ends in s: `1 image`, `2 images`.
pub fn counted(number: usize, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(harmless("\u{1b}[31mred\u{7}\n\u{9b}\u{202e}\u{2066}x ü\u{7f}"), "[31mred x ü");
        assert_eq!(harmless(&"é".repeat(1000)).chars().count(), LONGEST);
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!([counted(1, "image"), counted(0, "layer")], ["1 image", "0 layers"]);
    }
}
