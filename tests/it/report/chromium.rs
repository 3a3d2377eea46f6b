//! How a browser takes the page: with scripts and without, light and dark, wide and narrow; hostile values included. Pictures of what
//! it showed are left in `target/tmp/report/`.

use hallmark::report::html;
use serde_json::{Value, json};

use super::browser::Browser;
use super::sample::{hostile_sample, sample};
use super::written;

const WIDE: [u32; 2] = [1280, 900];
const NARROW: [u32; 2] = [360, 740];

/// Every text that can be seen whose contrast is below what WCAG 2 asks for (AA: 4.5, or 3 where it is large).
const CONTRAST: &str = r"(() => {
  for (const one of document.querySelectorAll('details')) one.open = true;
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color[3] === 1) return color;
      if (color[3] > 0) throw new Error('half transparent');
    }
    throw new Error('no background');
  };
  const bad = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  for (let node; (node = walker.nextNode()); ) {
    const element = node.parentElement;
    if (!node.data.trim() || ['SCRIPT', 'TITLE', 'DESC'].includes(element.tagName.toUpperCase())) continue;
    if (!element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const front = parse(element.closest('svg') ? style.fill : style.color);
    const [a, b] = [light(front), light(behind(element.closest('svg') ?? element))].sort((x, y) => y - x);
    const size = Number.parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const ratio = (a + 0.05) / (b + 0.05);
    seen += 1;
    if (ratio < (large ? 3 : 4.5)) bad.add(`${ratio.toFixed(2)} ${element.tagName}.${element.className} ${node.data.slice(0, 30)}`);
  }
  return { seen, bad: [...bad] };
})()";

/// Faults of structure: links to nothing, names used twice, tables and pictures that say nothing of themselves.
const STRUCTURE: &str = r"(() => {
  const faults = [];
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push(`twice: ${id}`);
  for (const a of document.querySelectorAll('a')) {
    const to = a.getAttribute('href');
    if (!to.startsWith('#') || !document.getElementById(to.slice(1))) faults.push(`leads nowhere: ${to}`);
  }
  for (const e of document.querySelectorAll('[aria-labelledby]'))
    if (!document.getElementById(e.getAttribute('aria-labelledby'))) faults.push(`no label: ${e.outerHTML.slice(0, 80)}`);
  for (const th of document.querySelectorAll('th')) if (!th.scope) faults.push(`no scope: ${th.outerHTML.slice(0, 80)}`);
  for (const table of document.querySelectorAll('table')) {
    const widths = new Set([...table.rows].map((row) => [...row.cells].reduce((sum, cell) => sum + cell.colSpan, 0)));
    if (widths.size !== 1) faults.push(`ragged: ${table.outerHTML.slice(0, 80)}`);
  }
  for (const svg of document.querySelectorAll('svg:not([aria-hidden])'))
    if (!svg.querySelector('title')?.textContent || !svg.querySelector('desc')?.textContent || svg.getAttribute('role') !== 'img')
      faults.push(`mute: ${svg.outerHTML.slice(0, 80)}`);
  let level = 0;
  for (const heading of document.querySelectorAll('h1, h2, h3, h4, h5, h6')) {
    const next = Number(heading.tagName[1]);
    if (next > level + 1) faults.push(`after level ${level}: ${heading.outerHTML.slice(0, 80)}`);
    level = next;
  }
  for (const input of document.querySelectorAll('input')) if (!input.labels.length) faults.push('an input without a label');
  if (document.documentElement.lang !== 'en' || !document.title) faults.push('no language or title');
  return faults;
})()";

/// What makes the page itself scroll sideways; tables do so in frames of their own.
const TOO_WIDE: &str = r"(() => {
  if (document.documentElement.scrollWidth <= innerWidth) return [];
  return [...document.querySelectorAll('body *')]
    .filter((e) => e.checkVisibility() && !e.closest('.wide > *, pre, .skip') && e.getBoundingClientRect().right > innerWidth)
    .slice(0, 5)
    .map((e) => e.outerHTML.slice(0, 120));
})()";

/// What a hostile value would have added.
const INTRUDERS: &str = r"(() => {
  const found = [];
  for (const e of document.querySelectorAll('*')) {
    for (const { name } of e.attributes) if (name.startsWith('on') || name === 'style' || name === 'src') found.push(`${e.tagName} ${name}`);
    if (['IMG', 'IFRAME', 'OBJECT', 'EMBED', 'FORM', 'TEXTAREA', 'BASE', 'LINK'].includes(e.tagName)) found.push(e.tagName);
  }
  return { found, scripts: document.scripts.length, styles: document.styleSheets.length, title: document.title };
})()";

fn column(browser: &mut Browser, number: usize) -> Vec<String> {
    let cells = browser.value(&format!(
        "[...document.querySelectorAll('#table tbody tr:not([hidden])')].map((row) => row.cells[{number}].textContent.trim())"
    ));
    serde_json::from_value(cells).unwrap()
}

/// One page was asked for, and nothing was complained of.
#[track_caller]
fn quiet(browser: &Browser) {
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let requests = browser.requests();
    assert!(requests.len() == 1 && requests[0].starts_with("file://"), "{requests:?}");
}

#[test]
fn chromium_sorts_filters_and_unfolds() {
    let Some(mut browser) = Browser::start() else { return };
    let path = written("sample", &html(&sample()));
    browser.look("light", WIDE);
    browser.open(&path);
    let ids = ["demo__broken-0.9", "demo__causes-2.3", "demo__early-0.1", "demo__stable-1.0"];
    assert_eq!(column(&mut browser, 0), ids);

    // By words, by number, both ways; and the heading says so.
    browser.click("#table thead th:nth-child(2) button");
    let sorted = ["admitted", "admitted with quarantine", "provisional", "rejected"];
    assert_eq!(column(&mut browser, 1), sorted);
    let heading = "document.querySelector('#table [aria-sort]').textContent + document.querySelector('#table [aria-sort]').ariaSort";
    assert_eq!(browser.value(heading), json!("Verdictascending"));
    browser.click("#table thead th:nth-child(8) button");
    assert_eq!(column(&mut browser, 7), ["0", "57", "118", "237"]);
    browser.click("#table thead th:nth-child(8) button");
    assert_eq!(column(&mut browser, 7), ["237", "118", "57", "0"]);
    assert_eq!(browser.value(heading), json!("P2Pdescending"));
    // By keyboard.
    browser.value("document.querySelector('#table thead th button').focus()");
    browser.key("Enter", 13, "\r");
    assert_eq!(column(&mut browser, 0), ids);

    // Only rows that hold all words.
    browser.value("document.getElementById('filter').focus()");
    for letter in ["d", "e", "m", "o", " ", "q", "u", "a"] {
        browser.call("Input.insertText", &json!({ "text": letter }));
    }
    assert_eq!(column(&mut browser, 0), ["demo__causes-2.3"]);
    assert_eq!(browser.value("document.getElementById('shown').textContent"), json!("1 of 4"));

    // A link unfolds what it leads to.
    let folded = "document.getElementById('i-demo__causes-2.3').checkVisibility()";
    assert_eq!(browser.value(folded), json!(false));
    browser.click("#table tbody tr:not([hidden]) a");
    assert_eq!(browser.value(folded), json!(true));
    let inside = "(() => { const r = document.getElementById('i-demo__causes-2.3').getBoundingClientRect(); return r.top >= 0 && r.top < innerHeight; })()";
    assert_eq!(browser.value(inside), json!(true));
    quiet(&browser);
}

/// Waits for what a click leads to: a busy machine takes its time.
fn becomes_true(browser: &mut Browser, expression: &str) {
    for _ in 0..100 {
        if browser.value(expression) == json!(true) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("never true: {expression}");
}

#[test]
fn chromium_shows_everything_without_scripts() {
    let Some(mut browser) = Browser::start() else { return };
    let path = written("sample-plain", &html(&sample()));
    browser.scripts(false);
    browser.look("light", WIDE);
    browser.open(&path);
    // No control that would do nothing.
    assert_eq!(browser.value("document.querySelectorAll('button').length"), json!(0));
    assert_eq!(browser.value("document.getElementById('filter').checkVisibility()"), json!(false));
    assert_eq!(column(&mut browser, 0).len(), 4);
    browser.click("#table tbody tr:nth-child(2) a");
    let shown = "document.getElementById('i-demo__causes-2.3').checkVisibility()";
    becomes_true(&mut browser, shown);
    browser.click("details.instance:last-of-type > summary");
    becomes_true(&mut browser, "document.querySelector('details.instance:last-of-type').open");
    quiet(&browser);
}

#[test]
fn chromium_finds_no_fault_of_structure_contrast_or_width() {
    let Some(mut browser) = Browser::start() else { return };
    for (name, input) in [("sample", sample()), ("hostile", hostile_sample())] {
        let path = written(&format!("{name}-look"), &html(&input));
        for (scheme, size) in [("light", WIDE), ("dark", WIDE), ("light", NARROW)] {
            browser.look(scheme, size);
            browser.open(&path);
            let place = path.with_extension("");
            let picture =
                |what: &str| format!("{}-{scheme}-{}-{what}.png", place.display(), size[0]);
            browser.picture(picture("top").as_ref(), None);
            let contrast = browser.value(CONTRAST);
            assert_eq!(contrast["bad"], json!([]), "{name}, {scheme}");
            assert!(contrast["seen"].as_u64().unwrap() > 300, "{contrast}");
            assert_eq!(browser.value(TOO_WIDE), json!([]), "{name}, {size:?}");
            // As a reader finds it, its lists folded.
            browser.value("for (const one of document.querySelectorAll('details')) { one.open = one.matches('.instance, .log'); one.style.contentVisibility = 'visible'; }");
            for number in 1..=2 {
                let instance = format!("main > details.instance:nth-of-type({number})");
                browser.picture(picture(&number.to_string()).as_ref(), Some(&instance));
                let matrix = format!("{instance} .matrix");
                browser.picture(picture(&format!("{number}-matrix")).as_ref(), Some(&matrix));
            }
        }
        assert_eq!(browser.value(STRUCTURE), json!([]), "{name}");
        quiet(&browser);
    }
}

#[test]
fn chromium_runs_nothing_that_came_from_outside() {
    let Some(mut browser) = Browser::start() else { return };
    let path = written("hostile", &html(&hostile_sample()));
    browser.look("light", WIDE);
    browser.open(&path);
    let clean: Value = json!({
        "found": [],
        "scripts": 1,
        "styles": 1,
        "title": "Gold runs of </script><script>document.title='owned'</script>",
    });
    assert_eq!(browser.value(INTRUDERS), clean);
    quiet(&browser);
    // Even if an escape were forgotten: the policy runs the page's own script alone.
    let page = html(&hostile_sample());
    let forgotten = page.replacen("<main>", "<main><script>document.title='owned'</script><img src=\"https://example.invalid/x.png\"><p onclick=\"1\" style=\"color: red\">", 1);
    browser.open(&written("forgotten", &forgotten));
    assert_ne!(browser.value("document.title"), json!("owned"));
    assert!(
        browser.complaints().iter().any(|said| said.contains("Content Security Policy")),
        "{:?}",
        browser.complaints()
    );
    let failed: Vec<String> =
        browser.requests().into_iter().filter(|url| !url.starts_with("file:")).collect();
    assert_eq!(failed, Vec::<String>::new());
}
