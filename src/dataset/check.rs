//! Whether a row and a spec belong together.

use super::error::Error;
use super::model::{Instance, Source};
use crate::spec::{Setup, Spec};

/// Checks that `spec` is the spec of the row's version, and for a pair that both name the same base sdist.
pub fn check_spec(instance: &Instance, spec: &Spec) -> Result<(), Error> {
    let demand = |what, expected: &str, actual: &str| {
        if expected == actual {
            return Ok(());
        }
        Err(Error::SpecMismatch {
            id: instance.id.to_string(),
            what,
            expected: expected.to_owned(),
            actual: actual.to_owned(),
        })
    };
    demand("repository of the spec", &instance.repo, &spec.repo)?;
    demand("version of the spec", &instance.version, &spec.version)?;
    match (&instance.source, &spec.setup) {
        (Source::Pair(pair), Setup::Sdist { file, sha256, size }) => {
            demand("file of the base sdist", &pair.base.file, file)?;
            demand("digest of the base sdist", &pair.base.sha256.to_string(), &sha256.to_string())?;
            demand("length of the base sdist", &pair.base.size.to_string(), &size.to_string())
        }
        (Source::Pair(_), Setup::Commit { .. }) => {
            demand("setup of the spec", "an sdist", "a commit")
        }
        (Source::Git { .. }, Setup::Sdist { .. }) => {
            demand("setup of the spec", "a commit", "an sdist")
        }
        (Source::Git { .. }, Setup::Commit { .. }) => Ok(()),
    }
}
