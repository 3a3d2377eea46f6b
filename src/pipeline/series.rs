//! Verifying a split again: a new series of runs, so that no record of before is taken for a new one.
//!
//! ```text
//! <store>/series/<digest>.json    the series begun last since the manifest with this digest
//! ```

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Error;
use crate::base::files::write_atomic;
use crate::base::{Cancel, Digest, Store, canon};

const VERSION: u32 = 1;

/// A verification by its name, which is part of the key of its runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Series {
    version: u32,
    /// How many were begun since the manifest in this store, this one included.
    number: u64,
    /// Digest of the manifest that it is compared with.
    since: Digest,
}

impl Series {
    /// The name: the first, second ... since a manifest.
    pub fn name(&self) -> String {
        format!("{}-{}", &self.since.hex()[..12], self.number)
    }

    /// A new series, or with `resume` the one begun last since the same manifest.
    pub fn begin(
        store: &Store,
        since: Digest,
        resume: bool,
        cancel: &Cancel,
    ) -> Result<Self, Error> {
        let _lock = store.lock_step(&canon::digest(&("series", since))?, cancel)?;
        let path = store.root().join("series").join(format!("{}.json", since.hex()));
        let held = Self::read(&path)?;
        let number = match held {
            Some(held) if resume => return Ok(held),
            None if resume => return Err(Error::NothingToResume),
            Some(held) => held.number + 1,
            None => 1,
        };
        let series = Self { version: VERSION, number, since };
        fs_err::create_dir_all(path.parent().expect("it has a folder"))?;
        write_atomic(&path, &canon::to_vec(&series)?)?;
        Ok(series)
    }

    fn read(path: &Path) -> Result<Option<Self>, Error> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let bytes = match fs_err::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let unreadable = |source| Error::UnreadableSeries { path: path.to_owned(), source };
        let Versioned { version } = serde_json::from_slice(&bytes).map_err(unreadable)?;
        if version > VERSION {
            let (path, expected, actual) = (path.to_owned(), VERSION, version);
            return Err(Error::NewerFile { path, expected, actual });
        }
        serde_json::from_slice(&bytes).map(Some).map_err(unreadable)
    }
}

/// How many instances are taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sample {
    /// So many.
    Count(usize),
    /// So much of the split, from 0 to 1; at least one.
    Share(f64),
}

impl std::str::FromStr for Sample {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("`{text}` is neither a number of instances nor a share such as 10%");
        let sample = if let Some(percent) = text.strip_suffix('%') {
            let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
            (percent > 0.0 && percent <= 100.0).then_some(Self::Share(percent / 100.0))
        } else {
            let count = text.parse().map_err(|_| wrong())?;
            (count > 0).then_some(Self::Count(count))
        };
        sample.ok_or_else(wrong)
    }
}

impl Sample {
    /// Draws of these instances; another `seed` draws others, the same seed the same.
    pub fn draw(self, ids: Vec<String>, seed: &str) -> Vec<String> {
        let all = ids.len();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a number of instances"
        )]
        let wanted = match self {
            Self::Count(count) => count.min(all),
            Self::Share(share) => ((all as f64 * share).ceil() as usize).clamp(1, all.max(1)),
        };
        let mut drawn: Vec<(Digest, String)> =
            ids.into_iter().map(|id| (Digest::of(format!("{seed}\n{id}")), id)).collect();
        drawn.sort();
        drawn.truncate(wanted);
        let mut ids: Vec<String> = drawn.into_iter().map(|(_, id)| id).collect();
        ids.sort();
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_numbers_or_shares() {
        assert_eq!("3".parse(), Ok(Sample::Count(3)));
        assert_eq!("12.5%".parse(), Ok(Sample::Share(0.125)));
        for text in ["0", "0%", "101%", "-1", "all", "NaN%", ""] {
            assert!(text.parse::<Sample>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_series_is_begun_resumed_and_begun_again() {
        let folder = tempfile::tempdir().unwrap();
        let store =
            Store::open(&folder.path().join("store"), &folder.path().join("scratch")).unwrap();
        let since = Digest::of("manifest");
        let cancel = Cancel::new();
        let begin = |since, resume| Series::begin(&store, since, resume, &cancel);
        assert!(matches!(begin(since, true), Err(Error::NothingToResume)));
        let first = begin(since, false).unwrap();
        assert_eq!(begin(since, true).unwrap(), first);
        let second = begin(since, false).unwrap();
        assert_ne!(first.name(), second.name());
        assert_eq!(begin(since, true).unwrap(), second);
        assert!(matches!(begin(Digest::of("other"), true), Err(Error::NothingToResume)));

        // What cannot be read is not begun anew under a name that was used.
        let path = store.root().join(format!("series/{}.json", since.hex()));
        fs_err::write(&path, "{\"version\":2,\"more\":1}").unwrap();
        assert!(matches!(begin(since, false), Err(Error::NewerFile { actual: 2, .. })));
        fs_err::write(&path, "{").unwrap();
        assert!(matches!(begin(since, false), Err(Error::UnreadableSeries { .. })));
    }
}
