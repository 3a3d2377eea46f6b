//! The schedule of an instance's runs (DESIGN.md section 8), as a pure function of the policy and the records so far.

use super::policy::Policy;
use super::profile::Profile;
use super::record::{Phase, RunRecord};
use super::verdict::Lists;

/// A run that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunRequest {
    /// Which patches, or collection.
    pub phase: Phase,
    /// Under which conditions.
    pub profile: Profile,
    /// Number of the run among those of its phase and profile, from 0.
    pub repeat: u32,
    /// Whether nothing else may run on the machine.
    pub alone: bool,
}

impl RunRequest {
    /// Whether this record is what was asked for.
    pub fn is(&self, record: &RunRecord) -> bool {
        self.phase == record.phase
            && self.profile == record.profile
            && self.repeat == record.repeat
            && self.alone == record.alone
    }
}

/// The runs that are wanted now and of which no record is there, the most urgent first; they do not depend on each other
/// and may be made at once. Empty when the verdict needs no more.
///
/// `records` are those of one series. Their order does not matter.
pub fn wanted(policy: &Policy, _lists: &Lists, records: &[RunRecord]) -> Vec<RunRequest> {
    let plain = |phase, runs| {
        (0..runs).map(move |repeat| RunRequest {
            phase,
            profile: Profile::plain(),
            repeat,
            alone: false,
        })
    };
    plain(Phase::Pre, policy.pre_runs)
        .chain(plain(Phase::Post, policy.runs))
        .filter(|request| !records.iter().any(|record| request.is(record)))
        .collect()
}
