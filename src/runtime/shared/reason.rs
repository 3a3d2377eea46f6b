//! Why a run is killed.

use super::super::Limits;
use super::DiskWatch;
use crate::base::Cancel;
use crate::base::clock::Stopwatch;

/// Why a run is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Wall,
    Disk,
    Output,
    Cancelled,
}

impl Reason {
    /// The reason to kill a run now, if there is one. It runs since `clock` was started, and has printed `written` bytes.
    pub(crate) fn now(
        cancel: &Cancel,
        limits: &Limits,
        clock: &Stopwatch,
        written: u64,
        disk: Option<&mut DiskWatch>,
    ) -> Option<Self> {
        if cancel.is_cancelled() {
            return Some(Self::Cancelled);
        }
        if clock.elapsed() >= limits.wall {
            return Some(Self::Wall);
        }
        if limits.output.is_some_and(|limit| written > limit) {
            return Some(Self::Output);
        }
        disk?.is_over(written).then_some(Self::Disk)
    }
}
