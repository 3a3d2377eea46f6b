//! Reads the stream of a runner of ours.
//!
//! ```text
//! <64 hex digits> <JSON object>\n
//! ```
//!
//! The digits are HMAC-SHA256, keyed by the run's nonce, over the digits of the line before (nothing for
//! the first) and the object. A line that another run or a program without the nonce wrote does not verify; one that
//! was taken out, changed or moved breaks the chain at that place. A last line that was cut by the end of
//! the process is dropped.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::mac::hmac_hex;
use super::merge::Merger;
use super::{Error, NetworkUse, Source, TestResult};

/// The version of the stream that is written; what it adds to version 1 is the network's events.
pub(crate) const VERSION: u64 = 2;

/// Hex digits before the object.
const MAC: usize = 64;

/// What a stream says, merged.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// Version of Python, where the session started.
    pub python: Option<String>,
    /// Version of pytest, where a session of it started.
    pub pytest: Option<String>,
    /// What the results were read from.
    pub source: Source,
    /// Options that this runner could not obey, by their names in the file of options.
    pub disobeyed: Vec<String>,
    /// Ids in the order of collection; `None` when collection did not end.
    pub collected: Option<Vec<String>>,
    /// Outcome per id.
    pub tests: BTreeMap<String, TestResult>,
    /// What was sent to the network before the first test: while modules were imported.
    pub collection_network: Option<NetworkUse>,
    /// Modules (or other collectors) that could not be collected, with the reason.
    pub collection_errors: BTreeMap<String, String>,
    /// Modules that were skipped whole, with the reason.
    pub collection_skips: BTreeMap<String, String>,
    /// Tests that had begun when the stream ended; each is among `tests` as failed.
    pub unfinished: Vec<String>,
    /// How many of each outcome the runner itself counted, by its own words.
    pub totals: Option<BTreeMap<String, u64>>,
    /// What the runner's last line of totals should say.
    pub printed: Option<BTreeMap<String, u64>>,
    /// How many of each outcome the stream's lines amount to, by the runner's words.
    pub counted: BTreeMap<String, u64>,
    /// Whether parts of tests were reported (subtests), which runners count in different ways.
    pub subtests: bool,
    /// Exit status of the session, where it ended.
    pub session_exit: Option<i32>,
    /// Exit status that the process was about to end with.
    pub process_exit: Option<i32>,
    /// Whether a last line was cut.
    pub cut: bool,
    /// What makes the stream untrustworthy; empty in an honest run.
    pub faults: Vec<Fault>,
}

/// A sign that somebody else wrote to the stream, or that it lost something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Fault {
    /// The line does not verify under the run's nonce.
    Foreign {
        /// Its number, from 1.
        line: u64,
    },
    /// The line verifies, but not after the line before it.
    Gap {
        /// Its number, from 1.
        line: u64,
    },
    /// The line verifies, but does not make sense.
    Malformed {
        /// Its number, from 1.
        line: u64,
        /// What is wrong.
        problem: String,
    },
    /// A test ran more often than it was collected.
    Duplicate {
        /// The test.
        id: String,
    },
    /// A test reported a result that was not collected.
    NotCollected {
        /// The test.
        id: String,
    },
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Foreign { line } => {
                write!(f, "line {line} of the report was not written by the runner of this run")
            }
            Self::Gap { line } => write!(f, "lines are missing before line {line} of the report"),
            Self::Malformed { line, problem } => write!(f, "line {line} of the report: {problem}"),
            Self::Duplicate { id } => write!(f, "{id:?} reported more than one result"),
            Self::NotCollected { id } => {
                write!(f, "{id:?} reported a result but was not collected")
            }
        }
    }
}

/// One line.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub(crate) enum Event {
    Start {
        version: u64,
        python: String,
        pytest: Option<String>,
        #[serde(default)]
        disobeyed: Vec<String>,
    },
    Collected {
        ids: Vec<String>,
    },
    Collect {
        id: String,
        outcome: CollectOutcome,
        reason: Option<String>,
        #[serde(default = "yes")]
        counted: bool,
    },
    Begin {
        id: String,
        description: Option<String>,
    },
    Phase {
        id: String,
        when: String,
        outcome: String,
        seconds: f64,
        #[serde(default)]
        xfail: bool,
        #[serde(default)]
        subtest: bool,
        reason: Option<String>,
    },
    End {
        id: String,
        seconds: Option<f64>,
    },
    Network {
        id: Option<String>,
        used: (u64, u64),
    },
    Finish {
        exit: i32,
        totals: Option<BTreeMap<String, u64>>,
        /// What it prints of them, where that is something else: a suite's own words, or the last of several runs.
        printed: Option<BTreeMap<String, u64>>,
    },
    Exit {
        exit: i32,
    },
}

fn yes() -> bool {
    true
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CollectOutcome {
    Error,
    Skipped,
}

/// Reads a stream that was written under `nonce`. Whatever the bytes are, what verifies is kept and what
/// does not is a [`Fault`]; only a stream of an unknown version is an error.
pub fn read_report(bytes: &[u8], nonce: &[u8]) -> Result<Report, Error> {
    let mut merger = Merger::default();
    let mut faults = Vec::new();
    let mut last_good = Vec::new();
    let mut before: Vec<u8> = Vec::new();
    let mut cut = false;
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let number = index as u64 + 1;
        let Some(line) = line.strip_suffix(b"\n") else {
            cut = true;
            break;
        };
        let Some((mac, body)) = split(line) else {
            faults.push(Fault::Foreign { line: number });
            before.clear();
            continue;
        };
        let verifies = |chained: &[u8]| hmac_hex(nonce, &[chained, body]).as_bytes() == mac;
        if !verifies(&last_good) {
            // A line that follows one we could not use still proves itself.
            if before != last_good && verifies(&before) {
                faults.push(Fault::Gap { line: number });
            } else {
                faults.push(Fault::Foreign { line: number });
                before = mac.to_vec();
                continue;
            }
        }
        last_good = mac.to_vec();
        before.clone_from(&last_good);
        match serde_json::from_slice::<Event>(body) {
            Ok(Event::Start { version, .. }) if !(1..=VERSION).contains(&version) => {
                return Err(Error::Version { expected: VERSION, actual: version });
            }
            Ok(event) => merger.take(event),
            Err(error) => {
                faults.push(Fault::Malformed { line: number, problem: error.to_string() });
            }
        }
    }
    let mut report = merger.finish();
    faults.append(&mut report.faults);
    report.faults = faults;
    report.cut = cut;
    Ok(report)
}

fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mac, rest) = line.split_at_checked(MAC)?;
    mac.iter().all(u8::is_ascii_hexdigit).then_some(())?;
    Some((mac, rest.strip_prefix(b" ")?))
}
