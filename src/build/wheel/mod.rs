//! Wheels, installed by us (the wheel specification, PEP 427 and 491): what a wheel becomes depends on its bytes and
//! on the scheme of paths, on nothing else. No time, user, umask or order of work can show.
//!
//! Ambiguities are decided here, once:
//! - `RECORD` must list every file with a sha256 (or stronger) and the right size, and nothing else. A wheel that lies is
//!   refused; its sdist can be built instead.
//! - Compiled files below `__pycache__` are left out when their source is in the wheel: one made elsewhere could run other code than
//!   the source shows. Ours are made later.
//! - A script of `.data/scripts` with the name of an entry point loses against it, as with pip.
//! - `INSTALLER`, `REQUESTED` and `direct_url.json` are not written.

mod record;
mod scripts;
mod unpack;

pub use unpack::{Installed, unpack};
