//! What expensive tests share: stores that are filled once and kept between test runs.
//!
//! ```text
//! <target>/tmp/shared/         or where HALLMARK_TEST_STORE says
//!   <name>.lock                held while that is made
//!   bases/store/               the .debs and layers of base images; <name>.json says which image
//!   full/store/                a base, two environments and instances, and all of their runs
//!   full/manifest.json         what they gave
//!   full/bundle-2              the packed bundle of the two
//!   python-root-1/             this host's Python with pytest, as a root folder
//!   pytest-8.3.5/              pytest for this host's Python
//!   venvs/<name>/              programs from PyPI, by the lists in tests/fixtures/interop
//! ```
//!
//! Tests never work in these stores: they take a copy that shares the files.

mod dockerd;
mod full;
pub(crate) mod registry;
mod stores;
mod venv;

pub(crate) use dockerd::Dockerd;
pub(crate) use full::{Full, INSTANCES};
pub(crate) use stores::{copy, copy_store, shared_folder, shared_lock};
pub(crate) use venv::Venv;

/// Says that a test was skipped, and why.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn say_skipped(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// Says what was measured, for those who look (`--nocapture`).
#[expect(clippy::print_stderr, reason = "a long test says how far it is")]
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}

/// Whether a program is installed.
pub(crate) fn installed(program: &str) -> bool {
    std::process::Command::new(program).arg("--version").output().is_ok()
}

/// Whether this is root, and outside of any user namespace.
pub(crate) fn is_real_root() -> bool {
    rustix::process::geteuid().is_root()
        && fs_err::read_to_string("/proc/self/uid_map")
            .is_ok_and(|map| map.split_whitespace().eq(["0", "0", "4294967295"]))
}
