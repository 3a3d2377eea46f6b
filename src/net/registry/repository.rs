//! One repository of one registry, and the requests that it is sent.

use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode};

use super::super::body::Payload;
use super::super::transfer::{Call, Failure, Redirects};
use super::super::{Address, Client, Error};
use super::access::{Visit, objection};
use super::reference::Reference;
use super::support::{is_page, no_registry};
use crate::base::Digest;

/// A repository. Cheap to make; what was learned of its registry is kept by the client.
#[derive(Clone)]
pub struct Repository {
    pub(super) client: Client,
    registry: String,
    server: String,
    name: String,
    root: Address,
}

/// What somebody who asks is about to do: tokens that allow to write are given to few.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To read.
    Pull,
    /// To write, or to see what need not be written.
    Push,
}

/// The parts of a request.
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    pub(super) address: &'a Address,
    pub(super) headers: HeaderMap,
    pub(super) body: Payload<'a>,
    pub(super) scopes: &'a [String],
}

impl Client {
    /// A repository of a registry itself, whatever its mirrors: what is pushed must go there.
    pub fn repository(&self, registry: &str, name: &str) -> Result<Repository, Error> {
        let root = self.config().registries.root(registry)?;
        Ok(Repository {
            client: self.clone(),
            registry: registry.to_owned(),
            server: Reference::server(registry),
            name: name.to_owned(),
            root,
        })
    }

    /// Where a repository can be pulled from: its mirrors, then the registry itself.
    pub fn repositories(&self, registry: &str, name: &str) -> Result<Vec<Repository>, Error> {
        let places = self.config().registries.places(registry, name);
        places.iter().map(|(registry, name)| self.repository(registry, name)).collect()
    }
}

impl Repository {
    /// Host and port of the registry.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The repository's path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address below which the registry's interface lies.
    pub(super) fn root(&self) -> &Address {
        &self.root
    }

    /// What a token must allow to read.
    pub(super) fn to_pull(&self) -> Vec<String> {
        vec![pull_scope(&self.name)]
    }

    /// What a token must allow to write, and to read `other` for a mount.
    pub(super) fn to_push(&self, other: Option<&str>) -> Vec<String> {
        let own = format!("repository:{}:pull,push", self.name);
        other.map(pull_scope).into_iter().fold(vec![own], |mut scopes, scope| {
            scopes.push(scope);
            scopes
        })
    }

    pub(super) fn scopes(&self, purpose: Purpose) -> Vec<String> {
        match purpose {
            Purpose::Pull => self.to_pull(),
            Purpose::Push => self.to_push(None),
        }
    }

    /// An address of this repository: `blobs/sha256:...`.
    pub(super) fn address(&self, path: &str) -> Result<Address, Error> {
        self.root
            .below(&format!("{}/{path}", self.name))
            .map_err(|reason| Error::Name { name: self.name.clone(), reason })
    }

    pub(super) fn blob_address(&self, digest: &Digest) -> Result<Address, Error> {
        self.address(&format!("blobs/{digest}"))
    }

    pub(super) fn visit<'a>(&'a self, scopes: &'a [String]) -> Visit<'a> {
        Visit {
            root: &self.root,
            registry: &self.registry,
            server: &self.server,
            repository: &self.name,
            scopes,
        }
    }

    /// Sends one request, logged in as need be.
    pub(super) async fn ask(&self, ask: Ask<'_>) -> Result<(Response, Address), Failure> {
        let call = Call {
            method: ask.method,
            address: ask.address,
            headers: ask.headers,
            authorization: None,
            body: ask.body,
            redirects: Redirects::Within(&self.client.config().registries),
        };
        self.client.access().send(&self.client.means(), &self.visit(ask.scopes), call).await
    }

    /// The header lines of what is at a path of this repository; `None` where nothing is.
    pub(super) fn head(
        &self,
        address: &Address,
        lines: &[(HeaderName, &str)],
        purpose: Purpose,
    ) -> Result<Option<HeaderMap>, Error> {
        let scopes = self.scopes(purpose);
        self.persist(address, async || {
            let ask = |method| Ask {
                method,
                address,
                headers: headers(lines),
                body: Payload::None,
                scopes: &scopes,
            };
            let (response, from) = self.ask(ask(Method::HEAD)).await?;
            match response.status() {
                StatusCode::OK if is_page(response.headers()) => {
                    Err(no_registry(&from, "it answers with a page"))
                }
                StatusCode::OK => Ok(Some(response.headers().clone())),
                StatusCode::NOT_FOUND => Ok(None),
                status => {
                    let failure = self.objection((response, from)).await;
                    if matches!(failure, Failure::Passing { .. }) {
                        return Err(failure);
                    }
                    // This method's answers have no room for the registry's reason.
                    match self.ask(ask(Method::GET)).await? {
                        answer if answer.0.status() == status => Err(self.objection(answer).await),
                        _ => Err(failure),
                    }
                }
            }
        })
    }

    /// Tries as [`Client::persist`] does; what goes wrong is told as a registry's.
    pub(super) fn persist<T>(
        &self,
        address: &Address,
        attempt: impl AsyncFnMut() -> Result<T, Failure>,
    ) -> Result<T, Error> {
        self.client
            .demand_network("an answer", address)
            .and_then(|()| self.client.persist(address, attempt))
            .map_err(Error::of_registry)
    }

    /// What an unexpected answer means.
    pub(super) async fn objection(&self, (response, from): (Response, Address)) -> Failure {
        objection(&self.client.means(), response, from).await
    }
}

fn pull_scope(name: &str) -> String {
    format!("repository:{name}:pull")
}

/// Header lines; digests must not be of an encoded body.
pub(super) fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    for (name, value) in pairs {
        let value =
            HeaderValue::from_str(value).expect("media types, numbers and ranges are ASCII");
        headers.insert(name, value);
    }
    headers
}
