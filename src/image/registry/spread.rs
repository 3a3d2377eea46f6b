//! Blobs brought to every repository that needs them: each is sent at most once to a registry, and mounted elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use super::push::{Push, Ready};
use super::workers::each;
use super::{Error, PushReport};
use crate::base::progress::Task;
use crate::base::{Digest, counted};
use crate::net::registry::{Repository, Uploaded};

/// A blob and the repositories of one registry that need it.
struct Shared<'a> {
    digest: Digest,
    size: u64,
    /// A repository that has it, since an image is there that needs it.
    source: Option<&'a str>,
    /// The first one gets it, the others mount it from there.
    repositories: Vec<&'a Repository>,
}

/// How a blob came to a repository.
enum How {
    Present,
    Uploaded(Uploaded),
}

impl Push<'_> {
    /// Brings every blob of the images that are missing to their repositories; those that are whole are counted, and mounted
    /// from.
    pub(super) fn spread(
        &self,
        whole: &[Ready],
        missing: &[Ready],
        report: &mut PushReport,
    ) -> Result<(), Error> {
        let shared = shared(whole, missing, report);
        if shared.is_empty() {
            return Ok(());
        }
        let bytes = shared.iter().map(|blob| blob.size).sum();
        let all = Task::start(self.reporter, "push", counted(shared.len(), "blob"), Some(bytes));
        let first = each(&shared, self.options.jobs, |blob| {
            let repository = blob.repositories[0];
            if repository.has_blob(&blob.digest)? {
                all.advance(blob.size);
                return Ok(How::Present);
            }
            self.bring(repository, blob, blob.source, Some(&all)).map(How::Uploaded)
        })?;
        let rest: Vec<(&Shared<'_>, &Repository)> = shared
            .iter()
            .flat_map(|blob| blob.repositories[1..].iter().map(move |other| (blob, *other)))
            .collect();
        let others = each(&rest, self.options.jobs, |(blob, other)| {
            let from = blob.repositories[0].name();
            self.bring(other, blob, Some(from), None).map(How::Uploaded)
        })?;
        let sizes = shared.iter().chain(rest.iter().map(|(blob, _)| *blob)).map(|blob| blob.size);
        for (how, size) in first.into_iter().chain(others).zip(sizes) {
            match how {
                How::Present => report.present.add(size),
                How::Uploaded(Uploaded::Mounted) => report.mounted.add(size),
                How::Uploaded(Uploaded::Sent) => report.sent.add(size),
            }
        }
        all.done_with(format!(
            "{} sent, {} mounted, {} present",
            report.sent.blobs, report.mounted.blobs, report.present.blobs
        ));
        Ok(())
    }

    /// Brings a blob to a repository, as a task of its own and, where `all` is given, as a part of that.
    fn bring(
        &self,
        repository: &Repository,
        blob: &Shared<'_>,
        from: Option<&str>,
        all: Option<&Task>,
    ) -> Result<Uploaded, Error> {
        self.cancel.check()?;
        let name = format!("{} {}", repository.name(), &blob.digest.hex()[..12]);
        let task = Task::start(self.reporter, "blob", name, Some(blob.size));
        let path = self.store.blob_path(&blob.digest);
        let report = |by| {
            task.advance(by);
            if let Some(all) = all {
                all.advance(by);
            }
        };
        let uploaded = repository.upload(&blob.digest, blob.size, &path, from, &report)?;
        if uploaded == Uploaded::Mounted {
            report(blob.size);
        }
        task.done();
        Ok(uploaded)
    }
}

/// Every blob once a registry, the largest first so that none is left alone at the end. What a repository has for sure, as part
/// of an image that is whole, is counted as there.
fn shared<'a>(
    whole: &'a [Ready],
    missing: &'a [Ready],
    report: &mut PushReport,
) -> Vec<Shared<'a>> {
    let mut seen = BTreeSet::new();
    let mut sources = BTreeMap::new();
    for image in whole {
        let repository = &image.repository;
        for (digest, size) in image.blobs() {
            if seen.insert((repository.registry(), repository.name(), digest)) {
                report.present.add(size);
            }
            sources.entry((repository.registry(), digest)).or_insert(repository.name());
        }
    }
    let mut found: BTreeMap<(&str, Digest), Shared<'_>> = BTreeMap::new();
    for image in missing {
        let repository = &image.repository;
        for (digest, size) in image.blobs() {
            if !seen.insert((repository.registry(), repository.name(), digest)) {
                continue;
            }
            let place = (repository.registry(), digest);
            let source = sources.get(&place).copied();
            found
                .entry(place)
                .or_insert_with(|| Shared { digest, size, source, repositories: Vec::new() })
                .repositories
                .push(repository);
        }
    }
    let mut shared: Vec<Shared<'_>> = found.into_values().collect();
    shared.sort_by_key(|blob| std::cmp::Reverse(blob.size));
    shared
}
