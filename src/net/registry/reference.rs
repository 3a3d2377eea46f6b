//! Names of images: `registry/repository:tag@digest`.
//!
//! The grammar, and what a name without a registry means, are `oci-spec`'s.

use std::fmt;

use super::super::Error;
use crate::base::Digest;

/// The name of an image in a registry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// Host and port.
    pub registry: String,
    /// Path of the repository.
    pub repository: String,
    /// The tag, which may move.
    pub tag: Option<String>,
    /// The digest, which may not.
    pub digest: Option<Digest>,
}

impl Reference {
    /// Reads a name. Without a registry it is one of Docker Hub; without tag and digest it means `latest`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let fail = |reason: String| Error::Reference { text: text.to_owned(), reason };
        let parsed: oci_spec::distribution::Reference = text
            .parse()
            .map_err(|error: oci_spec::distribution::ParseError| fail(error.to_string()))?;
        // `oci-spec` lets it pass; registries do not.
        if parsed.repository().bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(fail("a repository is in lower case".to_owned()));
        }
        let digest = match parsed.digest() {
            None => None,
            Some(digest) => Some(
                digest
                    .strip_prefix("sha256:")
                    .and_then(|hex| Digest::from_hex(hex).ok())
                    .ok_or_else(|| {
                        fail("the digest is not `sha256:` and 64 hex digits".to_owned())
                    })?,
            ),
        };
        Ok(Self {
            registry: parsed.registry().to_owned(),
            repository: parsed.repository().to_owned(),
            tag: parsed.tag().map(str::to_owned),
            digest,
        })
    }

    /// The registry that a name begins with; `None` where it is left out, and Docker Hub's is meant.
    pub fn host(text: &str) -> Option<&str> {
        let (first, _) = text.split_once('/')?;
        (first.contains(['.', ':']) || first == "localhost").then_some(first)
    }

    /// The host that is asked: Docker Hub's name is not that of its server.
    pub(super) fn server(registry: &str) -> String {
        let parsed = oci_spec::distribution::Reference::with_tag(
            registry.to_owned(),
            String::new(),
            String::new(),
        );
        parsed.resolve_registry().to_owned()
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_registry_repository_tag_and_digest() {
        let hex = "a".repeat(64);
        for (text, shown) in [
            ("registry.example/a/b:1.0".to_owned(), "registry.example/a/b:1.0".to_owned()),
            ("localhost:5000/a".to_owned(), "localhost:5000/a:latest".to_owned()),
            (
                format!("registry.example/a@sha256:{hex}"),
                format!("registry.example/a@sha256:{hex}"),
            ),
            (
                format!("registry.example/a:t@sha256:{hex}"),
                format!("registry.example/a:t@sha256:{hex}"),
            ),
        ] {
            assert_eq!(Reference::parse(&text).unwrap().to_string(), shown);
        }
        let hub = Reference::parse("debian:bookworm").unwrap();
        assert_eq!(
            (hub.repository.as_str(), hub.tag.as_deref()),
            ("library/debian", Some("bookworm"))
        );
        assert_ne!(Reference::server(&hub.registry), hub.registry);
        for (text, host) in [
            ("registry.example/a", Some("registry.example")),
            ("docker.io/team/{id}", Some("docker.io")),
            ("registry:5000/{id}:v1", Some("registry:5000")),
            ("localhost/a", Some("localhost")),
            ("team/{id}", None),
            ("{id}:v1", None),
            ("{id}", None),
        ] {
            assert_eq!(Reference::host(text), host, "{text}");
        }
        for bad in [
            "",
            "UPPER/case",
            "a b",
            "a/b:",
            "h.example/a@sha256:12",
            "a@sha512:00",
            "h.example//a",
        ] {
            let error = Reference::parse(bad).unwrap_err();
            assert!(error.hint().is_some(), "{error}");
        }
    }
}
