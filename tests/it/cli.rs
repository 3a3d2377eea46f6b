//! The command line, end to end, over the real binary: what it says, how it ends, what it leaves.
//!
//! Tests named `full_*` work on copies of a shared store (`support`), which needs root and, once, a network; without them they
//! say that they are skipped. The long one is run by
//!
//! ```sh
//! cargo test --test it -- --ignored --exact cli::kill_chain::kill_chain_of_fifty --nocapture
//! ```

mod context;
mod damage;
mod export;
mod help;
mod host;
mod input;
mod interrupt;
mod json;
mod kill_chain;
mod leftovers;
mod load;
mod registry;
mod steps;
