//! Debian's archive: the signed release file, the package indexes and the packages of a suite, from
//! the mirror, or as of a point in time from the snapshot service.
//!
//! Nothing is judged here: signatures and dates are the resolver's business.

use jiff::{SignedDuration, Timestamp};

use super::{Address, Client, Config, Error};
use crate::base::Digest;

/// An InRelease file has some hundred kilobytes.
const LARGEST_RELEASE: u64 = 16 * 1024 * 1024;

/// The clear-signed release file of a suite, as it is now or was at a point in time.
pub fn release(client: &Client, suite: &str, at: Option<Timestamp>) -> Result<Vec<u8>, Error> {
    let path = format!("dists/{suite}/InRelease");
    let root = match at {
        None => client.config().debian_mirror.address.clone(),
        Some(at) => snapshot(client.config(), at)?,
    };
    let address = below(&root, &path)?;
    Ok(client.get(&address, "*/*", LARGEST_RELEASE)?.bytes)
}

/// An index file that the release file lists, such as `main/binary-amd64/Packages.xz`: by its digest
/// from the mirror (which survives an update of the suite), then by its name, then from the snapshot service as of the release.
pub fn index(
    client: &Client,
    suite: &str,
    path: &str,
    sha256: Digest,
    size: u64,
    as_of: Timestamp,
) -> Result<Vec<u8>, Error> {
    let plain = format!("dists/{suite}/{path}");
    let by_hash = match plain.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/by-hash/SHA256/{}", sha256.hex()),
        None => plain.clone(),
    };
    let config = client.config();
    let mut candidates = vec![
        below(&config.debian_mirror.address, &by_hash)?,
        below(&config.debian_mirror.address, &plain)?,
    ];
    for root in snapshots(config, as_of)? {
        candidates.push(below(&root, &plain)?);
    }
    let capacity = usize::try_from(size.min(LARGEST_RELEASE)).unwrap_or_default();
    client.download(&candidates, &plain, sha256, Some(size), || Ok(Vec::with_capacity(capacity)))
}

/// The package index of main of a suite, xz-compressed.
pub fn packages(
    client: &Client,
    suite: &str,
    arch: crate::base::Arch,
    sha256: Digest,
    size: u64,
    as_of: Timestamp,
) -> Result<Vec<u8>, Error> {
    let path = format!("main/binary-{}/Packages.xz", arch.oci());
    index(client, suite, &path, sha256, size, as_of)
}

/// Where a file of the archive may be: on the mirror, else in the snapshot service.
pub fn candidates(config: &Config, path: &str, as_of: Timestamp) -> Result<Vec<Address>, Error> {
    let mut found = vec![below(&config.debian_mirror.address, path)?];
    for root in snapshots(config, as_of)? {
        found.push(below(&root, path)?);
    }
    Ok(found)
}

/// The service takes its pictures some hours after a release is dated, and gives the last one at or before the time asked for. So the
/// day after comes first: it holds the release itself, and superseded packages stay in the pool for longer than that.
fn snapshots(config: &Config, as_of: Timestamp) -> Result<Vec<Address>, Error> {
    let later = as_of.saturating_add(SignedDuration::from_hours(24)).unwrap_or(as_of);
    Ok(vec![snapshot(config, later)?, snapshot(config, as_of)?])
}

fn snapshot(config: &Config, at: Timestamp) -> Result<Address, Error> {
    below(&config.debian_snapshot.address, &at.strftime("%Y%m%dT%H%M%SZ").to_string())
}

fn below(root: &Address, path: &str) -> Result<Address, Error> {
    root.below(path).map_err(|reason| Error::Name { name: path.to_owned(), reason })
}
