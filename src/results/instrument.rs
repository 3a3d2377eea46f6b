//! Puts a runner of ours in the place of the one in a test command.

use serde::{Deserialize, Serialize};

use super::Error;
use super::options::{REPORT_FOLDER, RUNNER_FOLDER};
use crate::spec::Parser;

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

/// A test command as it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instrumented {
    /// The command.
    pub argv: Vec<String>,
    /// What its results are read from.
    pub source: Source,
}

/// The command that runs `command`'s tests through our runner: `pytest ...`, `py.test ...` and
/// `python [options] -m pytest ...`, each with or without a leading `env NAME=VALUE ...`.
pub fn instrument(
    command: &[String],
    parser: Parser,
    place: &Place,
) -> Result<Instrumented, Error> {
    let argv = match parser {
        Parser::Pytest => pytest(command, place)?,
    };
    Ok(Instrumented { argv, source: Source::Stream })
}

fn pytest(command: &[String], place: &Place) -> Result<Vec<String>, Error> {
    let unknown = || Error::UnknownRunner { command: command.to_vec() };
    let mut at = 0;
    if command.first().is_some_and(|word| base_name(word) == "env") {
        at = 1 + command[1..].iter().take_while(|word| is_assignment(word)).count();
    }
    let mut argv = command[..at].to_vec();
    let program = command.get(at).ok_or_else(unknown)?;
    let mode = match base_name(program) {
        "pytest" | "py.test" => {
            // The interpreter beside the script is the one that its first line names.
            argv.push(match program.rsplit_once('/') {
                Some((folder, _)) => format!("{folder}/python"),
                None => "python".to_owned(),
            });
            at += 1;
            "script"
        }
        name if is_python(name) => {
            argv.push(program.clone());
            at += 1;
            let flags = interpreter_flags(&command[at..]).ok_or_else(unknown)?;
            argv.extend_from_slice(&command[at..at + flags]);
            at += flags;
            // `-m pytest` or `-mpytest`.
            at += match (command.get(at).map(String::as_str), command.get(at + 1)) {
                (Some("-m"), Some(module)) if is_pytest_module(module) => 2,
                (Some(word), _) if word.strip_prefix("-m").is_some_and(is_pytest_module) => 1,
                _ => return Err(unknown()),
            };
            "module"
        }
        _ => return Err(unknown()),
    };
    argv.extend([
        format!("{}/pytest_runner.py", place.runner_folder),
        place.report_folder.clone(),
        mode.to_owned(),
    ]);
    argv.extend_from_slice(&command[at..]);
    Ok(argv)
}

fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn is_python(name: &str) -> bool {
    name.strip_prefix("python")
        .is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

fn is_pytest_module(module: &str) -> bool {
    matches!(module, "pytest" | "py.test")
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    })
}

/// How many words before `-m` are options of the interpreter; `None` when something else comes first.
fn interpreter_flags(words: &[String]) -> Option<usize> {
    let mut at = 0;
    loop {
        let word = words.get(at)?.as_str();
        match word {
            "-W" | "-X" => at += 2,
            _ if word.starts_with("-m") => return Some(at),
            _ if word.starts_with("-W") || word.starts_with("-X") => at += 1,
            _ if word.len() > 1
                && word.strip_prefix('-').is_some_and(|letters| {
                    letters.chars().all(|letter| "bBdEIOPqsSuvx".contains(letter))
                }) =>
            {
                at += 1;
            }
            _ => return None,
        }
    }
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
        assert!(instrument(&[], Parser::Pytest, &Place::default()).is_err());
    }
}
