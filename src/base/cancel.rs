//! One flag that asks everything to stop: Ctrl-C, a deadline, or a failure elsewhere.
//!
//! Long waits poll it at least every 50 ms; loops check it between items.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Error;

/// How often a pending wait looks whether the end was asked for.
const POLL: Duration = Duration::from_millis(50);

/// Shared by clones; once set it stays set.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks everything that holds a clone to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether the end was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// `Err(Cancelled)` once the end was asked for.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// The flag itself, for signal handlers.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// Waits for `work`, but no longer than until the end is asked for. Needs a tokio runtime with timers.
pub async fn until_cancelled<T>(
    cancel: &Cancel,
    work: impl Future<Output = T>,
) -> Result<T, Error> {
    let mut work = pin!(work);
    loop {
        match tokio::time::timeout(POLL, &mut work).await {
            Ok(value) => return Ok(value),
            Err(_) => cancel.check()?,
        }
    }
}
