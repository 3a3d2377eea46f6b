//! Exit codes: a documented part of the interface.

/// All went well.
pub const OK: u8 = 0;
/// A check said no: a verdict is not what was asked for, an audit found a difference.
pub const CHECK_FAILED: u8 = 1;
/// The command line cannot be understood (clap's own code).
pub const USAGE: u8 = 2;
/// An input file is wrong: a spec, a split, a lock, a manifest, a bundle.
pub const BAD_INPUT: u8 = 3;
/// A build step failed.
pub const BUILD_FAILED: u8 = 4;
/// Something could not be fetched, or hallmark is offline and it is not here.
pub const FETCH_FAILED: u8 = 5;
/// The host cannot give what is needed: no user namespaces, disk full, store not writable.
pub const HOST: u8 = 6;
/// A container daemon cannot be reached, failed in the middle, or refused.
pub const DAEMON: u8 = 7;
/// Hallmark's own fault, or an unexpected failure of the system.
pub const INTERNAL: u8 = 70;
/// Interrupted by Ctrl-C; the same command goes on where it stopped.
pub const INTERRUPTED: u8 = 130;

/// The table that `hallmark --help` ends with.
pub(crate) const TABLE: &str = "\
Exit codes:
    0  all went well
    1  a check said no: verdict, audit, committed digests
    2  the command line cannot be understood
    3  an input file is wrong
    4  a build step failed
    5  something could not be fetched, or hallmark is offline and it is not here
    6  the host cannot give what is needed (see `hallmark doctor`)
    7  a container daemon cannot be reached, failed in the middle, or refused
   70  a fault of hallmark itself
  130  interrupted; the same command goes on where it stopped";
