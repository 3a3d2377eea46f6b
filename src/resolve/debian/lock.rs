//! From a base's definition to its lock, over the network.

use std::io::Read as _;

use jiff::{SignedDuration, Timestamp};

use super::{Index, Keyring, Release, closure};
use crate::base::progress::Task;
use crate::base::{Arch, Cancel, Digest, SharedReporter, clock};
use crate::lock::BaseLock;
use crate::net;
use crate::resolve::Error;
use crate::spec::BaseDefinition;

/// Largest uncompressed index that is read: real ones have some 60 MB.
const LARGEST_INDEX: u64 = 1 << 30;

/// Locks a base image as its suite is now: the InRelease file is fetched and its signature checked against Debian's
/// archive keys, everything else hangs on its digests.
pub fn lock_base(
    client: &net::Client,
    definition: &BaseDefinition,
    arch: Arch,
    reporter: &SharedReporter,
    cancel: &Cancel,
) -> Result<BaseLock, Error> {
    lock_base_with(&Keyring::debian(), client, definition, arch, reporter, cancel)
}

/// [`lock_base`] for an archive that signs with other keys.
pub fn lock_base_with(
    keyring: &Keyring,
    client: &net::Client,
    definition: &BaseDefinition,
    arch: Arch,
    reporter: &SharedReporter,
    cancel: &Cancel,
) -> Result<BaseLock, Error> {
    let suite = &definition.suite;
    let task = Task::start(reporter, "lock", definition.name.clone(), None);
    let (mut lock, text) = suite_as_of_now(keyring, client, definition, arch, cancel)?;
    let index = Index::parse(suite, &text)?;
    lock.debs = closure(suite, &index, &definition.packages)?;
    lock.python = python_version(suite, lock.debs.iter().map(|deb| deb.name.as_str()))?;
    task.done_with(format!("{} packages as of {}", lock.debs.len(), lock.as_of));
    Ok(lock)
}

/// The lock of a base without any package: the suite's index as it is now, for what environments add.
pub(crate) fn lock_suite(
    client: &net::Client,
    definition: &BaseDefinition,
    arch: Arch,
    cancel: &Cancel,
) -> Result<BaseLock, Error> {
    let (lock, _) = suite_as_of_now(&Keyring::debian(), client, definition, arch, cancel)?;
    Ok(lock)
}

/// What a lock says of the suite, and the text of its index.
fn suite_as_of_now(
    keyring: &Keyring,
    client: &net::Client,
    definition: &BaseDefinition,
    arch: Arch,
    cancel: &Cancel,
) -> Result<(BaseLock, String), Error> {
    let suite = &definition.suite;
    let inrelease = net::debian::release(client, suite, None)?;
    cancel.check()?;
    let release = Release::parse(suite, &keyring.verify(suite, &inrelease)?)?;
    release.check_fresh(clock::now())?;
    let (index_digest, text) = fetch_index(client, &release, arch)?;
    cancel.check()?;
    let lock = BaseLock {
        base_hash: definition.hash()?,
        arch,
        suite: suite.clone(),
        as_of: release.date,
        inrelease: Digest::of(&inrelease),
        packages_index: index_digest,
        python: definition.python().unwrap_or_default().to_owned(),
        debs: Vec::new(),
        image: None,
    };
    Ok((lock, text))
}

/// The text of the index that a base was locked from: now if the suite has not moved, else from the snapshot
/// service. The lock's digests say whether it is the right one, so no signature is asked for again.
pub(super) fn fetch_locked_index(client: &net::Client, lock: &BaseLock) -> Result<String, Error> {
    let suite = &lock.suite;
    let mut inrelease = net::debian::release(client, suite, None)?;
    if Digest::of(&inrelease) != lock.inrelease {
        inrelease = past_release(client, lock)?;
    }
    let text = std::str::from_utf8(&inrelease).map_err(|_| Error::Archive {
        suite: suite.clone(),
        file: "InRelease".to_owned(),
        problem: "it is not text".to_owned(),
    })?;
    let release = Release::parse(suite, signed_part(text))?;
    let (actual, text) = fetch_index(client, &release, lock.arch)?;
    if actual != lock.packages_index {
        return Err(Error::Moved {
            suite: suite.clone(),
            file: "Packages".to_owned(),
            expected: lock.packages_index,
            actual,
        });
    }
    Ok(text)
}

/// The locked InRelease file from the snapshot service, which takes its pictures some hours after the date.
fn past_release(client: &net::Client, lock: &BaseLock) -> Result<Vec<u8>, Error> {
    let mut actual = None;
    for hours in [24, 0, 48] {
        let at: Timestamp =
            lock.as_of.saturating_add(SignedDuration::from_hours(hours)).unwrap_or(lock.as_of);
        let bytes = net::debian::release(client, &lock.suite, Some(at))?;
        let digest = Digest::of(&bytes);
        if digest == lock.inrelease {
            return Ok(bytes);
        }
        actual = Some(digest);
    }
    Err(Error::Moved {
        suite: lock.suite.clone(),
        file: "InRelease".to_owned(),
        expected: lock.inrelease,
        actual: actual.expect("the loop ran"),
    })
}

/// The part of a signed text between its headers and its signature. The whole file has the locked digest.
fn signed_part(text: &str) -> &str {
    let start = text.find("\n\n").map_or(0, |at| at + 2);
    let end = text.find("\n-----BEGIN PGP SIGNATURE-----").map_or(text.len(), |at| at + 1);
    text.get(start..end).unwrap_or_default()
}

/// Digest and text of the package index of main.
fn fetch_index(
    client: &net::Client,
    release: &Release,
    arch: Arch,
) -> Result<(Digest, String), Error> {
    let suite = &release.codename;
    let plain = format!("main/binary-{}/Packages", arch.oci());
    let (expected, size) = release.file(&plain)?;
    let (packed, packed_size) = release.file(&format!("{plain}.xz"))?;
    let packed = net::debian::packages(client, suite, arch, packed, packed_size, release.date)?;
    let problem = |problem: String| Error::Archive {
        suite: suite.clone(),
        file: format!("{plain}.xz"),
        problem,
    };
    if size > LARGEST_INDEX {
        return Err(problem(format!("it would have {size} bytes")));
    }
    let mut text = String::with_capacity(usize::try_from(size).unwrap_or_default());
    liblzma::read::XzDecoder::new_multi_decoder(&packed[..])
        .take(size + 1)
        .read_to_string(&mut text)
        .map_err(|error| problem(error.to_string()))?;
    let actual = Digest::of(&text);
    if actual != expected {
        return Err(Error::Moved { suite: suite.clone(), file: plain, expected, actual });
    }
    Ok((actual, text))
}

/// `X.Y` of the one interpreter among the packages.
fn python_version<'a>(suite: &str, names: impl Iterator<Item = &'a str>) -> Result<String, Error> {
    let found: Vec<&str> = names
        .filter_map(|name| name.strip_prefix("python"))
        .filter(|rest| {
            rest.strip_prefix("3.").is_some_and(|minor| {
                !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit())
            })
        })
        .collect();
    match found.as_slice() {
        [version] => Ok((*version).to_owned()),
        _ => Err(Error::Interpreters {
            suite: suite.to_owned(),
            found: found.iter().map(|version| format!("python{version}")).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_interpreter_is_asked_for() {
        let version = |names: &[&str]| python_version("x", names.iter().copied());
        assert_eq!(
            version(&["libpython3.11-stdlib", "python3", "python3.11", "python3.11-minimal"])
                .unwrap(),
            "3.11"
        );
        assert_eq!(
            version(&["git"]).unwrap_err().to_string(),
            "expected one Python in x, got none"
        );
        assert_eq!(
            version(&["python3.11", "python3.13"]).unwrap_err().to_string(),
            "expected one Python in x, got python3.11, python3.13"
        );
    }

    #[test]
    fn the_signed_part() {
        let text = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nOrigin: x\nDate: y\n\
            -----BEGIN PGP SIGNATURE-----\n\nabc\n-----END PGP SIGNATURE-----\n";
        assert_eq!(signed_part(text), "Origin: x\nDate: y\n");
        assert_eq!(signed_part("\n-----BEGIN PGP SIGNATURE-----\n\n"), "");
    }
}
