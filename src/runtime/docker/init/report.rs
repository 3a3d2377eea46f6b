//! What pid 1 of a container says at its end: a line each, a word and what it says.

/// What came of a run, as far as pid 1 knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Report {
    /// The error's number (0: none) and the step that failed before the command started.
    pub(crate) failed: Option<(i32, String)>,
    /// The command's raw wait status.
    pub(crate) status: Option<i32>,
    /// The command's wall time.
    pub(crate) nanoseconds: u64,
    /// Packets towards other machines, and name look-ups.
    pub(crate) attempts: Option<(u64, u64)>,
    /// How often the kernel killed for memory, in the container's cgroup.
    pub(crate) oom_kills: Option<u64>,
    /// Microseconds of all processors.
    pub(crate) cpu: Option<u64>,
    /// Bytes.
    pub(crate) peak_memory: Option<u64>,
    /// What was asked for and could not be had, by its name in records.
    pub(crate) gaps: Vec<String>,
}
