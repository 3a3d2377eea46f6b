//! Why an instance cannot be written in somebody else's format.

/// Why an instance cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// JSON holds text only.
    #[error("its {what} is not text in UTF-8, and rows hold text only")]
    NotText {
        /// Which patch.
        what: &'static str,
    },
    /// The harness cuts logs and scripts at its marks.
    #[error("its test patch holds the mark {mark:?}, at which the harness cuts the script")]
    Mark {
        /// The mark.
        mark: &'static str,
    },
    /// No parser of the harness reads what the command writes.
    #[error("the harness reads what tests print, and {what}")]
    Unreadable {
        /// What the command does instead.
        what: &'static str,
    },
    /// There is no test file to name.
    #[error("its test patch leaves no test file to run")]
    NoTestFiles,
    /// Nothing is left of FAIL_TO_PASS.
    #[error("the harness can read none of its FAIL_TO_PASS tests")]
    NothingLeft,
}

impl Error {
    /// The way out.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotText { .. } | Self::Mark { .. } => {
                "grade it with hallmark, which takes patches as bytes"
            }
            Self::Unreadable { .. } => {
                "give the spec a command of pytest, unittest, Django or SymPy; one of tox ends in `--`, so that pytest can be given -rA"
            }
            Self::NoTestFiles => "write the files of the spec's [test] down, or \"none\"",
            Self::NothingLeft => "grade it with hallmark, whose runners report every test",
        }
    }
}
