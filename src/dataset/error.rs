//! Why rows cannot be taken.

use std::fmt;

/// One fault of a rows file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFault {
    /// Line of the row, or of the fault where it is one of JSON itself, from 1.
    pub line: usize,
    /// The row's id, where it could be read.
    pub id: Option<String>,
    /// What is wrong, a lower-case fragment.
    pub message: String,
    /// The way out.
    pub hint: String,
}

/// An error of this room.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Below this room.
    #[error(transparent)]
    Base(#[from] crate::base::Error),
    /// Rows break rules; all that do are here, in the file's order.
    #[error("{}", list(name, faults))]
    Invalid {
        /// The file.
        name: String,
        /// What is wrong; never empty.
        faults: Vec<RowFault>,
    },
    /// A row and the spec of its version do not belong together.
    #[error("{id}: {what}: expected {expected}, got {actual}")]
    SpecMismatch {
        /// The row.
        id: String,
        /// What differs.
        what: &'static str,
        /// What the row says.
        expected: String,
        /// What the spec says.
        actual: String,
    },
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Base(error.into())
    }
}

impl Error {
    /// The way out, where there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Invalid { faults, .. } => faults.first().map(|fault| fault.hint.clone()),
            Self::SpecMismatch { .. } => {
                Some("correct the row or the spec: both name the same release".to_owned())
            }
            Self::Base(_) => None,
        }
    }
}

impl fmt::Display for RowFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if let Some(id) = &self.id {
            write!(f, "{id}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// More faults than anybody reads: a file of another kind has one in each row.
const SHOWN: usize = 20;

fn list(name: &str, faults: &[RowFault]) -> String {
    let mut lines: Vec<String> =
        faults.iter().take(SHOWN).map(|fault| format!("{name}: {fault}")).collect();
    if faults.len() > SHOWN {
        lines.push(format!("{name}: and {} more", faults.len() - SHOWN));
    }
    lines.join("\n")
}
