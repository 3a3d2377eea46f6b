//! The digests of a built split: `images/<split>.digests.json`, committed, so that whoever builds it again can
//! compare.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Error;
use super::board::Board;
use super::stages::Pipeline;
use crate::base::files::write_atomic;
use crate::base::{Arch, Digest};
use crate::image::{self, Compressor, CompressorRecord, Image};

/// The version that is written.
const VERSION: u32 = 1;

/// The digests of every image of a split.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SplitDigests {
    version: u32,
    /// For which processor.
    pub arch: Arch,
    /// Digest of the rows.
    pub split: Digest,
    /// How layers are compressed; manifests are compared for the same compressor only.
    pub compressor: CompressorRecord,
    /// By name: `base/<base>`, `env/<spec>`, `instance/<id>`.
    pub images: BTreeMap<String, ImageEntry>,
}

/// The digests of one image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ImageEntry {
    /// Of its inputs.
    pub key: Digest,
    /// Of its config.
    pub config: Digest,
    /// Of its manifest.
    pub manifest: Digest,
    /// Of its layers' archives, bottom first.
    pub diff_ids: Vec<Digest>,
}

impl SplitDigests {
    /// Reads a file; `None` where there is none.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        if !path.exists() {
            return Ok(None);
        }
        let bytes = fs_err::read(path)?;
        let digests: Self = serde_json::from_slice(&bytes)
            .map_err(|source| crate::base::Error::Json { path: path.to_owned(), source })?;
        if digests.version > VERSION {
            return Err(Error::NewerFile {
                path: path.to_owned(),
                expected: VERSION,
                actual: digests.version,
            });
        }
        Ok(Some(digests))
    }

    /// Writes the file, indented: it is reviewed in diffs.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|source| crate::base::Error::Json { path: path.to_owned(), source })?;
        text.push('\n');
        write_atomic(path, text.as_bytes())?;
        Ok(())
    }

    /// What is not as in `expected`, image by image, for the images that both have.
    pub fn differences(&self, expected: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (name, actual) in &self.images {
            let Some(expected_entry) = expected.images.get(name) else { continue };
            let pairs = [
                ("key", actual.key, expected_entry.key),
                ("config", actual.config, expected_entry.config),
            ];
            let manifest = ("manifest", actual.manifest, expected_entry.manifest);
            let comparable = self.compressor == expected.compressor;
            for (what, actual, expected) in pairs.into_iter().chain(comparable.then_some(manifest))
            {
                if actual != expected {
                    found.push(format!("{name}: expected {what} {expected}, got {actual}"));
                }
            }
            for (index, (actual, expected)) in
                actual.diff_ids.iter().zip(&expected_entry.diff_ids).enumerate()
            {
                if actual != expected {
                    found.push(format!("{name}: expected layer {index} {expected}, got {actual}"));
                }
            }
        }
        found
    }
}

impl Pipeline<'_> {
    /// The digests of every image that was built, each compressed.
    pub fn digests(&self, board: &Board) -> Result<SplitDigests, Error> {
        let compressor = Compressor::default();
        let mut images = BTreeMap::new();
        for (name, image) in board.images() {
            let digests = image::manifest(self.bench.store, image, compressor, self.bench.cancel)?;
            images.insert(
                name,
                ImageEntry {
                    key: image.key,
                    config: digests.config,
                    manifest: digests.manifest,
                    diff_ids: image.layers.iter().map(|layer| layer.diff_id).collect(),
                },
            );
        }
        Ok(SplitDigests {
            version: VERSION,
            arch: Arch::HOST,
            split: board.split.hash()?,
            compressor: compressor.record(),
            images,
        })
    }

    /// What differs from the committed digests; nothing where none are committed.
    pub fn compare_digests(
        &self,
        board: &Board,
        digests: &SplitDigests,
    ) -> Result<Vec<String>, Error> {
        let path = self.project.digests_path(&board.split.name);
        let committed = SplitDigests::read(&path)?;
        Ok(committed.map(|committed| digests.differences(&committed)).unwrap_or_default())
    }
}

impl Pipeline<'_> {
    /// Writes `pylock.toml` and its files of every environment to `<folder>/<spec>/`.
    pub fn export_wheels(&self, board: &Board, folder: &Path) -> Result<(), Error> {
        for env in &board.envs {
            let Some(lock) = env.lock.get() else { continue };
            let pylock = crate::lock::write_env(lock)?.pylock;
            let folder = folder.join(env.spec.name());
            crate::bundle::export_wheels(
                self.bench.store,
                lock,
                &pylock,
                &folder,
                self.bench.cancel,
            )?;
        }
        Ok(())
    }
}

impl Board {
    /// The images that were built, by name: bases, environments, instances.
    pub fn images(&self) -> Vec<(String, &Image)> {
        let bases = self
            .bases
            .iter()
            .filter_map(|base| Some((format!("base/{}", base.definition.name), base.image.get()?)));
        let envs = self
            .envs
            .iter()
            .filter_map(|env| Some((format!("env/{}", env.spec.name()), env.image.get()?)));
        let items = self
            .items
            .iter()
            .filter_map(|item| Some((format!("instance/{}", item.instance.id), item.image.get()?)));
        bases.chain(envs).chain(items).collect()
    }
}
