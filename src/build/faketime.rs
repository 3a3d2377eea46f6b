//! The library that moves a run's clock: libfaketime, from the locked package of the run's own suite, cut down to
//! what a moved clock needs.
//!
//! Kept are the functions that tell the time, and the semaphore's that waits until a time of day, which Python's locks
//! used before 3.11. Hidden are
//!
//! - condition variables: with them, those of Python 3.13's interpreter lock lose their signals, and threads that take
//!   turns run ten times slower. What waits at one until a time of day waits by the real clock;
//! - waits for a length of time, and until a time of the monotonic clock, which is the real one: 0.9.10 breaks
//!   `clock_nanosleep`, and with it `time.sleep` of Python 3.11 and later;
//! - stat and utime, which each version changes for other entry points of the C library: a file that a program
//!   wrote, touched or looked at would have three different times. So files keep the kernel's times;
//! - process ids and random numbers, which have nothing to do with it.
//!
//! Its shared memory, which would be seen in /dev/shm, serves settings that are not used here: the semaphore
//! gets a name that cannot be, and the library does without.

use std::path::PathBuf;

use serde_json::json;

use super::{Error, deb, elf};
use crate::base::progress::Task;
use crate::base::{Digest, canon};
use crate::lock::{Deb, ToolsLock};
use crate::runtime::Workbench;

/// Raise it whenever another library comes out.
const VERSION: u32 = 2;

/// The package.
const PACKAGE: &str = "libfaketime";

/// The variant for programs with threads.
const FILE: &str = "/faketime/libfaketimeMT.so.1";

const TELL: [&str; 12] = [
    "__clock_gettime",
    "__clock_gettime64",
    "__ftime",
    "__gettimeofday",
    "__gettimeofday64",
    "__time",
    "__time64",
    "clock_gettime",
    "ftime",
    "gettimeofday",
    "time",
    "timespec_get",
];

const WAIT: [&str; 1] = ["sem_timedwait"];

/// Without one of these it is no libfaketime that is known here.
const NEEDED: [&str; 4] = ["clock_gettime", "gettimeofday", "sem_timedwait", "time"];

/// The name of its semaphore, and one that sem_open(3) refuses.
const SEMAPHORE: (&[u8], &[u8]) = (b"/faketime_sem_%ld\0", b"/faketime/sem_%ld\0");

/// The library, in the store: a file to mount and to preload. Its package must have been fetched.
pub fn faketime(bench: Workbench<'_>, lock: &ToolsLock) -> Result<PathBuf, Error> {
    let deb = lock.debs.iter().find(|deb| deb.name == PACKAGE).ok_or_else(|| {
        invalid(
            format!("the tools of {}", lock.suite),
            format!("{PACKAGE} is not among them"),
            "write the lock again with `hallmark lock`",
        )
    })?;
    let key = canon::digest(&json!({ "step": "faketime", "version": VERSION, "deb": deb }))?;
    let _lock = bench.store.lock_step(&key, bench.cancel)?;
    let held = bench.store.step::<Digest>(&key).filter(|digest| bench.store.has_blob(digest));
    if let Some(digest) = held {
        return Ok(bench.store.blob_path(&digest));
    }
    let task = Task::start(bench.reporter, "tool", format!("{PACKAGE} {}", lock.suite), None);
    let digest = bench.store.put_blob(&cut_down(bench, deb)?)?;
    bench.store.put_step(&key, &digest)?;
    task.done();
    Ok(bench.store.blob_path(&digest))
}

fn cut_down(bench: Workbench<'_>, deb: &Deb) -> Result<Vec<u8>, Error> {
    let name = deb.file_name();
    let mut library = deb::file(name, bench.store.open_blob(&deb.sha256)?, FILE)?;
    adapt(&mut library).map_err(|problem| {
        invalid(
            name.to_owned(),
            problem,
            "this version of the library is not known yet: report it, and keep to another",
        )
    })?;
    Ok(library)
}

fn adapt(library: &mut [u8]) -> Result<(), String> {
    let kept: Vec<&str> = TELL.into_iter().chain(WAIT).collect();
    let found = elf::hide_functions(library, &kept)?;
    for name in NEEDED {
        if !found.iter().any(|found| found == name) {
            return Err(format!("the library has no function {name}"));
        }
    }
    let (name, refused) = SEMAPHORE;
    let places: Vec<usize> = library
        .windows(name.len())
        .enumerate()
        .filter_map(|(at, window)| (window == name).then_some(at))
        .collect();
    match places.as_slice() {
        [at] => library[*at..*at + refused.len()].copy_from_slice(refused),
        _ => return Err(format!("its semaphore is named {} times", places.len())),
    }
    Ok(())
}

fn invalid(what: String, problem: String, hint: &str) -> Error {
    Error::Invalid { what, problem, hint: Some(hint.to_owned()) }
}
