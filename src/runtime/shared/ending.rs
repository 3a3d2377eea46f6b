//! How a run is ended whose limit is reached: pid 1 is sent a SIGTERM, kills everything else and reports what the run has cost.

use std::io::Read;
use std::time::Duration;

/// How long pid 1 may take for that, before it is killed itself.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

const TERM: u32 = 15;

/// Size of a `signalfd_siginfo`.
const RECORD: usize = 128;

/// Takes what a signalfd(2) has: whether the end is wanted. That a child has changed is seen by whoever looks for it.
pub(crate) fn is_wanted(mut signals: impl Read) -> bool {
    let mut record = [0; RECORD];
    let mut wanted = false;
    while let Ok(RECORD) = signals.read(&mut record) {
        wanted |= is_from_outside(&record);
    }
    wanted
}

/// Whether it is a SIGTERM from outside of the namespace, by kill(2) or its like: the sender has no number in here. The command may
/// send some, too, and means nothing by it.
fn is_from_outside(record: &[u8; RECORD]) -> bool {
    let field = |at: usize| {
        let bytes = record[at..].first_chunk::<4>().expect("the record is longer");
        u32::from_ne_bytes(*bytes)
    };
    // ssi_signo, ssi_code (SI_USER), ssi_pid.
    (field(0), field(8), field(12)) == (TERM, 0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(signal: u32, code: u32, sender: u32) -> [u8; RECORD] {
        let mut record = [0; RECORD];
        for (at, value) in [(0, signal), (8, code), (12, sender)] {
            record[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        record
    }

    #[test]
    fn only_who_is_outside_ends_a_run() {
        let wanted = record(15, 0, 0);
        // A process of the run, by kill(2), and by rt_sigqueueinfo(2), where the sender writes what it likes.
        let (own, queued, child) = (record(15, 0, 7), record(15, u32::MAX, 0), record(17, 0, 0));
        assert!(!is_wanted(&[own, queued, child].concat()[..]));
        assert!(is_wanted(&[child, wanted, own].concat()[..]));
        assert!(!is_wanted(&wanted[..100]), "half a record");
    }
}
