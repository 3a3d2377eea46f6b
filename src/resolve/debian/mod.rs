//! Debian: from a suite's signed InRelease file to the exact packages of a base image.
//!
//! The base's own closure comes from a simple rule (see `closure`), since no apt runs before a base
//! exists; what goes on top is solved by apt itself, in the finished base, against the pinned index.

mod closure;
mod index;
mod keyring;
mod lock;
mod packages;
mod release;
mod tools;

pub use closure::{closure, closure_of};
pub use index::{Clause, Index, Package};
pub use keyring::Keyring;
pub(super) use lock::lock_suite;
pub use lock::{lock_base, lock_base_with};
pub use packages::{check_closure, lock_packages, locked_index};
pub use release::Release;
pub use tools::lock_tools;
