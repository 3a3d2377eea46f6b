//! The only place that reads a clock. Durations and log times come from here; nothing that is
//! hashed may depend on them.

use std::time::{Duration, Instant};

/// Measures elapsed wall time, monotonic.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the monotonic clock")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// The wall clock, for records that say when something happened.
pub fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}
