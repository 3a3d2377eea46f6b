//! Ctrl-C and SIGTERM: the first asks for a clean stop, the second ends the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;

use super::exit;
use crate::base::Cancel;

/// Sets `cancel` on the first signal.
pub(crate) fn install(cancel: &Cancel) -> anyhow::Result<()> {
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let again: Arc<AtomicBool> = cancel.flag();
        // Order matters: the second signal finds the flag set by the first.
        signal_hook::flag::register_conditional_shutdown(
            signal,
            i32::from(exit::INTERRUPTED),
            Arc::clone(&again),
        )
        .and_then(|_| signal_hook::flag::register(signal, again))
        .context("cannot watch for signals")?;
    }
    debug_assert!(!cancel.flag().load(Ordering::SeqCst), "nothing has asked for the end yet");
    Ok(())
}
