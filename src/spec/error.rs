//! What is wrong with a spec: every fault at once, each with its place, a caret and the way out.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::inherit::SpecFile;

/// An error of this room.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Below this room.
    #[error(transparent)]
    Base(#[from] crate::base::Error),
    /// Specs or base definitions break rules.
    #[error(transparent)]
    Invalid(#[from] SpecErrors),
    /// There is no file for what was asked for.
    #[error("there is no {}", path.display())]
    Missing {
        /// The file that should be there.
        path: PathBuf,
        /// The files that are there instead, by stem, sorted.
        known: Vec<String>,
    },
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Base(error.into())
    }
}

impl Error {
    /// The way out, where there is one that is not part of the message.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { known, .. } if known.is_empty() => {
                Some("write it; `docs/spec.md` describes the format".to_owned())
            }
            Self::Missing { known, .. } => {
                Some(format!("write it, or use one of these: {}", known.join(", ")))
            }
            _ => None,
        }
    }
}

/// One fault of one file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpecError {
    /// The file, as it was named to the parser.
    pub path: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong, a lower-case fragment.
    pub message: String,
    /// The way out.
    pub hint: String,
    /// Byte range in the file's text.
    span: ByteRange,
}

/// An ordered byte range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ByteRange {
    start: usize,
    end: usize,
}

/// Every fault of one or more files, in the order of files and places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecErrors {
    errors: BTreeSet<SpecError>,
    texts: std::collections::BTreeMap<PathBuf, String>,
}

impl SpecErrors {
    /// The faults.
    pub fn iter(&self) -> impl Iterator<Item = &SpecError> {
        self.errors.iter()
    }

    /// How many faults there are.
    pub fn len(&self) -> usize {
        self.errors.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// Adds the faults of other files; a fault of a shared file counts once.
    pub fn extend(&mut self, other: Self) {
        self.errors.extend(other.errors);
        self.texts.extend(other.texts);
    }

    pub(super) fn push(&mut self, file: &SpecFile, span: Range<usize>, message: &str, hint: &str) {
        let (start, end) = visible(&file.text, span);
        let before = &file.text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        self.texts.entry(file.path.clone()).or_insert_with(|| file.text.clone());
        self.errors.insert(SpecError {
            path: file.path.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.to_owned(),
            hint: hint.to_owned(),
            span: ByteRange { start, end },
        });
    }

    /// The faults with their source lines and carets, for people; with colours when `styled`.
    pub fn render(&self, styled: bool) -> String {
        let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
        let mut out = String::new();
        for error in &self.errors {
            let text = self.texts.get(&error.path).map_or("", String::as_str);
            let group = Level::ERROR
                .primary_title(error.message.as_str())
                .element(
                    Snippet::source(text)
                        .path(error.path.display().to_string())
                        .annotation(AnnotationKind::Primary.span(error.span.start..error.span.end)),
                )
                .element(
                    Level::HELP
                        .with_name("hint")
                        .message(annotate_snippets::normalize_untrusted_str(&error.hint)),
                );
            if !out.is_empty() {
                out.push_str("\n\n");
            }
            out.push_str(&renderer.render(&[group]));
        }
        out
    }

    pub(super) fn into_result<T>(self, value: Option<T>) -> Result<T, Self> {
        match value {
            Some(value) if self.errors.is_empty() => Ok(value),
            _ => Err(self),
        }
    }
}

impl fmt::Display for SpecErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for SpecErrors {}

impl SpecError {
    /// The file that the fault is in.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The span cut to its first line and to character borders, so that a caret under a whole table stays readable.
fn visible(text: &str, span: Range<usize>) -> (usize, usize) {
    let border = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = border(span.start);
    let end = border(span.end).max(start);
    let end = text[start..end].find('\n').map_or(end, |length| start + length);
    (start, end)
}
