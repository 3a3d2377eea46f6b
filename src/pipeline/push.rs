//! The images of a split to a registry.

use super::Error;
use super::board::Board;
use super::stages::Pipeline;
use crate::image::registry::{Attachment, PushOptions, PushReport, Set, push};
use crate::image::{Image, NameTemplate};
use crate::net::registry::Reference;

impl Pipeline<'_> {
    /// Pushes every instance image that was built, each under the name that the template gives it, and attaches a file to each.
    pub fn push(
        &self,
        board: &Board,
        template: &NameTemplate,
        attachment: Option<&Attachment>,
        options: PushOptions,
    ) -> Result<PushReport, Error> {
        let mut images: Vec<(Reference, &Image)> = Vec::new();
        for item in &board.items {
            let Some(image) = item.image.get() else { continue };
            let name = template.name(item.instance.id.as_str(), image.arch)?;
            images.push((Reference::parse(&name)?, image));
        }
        let bench = self.bench;
        let set = Set { images: &images, attachment };
        Ok(push(bench.store, self.client, set, options, bench.reporter, bench.cancel)?)
    }
}
