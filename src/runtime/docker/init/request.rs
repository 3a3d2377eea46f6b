//! What hallmark asks of the container's pid 1. In the file it is a list of texts, each ended by a NUL, which none of
//! them can hold. Both sides are of one build, so there is no version.

/// Where the container finds what is meant for pid 1.
pub(crate) const FOLDER: &str = "/dev/hallmark";

/// The files that pid 1 is passed and passes back.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Request {
    /// Whether the folder mounted at `root` in [`FOLDER`] is to be `/`, instead of the image under a fresh upper dir.
    pub(crate) directory: bool,
    pub(crate) argv: Vec<String>,
    /// `name=value` each.
    pub(crate) env: Vec<String>,
    pub(crate) working_dir: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) hostname: String,
    pub(crate) network: Network,
    /// Name and home.
    pub(crate) account: Option<(String, String)>,
    pub(crate) copies: Vec<Copy>,
    /// Bytes that a copy may hold.
    pub(crate) copy_size: Option<u64>,
    pub(crate) read_only: Vec<String>,
    /// In order; the n-th is found at `m<n>` in [`FOLDER`].
    pub(crate) mounts: Vec<Mount>,
    pub(crate) hosts: String,
    pub(crate) resolv_conf: String,
    pub(crate) processors: Vec<usize>,
    /// Soft and hard limit of open files.
    pub(crate) open_files: (u64, u64),
    pub(crate) file_size: Option<u64>,
    /// Bytes of each seccomp program.
    pub(crate) filters: Vec<usize>,
    /// What pid 1 writes last to both streams, so that the end of what a daemon passes on is known to be theirs.
    pub(crate) mark: String,
}

/// What to make of the container's network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Network {
    /// Loopback and a black hole.
    #[default]
    BlackHole,
    /// The same without IPv6.
    BlackHoleV4,
    /// Loopback alone.
    Loopback,
    /// Nothing: it is the host's.
    Host,
}

/// A folder to be copied to memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Copy {
    pub(crate) path: String,
    /// Smallest name first, or largest.
    pub(crate) descending: Option<bool>,
    pub(crate) owner: Option<(u32, u32)>,
    pub(crate) in_place: Vec<String>,
}

/// A place to mount at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Mount {
    pub(crate) target: String,
    pub(crate) writable: bool,
    pub(crate) folder: bool,
}
