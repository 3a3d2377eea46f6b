//! Which wheel of a release an interpreter would take: compatibility tags (PEP 425, 600, 656) ranked as the
//! `packaging` library ranks them. Linux with glibc, `CPython`.

use std::cmp::Reverse;

use super::{Interpreter, WheelName};
use crate::base::Arch;

/// What decides whether and how well a wheel fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Platform {
    python: u32,
    glibc: u32,
    arch: Arch,
}

/// Better is greater.
pub(super) type Rank = (u32, u32, u32, Reverse<(u64, String)>, Reverse<String>);

impl Platform {
    /// Of an interpreter of an image for `arch`. Only Python 3 and glibc 2 exist.
    pub(super) fn of(interpreter: &Interpreter, arch: Arch) -> Self {
        let glibc = interpreter.glibc.as_deref().and_then(|version| version.strip_prefix("2."));
        let glibc = glibc.and_then(|minor| minor.split('.').next()?.parse().ok()).unwrap_or(0);
        Self { python: interpreter.minor().1, glibc, arch }
    }

    /// How well the wheel called `file` fits; `None` if it does not.
    pub(super) fn rank(&self, file: &str) -> Option<Rank> {
        let name = WheelName::parse(file)?;
        let mut best = None;
        for python in &name.python {
            for abi in &name.abi {
                for platform in &name.platform {
                    best = best.max(self.rank_tag(python, abi, platform));
                }
            }
        }
        let (class, version, platform) = best?;
        let build = name.build.unwrap_or_default();
        let digits = build.find(|c: char| !c.is_ascii_digit()).unwrap_or(build.len());
        let number = build[..digits].parse().unwrap_or(0);
        // A higher build number is better, so it is turned twice.
        Some((
            class,
            version,
            platform,
            Reverse((u64::MAX - number, String::new())),
            Reverse(file.to_owned()),
        ))
    }

    /// Class of the Python and ABI tags, version of the Python tag, version of the platform.
    fn rank_tag(&self, python: &str, abi: &str, platform: &str) -> Option<(u32, u32, u32)> {
        let platform = self.rank_platform(platform)?;
        let is_any = platform == 0;
        let minor = |prefix: &str| -> Option<u32> {
            let digits = python.strip_prefix(prefix)?;
            if digits.is_empty() {
                return Some(0);
            }
            digits.parse().ok().filter(|minor| *minor <= self.python)
        };
        if let Some(version) = minor("cp3") {
            let exact = version == self.python;
            let own = format!("cp3{}", self.python);
            return match abi {
                _ if version == 0 => None,
                _ if exact && (abi == own || (self.python < 8 && abi == format!("{own}m"))) => {
                    Some((6, version, platform))
                }
                "abi3" if exact && !is_any => Some((5, version, platform)),
                "none" if exact => Some((if is_any { 1 } else { 4 }, version, platform)),
                // A stable ABI of an older Python: the newer, the better.
                "abi3" if version >= 2 && !is_any => Some((3, version, platform)),
                _ => None,
            };
        }
        let version = minor("py3")?;
        // `py3` ranks after this very version and before all older ones.
        let version = if python == "py3" { self.python * 2 - 1 } else { version * 2 };
        (abi == "none").then_some((if is_any { 0 } else { 2 }, version, platform))
    }

    fn rank_platform(&self, tag: &str) -> Option<u32> {
        if tag == "any" {
            return Some(0);
        }
        let rest = tag.strip_suffix(self.arch.machine())?.strip_suffix('_')?;
        let glibc = match rest {
            "linux" => return Some(1),
            "manylinux1" => 5,
            "manylinux2010" => 12,
            "manylinux2014" => 17,
            _ => rest.strip_prefix("manylinux_2_")?.parse().ok()?,
        };
        (glibc <= self.glibc).then_some(100 + glibc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Platform = Platform { python: 9, glibc: 31, arch: Arch::Amd64 };

    #[test]
    fn the_most_specific_wheel_wins() {
        // Each fits, and less well than the one before.
        let files = [
            "x-1-cp39-cp39-manylinux_2_28_x86_64.whl",
            "x-1-cp39-cp39-manylinux_2_5_x86_64.manylinux1_x86_64.whl",
            "x-1-cp39-cp39-linux_x86_64.whl",
            "x-1-cp39-abi3-manylinux2014_x86_64.whl",
            "x-1-cp39-none-manylinux2014_x86_64.whl",
            "x-1-cp37-abi3-manylinux2014_x86_64.whl",
            "x-1-cp36-abi3-manylinux2014_x86_64.whl",
            "x-1-py39-none-manylinux2014_x86_64.whl",
            "x-1-py3-none-manylinux2014_x86_64.whl",
            "x-1-py2.py3-none-manylinux1_x86_64.whl",
            "x-1-cp39-none-any.whl",
            "x-1-py39-none-any.whl",
            "x-1-2-py3-none-any.whl",
            "x-1-1-py3-none-any.whl",
            "x-1-py3-none-any.whl",
            "x-1-py38-none-any.whl",
        ];
        let ranks: Vec<_> = files.iter().map(|file| HOST.rank(file)).collect();
        for (pair, names) in ranks.windows(2).zip(files.windows(2)) {
            assert!(pair[0].is_some() && pair[1].is_some(), "{names:?}");
            assert!(pair[0] > pair[1], "{names:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for file in [
            "x-1-cp39-cp39-manylinux_2_34_x86_64.whl",
            "x-1-cp39-cp39-musllinux_1_1_x86_64.whl",
            "x-1-cp39-cp39-manylinux2014_aarch64.whl",
            "x-1-cp310-cp310-manylinux2014_x86_64.whl",
            "x-1-cp310-abi3-manylinux2014_x86_64.whl",
            "x-1-cp38-cp38-manylinux2014_x86_64.whl",
            "x-1-cp39-cp39m-manylinux2014_x86_64.whl",
            "x-1-cp39-cp39-win_amd64.whl",
            "x-1-pp39-pypy39_pp73-manylinux2014_x86_64.whl",
            "x-1-py2-none-any.whl",
            "x-1-py310-none-any.whl",
        ] {
            assert_eq!(HOST.rank(file), None, "{file}");
        }
    }
}
