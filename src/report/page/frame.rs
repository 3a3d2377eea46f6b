//! The document around the sections. Style and script stand in it and nothing else may load or run: the policy names both by
//! their digests, so that no value that came from outside can become a script even if an escape were forgotten.

use maud::{DOCTYPE, PreEscaped, html};

use super::{causes, image, instance, instances, overview};
use crate::base::Digest;
use crate::report::ReportInput;
use crate::report::text::{sweep, visible};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The report as one HTML file. The same input gives the same bytes.
pub fn html(input: &ReportInput) -> String {
    let title = format!("Gold runs of {}", visible(&input.split));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'",
        base64(Digest::of(STYLE).as_bytes()),
        base64(Digest::of(SCRIPT).as_bytes()),
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                meta name="generator" content="hallmark";
                title { (title) }
                // Both are files of this folder; nothing from outside is in them.
                style { (PreEscaped(STYLE)) }
            }
            "\n"
            body {
                a.skip href="#instances" { "Skip to the instances" }
                header {
                    h1 { (title) }
                    (overview::origin(input))
                }
                main {
                    (overview::section(input))
                    (instances::section(input))
                    (causes::section(input))
                    (image::split_section(input))
                    (instance::sections(input))
                }
                "\n"
                script { (PreEscaped(SCRIPT)) }
            }
        }
        "\n"
    };
    sweep(page.into_string())
}

/// Base64 with padding (RFC 4648), for the 32 bytes of a digest.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for at in 0..4 {
            if at <= chunk.len() {
                out.push(char::from(ALPHABET[(group >> (18 - 6 * at)) as usize & 63]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_the_standard_one() {
        // RFC 4648, section 10.
        for (plain, coded) in
            [("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("", "")]
        {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn style_and_script_end_where_they_should_and_load_nothing() {
        for part in [STYLE, SCRIPT] {
            assert!(!part.contains("</") && part.is_ascii(), "the element would end inside");
            for word in
                ["url(", "@import", "http", "fetch", "XMLHttp", "import(", "eval", "innerHTML"]
            {
                assert!(!part.contains(word), "{word}");
            }
        }
    }
}
