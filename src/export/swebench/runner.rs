//! How the harness runs a spec's tests and who reads what they print.

use crate::export::Error;
use crate::spec::{Parser, Spec};
use crate::verify::file_arguments;

/// What a test command prints a line per test as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prints {
    /// pytest's summary.
    Pytest,
    /// unittest's lines, Django's too.
    Unittest,
    /// Lines of SymPy's `bin/test`.
    Sympy,
}

/// Parsers of the harness that belong to a repository. Most are one of the general ones by another name.
const OF_REPOSITORY: [(&str, &str, Prints); 12] = [
    ("astropy/astropy", "parse_log_astropy", Prints::Pytest),
    ("django/django", "parse_log_django", Prints::Unittest),
    ("matplotlib/matplotlib", "parse_log_matplotlib", Prints::Pytest),
    ("mwaskom/seaborn", "parse_log_seaborn", Prints::Pytest),
    ("pallets/flask", "parse_log_flask", Prints::Pytest),
    ("psf/requests", "parse_log_requests", Prints::Pytest),
    ("pydata/xarray", "parse_log_xarray", Prints::Pytest),
    ("pylint-dev/pylint", "parse_log_pylint", Prints::Pytest),
    ("pytest-dev/pytest", "parse_log_pytest", Prints::Pytest),
    ("scikit-learn/scikit-learn", "parse_log_scikit", Prints::Pytest),
    ("sphinx-doc/sphinx", "parse_log_sphinx", Prints::Pytest),
    ("sympy/sympy", "parse_log_sympy", Prints::Sympy),
];

/// How tests are run and read.
pub(super) struct Runner {
    /// The command with its files.
    pub(super) command: Vec<String>,
    /// What it prints.
    pub(super) prints: Prints,
    /// The harness's name of the parser.
    pub(super) log_parser: &'static str,
}

impl Runner {
    pub(super) fn of(spec: &Spec, test_patch: &[u8]) -> Result<Self, Error> {
        let mut command = spec.test.command.clone();
        let prints = match spec.test.parser {
            Parser::Pytest => {
                insert_before_rest(&mut command, &["-rA"]);
                Prints::Pytest
            }
            Parser::Unittest => {
                ask(&mut command, &["-v", "--verbose"], &["-v"]);
                Prints::Unittest
            }
            Parser::Django => {
                ask(&mut command, &["-v", "--verbosity"], &["--verbosity", "2"]);
                Prints::Unittest
            }
            Parser::Sympy => {
                ask(&mut command, &["-v", "--verbose"], &["--verbose"]);
                Prints::Sympy
            }
            Parser::Tox if command.iter().any(|word| word == "--") => {
                command.push("-rA".to_owned());
                Prints::Pytest
            }
            Parser::Tox => {
                return Err(Error::Unreadable { what: "what tox starts is not told to print it" });
            }
            Parser::Junit => return Err(Error::Unreadable { what: "this command writes a file" }),
        };
        let files = file_arguments(spec, test_patch).ok_or(Error::NoTestFiles)?;
        command.extend(files);
        let own = OF_REPOSITORY.iter().find(|(repo, _, own)| *repo == spec.repo && *own == prints);
        let log_parser = own.map_or(general(prints), |(_, key, _)| key);
        Ok(Self { command, prints, log_parser })
    }
}

/// The parser for a repository that has none of its own. Of pytest's, the one that keeps ids with spaces whole.
fn general(prints: Prints) -> &'static str {
    match prints {
        Prints::Pytest => "parse_log_pytest_v2",
        Prints::Unittest => "parse_log_django",
        Prints::Sympy => "parse_log_sympy",
    }
}

/// Appends words unless the command has an option of these names.
fn ask(command: &mut Vec<String>, names: &[&str], words: &[&str]) {
    let has = |word: &String| {
        let name = word.split('=').next().unwrap_or_default();
        names.contains(&name)
    };
    if !command.iter().any(has) {
        insert_before_rest(command, words);
    }
}

/// Puts options last, where they have the last word, but before a `--`.
fn insert_before_rest(command: &mut Vec<String>, words: &[&str]) {
    let at = command.iter().position(|word| word == "--").unwrap_or(command.len());
    command.splice(at..at, words.iter().map(|word| (*word).to_owned()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_to_print_every_test() {
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        for (command, asked) in [
            ("python -m unittest", "python -m unittest -v"),
            ("python -m unittest --verbose x", "python -m unittest --verbose x"),
        ] {
            let mut command = words(command);
            ask(&mut command, &["-v", "--verbose"], &["-v"]);
            assert_eq!(command, words(asked));
        }
        let mut command = words("runtests.py --verbosity=1");
        ask(&mut command, &["-v", "--verbosity"], &["--verbosity", "2"]);
        assert_eq!(command, words("runtests.py --verbosity=1"));
        let mut command = words("pytest -q -- x");
        insert_before_rest(&mut command, &["-rA"]);
        assert_eq!(command, words("pytest -q -rA -- x"));
    }
}
