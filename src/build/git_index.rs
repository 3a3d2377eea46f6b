//! `.git/index` made not to depend on who unpacked the files (docs/decisions/0004).

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix_index::entry::stat::Time;
use gix_index::entry::{Mode, Stat};

use super::Error;
use super::inside::{file_inside, inside};

/// Rewrites the index of the work tree `work_tree` in the tree `root`: each entry's time is `date`, its size the file's,
/// and everything else that git would compare is zero.
///
/// The repository must say `core.checkStat = minimal` and `core.trustctime = false`, the files must get the time
/// `date`, and the index itself a later one (git trusts only entries older than the index).
pub(crate) fn normalise(root: &Path, work_tree: &str, date: i64) -> Result<(), Error> {
    let path = file_inside(root, &format!("{work_tree}/.git/index"))?;
    let invalid =
        |problem: String| Error::Invalid { what: path.display().to_string(), problem, hint: None };
    let seconds =
        u32::try_from(date).map_err(|_| invalid(format!("cannot hold the date {date}")))?;
    let mut index = gix_index::File::at(
        &path,
        gix_hash::Kind::Sha1,
        true,
        gix_index::decode::Options::default(),
    )
    .map_err(|error| invalid(format!("does not read: {error}")))?;
    // Only what git rebuilds by itself is dropped.
    index.remove_tree();
    index.remove_resolve_undo();
    for (entry, name) in index.entries_mut_with_paths() {
        let name = Path::new(work_tree).join(std::ffi::OsStr::from_bytes(name));
        let length = if entry.mode == Mode::COMMIT {
            // A folder, whose length is its filesystem's business.
            0
        } else {
            let file = inside(root, &name)?;
            let file = file.ok_or_else(|| invalid(format!("lists /{}", name.display())))?;
            fs_err::symlink_metadata(file)?.len()
        };
        entry.stat = Stat {
            mtime: Time { secs: seconds, nsecs: 0 },
            // Git keeps the low 32 bits (gitformat-index, "32-bit file size").
            size: u32::try_from(length & u64::from(u32::MAX)).expect("masked to 32 bits"),
            ..Stat::default()
        };
    }
    let options = gix_index::write::Options {
        extensions: gix_index::write::Extensions::None,
        skip_hash: false,
    };
    let mut bytes = Vec::new();
    index
        .write_to(&mut bytes, options)
        .map_err(|error| invalid(format!("cannot be written: {error}")))?;
    fs_err::write(&path, bytes)?;
    Ok(())
}
