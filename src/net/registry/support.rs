//! Whether there is a registry at all (distribution specification, "Determining Support").

use reqwest::header::{self, HeaderMap};
use reqwest::{Method, StatusCode};

use super::super::body::Payload;
use super::super::transfer::{Call, Failure, Redirects};
use super::super::{Address, Error};
use super::manifests::media_type;
use super::repository::{Repository, headers};

/// What most registries send with every answer.
const VERSION: &str = "docker-distribution-api-version";

impl Repository {
    /// Asks the registry whether it is one, with one request, and looks for what it wants of whoever pushes to this
    /// repository. For the time before the work: what is not there should be said soon.
    pub fn knock(&self) -> Result<(), Error> {
        let address = self.root().as_folder();
        let scopes = self.to_push(None);
        let (client, visit) = (&self.client, self.visit(&scopes));
        self.persist(&address, async || {
            let means = client.means();
            let call = Call {
                method: Method::GET,
                address: &address,
                headers: headers(&[(header::ACCEPT, "application/json")]),
                authorization: None,
                body: Payload::None,
                redirects: Redirects::Within(&client.config().registries),
            };
            let (response, from) = means.transport.send(&call, means.cancel).await?;
            let (status, lines) = (response.status(), response.headers());
            let says = |what: String| Err(no_registry(&from, &what));
            match status {
                StatusCode::OK if is_registry(lines) => Ok(()),
                StatusCode::OK => says(format!("it answers with {:?}", media_type(lines))),
                StatusCode::UNAUTHORIZED if from.same_origin(&address) => {
                    client.access().reply(&means, &visit, &address, &response).await.map(|_| ())
                }
                StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
                    says(format!("it says {status}"))
                }
                _ => Err(self.objection((response, from)).await),
            }
        })
    }
}

/// What else than a registry answers so: a web server, or a proxy's sign-in page.
pub(super) fn no_registry(address: &Address, what: &str) -> Failure {
    let reason = format!("{what}, which no registry does");
    Error::NoRegistry { address: address.clone(), reason }.into()
}

/// Whether a good answer to the question is a registry's. The specification asks for no more than the status; those that do
/// not name their version send JSON, or nothing.
fn is_registry(lines: &HeaderMap) -> bool {
    let kind = media_type(lines);
    lines.contains_key(VERSION) || kind.is_empty() || kind.ends_with("json")
}

/// Whether an answer is a page for people. Blobs may come from elsewhere, where nobody knows of registries.
pub(super) fn is_page(lines: &HeaderMap) -> bool {
    media_type(lines) == "text/html" && !lines.contains_key(VERSION)
}
