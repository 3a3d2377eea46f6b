//! Verifying a split again: a new series of runs, so that no record of before is taken for a new one.
//!
//! ```text
//! <store>/series/<split>.json    the series begun last
//! ```

use serde::{Deserialize, Serialize};

use super::Error;
use crate::base::files::write_atomic;
use crate::base::{Digest, Store, canon};

const VERSION: u64 = 1;

/// A verification by its name, which is part of the key of its runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Series {
    version: u64,
    /// How many were begun before, of this split in this store.
    number: u64,
    /// Digest of the manifest that it is compared with.
    since: Digest,
}

impl Series {
    /// The name: the same split verified again after the same manifest for the same time has the same.
    pub fn name(&self) -> String {
        format!("{}-{}", &self.since.hex()[..12], self.number)
    }

    /// A new series, or with `resume` the one begun last, if it was begun since the same manifest.
    pub fn begin(store: &Store, split: &str, since: Digest, resume: bool) -> Result<Self, Error> {
        let name = Digest::of(split);
        let path = store.root().join("series").join(format!("{}.json", name.hex()));
        let held: Option<Self> = match fs_err::read(&path) {
            // One that does not read was cut off: a new one is begun.
            Ok(bytes) => serde_json::from_slice(&bytes).ok(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        let series = match held {
            Some(held) if resume && held.since == since => return Ok(held),
            _ if resume => return Err(Error::NothingToResume { split: split.to_owned() }),
            Some(held) => Self { version: VERSION, number: held.number + 1, since },
            None => Self { version: VERSION, number: 1, since },
        };
        fs_err::create_dir_all(path.parent().expect("it has a folder"))?;
        write_atomic(&path, &canon::to_vec(&series)?)?;
        Ok(series)
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
        let begin = |since, resume| Series::begin(&store, "split", since, resume);
        assert!(matches!(begin(since, true), Err(Error::NothingToResume { .. })));
        let first = begin(since, false).unwrap();
        assert_eq!(begin(since, true).unwrap(), first);
        let second = begin(since, false).unwrap();
        assert_ne!(first.name(), second.name());
        assert_eq!(begin(since, true).unwrap(), second);
        assert!(matches!(begin(Digest::of("other"), true), Err(Error::NothingToResume { .. })));
    }
}
