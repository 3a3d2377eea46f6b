//! Blobs that are there already, and blobs to take.

use std::io::Write;

use super::super::client::{Opener, Promise};
use super::super::{Client, Error};
use super::repository::{Purpose, Repository};
use crate::base::Digest;

impl Repository {
    /// Whether the repository has this blob, for those who push.
    pub fn has_blob(&self, digest: &Digest) -> Result<bool, Error> {
        Ok(self.head(&self.blob_address(digest)?, &[], Purpose::Push)?.is_some())
    }
}

impl Client {
    /// Takes a blob from the first of these repositories that has it, with digest and size checked while it is read; see
    /// [`Client::download`].
    pub fn download_blob<W: Write>(
        &self,
        repositories: &[Repository],
        name: &str,
        sha256: Digest,
        size: u64,
        mut open: impl FnMut() -> Result<W, crate::base::Error>,
    ) -> Result<W, Error> {
        let promise = Promise { name, digest: sha256, size: Some(size) };
        let mut openers = Vec::new();
        for repository in repositories {
            let scopes = repository.to_pull();
            openers.push((repository.blob_address(&sha256)?, repository, scopes));
        }
        let openers: Vec<Opener<'_>> = openers
            .iter()
            .map(|(address, repository, scopes)| Opener {
                address,
                visit: Some(repository.visit(scopes)),
            })
            .collect();
        self.download_with(&openers, &promise, &mut open)
    }
}
