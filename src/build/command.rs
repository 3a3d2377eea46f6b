//! Runs one command of a step and makes an error of what it said when it fails.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::Error;
use crate::runtime::{ExitStatus, Root, RunLog, RunSpec, Workbench};

/// How much of each stream an error shows.
const TAIL: u64 = 2000;

/// Runs `spec` over `root`; anything but exit 0 is an error that ends in the last lines of both streams.
pub(crate) fn run(
    bench: Workbench<'_>,
    step: &str,
    root: Root<'_>,
    spec: &RunSpec,
) -> Result<RunLog, Error> {
    let log = bench.runtime.run(root, spec, bench.cancel)?;
    if log.success() {
        return Ok(log);
    }
    let how = match log.status {
        _ if log.timed_out => format!("it ran longer than {} s", spec.limits.wall.as_secs()),
        _ if log.oom_killed => "it ran out of memory".to_owned(),
        _ if log.disk_full => "it wrote more than its disk limit".to_owned(),
        _ if log.output_full => "it printed more than its limit of output".to_owned(),
        ExitStatus::Exited(code) => format!("exit code {code}"),
        ExitStatus::Signaled(signal) => format!("killed by signal {signal}"),
    };
    let parts = [tail(&log.stdout), tail(&log.stderr)];
    let tail = parts.map(|part| part.trim_end().to_owned()).join("\n").trim_start().to_owned();
    if let Some(upper) = &log.upper {
        crate::image::remove_tree(upper)?;
    }
    Err(Error::Command { step: step.to_owned(), how, tail, log: None })
}

/// The end of a file, from the start of a line where it was cut.
fn tail(path: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = fs_err::File::open(path)?;
        let length = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        if length > TAIL
            && let Some(line) = bytes.iter().position(|byte| *byte == b'\n')
        {
            bytes.drain(..=line);
        }
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => format!("(its output cannot be read: {error})"),
    }
}
