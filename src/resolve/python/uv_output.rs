//! The `pylock.toml` that uv writes (PEP 751), reduced to one file a package.

use jiff::Timestamp;
use serde::Deserialize;

use super::Error;
use super::normalize;
use super::tags::Platform;
use crate::base::Digest;
use crate::lock::{PythonFile, PythonPackage};

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Document {
    lock_version: String,
    #[serde(default)]
    packages: Vec<Package>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Package {
    name: String,
    version: Option<String>,
    #[serde(default)]
    wheels: Vec<File>,
    sdist: Option<File>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    name: Option<String>,
    url: Option<String>,
    upload_time: Option<toml::value::Datetime>,
    size: Option<u64>,
    hashes: Hashes,
}

#[derive(Deserialize)]
struct Hashes {
    sha256: Option<String>,
}

fn unreadable(what: impl Into<String>, problem: impl Into<String>) -> Error {
    Error::Unreadable { what: what.into(), problem: problem.into() }
}

/// The packages of a resolution, sorted by name: of each the wheel that fits best, else its sdist.
pub(super) fn parse(text: &str, platform: Platform) -> Result<Vec<PythonPackage>, Error> {
    let document: Document =
        toml::from_str(text).map_err(|error| unreadable("uv's answer", error.message()))?;
    if document.lock_version.split('.').next() != Some("1") {
        let problem = format!("it has the version {}, known is 1", document.lock_version);
        return Err(unreadable("uv's answer", problem));
    }
    let mut packages = Vec::new();
    for package in document.packages {
        packages.push(choose(package, platform)?);
    }
    packages.sort();
    if let Some(pair) = packages.windows(2).find(|pair| pair[0].name == pair[1].name) {
        return Err(unreadable("uv's answer", format!("`{}` is in it twice", pair[0].name)));
    }
    Ok(packages)
}

fn choose(package: Package, platform: Platform) -> Result<PythonPackage, Error> {
    let name = normalize(&package.name);
    let what = || format!("the package `{name}`");
    let version = package.version.ok_or_else(|| {
        unreadable(what(), "it has no version, so it does not come from an index")
    })?;
    let mut best = None;
    for wheel in package.wheels {
        let file = wheel.named().ok_or_else(|| unreadable(what(), "a wheel of it has no name"))?;
        if let Some(rank) = platform.rank(&file) {
            best = best.max(Some((rank, file)).map(|(rank, file)| Ranked { rank, file, wheel }));
        }
    }
    let (file_name, file) = match (best, package.sdist) {
        (Some(best), _) => (best.file, best.wheel),
        (None, Some(sdist)) => {
            let file = sdist.named().ok_or_else(|| unreadable(what(), "its sdist has no name"))?;
            (file, sdist)
        }
        (None, None) => {
            return Err(unreadable(what(), format!("no file of {version} fits this interpreter")));
        }
    };
    let sha256 = file.hashes.sha256.as_deref().and_then(|hex| Digest::from_hex(hex).ok());
    let sha256 = sha256
        .ok_or_else(|| unreadable(what(), format!("the index gives no sha256 of {file_name}")))?;
    let size = file
        .size
        .ok_or_else(|| unreadable(what(), format!("the index gives no size of {file_name}")))?;
    let upload_time = match file.upload_time {
        None => None,
        Some(time) => Some(time.to_string().parse::<Timestamp>().map_err(|error| {
            unreadable(what(), format!("the upload time of {file_name}: {error}"))
        })?),
    };
    let file = PythonFile { name: file_name, sha256, size, upload_time };
    Ok(PythonPackage { name, version, file })
}

struct Ranked {
    rank: super::tags::Rank,
    file: String,
    wheel: File,
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl File {
    /// Its name, or the last part of its address.
    fn named(&self) -> Option<String> {
        if let Some(name) = &self.name {
            return Some(name.clone());
        }
        let url = url::Url::parse(self.url.as_deref()?).ok()?;
        let last = url.path_segments()?.next_back()?;
        // `%2B` and the like, which stand in the versions of local builds.
        let mut bytes = Vec::new();
        let mut rest = last.as_bytes();
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            if byte == b'%'
                && let Some((code, after)) = tail.split_at_checked(2)
                && let Some(value) =
                    std::str::from_utf8(code).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok())
            {
                bytes.push(value);
                rest = after;
            } else {
                bytes.push(byte);
            }
        }
        String::from_utf8(bytes).ok().filter(|name| !name.is_empty() && !name.contains('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Arch;
    use crate::resolve::python::{Interpreter, Scheme};

    fn platform() -> Platform {
        let path = String::new;
        let scheme = Scheme {
            purelib: path(),
            platlib: path(),
            headers: path(),
            scripts: path(),
            data: path(),
            python: path(),
        };
        let interpreter = Interpreter {
            version: "3.11.2".to_owned(),
            magic: path(),
            binary: Digest::of(""),
            glibc: Some("2.36".to_owned()),
            scheme,
        };
        Platform::of(&interpreter, Arch::Amd64)
    }

    #[test]
    fn one_file_a_package_without_its_address() {
        let hash = Digest::of("x").hex();
        let file = |name: &str| {
            format!(
                "{{ url = \"https://f/{name}\", upload-time = 2022-02-11T18:47:58Z, size = 3, hashes = {{ sha256 = \"{hash}\" }} }}"
            )
        };
        let text = format!(
            "lock-version = \"1.0\"\n[[packages]]\nname = \"Zed\"\nversion = \"1+a\"\nsdist = {}\nwheels = [{}, {}]\n[[packages]]\nname = \"abc\"\nversion = \"2\"\nsdist = {}\n",
            file("zed-1.tar.gz"),
            file("zed-1%2Ba-py3-none-any.whl"),
            file("zed-1%2Ba-cp311-cp311-manylinux_2_17_x86_64.whl"),
            file("abc-2.tar.gz"),
        );
        let packages = parse(&text, platform()).unwrap();
        let names: Vec<_> = packages
            .iter()
            .map(|package| (package.name.as_str(), package.file.name.as_str()))
            .collect();
        assert_eq!(
            names,
            [("abc", "abc-2.tar.gz"), ("zed", "zed-1+a-cp311-cp311-manylinux_2_17_x86_64.whl")]
        );
        assert_eq!(packages[0].file.upload_time.unwrap().to_string(), "2022-02-11T18:47:58Z");

        let doubled = text.replace("name = \"Zed\"", "name = \"abc\"");
        assert_eq!(
            parse(&doubled, platform()).unwrap_err().to_string(),
            "uv's answer: `abc` is in it twice"
        );
        let newer = text.replace("\"1.0\"", "\"2.0\"");
        assert_eq!(
            parse(&newer, platform()).unwrap_err().to_string(),
            "uv's answer: it has the version 2.0, known is 1"
        );
        let unsized_file = text.replace("size = 3, ", "");
        assert!(
            parse(&unsized_file, platform()).unwrap_err().to_string().contains("gives no size")
        );
    }
}
