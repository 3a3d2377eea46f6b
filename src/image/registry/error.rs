//! What can go wrong between a store and a registry.

use crate::base::{Digest, harmless};

/// An error of images in registries.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// From the room `base`.
    #[error(transparent)]
    Base(#[from] crate::base::Error),
    /// From the room `image`.
    #[error(transparent)]
    Image(#[from] crate::image::Error),
    /// From the room `net`.
    #[error(transparent)]
    Net(#[from] crate::net::Error),
    /// Two images of a set have one name.
    #[error("two images would be named {name}")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A name to push to that is no tag.
    #[error("{name} is not a name that an image can be given")]
    NoTag {
        /// The name.
        name: String,
    },
    /// Nothing has this name.
    #[error("{name} is not there")]
    NotThere {
        /// The name.
        name: String,
    },
    /// A tag stands for something else than it did.
    #[error("{name} has moved: expected {expected}, got {actual}")]
    Moved {
        /// The name, without its digest.
        name: String,
        /// The digest that was pinned.
        expected: Digest,
        /// What the tag stands for now.
        actual: Digest,
    },
    /// There is no image for this processor.
    #[error("{name} has no image for {expected}, only for {}", list(actual))]
    Platform {
        /// The name.
        name: String,
        /// The platform that is wanted.
        expected: String,
        /// Those that there are.
        actual: Vec<String>,
    },
    /// A name stands for images of other platforms as well, and would no more.
    #[error("{name} stands for images of other platforms, which would be lost: {}", list(lost))]
    Others {
        /// The name.
        name: String,
        /// Those platforms.
        lost: Vec<String>,
    },
    /// An image that is none to build upon.
    #[error("{name}: {}", harmless(problem))]
    Unfit {
        /// The image.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// A document that is not of the form that it should be.
    #[error("{name}: {}", harmless(problem))]
    Document {
        /// The image, or the file.
        name: String,
        /// What is wrong.
        problem: String,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { harmless(&names.join(", ")) }
}

impl Error {
    /// The way out, where there is one.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Net(error) => return error.hint(),
            Self::Image(error) => return error.hint().map(str::to_owned),
            Self::Base(_) => return None,
            Self::Duplicate { .. } => "write {id} in the name, and note that names are lower-case",
            Self::NoTag { .. } => "write `registry.example/repository:tag`, without a digest",
            Self::NotThere { .. } => {
                "look for a misspelt name; some registries forget what no tag names any more"
            }
            Self::Moved { actual, .. } => {
                return Some(format!(
                    "look at what changed, and if you want it write @{actual} instead, or leave the tag out"
                ));
            }
            Self::Platform { .. } => "choose an image that was made for this processor",
            Self::Others { .. } => "keep them with --index, or choose another name",
            Self::Unfit { .. } => {
                "choose another image, or make it anew: a base has 1 to 120 layers, and variables that a \
                 process can have"
            }
            Self::Document { .. } => "is this a container image in OCI's or Docker's present form?",
        };
        Some(text.to_owned())
    }
}
