//! A large split stays a page that a browser opens.

use hallmark::base::clock::Stopwatch;
use hallmark::report::html;

use super::sample::large;

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
