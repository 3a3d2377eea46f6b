//! Why something could not be locked.

use crate::base::Digest;

/// An error of this room.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Below this room.
    #[error(transparent)]
    Base(#[from] crate::base::Error),
    /// The network, or what a server said.
    #[error(transparent)]
    Net(#[from] crate::net::Error),
    /// An image of a registry.
    #[error(transparent)]
    Registry(#[from] crate::image::registry::Error),
    /// A base that names an image by a tag alone.
    #[error("{name} is a tag, which may stand for another image tomorrow")]
    NotPinned {
        /// The name as it was written.
        name: String,
        /// The same with the digest that it stands for today.
        pinned: String,
    },
    /// A container could not be had.
    #[error(transparent)]
    Runtime(#[from] crate::runtime::Error),
    /// A Release file is not signed by whom it must be.
    #[error("the InRelease file of {suite} is not to be trusted: {reason}")]
    Signature {
        /// The suite that was asked for.
        suite: String,
        /// What is wrong.
        reason: String,
    },
    /// A Release file or package index does not say what it must.
    #[error("{file} of {suite}: {problem}")]
    Archive {
        /// The suite that was asked for.
        suite: String,
        /// Which file of the archive.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// A Release file that is past its time.
    #[error("the Release file of {suite} was valid until {until}")]
    Expired {
        /// The suite.
        suite: String,
        /// Its own word.
        until: jiff::Timestamp,
    },
    /// The archive serves another file than the lock names.
    #[error("{file} of {suite}: expected {expected}, got {actual}")]
    Moved {
        /// The suite.
        suite: String,
        /// Which file of the archive.
        file: String,
        /// What the lock or the Release file says.
        expected: Digest,
        /// What came.
        actual: Digest,
    },
    /// A package that the suite does not have.
    #[error("{suite} has no package `{name}`")]
    NoPackage {
        /// The suite.
        suite: String,
        /// The name that was asked for.
        name: String,
        /// Names of the suite that are like it.
        similar: Vec<String>,
    },
    /// A base that has no Python, or several.
    #[error("expected one Python in {suite}, got {}", if found.is_empty() { "none".to_owned() } else { found.join(", ") })]
    Interpreters {
        /// The suite.
        suite: String,
        /// What there is.
        found: Vec<String>,
    },
    /// apt finds no plan, or one that changes the base.
    #[error("apt cannot add these packages to {suite}: {problem}")]
    Solver {
        /// The suite.
        suite: String,
        /// What apt says, or what is wrong with its plan.
        problem: String,
    },
    /// apt would choose other packages for a base than its lock has.
    #[error("the lock of {suite} is not what apt chooses: apt adds [{}], apt leaves out [{}]", missing.join(", "), extra.join(", "))]
    Closure {
        /// The suite.
        suite: String,
        /// What apt has and the lock has not.
        missing: Vec<String>,
        /// What the lock has and apt has not.
        extra: Vec<String>,
    },
    /// A dependency that nothing in the suite meets.
    #[error("nothing in {suite} meets `{clause}`, which {package} depends on")]
    Unmet {
        /// The suite.
        suite: String,
        /// Who depends.
        package: String,
        /// On what.
        clause: String,
    },
}

impl Error {
    /// The way out, where there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Net(error) => error.hint(),
            Self::Registry(error) => error.hint(),
            Self::NotPinned { pinned, .. } => {
                Some(format!("write what it stands for now: registry = \"{pinned}\""))
            }
            Self::Runtime(error) => error.hint().map(str::to_owned),
            Self::Signature { .. } => Some(
                "check the mirror (`HALLMARK_DEBIAN_MIRROR`); hallmark trusts only the archive keys of Debian that it ships"
                    .to_owned(),
            ),
            Self::Expired { .. } => {
                Some("the mirror is behind: use another one (`HALLMARK_DEBIAN_MIRROR`)".to_owned())
            }
            Self::Closure { .. } => Some(
                "name the package that apt takes in the base's definition, so that both choose it".to_owned(),
            ),
            Self::NoPackage { similar, .. } if !similar.is_empty() => {
                Some(format!("did you mean {}?", similar.join(" or ")))
            }
            _ => None,
        }
    }
}
