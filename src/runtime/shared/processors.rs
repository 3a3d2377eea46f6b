//! Which processors a run is put on.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Spreads runs on few processors over those there are.
#[derive(Debug, Default)]
pub(crate) struct Processors(AtomicUsize);

impl Processors {
    /// The numbers of `count` processors, the next ones by each call; empty for all there are.
    pub(crate) fn next(&self, count: Option<u32>) -> Vec<usize> {
        let Some(count) = count.map(|count| usize::try_from(count).unwrap_or(usize::MAX)) else {
            return Vec::new();
        };
        let own = own_processors();
        if count == 0 || count > own.len() {
            return Vec::new();
        }
        let first = self.0.fetch_add(count, Ordering::Relaxed);
        let mut taken: Vec<usize> =
            (0..count).map(|offset| own[(first.wrapping_add(offset)) % own.len()]).collect();
        taken.sort_unstable();
        taken
    }

    /// Whether there are so many.
    pub(crate) fn has(count: Option<u32>) -> bool {
        count.is_none_or(|count| count as usize <= own_processors().len())
    }
}

/// The numbers of the processors that this process may be on.
fn own_processors() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|number| set.is_set(*number)).collect()
}
