//! User and group id maps. A container's namespace maps each id below 65,536 that hallmark itself
//! has to itself: chown to any of them works, and what it may do is confined to what they own.

use std::io;

/// Ids from here up are never mapped: 65,536 is what subuid ranges give, and root and rootless
/// runs must not differ.
const IDS: u64 = 65_536;

/// The identity map of all ids below 65,536 that `own_map` (the text of /proc/self/uid_map) has.
pub(super) fn identity(own_map: &str) -> String {
    let line = |(start, count): (u64, u64)| {
        let end = (start + count).min(IDS);
        (start < end).then(|| format!("{start} {start} {}\n", end - start))
    };
    ranges(own_map).filter_map(line).collect()
}

/// How many ids below 65,536 are mapped.
pub(super) fn count(own_map: &str) -> u64 {
    ranges(own_map).map(|(start, count)| (start + count).min(IDS).saturating_sub(start)).sum()
}

fn ranges(map: &str) -> impl Iterator<Item = (u64, u64)> {
    map.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().map(str::parse::<u64>);
        let (Some(Ok(inside)), Some(Ok(_)), Some(Ok(count))) =
            (fields.next(), fields.next(), fields.next())
        else {
            return None;
        };
        Some((inside, count))
    })
}

/// The identity maps of uids and gids for a child of this process.
pub(super) fn own() -> io::Result<(String, String)> {
    Ok((
        identity(&fs_err::read_to_string("/proc/self/uid_map")?),
        identity(&fs_err::read_to_string("/proc/self/gid_map")?),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_is_mapped_below_65536() {
        for (own, expected, ids) in [
            ("         0          0 4294967295\n", "0 0 65536\n", 65_536),
            ("0 1000 1\n1 100000 65536\n", "0 0 1\n1 1 65535\n", 65_536),
            ("0 1000 1\n", "0 0 1\n", 1),
            ("70000 70000 5\n", "", 0),
            ("", "", 0),
        ] {
            assert_eq!(identity(own), expected);
            assert_eq!(count(own), ids);
        }
    }
}
