//! Where locks lie below `lockfiles/`.

use std::path::{Path, PathBuf};

use crate::base::Arch;

/// The file name of a lock: `lock.<machine>.toml`.
pub fn file_name(arch: Arch) -> String {
    format!("lock.{}.toml", arch.machine())
}

/// The lock of a base image.
pub fn base_lock(lockfiles: &Path, base: &str, arch: Arch) -> PathBuf {
    lockfiles.join("_bases").join(base).join(file_name(arch))
}

/// The lock of what runs on a base use besides its image.
pub fn tools_lock(lockfiles: &Path, base: &str, arch: Arch) -> PathBuf {
    lockfiles.join("_bases").join(base).join(format!("tools.{}.toml", arch.machine()))
}

/// The folder of an environment's lock; `spec` is [`crate::spec::Spec::name`].
pub fn env_folder(lockfiles: &Path, spec: &str) -> PathBuf {
    lockfiles.join(spec)
}

/// The lock of an environment, without its Python packages.
pub fn env_lock(lockfiles: &Path, spec: &str, arch: Arch) -> PathBuf {
    env_folder(lockfiles, spec).join(file_name(arch))
}

/// The Python packages of an environment.
pub fn pylock(lockfiles: &Path, spec: &str) -> PathBuf {
    env_folder(lockfiles, spec).join("pylock.toml")
}
