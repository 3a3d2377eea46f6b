//! Why a test command cannot be given a structured report.

use crate::spec::Parser;

/// An error of this room.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The command does not start its tests in a way that a runner of ours can take over.
    #[error("the test command {command:?} does not start {} in a known way", parser.as_str())]
    UnknownRunner {
        /// Who was to read the results.
        parser: Parser,
        /// The command.
        command: Vec<String>,
    },
    /// The report was written by a runner that this hallmark does not know.
    #[error("the report has version {actual}, but this hallmark reads {expected}")]
    Version {
        /// What is read.
        expected: u64,
        /// What came.
        actual: u64,
    },
}

impl Error {
    /// The way out, where there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::UnknownRunner { parser, .. } => Some(match parser {
                Parser::Pytest => {
                    "write the command as `pytest ...` or `python -m pytest ...`, with `env NAME=VALUE` before it where needed; for another runner say `parser` in [test]"
                }
                Parser::Unittest => {
                    "write the command as `python -m unittest ...` or `python SCRIPT.py ...`"
                }
                Parser::Django => {
                    "write the command as `./tests/runtests.py ...` or `python manage.py test ...`"
                }
                Parser::Sympy => "write the command as `bin/test ...`",
                Parser::Tox | Parser::Junit => "write the program and its arguments",
            }),
            Self::Version { .. } => None,
        }
    }
}
