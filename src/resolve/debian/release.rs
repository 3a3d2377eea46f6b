//! The Release file of a suite: what it is, when it was made, and the digests of its indexes.

use std::collections::BTreeMap;

use deb822_fast::borrowed::BorrowedParser;
use jiff::Timestamp;

use crate::base::Digest;
use crate::resolve::Error;

/// What hallmark reads of a Release file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// `Codename`, such as `bookworm`.
    pub codename: String,
    /// `Date`.
    pub date: Timestamp,
    /// `Valid-Until`, which most suites do not have.
    pub valid_until: Option<Timestamp>,
    /// Digest and length of each index, by its path below the suite.
    pub files: BTreeMap<String, (Digest, u64)>,
}

impl Release {
    /// Reads the (already verified) text and checks that it is of the suite that was asked for, by its codename: a
    /// suite's other name, `stable`, moves.
    pub fn parse(suite: &str, text: &str) -> Result<Self, Error> {
        let wrong = |problem: String| Error::Archive {
            suite: suite.to_owned(),
            file: "InRelease".to_owned(),
            problem,
        };
        let paragraphs =
            BorrowedParser::new(text).parse_all().map_err(|error| wrong(error.to_string()))?;
        let [paragraph] = paragraphs.as_slice() else {
            return Err(wrong(format!("expected one paragraph, got {}", paragraphs.len())));
        };
        let field = |name: &str| {
            paragraph.get_single(name).ok_or_else(|| wrong(format!("`{name}` is missing")))
        };
        let codename = field("Codename")?.to_owned();
        if codename != suite {
            return Err(wrong(format!("expected codename {suite}, got {codename}")));
        }
        let date = parse_date(field("Date")?).map_err(wrong)?;
        let valid_until =
            paragraph.get_single("Valid-Until").map(parse_date).transpose().map_err(wrong)?;
        let mut files = BTreeMap::new();
        let lines =
            paragraph.get("SHA256").ok_or_else(|| wrong("`SHA256` is missing".to_owned()))?;
        for line in lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()) {
            let bad = || wrong(format!("{line:?} is not a line of `SHA256`"));
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let [digest, size, path] = words.as_slice() else { return Err(bad()) };
            let digest = Digest::from_hex(digest).map_err(|_| bad())?;
            files.insert((*path).to_owned(), (digest, size.parse().map_err(|_| bad())?));
        }
        Ok(Self { codename, date, valid_until, files })
    }

    /// Refuses a file that says itself that its time is over.
    pub fn check_fresh(&self, now: Timestamp) -> Result<(), Error> {
        match self.valid_until {
            Some(until) if until < now => {
                Err(Error::Expired { suite: self.codename.clone(), until })
            }
            _ => Ok(()),
        }
    }

    /// Digest and length of the index at `path`.
    pub fn file(&self, path: &str) -> Result<(Digest, u64), Error> {
        self.files.get(path).copied().ok_or_else(|| Error::Archive {
            suite: self.codename.clone(),
            file: "InRelease".to_owned(),
            problem: format!("it does not name {path}"),
        })
    }
}

/// `Sat, 11 Jul 2026 10:16:37 UTC`.
fn parse_date(text: &str) -> Result<Timestamp, String> {
    let bad = || format!("{text:?} is not a date in UTC");
    let local = text.strip_suffix(" UTC").ok_or_else(bad)?;
    jiff::civil::DateTime::strptime("%a, %d %b %Y %H:%M:%S", local)
        .and_then(|time| jiff::tz::TimeZone::UTC.to_timestamp(time))
        .map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Origin: Debian\nSuite: oldstable\nCodename: bookworm\n\
        Date: Sat, 11 Jul 2026 10:16:37 UTC\nMD5Sum:\n 00 1 main/binary-amd64/Packages\nSHA256:\n \
        e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855        12 main/binary-amd64/Packages\n";

    #[test]
    fn reads_what_it_needs() {
        let release = Release::parse("bookworm", TEXT).unwrap();
        // The notes measured this date as 1783764997.
        assert_eq!(release.date.as_second(), 1_783_764_997);
        assert_eq!(release.file("main/binary-amd64/Packages").unwrap(), (Digest::of(""), 12));
        assert!(release.file("main/binary-arm64/Packages").is_err());
        release.check_fresh(Timestamp::MAX).unwrap();
    }

    #[test]
    fn refuses_what_is_not_the_suite() {
        for (from, to, message) in [
            ("Codename: bookworm", "Codename: trixie", "expected codename bookworm, got trixie"),
            ("Codename: bookworm\n", "", "`Codename` is missing"),
            ("Date: Sat", "Date: Sun", "is not a date in UTC"),
            ("37 UTC", "37 CEST", "is not a date in UTC"),
            ("SHA256:", "SHA1:", "`SHA256` is missing"),
            (" 12 main", " x main", "is not a line of `SHA256`"),
            ("e3b0", "E3B0", "is not a line of `SHA256`"),
        ] {
            let broken = TEXT.replacen(from, to, 1);
            assert_ne!(broken, TEXT);
            let error = Release::parse("bookworm", &broken).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn judges_valid_until() {
        let text = TEXT.replace("MD5Sum", "Valid-Until: Sun, 12 Jul 2026 10:16:37 UTC\nMD5Sum");
        let release = Release::parse("bookworm", &text).unwrap();
        release.check_fresh("2026-07-12T10:16:37Z".parse().unwrap()).unwrap();
        let error = release.check_fresh("2026-07-12T10:16:38Z".parse().unwrap()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the Release file of bookworm was valid until 2026-07-12T10:16:37Z"
        );
    }
}
