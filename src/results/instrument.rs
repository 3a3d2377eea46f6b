//! Puts our runner in the place of pytest in a test command.
//!
//! ```text
//! /run/hallmark/pytest_runner.py    the runner, read-only
//! /run/hallmark-report/nonce        32 random hex digits, removed by the runner when it has read them
//! /run/hallmark-report/report       the stream of lines, made empty by the host
//! ```

use super::Error;
use crate::base::Digest;

/// The runner's source.
pub const RUNNER: &str = include_str!("runner/pytest_runner.py");
/// The folder of the runner inside a container.
pub const RUNNER_FOLDER: &str = "/run/hallmark";
/// The runner's file name.
pub const RUNNER_FILE: &str = "pytest_runner.py";
/// The writable folder of the report inside a container.
pub const REPORT_FOLDER: &str = "/run/hallmark-report";
/// File in the report's folder that the runner reads the nonce from.
pub const NONCE_FILE: &str = "nonce";
/// File in the report's folder that the runner appends to.
pub const REPORT_FILE: &str = "report";
/// The signal that ends the process when one test hangs where no Python code runs: SIGXCPU.
pub const HARD_LIMIT_SIGNAL: i32 = 24;

/// How tests are run.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Wall time of one test in seconds; 0 for no limit.
    pub test_timeout: f64,
    /// Whether the tests of other modules run when one module does not import.
    pub continue_on_collection_errors: bool,
    /// Where the runner's folder is; [`RUNNER_FOLDER`] in containers.
    pub runner_folder: String,
    /// Where the report's folder is; [`REPORT_FOLDER`] in containers.
    pub report_folder: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            test_timeout: 0.0,
            continue_on_collection_errors: false,
            runner_folder: RUNNER_FOLDER.to_owned(),
            report_folder: REPORT_FOLDER.to_owned(),
        }
    }
}

/// Digest of the runner's source: part of what identifies how results were read.
pub fn runner_digest() -> Digest {
    Digest::of(RUNNER)
}

/// The command that runs `command`'s tests through our runner: `pytest ...`, `py.test ...` and
/// `python [options] -m pytest ...`, each with or without a leading `env NAME=VALUE ...`.
pub fn instrument(command: &[String], options: &Options) -> Result<Vec<String>, Error> {
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
        format!("{}/{RUNNER_FILE}", options.runner_folder),
        options.report_folder.clone(),
        mode.to_owned(),
        options.test_timeout.to_string(),
    ]);
    let flag = "--continue-on-collection-errors";
    if options.continue_on_collection_errors && !command[at..].iter().any(|word| word == flag) {
        argv.push(flag.to_owned());
    }
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
        let options = Options { test_timeout: 1.5, ..Options::default() };
        let rest = "/run/hallmark/pytest_runner.py /run/hallmark-report";
        for (command, expected) in [
            ("pytest -q tests", format!("python {rest} script 1.5 -q tests")),
            ("/opt/x/bin/py.test a", format!("/opt/x/bin/python {rest} script 1.5 a")),
            ("python -m pytest", format!("python {rest} module 1.5")),
            (
                "python3.9 -Wignore -W error -bb -mpytest a",
                format!("python3.9 -Wignore -W error -bb {rest} module 1.5 a"),
            ),
            (
                "env A=b PYTHONPATH= python -m pytest -k a=b",
                format!("env A=b PYTHONPATH= python {rest} module 1.5 -k a=b"),
            ),
        ] {
            assert_eq!(instrument(&words(command), &options), Ok(words(&expected)), "{command}");
        }
    }

    #[test]
    fn the_flag_is_added_once() {
        let options = Options { continue_on_collection_errors: true, ..Options::default() };
        for command in ["pytest a", "pytest --continue-on-collection-errors a"] {
            let argv = instrument(&words(command), &options).unwrap();
            let count =
                argv.iter().filter(|word| *word == "--continue-on-collection-errors").count();
            assert_eq!(count, 1, "{command}");
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
            let error = instrument(&words(command), &Options::default()).unwrap_err();
            assert!(error.hint().is_some(), "{command}");
        }
        assert!(instrument(&[], &Options::default()).is_err());
    }
}
