//! A large split stays a page that a browser opens.

use hallmark::base::clock::Stopwatch;
use hallmark::report::html;

use super::sample::{chaos, large};

#[test]
fn five_hundred_instances_fit_into_a_few_megabytes() {
    let input = large(500, 29, 500);
    assert_eq!(input.instances[0].runs.len(), 3 + 29 + 4 + 2);
    let watch = Stopwatch::start();
    let page = html(&input);
    let seconds = watch.elapsed().as_secs_f64();
    super::written("large", &page);
    assert!(page.len() < 10_000_000, "{} bytes", page.len());
    // Far more than is needed: the machine may be busy, and the build not optimised.
    assert!(seconds < 30.0, "{seconds} s");
    #[expect(clippy::print_stderr, reason = "the figure of the documentation")]
    {
        eprintln!("500 instances x 38 runs x 500 tests: {} bytes in {seconds:.2} s", page.len());
    }
}

#[test]
fn tests_that_all_go_their_own_ways_are_counted_not_all_shown() {
    let input = chaos(3000);
    assert_eq!(input.instances[0].rows.len(), 3000);
    let page = html(&input);
    let matrix = &page[page.find("<table class=\"matrix\"").unwrap()..];
    let rows = matrix[..matrix.find("</table>").unwrap()].matches("<tr").count();
    assert_eq!(rows, 80 + 2);
    assert!(page.contains("2,920 more patterns of outcomes, of 2,920 tests, not shown"));
    assert!(page.contains("more, which the manifest names"));
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}
