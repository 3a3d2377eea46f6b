//! How long and how often the client tries.

use std::time::Duration;

/// Time limits and retries. The default suits the public archives; tests shrink it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// To open a connection, TLS included.
    pub connect: Duration,
    /// From the request to the answer's head.
    pub answer: Duration,
    /// Between two pieces of a body.
    pub idle: Duration,
    /// Every span of this length must bring at least [`Patience::trickle`] bytes of a body: a server
    /// that sends one byte at a time never goes idle.
    pub window: Duration,
    /// See [`Patience::window`].
    pub trickle: u64,
    /// How often a request is sent in all, when only passing failures come back.
    pub tries: u32,
    /// The wait before the second try; doubled before each later one.
    pub first_wait: Duration,
    /// The longest such wait.
    pub longest_wait: Duration,
    /// The longest wait that a server may ask for with `Retry-After`.
    pub longest_retry_after: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            answer: Duration::from_mins(1),
            idle: Duration::from_secs(30),
            window: Duration::from_mins(1),
            trickle: 64 * 1024,
            tries: 5,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(8),
            longest_retry_after: Duration::from_mins(2),
        }
    }
}

impl Patience {
    /// The wait after failure number `failed` (from 1).
    pub(super) fn wait(&self, failed: u32) -> Duration {
        let factor = 1_u32.checked_shl(failed.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first_wait.saturating_mul(factor).min(self.longest_wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_cap() {
        let patience = Patience::default();
        let waits: Vec<_> = [1, 2, 3, 4, 5, 6, 60].map(|n| patience.wait(n).as_millis()).into();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 8000, 8000]);
    }
}
