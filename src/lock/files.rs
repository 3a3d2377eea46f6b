//! Every file that a lock names, for the bundle.

use jiff::Timestamp;

use super::model::{BaseLock, Deb, EnvLock, FileRef, LockedBlob, Origin, PythonPackage, ToolsLock};

/// The files of a base: its Debian packages, or config and layers of its image.
pub fn base_files(lock: &BaseLock) -> Vec<FileRef> {
    let mut files = deb_files(&lock.debs, lock.as_of);
    if let Some(image) = &lock.image {
        let file = |blob: &LockedBlob, ending: &str| FileRef {
            name: format!("{}.{ending}", blob.sha256.hex()),
            sha256: blob.sha256,
            size: blob.size,
            origin: Origin::Registry { repository: image.repository.clone() },
        };
        files.push(file(&image.config, "json"));
        files.extend(image.layers.iter().map(|layer| file(layer, "layer")));
    }
    files
}

/// The files of what runs on a base use besides its image.
pub fn tools_files(lock: &ToolsLock) -> Vec<FileRef> {
    deb_files(&lock.debs, lock.as_of)
}

/// Debian packages as of a time.
pub fn deb_files(debs: &[Deb], as_of: Timestamp) -> Vec<FileRef> {
    debs.iter().map(|deb| deb_file(deb, as_of)).collect()
}

/// The files of an environment: its Debian packages (as of its base's time), wheels, sdists and what builds
/// them; each once, sorted. Built wheels are made, not fetched.
pub fn env_files(lock: &EnvLock, base: &BaseLock) -> Vec<FileRef> {
    let debs = lock.debs.iter().map(|deb| deb_file(deb, base.as_of));
    let builders = lock.build_environments.iter().flat_map(|item| &item.packages);
    let mut files: Vec<FileRef> =
        debs.chain(lock.packages.iter().chain(builders).map(python_file)).collect();
    files.sort();
    files.dedup();
    files
}

fn deb_file(deb: &Deb, as_of: Timestamp) -> FileRef {
    FileRef {
        name: deb.file_name().to_owned(),
        sha256: deb.sha256,
        size: deb.size,
        origin: Origin::Debian { path: deb.path.clone(), as_of },
    }
}

fn python_file(package: &PythonPackage) -> FileRef {
    FileRef {
        name: package.file.name.clone(),
        sha256: package.file.sha256,
        size: package.file.size,
        origin: Origin::Pypi { project: package.name.clone() },
    }
}
