//! The images of a split to a registry.

use super::Error;
use super::board::Board;
use super::stages::Pipeline;
use crate::image::registry::{PushOptions, PushReport, push};
use crate::image::{Image, NameTemplate};
use crate::net::registry::Reference;

impl Pipeline<'_> {
    /// Pushes every instance image that was built, each under the name that the template gives it.
    pub fn push(
        &self,
        board: &Board,
        template: &NameTemplate,
        options: PushOptions,
    ) -> Result<PushReport, Error> {
        let mut images: Vec<(Reference, &Image)> = Vec::new();
        for item in &board.items {
            let Some(image) = item.image.get() else { continue };
            let name = template.name(item.instance.id.as_str(), image.arch)?;
            images.push((Reference::parse(&name)?, image));
        }
        let bench = self.bench;
        Ok(push(bench.store, self.client, &images, options, bench.reporter, bench.cancel)?)
    }
}
