//! Built images on their way to others: an OCI layout, one file, a daemon.

use std::path::Path;

use serde::Serialize;

use super::Error;
use super::board::Board;
use super::stages::Pipeline;
use crate::base::Digest;
use crate::base::files::OutputFile;
use crate::image::{self, Compressor, Image, ImageDigests, NameTemplate, NamedImage, Tarball};
use crate::runtime::docker::{Engine, LoadReport};

/// An image that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ExportedImage {
    /// Its name there.
    pub name: String,
    /// The digest of its config, which Docker calls the image's id.
    pub id: Digest,
    /// The digest of its manifest, which depends on the compressor, too.
    pub manifest: Digest,
}

impl Pipeline<'_> {
    /// Writes the images that were built as an OCI layout.
    pub fn export_layout(
        &self,
        board: &Board,
        folder: &Path,
        compressor: Compressor,
    ) -> Result<Vec<ExportedImage>, Error> {
        // The grammar of reference names has no `__` (OCI image specification, annotations).
        let images: Vec<(String, &Image)> = board
            .images()
            .into_iter()
            .map(|(name, image)| (name.replace("__", "--"), image))
            .collect();
        let named: Vec<(&str, &Image)> =
            images.iter().map(|(name, image)| (name.as_str(), *image)).collect();
        let bench = &self.bench;
        let written = image::layout::write(bench.store, &named, folder, compressor, bench.cancel)?;
        Ok(exported(named.iter().map(|(name, _)| *name), &written))
    }

    /// Writes the instance images that were built to one file that OCI tools and `docker load` read; which they are and
    /// how many bytes it has. The file appears when it is whole.
    pub fn export_archive(
        &self,
        board: &Board,
        file: &Path,
        template: &NameTemplate,
        compressor: Compressor,
    ) -> Result<(Vec<ExportedImage>, u64), Error> {
        let names = board.instance_names(template)?;
        let images = named(&names);
        let bench = &self.bench;
        let (tarball, written) = Tarball::hybrid(bench.store, &images, compressor, bench.cancel)?;
        let mut out = OutputFile::create(file)?;
        let bytes = tarball.write(bench.store, &mut out, bench.reporter, bench.cancel)?;
        out.commit()?;
        Ok((exported(images.iter().map(|image| image.name), &written), bytes))
    }

    /// Brings the instance images that were built into a daemon.
    pub fn load(
        &self,
        board: &Board,
        engine: &Engine,
        template: &NameTemplate,
    ) -> Result<LoadReport, Error> {
        let names = board.instance_names(template)?;
        let bench = &self.bench;
        Ok(engine.load(&named(&names), bench.store, bench.reporter, bench.cancel))
    }
}

impl Board {
    /// The instance images that were built, with the names that a template gives them.
    fn instance_names(&self, template: &NameTemplate) -> Result<Vec<(String, &Image)>, Error> {
        let built = self.items.iter().filter_map(|item| Some((item, item.image.get()?)));
        built
            .map(|(item, image)| Ok((template.name(item.instance.id.as_str(), image.arch)?, image)))
            .collect()
    }
}

fn exported<'a>(
    names: impl Iterator<Item = &'a str>,
    written: &[ImageDigests],
) -> Vec<ExportedImage> {
    let image = |(name, digests): (&str, &ImageDigests)| ExportedImage {
        name: name.to_owned(),
        id: digests.config,
        manifest: digests.manifest,
    };
    names.zip(written).map(image).collect()
}

fn named<'a>(names: &'a [(String, &'a Image)]) -> Vec<NamedImage<'a>> {
    names.iter().map(|(name, image)| NamedImage { name, image }).collect()
}
