//! What hallmark knows of Debian's releases.

/// A suite that can be a base, and the Python it gives.
pub(super) struct Suite {
    /// Code name.
    pub(super) name: &'static str,
    /// `X.Y` of its `python3`.
    pub(super) python: &'static str,
}

/// Suites whose archive keys and bootstrap are known, oldest first.
pub(super) const SUITES: [Suite; 3] = [
    Suite { name: "bullseye", python: "3.9" },
    Suite { name: "bookworm", python: "3.11" },
    Suite { name: "trixie", python: "3.13" },
];

pub(super) fn python_of(suite: &str) -> Option<&'static str> {
    SUITES.iter().find(|known| known.name == suite).map(|known| known.python)
}

/// `bullseye has 3.9, bookworm has 3.11, ...`
pub(super) fn list() -> String {
    let all: Vec<_> =
        SUITES.iter().map(|suite| format!("{} has {}", suite.name, suite.python)).collect();
    all.join(", ")
}
