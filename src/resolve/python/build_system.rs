//! How a source tree is built: `[build-system]` of its `pyproject.toml` (PEP 517, 518), or the legacy of `setup.py`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Error;

/// Calls one hook of a build backend; run by the interpreter of the image.
pub(crate) const HOOK: &str = include_str!("hook.py");

/// What PEP 517 says to use for a source without a word on it.
const LEGACY_REQUIRES: [&str; 2] = ["setuptools>=40.8.0", "wheel"];
const LEGACY_BACKEND: &str = "setuptools.build_meta:__legacy__";

/// A build backend and what it needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BuildSystem {
    /// Static build requirements, PEP 508.
    pub requires: Vec<String>,
    /// `module:object` of the hooks.
    pub backend: String,
    /// Folders of the source that the backend is imported from.
    pub backend_path: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Project {
    build_system: Option<Table>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Table {
    requires: Vec<String>,
    build_backend: Option<String>,
    #[serde(default)]
    backend_path: Vec<String>,
}

impl BuildSystem {
    /// Of the source tree at `source`; `name` is for errors.
    pub fn of(source: &Path, name: &str) -> Result<Self, Error> {
        let path = source.join("pyproject.toml");
        if path.exists() {
            return Self::parse(&super::source::read(source, Path::new("pyproject.toml"))?, name);
        }
        if source.join("setup.py").exists() {
            return Ok(Self::legacy());
        }
        Err(Error::Unreadable {
            what: name.to_owned(),
            problem: "neither pyproject.toml nor setup.py is in it".to_owned(),
        })
    }

    fn legacy() -> Self {
        Self {
            requires: LEGACY_REQUIRES.map(str::to_owned).to_vec(),
            backend: LEGACY_BACKEND.to_owned(),
            backend_path: Vec::new(),
        }
    }

    fn parse(text: &str, name: &str) -> Result<Self, Error> {
        let unreadable = |problem: String| Error::Unreadable {
            what: format!("pyproject.toml of {name}"),
            problem,
        };
        let project: Project =
            toml::from_str(text).map_err(|error| unreadable(error.message().to_owned()))?;
        let Some(table) = project.build_system else { return Ok(Self::legacy()) };
        let leaves = |path: &&String| {
            Path::new(path).components().any(|part| {
                !matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir)
            })
        };
        if let Some(path) = table.backend_path.iter().find(leaves) {
            return Err(unreadable(format!("the backend path `{path}` leaves the source")));
        }
        Ok(Self {
            requires: table.requires,
            backend: table.build_backend.unwrap_or_else(|| LEGACY_BACKEND.to_owned()),
            backend_path: table.backend_path,
        })
    }

    /// Whether setuptools builds it.
    pub fn is_setuptools(&self) -> bool {
        self.backend.split([':', '.']).next() == Some("setuptools")
    }

    /// What [`HOOK`] takes as its last argument.
    pub(crate) fn hook_argument(&self) -> String {
        serde_json::json!({ "backend": self.backend, "backend-path": self.backend_path })
            .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_decides_and_its_absence_means_setuptools() {
        let system = |text: &str| BuildSystem::parse(text, "x").unwrap();
        assert_eq!(system("[tool.black]\nx = 1"), BuildSystem::legacy());
        let setuptools = system("[build-system]\nrequires = ['setuptools', 'cython']");
        assert_eq!(setuptools.requires, ["setuptools", "cython"]);
        assert!(setuptools.is_setuptools());
        let flit = system(
            "[build-system]\nrequires=['flit_core']\nbuild-backend='flit_core.buildapi'\nbackend-path=['.']",
        );
        assert_eq!(
            (flit.backend.as_str(), flit.backend_path.as_slice()),
            ("flit_core.buildapi", &[".".to_owned()][..])
        );
        assert!(!flit.is_setuptools());
    }

    #[test]
    fn bad_tables_are_named() {
        let error = |text: &str| BuildSystem::parse(text, "x 1.0").unwrap_err().to_string();
        assert_eq!(
            error("[build-system]\nrequires=[]\nbackend-path=['../y']"),
            "pyproject.toml of x 1.0: the backend path `../y` leaves the source"
        );
        assert_eq!(error("[build-system]\n"), "pyproject.toml of x 1.0: missing field `requires`");
        assert!(BuildSystem::of(Path::new("/nowhere"), "x").is_err());
    }
}
