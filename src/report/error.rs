//! Why a report could not be made.

/// An error of this room. What a store lacks is no error: the report says so at its place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Below this room.
    #[error(transparent)]
    Base(#[from] crate::base::Error),
    /// A record was written by a newer hallmark.
    #[error(transparent)]
    Verify(#[from] crate::verify::Error),
    /// A file could not be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Error {
    /// The way out, where there is one.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Verify(error) => error.hint(),
            Self::Base(_) | Self::Io(_) => None,
        }
    }
}
