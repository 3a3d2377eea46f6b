//! Names that may become files.

/// Whether `name` is one plain component of a path, of a length that filesystems take.
pub(super) fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 255
        && !matches!(name, "." | "..")
        && !name.contains(['/', '\\'])
        && !name.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_only() {
        for good in ["a-1.0-py3-none-any.whl", "..a", "libc6_2.36-9+deb12u1_amd64.deb", "é b"] {
            assert!(is_plain_name(good), "{good}");
        }
        let long = "a".repeat(4096);
        for bad in ["", ".", "..", "a/b", "/a", "a\0b", "a\nb", "a\\b", long.as_str()] {
            assert!(!is_plain_name(bad), "{bad}");
        }
    }
}
