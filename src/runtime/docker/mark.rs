//! The end of a run's output. A daemon ends a stream in the same way when it is through and when it has lost the rest; so pid 1
//! writes a word last that only hallmark and it know.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use crate::base::nonce;

/// The word.
pub(super) struct Mark(String);

impl Mark {
    pub(super) fn new() -> io::Result<Self> {
        nonce().map(Self)
    }

    pub(super) fn word(&self) -> &str {
        &self.0
    }

    /// Bytes that it adds to both streams together.
    pub(super) fn bytes(&self) -> u64 {
        2 * self.0.len() as u64
    }

    /// Takes it from the end of a stream's file. Whether it was there.
    pub(super) fn take(&self, path: &Path) -> io::Result<bool> {
        let mut file = OpenOptions::new().read(true).write(true).open(path)?;
        let Some(end) = file.metadata()?.len().checked_sub(self.0.len() as u64) else {
            return Ok(false);
        };
        file.seek(SeekFrom::Start(end))?;
        let mut last = String::new();
        if file.read_to_string(&mut last).is_err() || last != self.0 {
            return Ok(false);
        }
        file.set_len(end)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_taken_where_it_is_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stream");
        let mark = Mark::new().unwrap();
        let other = Mark::new().unwrap();
        let word = mark.word();
        for (text, whole) in [
            (word.to_owned(), true),
            (format!("{word}a{word}"), true),
            (String::new(), false),
            (word[1..].to_owned(), false),
            (format!("{word}\n"), false),
            (other.word().to_owned(), false),
        ] {
            fs_err::write(&path, &text).unwrap();
            assert_eq!(mark.take(&path).unwrap(), whole, "{text}");
            let left = if whole { &text[..text.len() - word.len()] } else { &text };
            assert_eq!(fs_err::read_to_string(&path).unwrap(), left);
        }
        // Bytes that are no text.
        fs_err::write(&path, [0xff; 100]).unwrap();
        assert!(!mark.take(&path).unwrap());
    }
}
