//! What the page says, and that nothing that came from outside can run, load, hide or pretend.

use hallmark::report::html;

use super::sample::{HOSTILE, hostile_sample, sample};

/// The page's text without its own style and script.
fn body(page: &str) -> &str {
    &page[page.find("<body>").unwrap()..page.rfind("<script>").unwrap()]
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    assert_eq!(html(&sample()), html(&sample()));
}

#[test]
fn every_section_is_there() {
    let page = html(&sample());
    for text in [
        "Gold runs of demo",
        "admitted with quarantine",
        "Policy <b>benchmark</b>: 29 clean plain runs",
        "29 clean plain runs after the gold patch and 3 before it",
        "no processor share",
        "rejects</span> 2 FAIL_TO_PASS tests fail after",
        "fail-to-pass-fails-after",
        "flaky: it fails now and then",
        "sensitive to hash seed: fails with hash seed 1",
        "polluted by tests/unit/test_module_0.py::TestThing0::test_case_5[a-5]",
        "4 more before it",
        "needs user: fails in plain conditions, passes with user 1000",
        "its id is another in every collection",
        "files reversed, hash seed 1, clock +400 days, zone Asia/Kathmandu, user 1000",
        "killed at the wall limit",
        "the gold patch does not apply at hunk 2 of lib.py",
        "the rebuild failed (exit code 1)",
        "hallmark&#39;s own failure",
        "clipped at a space",
        "found by the runs and not named by the dataset",
        "the log is not in this store",
        "AssertionError: assert",
        "4 runs are not shown below: its record is not in this store",
        "Proposed wall limit",
        "tests that tried to reach the network",
        "<title>Wall time of",
        "<title>Image size by part",
        "perhaps one import error",
        "after, plain, again<br>run 10",
        "alone on the machine",
        "verified again: 2030-01",
    ] {
        let text = text.replace("&#39;", "'");
        assert!(
            page.to_lowercase().contains(&text.to_lowercase()),
            "the page does not say {text:?}"
        );
    }
}

#[test]
fn the_matrix_has_a_row_a_pattern_and_a_letter_a_run() {
    let page = html(&sample());
    let instance = &page[page.find("id=\"i-demo__causes-2.3\"").unwrap()..];
    let matrix = &instance[instance.find("<table class=\"matrix\"").unwrap()..];
    let matrix = &matrix[..matrix.find("</table>").unwrap()];
    // Collections have no column; runs are numbered as they are listed.
    for heading in [
        "before, plain<br>runs 3–5",
        "after, plain<br>runs 6–34",
        "after, other conditions<br>runs 35–42",
    ] {
        assert!(matrix.contains(heading), "{heading}: {matrix}");
    }
    // The flaky one fails in runs 4, 15 and 26 of the plain ones; run 10 has an excerpt.
    let flaky = matrix.lines().find(|line| line.contains("test_case_10[a-0]")).unwrap();
    assert!(
        flaky.contains("<code class=\"c\">....<a class=f href=\"#i-demo__causes-2.3.10\" title=\"run 10\">F</a>..........<i class=f>F</i>"),
        "{flaky}"
    );
    assert!(flaky.contains("<td class=\"n\">3/33</td>"), "{flaky}");
    // Probes ask for single tests.
    let alone = matrix.lines().find(|line| line.contains("test_case_21[a-1]")).unwrap();
    assert!(alone.contains("<i class=n>--</i>") || alone.contains("<i class=n>-</i>"), "{alone}");
    // Everything that always passed is one row.
    assert!(matrix.contains("tests that always passed after"), "{matrix}");
    let rows = matrix.matches("<tr").count();
    assert!(rows < 16, "{rows}");
}

#[test]
fn nothing_from_outside_becomes_markup() {
    let page = html(&hostile_sample());
    let body = body(&page);
    for bad in
        ["<script", "<img", "onerror=\"", "<style", "</title></", "<textarea", "<!--", "]]></"]
    {
        assert!(!body.contains(bad), "{bad}");
    }
    assert_eq!(page.matches("<script>").count(), 1);
    assert_eq!(page.matches("</script>").count(), 1);
    assert_eq!(page.matches("<style>").count(), 1);
    assert_eq!(
        page.matches("</title>").count(),
        1 + body.matches("<svg").count() - body.matches("aria-hidden=\"true\"><rect").count()
    );
    // It is all there, as text.
    assert!(body.contains("&lt;/script&gt;&lt;script&gt;document.title='owned'"));
    assert!(body.contains("evil__&quot;&gt;&lt;script&gt;"));
    // A value that ends an attribute would add one.
    assert!(!body.contains(" onmouseover='alert(1)' x=''>"));
}

#[test]
fn no_character_hides_or_moves_others() {
    let page = html(&hostile_sample());
    let hidden: Vec<char> = page
        .chars()
        .filter(|c| {
            (c.is_control() && !matches!(c, '\n' | '\t'))
                || ('\u{200b}'..='\u{200f}').contains(c)
                || ('\u{202a}'..='\u{202e}').contains(c)
                || ('\u{2066}'..='\u{2069}').contains(c)
        })
        .collect();
    assert_eq!(hidden, Vec::<char>::new());
    for escape in ["\\u{202e}", "\\u{2066}", "\\u{200b}", "\\x00", "\\x07", "\\x1b", "\\r"] {
        assert!(page.contains(escape), "{escape}");
    }
}

#[test]
fn ids_of_a_megabyte_are_shown_by_their_ends() {
    let page = html(&hostile_sample());
    assert!(page.len() < 400_000, "{}", page.len());
    assert!(page.contains("1.5 MB in all, sha256 "), "the id's length and digest");
    assert!(HOSTILE.iter().all(|text| text.len() < 100));
}

#[test]
fn no_address_of_another_place_is_in_it() {
    for page in [html(&sample()), html(&hostile_sample())] {
        for attribute in ["src=\"", "http://", "https://", "@import", "url(", "srcset", "action="] {
            let found = body(&page).replace("&quot;", "'").contains(attribute);
            assert!(!found, "{attribute}");
        }
        let links = page.split("href=\"").skip(1).map(|rest| &rest[..1]);
        assert!(links.into_iter().all(|first| first == "#"));
        assert!(page.contains("content=\"default-src 'none'; style-src 'sha256-"));
    }
}
