//! What hallmark and the launcher say to each other over the launcher's standard input: one request
//! in, a few frames out. A frame is its length (four bytes, native order) and JSON; after the
//! request's JSON come the seccomp programs, raw.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::super::{Account, FolderCopy, Gap, Network};

/// More than any request needs; a longer one is garbage.
const LONGEST: u32 = 64 << 20;

/// Everything the launcher and pid 1 need to know.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    /// What becomes `/`.
    pub(super) root: RootRequest,
    /// The command.
    pub(super) argv: Vec<String>,
    /// `NAME=value`.
    pub(super) env: Vec<String>,
    pub(super) working_dir: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) hostname: String,
    /// Contents of the new namespace's `uid_map` and `gid_map`.
    pub(super) uid_map: String,
    pub(super) gid_map: String,
    /// Cgroups to join: v1 folders by writing to `tasks`, a v2 folder by being born there.
    pub(super) cgroups: Vec<PathBuf>,
    pub(super) cgroup2: Option<PathBuf>,
    pub(super) network: Network,
    /// What may make the black hole, where the network has one, the first choice first.
    pub(super) holes: Vec<Hole>,
    pub(super) account: Option<Account>,
    pub(super) copies: Vec<FolderCopy>,
    /// Most bytes of each copy; `None` for what the kernel gives.
    pub(super) copy_size: Option<u64>,
    pub(super) read_only: Vec<String>,
    pub(super) mounts: Vec<MountRequest>,
    /// Contents of /etc/hosts and /etc/resolv.conf.
    pub(super) hosts: String,
    pub(super) resolv_conf: String,
    /// Bytes of /dev/shm.
    pub(super) shm: u64,
    pub(super) open_files: Option<u64>,
    /// Numbers of the processors to be on; empty for all.
    pub(super) processors: Vec<usize>,
    /// Longest file.
    pub(super) file_size: Option<u64>,
    /// Removed by the launcher if hallmark dies first.
    pub(super) scratch: PathBuf,
    /// Lengths of the seccomp programs that follow, in the order they are installed.
    pub(super) filters: Vec<usize>,
}

/// What becomes `/`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum RootRequest {
    /// An overlay.
    Layers {
        /// Unpacked layers, bottom first.
        lowers: Vec<PathBuf>,
        upper: PathBuf,
        work: PathBuf,
        /// An empty folder to mount on.
        target: PathBuf,
        /// Whether to use mount(2) even where the kernel has `lowerdir+`.
        classic: bool,
    },
    /// The folder itself.
    Directory(PathBuf),
}

/// One extra mount.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MountRequest {
    pub(super) source: PathBuf,
    pub(super) target: String,
    pub(super) writable: bool,
    /// Whether the source is a folder.
    pub(super) folder: bool,
}

/// A kind of device that swallows packets.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hole {
    /// A TUN device.
    Tun,
    /// A veth pair.
    Veth,
}

/// What comes back.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Frame {
    /// The sandbox could not be made.
    Failed {
        /// A fragment after "cannot".
        doing: String,
        /// The system's error number, 0 where there is none.
        errno: i32,
    },
    /// The command ended.
    Ended {
        /// Raw wait status.
        status: i32,
        /// Wall time.
        nanoseconds: u64,
        /// Packets and look-ups; `None` without a counter.
        attempts: Option<(u64, u64)>,
        /// What was asked for and could not be had.
        gaps: Vec<Gap>,
        /// Files and folders made in a writable root to mount on, in the order they were made.
        made: Vec<String>,
    },
    /// Pid 1 and everything below it is gone.
    Reaped {
        /// User and system time of everything that was waited for.
        cpu_microseconds: u64,
    },
}

/// Writes one frame.
pub(super) fn send<T: Serialize>(out: &mut impl Write, value: &T) -> io::Result<()> {
    let json = serde_json::to_vec(value)?;
    let length = u32::try_from(json.len()).map_err(io::Error::other)?;
    let mut bytes = Vec::with_capacity(json.len() + 4);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(json);
    out.write_all(&bytes)
}

/// Reads one frame.
pub(super) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_ne_bytes(length);
    if length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too long"));
    }
    let mut json = vec![0; length as usize];
    from.read_exact(&mut json)?;
    Ok(serde_json::from_slice(&json)?)
}

/// Takes whole frames off the front of what has been read so far.
pub(super) fn take_frame<T: DeserializeOwned>(buffer: &mut Vec<u8>) -> io::Result<Option<T>> {
    let Some(length) = buffer.first_chunk::<4>() else { return Ok(None) };
    let end = 4 + u32::from_ne_bytes(*length) as usize;
    if buffer.len() < end {
        return Ok(None);
    }
    let value = serde_json::from_slice(&buffer[4..end])?;
    buffer.drain(..end);
    Ok(Some(value))
}

/// An error of the set-up: what was being done and the system's reason.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) doing: String,
    pub(super) source: io::Error,
}

impl Failure {
    /// As a frame.
    pub(super) fn frame(&self) -> Frame {
        let errno = self.source.raw_os_error().unwrap_or(0);
        let doing = if errno == 0 {
            format!("{} ({})", self.doing, self.source)
        } else {
            self.doing.clone()
        };
        Frame::Failed { doing, errno }
    }
}

/// Says what was being done when a call failed.
pub(super) trait During<T> {
    /// `doing` is a fragment after "cannot".
    fn during(self, doing: impl Into<String>) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> During<T> for Result<T, E> {
    fn during(self, doing: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|error| Failure { doing: doing.into(), source: error.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_off_whole() {
        let mut bytes = Vec::new();
        send(&mut bytes, &Frame::Reaped { cpu_microseconds: 7 }).unwrap();
        send(&mut bytes, &Frame::Failed { doing: "x".into(), errno: 2 }).unwrap();
        let all = bytes.clone();
        let mut buffer = Vec::new();
        let mut seen = Vec::new();
        for byte in all {
            buffer.push(byte);
            while let Some(frame) = take_frame::<Frame>(&mut buffer).unwrap() {
                seen.push(format!("{frame:?}"));
            }
        }
        assert_eq!(seen, ["Reaped { cpu_microseconds: 7 }", "Failed { doing: \"x\", errno: 2 }"]);
        assert!(buffer.is_empty());
    }
}
