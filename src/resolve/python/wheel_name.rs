//! Names of distributions and file names of wheels: `name-version(-build)?-python-abi-platform.whl`.

use super::normalize;

/// The parts of a wheel's file name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WheelName {
    /// Distribution name as written.
    pub name: String,
    /// Version as written.
    pub version: String,
    /// Build tag, where there is one.
    pub build: Option<String>,
    /// Python tags.
    pub python: Vec<String>,
    /// ABI tags.
    pub abi: Vec<String>,
    /// Platform tags.
    pub platform: Vec<String>,
}

impl WheelName {
    /// Reads a file name; `None` if it is not a wheel's.
    pub fn parse(file: &str) -> Option<Self> {
        let stem = file.strip_suffix(".whl")?;
        let parts: Vec<&str> = stem.split('-').collect();
        if parts.iter().any(|part| part.is_empty()) || file.contains('/') {
            return None;
        }
        let (head, tags) = parts.split_at_checked(parts.len().checked_sub(3)?)?;
        let (name, version, build) = match head {
            [name, version] => (*name, *version, None),
            [name, version, build] if build.starts_with(|c: char| c.is_ascii_digit()) => {
                (*name, *version, Some((*build).to_owned()))
            }
            _ => return None,
        };
        let split = |tag: &str| tag.split('.').map(str::to_owned).collect();
        Some(Self {
            name: name.to_owned(),
            version: version.to_owned(),
            build,
            python: split(tags[0]),
            abi: split(tags[1]),
            platform: split(tags[2]),
        })
    }
}

/// Whether two versions are written for the same release: wheel names escape `-`, and `+` parts may differ in
/// punctuation and case.
pub fn same_version(one: &str, other: &str) -> bool {
    normalize(one) == normalize(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_strictly() {
        let name = WheelName::parse(
            "MarkupSafe-2.0.1-cp39-cp39-manylinux_2_5_x86_64.manylinux1_x86_64.whl",
        );
        let name = name.unwrap();
        assert_eq!((name.name.as_str(), name.version.as_str()), ("MarkupSafe", "2.0.1"));
        assert_eq!(name.platform, ["manylinux_2_5_x86_64", "manylinux1_x86_64"]);
        assert_eq!(WheelName::parse("a-1-2b-py3-none-any.whl").unwrap().build.unwrap(), "2b");
        for bad in [
            "a-1-py3-none-any.zip",
            "a-1-py3-none.whl",
            "a-1-x-py3-none-any.whl",
            "a--py3-none-any.whl",
            "../a-1-py3-none-any.whl",
        ] {
            assert_eq!(WheelName::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn names_are_compared_normalised() {
        assert_eq!(normalize("Foo_.-bar"), "foo-bar");
        assert!(same_version("1.0+local.1", "1.0+local_1"));
        assert!(!same_version("1.0", "1.0.1"));
    }
}
