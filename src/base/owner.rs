//! Who a leftover belongs to. A process is named by its id, its start time (ids are reused) and its PID
//! namespace (another container's ids mean nothing here).

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;

/// A process, dead or alive. As text: `<namespace>-<pid>-<start>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    namespace: u64,
    pid: u32,
    start: u64,
}

impl Owner {
    /// This process.
    pub fn own() -> io::Result<Self> {
        let pid = std::process::id();
        let start = start_time(pid)?;
        Ok(Self { namespace: namespace()?, pid, start })
    }

    /// Reads the text form, followed by a dash and anything.
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split('-');
        Some(Self {
            namespace: fields.next()?.parse().ok()?,
            pid: fields.next()?.parse().ok()?,
            start: fields.next()?.parse().ok()?,
        })
    }

    /// Whether it is known to be dead: never said of a process in another namespace.
    pub fn is_dead(self) -> bool {
        if namespace().ok() != Some(self.namespace) {
            return false;
        }
        match start_time(self.pid) {
            Ok(start) => start != self.start,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.namespace, self.pid, self.start)
    }
}

fn namespace() -> io::Result<u64> {
    Ok(fs_err::metadata("/proc/self/ns/pid")?.ino())
}

/// Field 22 of /proc/<pid>/stat: clock ticks since boot.
fn start_time(pid: u32) -> io::Result<u64> {
    let text = fs_err::read_to_string(format!("/proc/{pid}/stat"))?;
    // The command's name, in parentheses, may hold anything.
    let rest = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let field = rest.split(' ').nth(19).and_then(|field| field.parse().ok());
    field.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "an unreadable stat file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_living_are_not_dead() {
        let own = Owner::own().unwrap();
        assert!(!own.is_dead());
        assert_eq!(Owner::parse(&format!("{own}-17")), Some(own));
        assert!(Owner { start: own.start + 1, ..own }.is_dead());
        assert!(Owner { pid: u32::MAX, ..own }.is_dead());
        assert!(!Owner { namespace: 1, pid: u32::MAX, ..own }.is_dead());
        for bad in ["", "1-2", "a-b-c", "1-2-x"] {
            assert_eq!(Owner::parse(bad), None);
        }
    }
}
