//! What a spec is for: repository, version, base, Python and setup source.

use std::path::Path;

use super::{Checks, short};
use crate::base::Digest;
use crate::spec::inherit::SpecFile;
use crate::spec::model::Setup;
use crate::spec::names::{is_file_name, normalize_package_name};
use crate::spec::raw::RawSetup;
use crate::spec::reader::{Located, Place, Reader};
use crate::spec::suite;

impl Checks<'_, '_> {
    pub(in crate::spec) fn repo(
        &mut self,
        file: &SpecFile,
        repo: Option<&Located<String>>,
    ) -> Option<String> {
        let folder = file.path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        let Some(Located { value, place }) = repo else {
            let example = folder
                .and_then(|name| name.split_once("__"))
                .map_or("owner/name".to_owned(), |(owner, name)| format!("{owner}/{name}"));
            self.reader.missing(
                &Reader::start_of(0),
                "repo",
                format!("write `repo = {example:?}`"),
            );
            return None;
        };
        let parts: Vec<&str> = value.split('/').collect();
        if parts.len() != 2 || !parts.iter().all(|part| is_file_name(part)) {
            let message = format!("{value:?} is not a repository");
            self.reader.fault(
                place,
                message,
                "write `owner/name`, or `pypi/package` for release pairs",
            );
            return None;
        }
        if parts[0] == "pypi" && normalize_package_name(parts[1]) != parts[1] {
            let hint = format!("write \"pypi/{}\"", normalize_package_name(parts[1]));
            self.reader.fault(place, "the package's name is not in its normal form", hint);
        }
        let expected = value.replace('/', "__");
        if folder.is_some_and(|folder| folder != expected) {
            let message =
                format!("the spec of {value} is in the folder {:?}", folder.unwrap_or_default());
            self.reader.fault(place, message, format!("move it to {expected}/, or mend `repo`"));
        }
        Some(value.clone())
    }

    pub(in crate::spec) fn version(
        &mut self,
        file: &SpecFile,
        version: Option<&Located<String>>,
    ) -> Option<String> {
        let stem = file.file_name().strip_suffix(".toml").unwrap_or(file.file_name());
        let Some(Located { value, place }) = version else {
            self.reader.missing(
                &Reader::start_of(0),
                "version",
                format!("write `version = {stem:?}`"),
            );
            return None;
        };
        if !is_file_name(value) {
            let hint =
                "use letters, digits, `.`, `_`, `-`, `+` and `!`, starting with a letter or digit";
            self.reader.fault(
                place,
                format!("{value:?} cannot be a version: it names a file"),
                hint,
            );
            return None;
        }
        if value != stem {
            let message =
                format!("the spec of version {value} is in the file {:?}", file.file_name());
            self.reader.fault(
                place,
                message,
                format!("rename it to {value}.toml, or mend `version`"),
            );
        }
        Some(value.clone())
    }

    pub(in crate::spec) fn base(&mut self, base: Option<&Located<String>>) -> Option<String> {
        let Some(Located { value, place }) = base else {
            let hint = "name a base image, defined by images/<base>.toml: `base = \"bookworm\"`";
            self.reader.missing(&Reader::start_of(0), "base", hint);
            return None;
        };
        if value.contains([':', '/', '@']) {
            let name = value.split([':', '@']).next().unwrap_or_default();
            let name = name.rsplit('/').next().unwrap_or_default();
            let message = if value.contains('@') {
                format!("{value:?} is an image reference, not the name of a base")
            } else {
                format!("{value:?} names an image by a tag, which can move")
            };
            let hint = format!(
                "write `base = {name:?}` and define images/{name}.toml, whose lock holds digests"
            );
            self.reader.fault(place, message, hint);
            return None;
        }
        if !is_file_name(value) {
            let hint = "write the stem of a file images/<base>.toml, such as \"bookworm\"";
            self.reader.fault(place, format!("{value:?} cannot be a base"), hint);
            return None;
        }
        Some(value.clone())
    }

    pub(in crate::spec) fn python(
        &mut self,
        python: Option<&Located<String>>,
        base: Option<&Located<String>>,
    ) -> Option<String> {
        let given = base.and_then(|base| suite::python_of(&base.value));
        let Some(Located { value, place }) = python else {
            let hint = match (given, base) {
                (Some(given), Some(base)) => {
                    format!(
                        "there is no default: the base {} gives Python {given}, so write `python = {given:?}`",
                        base.value
                    )
                }
                _ => format!(
                    "there is no default: write the Python of the base, `python = \"X.Y\"`; {}",
                    suite::list()
                ),
            };
            let place = base.map_or(Reader::start_of(0), |base| base.place.clone());
            self.reader.missing(&place, "python", hint);
            return None;
        };
        let digits = |part: &str| {
            (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        let parts: Vec<&str> = value.split('.').collect();
        if parts.len() != 2 || !parts.iter().all(|part| digits(part)) {
            let hint = match parts.as_slice() {
                [major, minor, ..] if digits(major) && digits(minor) => {
                    format!("write \"{major}.{minor}\"; the lock holds the exact release")
                }
                _ => format!("write \"X.Y\": {}", suite::list()),
            };
            self.reader.fault(place, format!("{value:?} is not a Python version X.Y"), hint);
            return None;
        }
        if let (Some(given), Some(base)) = (given, base)
            && given != value
        {
            let message = format!("the base {} gives Python {given}, not {value}", base.value);
            self.reader.fault(place, message, format!("choose another base ({})", suite::list()));
        }
        Some(value.clone())
    }

    pub(in crate::spec) fn setup(
        &mut self,
        setup: Option<&Located<RawSetup>>,
        repo: Option<&str>,
        version: Option<&str>,
    ) -> Option<Setup> {
        const HINT: &str = "write `commit`, or for a release pair `sdist`, `sha256` and `size`";
        let Some(Located { value: raw, place }) = setup else {
            self.reader.missing(&Reader::start_of(0), "setup", HINT);
            return None;
        };
        // `None`: not known; `Some(None)`: not a package.
        let package = repo.map(|repo| repo.strip_prefix("pypi/"));
        match (&raw.commit, &raw.sdist) {
            (None, None) => {
                if !self.reader.is_broken("setup.sdist") {
                    self.reader.missing(place, "setup.commit", HINT);
                }
                None
            }
            (Some(_), Some(sdist)) => {
                let message = "a setup is a commit or an sdist, not both";
                self.reader.fault(&sdist.place, message, "remove one of the two");
                None
            }
            (Some(commit), None) => {
                let message = "a release pair is set up from its base sdist, not from a commit";
                if package.flatten().is_some() {
                    self.reader.fault(&commit.place, message, "write `sdist`, `sha256` and `size`");
                }
                let stray =
                    [raw.sha256.as_ref().map(|x| &x.place), raw.size.as_ref().map(|x| &x.place)];
                for place in stray.into_iter().flatten() {
                    self.reader.fault(
                        place,
                        "this belongs to an sdist, not to a commit",
                        "remove it",
                    );
                }
                self.commit(commit)
            }
            (None, Some(sdist)) => {
                if package == Some(None) {
                    let message = "only a repository `pypi/<package>` is set up from an sdist";
                    self.reader.fault(&sdist.place, message, "write `commit`");
                }
                self.sdist_name(sdist, package.flatten(), version);
                let sha256 = self.sha256(place, raw.sha256.as_ref());
                if raw.size.is_none() {
                    let hint = "write the file's length in bytes";
                    self.reader.missing(place, "setup.size", hint);
                }
                let size = raw.size.as_ref()?.value.0;
                Some(Setup::Sdist { file: sdist.value.clone(), sha256: sha256?, size })
            }
        }
    }

    fn commit(&mut self, commit: &Located<String>) -> Option<Setup> {
        let Located { value, place } = commit;
        let hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if value.len() == 40 && value.bytes().all(hex) {
            return Some(Setup::Commit { commit: value.clone() });
        }
        let hint = "write all 40 lower-case hex digits: branches and tags move";
        self.reader.fault(place, format!("{} is not a commit", short(value)), hint);
        None
    }

    fn sha256(&mut self, table: &Place, sha256: Option<&Located<String>>) -> Option<Digest> {
        let Some(Located { value, place }) = sha256 else {
            let hint = "write the 64 hex digits that PyPI shows for the file";
            self.reader.missing(table, "setup.sha256", hint);
            return None;
        };
        let digest = Digest::from_hex(value).ok();
        if digest.is_none() {
            let hint = "write 64 lower-case hex digits, without `sha256:`";
            self.reader.fault(place, "this is not a SHA-256", hint);
        }
        digest
    }

    fn sdist_name(
        &mut self,
        sdist: &Located<String>,
        package: Option<&str>,
        version: Option<&str>,
    ) {
        let Located { value, place } = sdist;
        let stem = value.strip_suffix(".tar.gz").or_else(|| value.strip_suffix(".zip"));
        let Some(stem) = stem.filter(|_| is_file_name(value)) else {
            let message = format!("{} is not the file name of an sdist", short(value));
            self.reader.fault(place, message, "write a bare name that ends in .tar.gz or .zip");
            return;
        };
        let (Some(package), Some(version)) = (package, version) else { return };
        let expected = format!("{package}-{version}");
        if normalize_package_name(stem) != normalize_package_name(&expected) {
            let message = format!("{value:?} is not the sdist of {package} {version}");
            let hint = "the setup of a pair is its base release, which is the spec's version";
            self.reader.fault(place, message, hint);
        }
    }
}
