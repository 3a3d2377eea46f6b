//! Reads specs and base definitions from their folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::error::{Error, SpecErrors};
use super::inherit::{DEFAULTS, SpecFile};
use super::model::{BaseDefinition, Spec};
use super::parse::parse;
use super::parse_base;

/// Reads the spec of one version of a repository: `<specs>/<owner>__<name>/<version>.toml`.
pub fn load(specs: &Path, repo: &str, version: &str) -> Result<Spec, Error> {
    let folder = specs.join(repo.replace('/', "__"));
    let path = folder.join(format!("{version}.toml"));
    let files = folder_files(specs, &folder)?;
    let Some(file) = files.iter().find(|file| file.path == path) else {
        let known = files
            .iter()
            .filter(|file| file.path.parent() == Some(&folder) && file.file_name() != DEFAULTS)
            .map(|file| stem(&file.path))
            .collect();
        return Err(Error::Missing { path, known });
    };
    Ok(parse(file, &files)?)
}

/// Reads every spec below a folder, sorted by name; the faults of all are reported at once.
pub fn load_all(specs: &Path) -> Result<Vec<Spec>, Error> {
    let mut found = BTreeMap::new();
    let mut faults = SpecErrors::default();
    for folder in sorted_entries(specs)? {
        if !folder.is_dir() {
            continue;
        }
        let files = folder_files(specs, &folder)?;
        for file in &files {
            if file.path.parent() != Some(&folder) || file.file_name() == DEFAULTS {
                continue;
            }
            match parse(file, &files) {
                Ok(spec) => {
                    found.insert(spec.name(), spec);
                }
                Err(errors) => faults.extend(errors),
            }
        }
    }
    if faults.is_empty() { Ok(found.into_values().collect()) } else { Err(faults.into()) }
}

/// Reads a base definition: `<images>/<name>.toml`.
pub fn load_base(images: &Path, name: &str) -> Result<BaseDefinition, Error> {
    let path = images.join(format!("{name}.toml"));
    if path.is_file() {
        return Ok(parse_base(&SpecFile::new(&path, fs_err::read_to_string(&path)?))?);
    }
    // Plans and policies of splits stand here too.
    let of_split = |stem: &str| {
        stem.rsplit_once('.').is_some_and(|(_, kind)| ["plan", "policy"].contains(&kind))
    };
    let known = sorted_entries(images)?
        .iter()
        .filter(|path| is_toml(path) && !of_split(&stem(path)))
        .map(|path| stem(path))
        .collect();
    Err(Error::Missing { path, known })
}

/// The files of a repository's folder, and the defaults above it.
fn folder_files(specs: &Path, folder: &Path) -> Result<Vec<SpecFile>, Error> {
    let mut paths: Vec<PathBuf> =
        sorted_entries(folder)?.into_iter().filter(|path| is_toml(path)).collect();
    paths.extend(Some(specs.join(DEFAULTS)).filter(|path| path.is_file()));
    paths
        .into_iter()
        .map(|path| Ok(SpecFile { text: fs_err::read_to_string(&path)?, path }))
        .collect()
}

/// What a folder holds, sorted; nothing when it is not there.
fn sorted_entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut paths = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml") && path.is_file()
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
