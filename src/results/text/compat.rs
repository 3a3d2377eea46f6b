//! What the log parsers of the SWE-bench harness (5.0.2) read from a log, defects included: for people who compare
//! verdicts with published ones. Our own reading is [`super::parse`].
//!
//! Written from their behaviour; where it surprises, the comment says so. Statuses are theirs: `PASSED`, `FAILED`,
//! `SKIPPED`, `ERROR`, `XFAIL`.

use std::collections::BTreeMap;

type Map = BTreeMap<String, String>;

const STATUSES: [&str; 5] = ["FAILED", "PASSED", "SKIPPED", "ERROR", "XFAIL"];

/// The part of a log between the marks of an evaluation script, which is what the harness parses; the whole where
/// there are none.
pub fn test_output(log: &str) -> &str {
    let start = ">>>>> Start Test Output";
    let end = ">>>>> End Test Output";
    match log.split_once(start) {
        Some((_, rest)) if rest.contains(end) => rest.split(end).next().unwrap_or(rest),
        _ => log,
    }
}

/// The outcomes that the harness's parser of this name (`parse_log_django`) reads from a test's output; `None` for a
/// name it does not have for Python.
pub fn compat(parser: &str, log: &str) -> Option<BTreeMap<String, String>> {
    Some(match parser.strip_prefix("parse_log_")? {
        "pytest" | "astroid" | "flask" | "marshmallow" | "pvlib" | "pyvista" | "sqlfluff"
        | "xarray" => pytest(log, false),
        "matplotlib" => pytest(log, true),
        "pytest_options" | "pydicom" | "requests" | "pylint" => pytest_options(log),
        "pytest_v2" | "astropy" | "scikit" | "sphinx" => pytest_v2(log),
        "seaborn" => seaborn(log),
        "sympy" => sympy(log),
        "django" => django(log),
        _ => return None,
    })
}

/// Python's idea of white space: Unicode's and the four separators of ASCII.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(is_space).filter(|word| !word.is_empty())
}

fn starts_with_status(line: &str) -> bool {
    STATUSES.iter().any(|status| line.starts_with(status))
}

/// `SKIPPED [3] path:line: reason` names no test.
fn is_skip_count(status: &str, id: &str) -> bool {
    let digits = id.strip_prefix('[').and_then(|id| id.strip_suffix(']'));
    status == "SKIPPED"
        && digits.is_some_and(|digits| !digits.is_empty() && digits.chars().all(char::is_numeric))
}

/// First and second word of a line that begins like a status, a failure's ` - ` being no word.
fn status_and_id(line: &str) -> Option<(String, String)> {
    if !starts_with_status(line) {
        return None;
    }
    let line = if line.starts_with("FAILED") { line.replace(" - ", " ") } else { line.to_owned() };
    let mut words = words(&line);
    let (status, id) = (words.next()?, words.next()?);
    (!is_skip_count(status, id)).then(|| (status.to_owned(), id.to_owned()))
}

fn pytest(log: &str, buttons: bool) -> Map {
    let mut map = Map::new();
    for line in log.split('\n') {
        let read = if buttons {
            let line = line.replace("MouseButton.LEFT", "1").replace("MouseButton.RIGHT", "3");
            status_and_id(&line)
        } else {
            status_and_id(line)
        };
        if let Some((status, id)) = read {
            map.insert(id, status);
        }
    }
    map
}

/// Of a parameter that is an absolute path only the last part stays.
fn pytest_options(log: &str) -> Map {
    let mut map = Map::new();
    for line in log.split('\n') {
        let Some((status, id)) = status_and_id(line) else { continue };
        let parts = id
            .split_once('[')
            .and_then(|(main, rest)| rest.rsplit_once(']').map(|(option, _)| (main, option)));
        let id = match parts {
            Some((main, option)) => {
                let is_path =
                    option.starts_with('/') && !option.starts_with("//") && !option.contains('*');
                let last = option.rsplit('/').next().unwrap_or(option);
                if is_path { format!("{main}[/{last}]") } else { format!("{main}[{option}]") }
            }
            None => id,
        };
        map.insert(id, status);
    }
    map
}

/// Keeps spaces in ids, drops colours of one number and control characters, and also takes lines that end in a status.
fn pytest_v2(log: &str) -> Map {
    let mut map = Map::new();
    for line in log.split('\n') {
        let line: String =
            without_colours(line).chars().filter(|c| !('\u{1}'..='\u{1f}').contains(c)).collect();
        if starts_with_status(&line) {
            let line = if line.starts_with("FAILED") {
                line.split(" - ").next().unwrap_or_default()
            } else {
                &line
            };
            let words: Vec<&str> = words(line).collect();
            if words.len() >= 2 && !is_skip_count(words[0], words[1]) {
                map.insert(words[1..].join(" "), words[0].to_owned());
            }
        } else if STATUSES.iter().any(|status| line.ends_with(status)) {
            let words: Vec<&str> = words(&line).collect();
            if let Some((last, before)) = words.split_last()
                && !before.is_empty()
            {
                map.insert(before.join(" "), (*last).to_owned());
            }
        }
    }
    map
}

/// Without `[31m`; `[1;31m` stays.
fn without_colours(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('[') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let digits = from[1..].find(|c: char| !c.is_numeric()).map_or(from.len(), |n| n + 1);
        if digits > 1 && from[digits..].starts_with('m') {
            rest = &from[digits + 1..];
        } else {
            out.push('[');
            rest = &from[1..];
        }
    }
    out.push_str(rest);
    out
}

fn seaborn(log: &str) -> Map {
    let mut map = Map::new();
    for line in log.split('\n') {
        let mut words = words(line);
        let (Some(first), Some(second)) = (words.next(), words.next()) else { continue };
        if line.starts_with("FAILED") {
            map.insert(second.to_owned(), "FAILED".to_owned());
        } else if line.contains(" PASSED ") {
            if second == "PASSED" {
                map.insert(first.to_owned(), "PASSED".to_owned());
            }
        } else if line.starts_with("PASSED") {
            map.insert(second.to_owned(), "PASSED".to_owned());
        }
    }
    map
}

/// Expected failures and skipped tests are not read.
fn sympy(log: &str) -> Map {
    let mut map = Map::new();
    for line in log.split('\n') {
        if let Some(id) = sympy_title(line) {
            map.insert(id, "FAILED".to_owned());
        }
    }
    for line in log.split('\n') {
        let line = line.trim_matches(is_space);
        if !line.starts_with("test_") {
            continue;
        }
        let Some(test) = words(line).next() else { continue };
        for (end, status) in [(" E", "ERROR"), (" F", "FAILED"), (" ok", "PASSED")] {
            if line.ends_with(end) {
                map.insert(test.to_owned(), status.to_owned());
            }
        }
    }
    map
}

/// `____ sympy/a/tests/test_b.py:test_c ____`, and whatever else holds `.py:` between two spaces.
fn sympy_title(line: &str) -> Option<String> {
    let (_, rest) = line.split_once(' ')?;
    let (title, _) = rest.rsplit_once(' ')?;
    let (file, test) = title.rsplit_once(".py:")?;
    Some(format!("{file}.py:{test}"))
}

fn django(log: &str) -> Map {
    let mut map = Map::new();
    let mut set = |id: &str, status: &str| map.insert(id.to_owned(), status.to_owned());
    let mut previous: Option<&str> = None;
    for line in log.split('\n') {
        let mut line = line.trim_matches(is_space);
        let odd = "--version is equivalent to version";
        if line.contains(odd) {
            set(odd, "PASSED");
        }
        if let Some((test, _)) = line.split_once(" ... ") {
            previous = Some(test);
        }
        for suffix in [" ... ok", " ... OK", " ...  OK"] {
            if !line.ends_with(suffix) {
                continue;
            }
            if line.starts_with("Applying sites.0002_alter_domain_unique...test_no_migrations")
                && let Some((_, rest)) = line.split_once("...")
            {
                line = rest.trim_matches(is_space);
            }
            let test = line.rsplit_once(suffix).map_or(line, |(test, _)| test);
            set(test, "PASSED");
            break;
        }
        if let Some((test, _)) = line.split_once(" ... skipped") {
            set(test, "SKIPPED");
        }
        for (end, start, status) in
            [(" ... FAIL", "FAIL:", "FAILED"), (" ... ERROR", "ERROR:", "ERROR")]
        {
            if line.ends_with(end) {
                set(line.split(end).next().unwrap_or(line), status);
            }
            // Only the name: the class goes lost.
            if line.starts_with(start)
                && let Some(test) = words(line).nth(1)
            {
                set(test, status);
            }
        }
        if line.starts_with("ok")
            && let Some(test) = previous
        {
            set(test, "PASSED");
        }
    }
    for test in django_interrupted(log) {
        set(test, "PASSED");
    }
    map
}

/// Where what must follow a text ends.
type Tail = fn(&str) -> Option<usize>;

/// Tests whose result comes after three known kinds of other output.
fn django_interrupted(log: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let kinds: [(&str, Tail); 3] = [
        ("Testing against Django installed in ", |rest| {
            let mut from = 0;
            let end = " silenced).\nok";
            while let Some(at) = rest[from..].find(end) {
                let stop = from + at + end.len();
                if rest[stop..].is_empty() || rest[stop..].starts_with('\n') {
                    return Some(stop);
                }
                from += at + 1;
            }
            None
        }),
        ("Internal Server Error: /", |rest| {
            let line = rest.split('\n').next()?;
            let stop = line.len() + "\nok".len();
            let ends = line.ends_with('/') && rest[line.len()..].starts_with("\nok");
            (ends && (rest[stop..].is_empty() || rest[stop..].starts_with('\n'))).then_some(stop)
        }),
        ("System check identified no issues (0 silenced)", |rest| {
            let stop = "\nok".len();
            let ends = rest.starts_with("\nok");
            (ends && (rest[stop..].is_empty() || rest[stop..].starts_with('\n'))).then_some(stop)
        }),
    ];
    for (literal, tail) in kinds {
        let mut at = 0;
        while at <= log.len() {
            let line_end = log[at..].find('\n').map_or(log.len(), |end| at + end);
            // White space, three dots, white space, the literal: the line may end before or after the dots.
            // No further than that: a log without dots is long.
            let mut reach = (line_end + 4).min(log.len());
            while !log.is_char_boundary(reach) {
                reach += 1;
            }
            let hit = log[at..reach]
                .match_indices("...")
                .take_while(|(dots, _)| at + dots <= line_end + 1)
                .find_map(|(dots, _)| {
                    let before = log[at..at + dots].chars().next_back()?;
                    let rest = &log[at + dots + 3..];
                    let after = rest.chars().next()?;
                    let rest = rest[after.len_utf8()..].strip_prefix(literal)?;
                    if !is_space(before) || !is_space(after) {
                        return None;
                    }
                    let id = &log[at..at + dots - before.len_utf8()];
                    if id.contains('\n') {
                        return None;
                    }
                    let stop = tail(rest)?;
                    Some((id, log.len() - rest.len() + stop))
                });
            let from = if let Some((id, stop)) = hit {
                found.push(id);
                stop
            } else {
                line_end
            };
            match log[from..].find('\n') {
                Some(end) => at = from + end + 1,
                None => break,
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parser: &str, log: &str) -> Vec<(String, String)> {
        compat(parser, log).unwrap().into_iter().collect()
    }

    fn expect(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(id, status)| ((*id).to_owned(), (*status).to_owned())).collect()
    }

    #[test]
    fn ids_are_cut_at_the_first_space_as_theirs_are() {
        let log = "PASSED t.py::a[log(x y)]\nFAILED t.py::a[log(x z)] - boom\nSKIPPED [1] t.py:3: no\nPASSED\n";
        assert_eq!(read("parse_log_pytest", log), expect(&[("t.py::a[log(x", "FAILED")]));
        let v2 = [("t.py::a[log(x y)]", "PASSED"), ("t.py::a[log(x z)]", "FAILED")];
        assert_eq!(read("parse_log_astropy", log), expect(&v2));
        assert_eq!(compat("parse_log_jest", log), None);
        assert_eq!(compat("django", log), None);
    }

    #[test]
    fn the_marks_are_the_ends() {
        let log = "+ : '>>>>> Start Test Output'\nPASSED a\n+ : '>>>>> End Test Output'\nPASSED b";
        assert_eq!(test_output(log), "'\nPASSED a\n+ : '");
        assert_eq!(test_output("PASSED a"), "PASSED a");
    }
}
