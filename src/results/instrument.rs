//! Puts a runner of ours in the place of the one in a test command.

use serde::{Deserialize, Serialize};

use super::Error;
use super::options::{REPORT_FOLDER, RUNNER_FOLDER};
use crate::spec::{Parser, Starts, TestCommand, base_name};

/// Where the folders of the runners and of the report are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// [`RUNNER_FOLDER`] in containers.
    pub runner_folder: String,
    /// [`REPORT_FOLDER`] in containers.
    pub report_folder: String,
}

impl Default for Place {
    fn default() -> Self {
        Self { runner_folder: RUNNER_FOLDER.to_owned(), report_folder: REPORT_FOLDER.to_owned() }
    }
}

/// What the results of a run are read from.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The report that a runner of ours streamed.
    #[default]
    Stream,
    /// What the test command printed.
    Text,
}

impl Source {
    /// Whether this is the first source.
    pub fn is_stream(&self) -> bool {
        *self == Self::Stream
    }
}

/// A test command as it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instrumented {
    /// The command.
    pub argv: Vec<String>,
    /// What its results are read from.
    pub source: Source,
}

/// The command that runs `command`'s tests through the runner of ours that `parser` asks for, or the command
/// itself where its text is read.
///
/// | parser | commands |
/// | --- | --- |
/// | `pytest` | `pytest ...`, `py.test ...`, `python [options] -m pytest ...` |
/// | `unittest`, `django` | `python [options] -m unittest ...`, `python [options] SCRIPT ...`, `SCRIPT ...` |
/// | `sympy` | `bin/test ...`, `python [options] bin/test ...` |
/// | `tox`, `junit` | any |
///
/// each with or without a leading `env NAME=VALUE ...`.
pub fn instrument(
    command: &[String],
    parser: Parser,
    place: &Place,
) -> Result<Instrumented, Error> {
    if matches!(parser, Parser::Tox | Parser::Junit) {
        return Ok(Instrumented { argv: command.to_vec(), source: Source::Text });
    }
    let unknown = || Error::UnknownRunner { parser, command: command.to_vec() };
    let read = TestCommand::read(command).ok_or_else(unknown)?;
    let (runner, python, how) = match (parser, read.starts) {
        (Parser::Pytest, Starts::Module("pytest" | "py.test")) => {
            ("pytest_runner.py", None, vec!["module"])
        }
        (Parser::Pytest, Starts::Script(path))
            if read.python.is_none() && matches!(base_name(path), "pytest" | "py.test") =>
        {
            // The interpreter beside the script is the one that its first line names.
            let beside = path.rsplit_once('/').map(|(folder, _)| format!("{folder}/python"));
            ("pytest_runner.py", beside, vec!["script"])
        }
        (Parser::Unittest | Parser::Django, Starts::Module(name)) => {
            ("unittest_runner.py", None, vec!["module", name])
        }
        (Parser::Unittest | Parser::Django, Starts::Script(path)) if is_file(&read, path) => {
            ("unittest_runner.py", None, vec!["script", path])
        }
        (Parser::Sympy, Starts::Script(path)) if is_file(&read, path) => {
            ("sympy_runner.py", None, vec!["script", path])
        }
        _ => return Err(unknown()),
    };
    let mut argv = read.lead.to_vec();
    match read.python {
        Some(words) => argv.extend_from_slice(words),
        None => argv.push(python.unwrap_or_else(|| "python".to_owned())),
    }
    argv.extend([format!("{}/{runner}", place.runner_folder), place.report_folder.clone()]);
    argv.extend(how.into_iter().map(str::to_owned));
    argv.extend_from_slice(read.arguments);
    Ok(Instrumented { argv, source: Source::Stream })
}

/// Whether a script is a path, and not a program to look for.
fn is_file(read: &TestCommand<'_>, path: &str) -> bool {
    read.python.is_some() || path.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn pytest_is_replaced_wherever_it_leads() {
        let rest = "/run/hallmark/pytest_runner.py /run/hallmark-report";
        for (command, expected) in [
            ("pytest -q tests", format!("python {rest} script -q tests")),
            ("/opt/x/bin/py.test a", format!("/opt/x/bin/python {rest} script a")),
            ("python -m pytest", format!("python {rest} module")),
            (
                "python3.9 -Wignore -W error -bb -mpytest a",
                format!("python3.9 -Wignore -W error -bb {rest} module a"),
            ),
            (
                "env A=b PYTHONPATH= python -m pytest -k a=b",
                format!("env A=b PYTHONPATH= python {rest} module -k a=b"),
            ),
        ] {
            let made = instrument(&words(command), Parser::Pytest, &Place::default()).unwrap();
            assert_eq!(
                made,
                Instrumented { argv: words(&expected), source: Source::Stream },
                "{command}"
            );
        }
    }

    #[test]
    fn the_unittest_family_is_replaced() {
        let unittest = "/run/hallmark/unittest_runner.py /run/hallmark-report";
        for (command, parser, expected) in [
            (
                "python3 -W error -m unittest -v a.b",
                Parser::Unittest,
                format!("python3 -W error {unittest} module unittest -v a.b"),
            ),
            (
                "env A=b ./tests/runtests.py --parallel 2 x",
                Parser::Django,
                format!("env A=b python {unittest} script ./tests/runtests.py --parallel 2 x"),
            ),
            (
                "python manage.py test",
                Parser::Django,
                format!("python {unittest} script manage.py test"),
            ),
            (
                "env A=b bin/test -C x.py",
                Parser::Sympy,
                "env A=b python /run/hallmark/sympy_runner.py /run/hallmark-report script bin/test -C x.py"
                    .to_owned(),
            ),
        ] {
            let made = instrument(&words(command), parser, &Place::default()).unwrap();
            assert_eq!(made.argv, words(&expected), "{command}");
            assert_eq!(made.source, Source::Stream);
        }
    }

    #[test]
    fn other_programs_are_left_alone_and_read_as_text() {
        for parser in [Parser::Tox, Parser::Junit] {
            let command = words("tox -e py39 -- tests/test_a.py");
            let made = instrument(&command, parser, &Place::default()).unwrap();
            assert_eq!(made, Instrumented { argv: command, source: Source::Text });
        }
    }

    #[test]
    fn other_commands_are_refused() {
        for command in [
            "tox -e py39",
            "python setup.py test",
            "python -m unittest",
            "python -c -m pytest",
            "python",
            "python -W",
            "pythonic -m pytest",
            "env",
            "env A=b",
            "",
        ] {
            let error = instrument(&words(command), Parser::Pytest, &Place::default()).unwrap_err();
            assert!(error.hint().is_some(), "{command}");
        }
        for parser in [Parser::Unittest, Parser::Django, Parser::Sympy] {
            let made = instrument(&words("pytest -q"), parser, &Place::default());
            assert!(made.is_err(), "{parser:?}");
        }
        assert!(instrument(&[], Parser::Pytest, &Place::default()).is_err());
    }
}
