//! Why an sdist is not unpacked.

/// An sdist that is not unpacked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SdistError {
    /// The file name has an ending that is not unpacked here.
    #[error("{name}: not a .tar.gz, .tgz, .tar.xz, .tar or .zip file")]
    Kind {
        /// The file.
        name: String,
    },
    /// The archive does not read.
    #[error("{name}: the archive does not read")]
    Unreadable {
        /// The file.
        name: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// An entry that must not be unpacked, or cannot be.
    #[error("{name}: entry `{entry}` {reason}")]
    Entry {
        /// The file.
        name: String,
        /// The path inside, escaped.
        entry: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The archive unpacks to more than an sdist of its size can hold.
    #[error("{name}: {packed} packed bytes unpack to more than {limit} bytes")]
    Bomb {
        /// The file.
        name: String,
        /// Its length.
        packed: u64,
        /// The limit.
        limit: u64,
    },
}
