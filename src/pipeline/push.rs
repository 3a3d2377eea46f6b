//! The images of a split to a registry.

use std::collections::BTreeSet;

use super::Error;
use super::board::Board;
use super::stages::Pipeline;
use crate::base::{Arch, Digest};
use crate::image::registry::{Attachment, PushOptions, PushReport, Set, push};
use crate::image::{self, Image, NameTemplate};
use crate::manifest::Manifest;
use crate::net::registry::Reference;

/// The registry that names of this template begin with. Others would go to Docker Hub, which must be asked for.
pub fn registry_of(template: &NameTemplate) -> Result<String, Error> {
    let text = template.to_string();
    let Some(host) = Reference::host(&text) else { return Err(Error::NoHost { template: text }) };
    Ok(host.to_owned())
}

impl Pipeline<'_> {
    /// Asks the registry of these names whether it is there and lets us in. For the time before the work.
    pub fn knock(&self, board: &Board, template: &NameTemplate) -> Result<(), Error> {
        let Some(first) = board.items.first() else { return Ok(()) };
        let name = template.name(first.instance.id.as_str(), Arch::HOST)?;
        let name = Reference::parse(&name)?;
        Ok(self.client.repository(&name.registry, &name.repository)?.knock()?)
    }

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

impl Board {
    /// Refuses a manifest that does not speak of every instance and, of those that are built, of these images. `file` is for the
    /// error.
    pub fn demand_known(&self, file: &str, manifest: &Manifest) -> Result<(), Error> {
        let entries = &manifest.subject.instances;
        let configs: BTreeSet<Digest> = entries.values().map(|entry| entry.image.config).collect();
        let mut unknown = Vec::new();
        for item in &self.items {
            let id = item.instance.id.as_str();
            let known = match item.image.get() {
                Some(image) => configs.contains(&image::config_digest(image)?),
                None => entries.contains_key(id),
            };
            if !known {
                unknown.push(id.to_owned());
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        Err(Error::UnknownImages { file: file.to_owned(), unknown })
    }
}
