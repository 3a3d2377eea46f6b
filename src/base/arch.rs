//! Processor architectures and their names.

use serde::{Deserialize, Serialize};

/// A processor architecture, by its OCI (Go) name.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// x86-64; Debian says `amd64` as well, Python and Linux `x86_64`.
    Amd64,
    /// 64-bit Arm; Debian says `arm64`, Python and Linux `aarch64`.
    Arm64,
}

impl Arch {
    /// The architecture this program was compiled for.
    pub const HOST: Self = if cfg!(target_arch = "aarch64") { Self::Arm64 } else { Self::Amd64 };

    /// The OCI and Debian name.
    pub fn oci(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// The name that Linux (`uname -m`) and Python platform tags use.
    pub fn machine(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64",
            Self::Arm64 => "aarch64",
        }
    }
}
