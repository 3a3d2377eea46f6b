//! Labels of images: what an image is and what it was made from, by digest.
//!
//! They are no part of any key: a key is made of the same inputs already. Nothing in them depends on the tests of an instance, its
//! limits, a tool's version, a time or a compressor.
//!
//! | label | value | images |
//! | --- | --- | --- |
//! | `org.opencontainers.image.title` | the suite, the spec's name, the instance's id | all |
//! | `org.opencontainers.image.version` | the version that the spec is for | environments, instances |
//! | `org.opencontainers.image.revision` | the base commit | instances from git |
//! | `hallmark.base-lock` | digest of the base's lock | all |
//! | `hallmark.env-hash` | the spec's env-hash | environments, instances |
//! | `hallmark.env-lock` | digest of the environment's lock, its built wheels included | environments, instances |
//! | `hallmark.instance` | digest of what names the instance's source: id, repository, version, base commit or sdist | instances |

use std::collections::BTreeMap;

use serde_json::json;

use crate::base::{Digest, Error, canon};
use crate::dataset::{Instance, Source};
use crate::lock::{BaseLock, EnvLock};
use crate::spec::Spec;

const TITLE: &str = "org.opencontainers.image.title";
const VERSION: &str = "org.opencontainers.image.version";
const REVISION: &str = "org.opencontainers.image.revision";
const BASE_LOCK: &str = "hallmark.base-lock";
const ENV_HASH: &str = "hallmark.env-hash";
const ENV_LOCK: &str = "hallmark.env-lock";
const INSTANCE: &str = "hallmark.instance";

type Labels = BTreeMap<String, String>;

pub(super) fn of_base(lock: &BaseLock) -> Result<Labels, Error> {
    let mut labels = Labels::new();
    put(&mut labels, TITLE, &lock.suite);
    put(&mut labels, BASE_LOCK, &lock.digest()?.to_string());
    Ok(labels)
}

/// Over the labels of the base; `lock` holds the wheels that were built.
pub(super) fn add_env(labels: &mut Labels, spec: &Spec, lock: &EnvLock) -> Result<(), Error> {
    put(labels, TITLE, &spec.name());
    put(labels, VERSION, &spec.version);
    put(labels, ENV_HASH, &spec.env_hash()?.to_string());
    put(labels, ENV_LOCK, &lock.digest()?.to_string());
    Ok(())
}

/// Over the labels of the environment.
pub(super) fn add_instance(labels: &mut Labels, instance: &Instance) -> Result<(), Error> {
    put(labels, TITLE, instance.id.as_str());
    if let Source::Git { base_commit, .. } = &instance.source {
        put(labels, REVISION, base_commit);
    }
    put(labels, INSTANCE, &source_digest(instance)?.to_string());
    Ok(())
}

/// The patches and the lists are no part of it: they are no part of the image.
fn source_digest(instance: &Instance) -> Result<Digest, Error> {
    let base = match &instance.source {
        Source::Git { base_commit, .. } => json!({ "commit": base_commit }),
        Source::Pair(pair) => json!({ "package": pair.package, "sdist": pair.base }),
    };
    canon::digest(&json!({
        "id": instance.id, "repo": instance.repo, "version": instance.version, "base": base,
    }))
}

fn put(labels: &mut Labels, name: &str, value: &str) {
    labels.insert(name.to_owned(), value.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(gold: &str, lists: Option<Vec<String>>) -> Instance {
        Instance {
            id: "o__n-1".to_owned().try_into().unwrap(),
            repo: "o/n".to_owned(),
            version: "1".to_owned(),
            source: Source::Git {
                url: None,
                base_commit: "a".repeat(40),
                gold_patch: gold.to_owned(),
                test_patch: String::new(),
            },
            fail_to_pass: lists.clone(),
            pass_to_pass: lists,
            extra: serde_json::Map::new(),
        }
    }

    #[test]
    fn an_instance_is_labelled_by_its_source_alone() {
        let of = |instance: &Instance| {
            let mut labels = [(TITLE.to_owned(), "env".to_owned())].into();
            add_instance(&mut labels, instance).unwrap();
            labels
        };
        let labels = of(&instance("gold", None));
        assert_eq!(labels, of(&instance("other", Some(vec!["t".to_owned()]))));
        assert_eq!(labels[TITLE], "o__n-1");
        assert_eq!(labels[REVISION], "a".repeat(40));
        let mut other = instance("gold", None);
        other.version = "2".to_owned();
        assert_ne!(labels[INSTANCE], of(&other)[INSTANCE]);
    }
}
