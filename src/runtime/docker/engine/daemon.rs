//! What a daemon is: product, version, the API to speak with it, and how it keeps images.

use std::fmt;
use std::str::FromStr;

use bollard::models::{SystemInfo, SystemVersion};

/// A version of Docker's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiVersion(u32, u32);

impl ApiVersion {
    /// Docker Engine 20.10 and Podman 4: the oldest that is enough, and is tested.
    pub const OLDEST: Self = Self(1, 41);

    /// The newest that is spoken: the API client's own.
    pub(super) fn newest() -> Self {
        let version = bollard::API_DEFAULT_VERSION;
        let number = |part: usize| u32::try_from(part).expect("versions are small");
        Self(number(version.major_version), number(version.minor_version))
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl FromStr for ApiVersion {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.split_once('.').ok_or(())?;
        Ok(Self(major.parse().map_err(|_| ())?, minor.parse().map_err(|_| ())?))
    }
}

/// Whose daemon it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    /// Docker Engine.
    Docker,
    /// Podman's compatible service.
    Podman,
}

impl Product {
    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Docker => "Docker",
            Self::Podman => "Podman",
        }
    }
}

/// What a daemon told of itself when the connection was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Daemon {
    /// Whose it is.
    pub product: Product,
    /// The product's version.
    pub version: String,
    /// The API that is spoken with it.
    pub api: ApiVersion,
    /// Whether images are kept in containerd's store, not in Docker's own.
    pub containerd_images: bool,
}

impl Daemon {
    /// From the daemon's answers.
    pub(super) fn new(version: &SystemVersion, info: &SystemInfo, api: ApiVersion) -> Self {
        // Docker Engine with containerd's store lists ["driver-type", "io.containerd.snapshotter.v1"].
        let containerd_images = info
            .driver_status
            .iter()
            .flatten()
            .flatten()
            .any(|text| text.starts_with("io.containerd.snapshotter"));
        Self {
            product: product(version),
            version: version.version.clone().unwrap_or_default(),
            api,
            containerd_images,
        }
    }
}

impl fmt::Display for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} (API {})", self.product.name(), self.version, self.api)
    }
}

/// Podman calls the first component of its answer "Podman Engine".
pub(super) fn product(version: &SystemVersion) -> Product {
    let podman = version.components.iter().flatten().any(|part| part.name.starts_with("Podman"));
    if podman { Product::Podman } else { Product::Docker }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        let version = |text: &str| text.parse::<ApiVersion>().unwrap();
        assert!(version("1.9") < version("1.41") && version("1.41") < version("2.0"));
        assert_eq!(version("1.41").to_string(), "1.41");
        for bad in ["", "1", "1.x", "1.2.3", "-1.0"] {
            assert_eq!(bad.parse::<ApiVersion>(), Err(()), "{bad}");
        }
        assert!(ApiVersion::newest() > ApiVersion::OLDEST);
    }
}
