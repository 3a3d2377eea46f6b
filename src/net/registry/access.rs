//! How to come in: a request is sent as far as is known, and once more after a registry has said what it wants.
//!
//! Tokens and logins are kept as long as the client lives, so a registry is asked for its wishes once, and a token server once
//! for each repository. A second refusal of the same request is final: there is no going round.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;

use super::super::address::Credentials;
use super::super::body::Payload;
use super::super::transfer::{Call, Failure, Redirects, Transport, basic, refusal};
use super::super::{Address, Config, Error};
use super::challenge::{self, Challenge};
use super::credentials::{self, Login, Lookup};
use super::helper::Helpers;
use crate::base::{Cancel, harmless};

/// Answers of token servers, and explanations of registries, are smaller.
const LARGEST_ANSWER: usize = 1024 * 1024;

/// The name that we go by at token servers.
const CLIENT: &str = "hallmark";

/// Who asks what of whom.
pub(in crate::net) struct Visit<'a> {
    /// The address of its interface. What it names elsewhere is asked without any credentials.
    pub(super) root: &'a Address,
    /// The registry's name.
    pub(super) registry: &'a str,
    /// The host that stands for it.
    pub(super) server: &'a str,
    /// The repository.
    pub(super) repository: &'a str,
    /// What a token must allow: `repository:NAME:pull,push`.
    pub(super) scopes: &'a [String],
}

/// What registries told so far, and what they were told.
#[derive(Default)]
pub(in crate::net) struct Access {
    /// By the address of the registry.
    challenges: Mutex<BTreeMap<String, Challenge>>,
    /// By registry and repository.
    logins: Mutex<BTreeMap<(String, String), Option<Login>>>,
    helpers: Helpers,
    /// By the address of the registry and the scopes.
    tokens: Mutex<BTreeMap<(String, Vec<String>), HeaderValue>>,
}

#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
}

/// What a client is and has.
pub(in crate::net) struct Means<'a> {
    pub(in crate::net) transport: &'a Transport,
    pub(in crate::net) config: &'a Config,
    pub(in crate::net) cancel: &'a Cancel,
}

impl Access {
    /// Sends a request to a registry and returns its answer, whatever its status is but 401.
    pub(in crate::net) async fn send(
        &self,
        means: &Means<'_>,
        visit: &Visit<'_>,
        mut call: Call<'_>,
    ) -> Result<(Response, Address), Failure> {
        if !call.address.same_origin(visit.root) {
            return means.transport.send(&call, means.cancel).await;
        }
        let home = home(call.address);
        let known = self.challenge(&home);
        call.authorization = match &known {
            None => None,
            Some(Challenge::Basic) => self.password(means, visit, call.address)?,
            Some(bearer @ Challenge::Bearer { .. }) => match self.token(&home, visit) {
                Some(token) => Some(token),
                None => self.new_token(means, visit, call.address, bearer).await?,
            },
        };
        let (response, from) = means.transport.send(&call, means.cancel).await?;
        if response.status() != StatusCode::UNAUTHORIZED || !from.same_origin(call.address) {
            return Ok((response, from));
        }
        let (asked, authorization) = self.reply(means, visit, call.address, &response).await?;
        if asked == Challenge::Basic && call.authorization.as_ref() == Some(&authorization) {
            let reason = "it does not take the user and the password that are known here";
            return Err(denied(&from, reason).into());
        }
        call.authorization = Some(authorization);
        let (response, from) = means.transport.send(&call, means.cancel).await?;
        if response.status() == StatusCode::UNAUTHORIZED && from.same_origin(call.address) {
            self.forget(&home, visit);
            let reason = match asked {
                Challenge::Basic => {
                    "it does not take the user and the password that are known here"
                }
                Challenge::Bearer { .. } => "it does not take the token that its token server gave",
            };
            return Err(denied(&from, reason).into());
        }
        Ok((response, from))
    }

    /// What a registry wants that said 401, which is remembered, and what it is told with every request from now on.
    pub(super) async fn reply(
        &self,
        means: &Means<'_>,
        visit: &Visit<'_>,
        address: &Address,
        refusal: &Response,
    ) -> Result<(Challenge, HeaderValue), Failure> {
        let asked = challenge::parse(
            refusal
                .headers()
                .get_all(header::WWW_AUTHENTICATE)
                .iter()
                .filter_map(|value| value.to_str().ok()),
        );
        let Some(asked) = asked else {
            return Err(denied(address, "it says 401, and not what it wants").into());
        };
        self.challenges
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(home(address), asked.clone());
        let authorization = match &asked {
            Challenge::Basic => self.password(means, visit, address)?,
            bearer @ Challenge::Bearer { .. } => {
                self.new_token(means, visit, address, bearer).await?
            }
        };
        let reason = "it wants a user and a password, and none are known here";
        Ok((asked, authorization.ok_or_else(|| denied(address, reason))?))
    }

    fn challenge(&self, home: &str) -> Option<Challenge> {
        self.challenges.lock().unwrap_or_else(PoisonError::into_inner).get(home).cloned()
    }

    fn token(&self, home: &str, visit: &Visit<'_>) -> Option<HeaderValue> {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.get(&(home.to_owned(), visit.scopes.to_vec())).cloned()
    }

    fn forget(&self, home: &str, visit: &Visit<'_>) {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.remove(&(home.to_owned(), visit.scopes.to_vec()));
    }

    /// Held while it is looked for: a helper may ask the user, and shall do so once.
    fn login(&self, means: &Means<'_>, visit: &Visit<'_>) -> Result<Option<Login>, Error> {
        let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (visit.registry.to_owned(), visit.repository.to_owned());
        if let Some(login) = logins.get(&key) {
            return Ok(login.clone());
        }
        let registries = &means.config.registries;
        let lookup = Lookup {
            registry: visit.registry,
            server: visit.server,
            repository: visit.repository,
            helpers: &self.helpers,
            path: registries.helpers.as_deref(),
            deadline: means.config.patience.answer,
            cancel: means.cancel,
        };
        let found = credentials::find(&registries.credentials, &lookup)?;
        logins.insert(key, found.clone());
        Ok(found)
    }

    /// User and password for each request, where they are known.
    fn password(
        &self,
        means: &Means<'_>,
        visit: &Visit<'_>,
        address: &Address,
    ) -> Result<Option<HeaderValue>, Error> {
        match self.login(means, visit)? {
            None => Ok(None),
            Some(Login::Basic { user, password }) => {
                Ok(Some(basic(&Credentials { user, password: Some(password) })))
            }
            Some(Login::Identity(_)) => Err(Error::Denied {
                address: address.clone(),
                reason: "it wants a user and a password, and only a token is known here".to_owned(),
            }),
        }
    }

    /// A new token from the server that the registry names.
    async fn new_token(
        &self,
        means: &Means<'_>,
        visit: &Visit<'_>,
        registry: &Address,
        asked: &Challenge,
    ) -> Result<Option<HeaderValue>, Failure> {
        let Challenge::Bearer { realm, service, scope } = asked else { return Ok(None) };
        let denied = |reason: String| Error::Denied { address: registry.clone(), reason };
        let realm = Address::parse(realm)
            .map_err(|reason| denied(format!("the address of its token server: {reason}")))?;
        if registry.is_secure() && !realm.is_secure() {
            return Err(denied("its token server would be asked by plain HTTP".to_owned()).into());
        }
        let registries = &means.config.registries;
        registries.admit(registry, &realm)?;
        let mut scopes = visit.scopes.to_vec();
        if scopes.is_empty() {
            scopes.extend(scope.clone());
        }
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        pairs.extend(service.as_deref().map(|service| ("service", service)));
        let login = self.login(means, visit)?;
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let joined = scopes.join(" ");
        let (address, method, body, authorization, redirects);
        if let Some(Login::Identity(token)) = &login {
            pairs.extend([
                ("grant_type", "refresh_token"),
                ("refresh_token", token),
                ("client_id", CLIENT),
            ]);
            pairs.push(("scope", &joined));
            let form =
                url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&pairs).finish();
            headers.insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/x-www-form-urlencoded"),
            );
            (address, method, body, authorization, redirects) =
                (realm, Method::POST, Payload::Bytes(Bytes::from(form)), None, Redirects::Nowhere);
        } else {
            pairs.extend(scopes.iter().map(|scope| ("scope", scope.as_str())));
            let authorization_of = |login: Login| match login {
                Login::Basic { user, password } => {
                    Some(basic(&Credentials { user, password: Some(password) }))
                }
                Login::Identity(_) => None,
            };
            (address, method, body, authorization, redirects) = (
                realm.with_query(&pairs),
                Method::GET,
                Payload::None,
                login.and_then(authorization_of),
                Redirects::Within(registries),
            );
        }
        let call = Call { method, address: &address, headers, authorization, body, redirects };
        let (response, from) = means.transport.send(&call, means.cancel).await?;
        if response.status() != StatusCode::OK {
            return Err(objection(means, response, from).await);
        }
        let bytes = read(means, &from, response).await?;
        let token = serde_json::from_slice::<TokenAnswer>(&bytes)
            .ok()
            .and_then(|answer| answer.token.or(answer.access_token))
            .and_then(|token| HeaderValue::from_str(&format!("Bearer {token}")).ok());
        let Some(mut token) = token else {
            let reason = "the answer of the token server is not JSON with a token".to_owned();
            return Err(Error::NoRegistry { address: from, reason }.into());
        };
        token.set_sensitive(true);
        self.tokens
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert((home(registry), visit.scopes.to_vec()), token.clone());
        Ok(Some(token))
    }
}

fn denied(address: &Address, reason: &str) -> Error {
    Error::Denied { address: address.clone(), reason: reason.to_owned() }
}

/// The server of an address.
fn home(address: &Address) -> String {
    let url = address.bare();
    format!("{}://{}", url.scheme(), url.authority())
}

async fn read(means: &Means<'_>, from: &Address, response: Response) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    means
        .transport
        .read(from, response, means.cancel, |piece| {
            if bytes.len() + piece.len() > LARGEST_ANSWER {
                return Err(Error::TooLarge {
                    address: from.clone(),
                    limit: LARGEST_ANSWER as u64,
                }
                .into());
            }
            bytes.extend_from_slice(piece);
            Ok(())
        })
        .await?;
    Ok(bytes)
}

/// The form of a registry's explanations (distribution specification, "Error Codes").
#[derive(Deserialize)]
struct Explanation {
    errors: Vec<Fault>,
}

#[derive(Deserialize)]
struct Fault {
    code: Option<String>,
    message: Option<String>,
}

/// What an answer means that is not what was asked for, in the registry's own words where it has some.
pub(in crate::net) async fn objection(
    means: &Means<'_>,
    response: Response,
    from: Address,
) -> Failure {
    let status = response.status();
    let failure = refusal(&from, &response);
    if matches!(failure, Failure::Passing { .. }) {
        return failure;
    }
    let bytes = match read(means, &from, response).await {
        Ok(bytes) => bytes,
        Err(Failure::Final(error @ Error::Base(_))) => return error.into(),
        // The status says enough.
        Err(_) => Vec::new(),
    };
    let said = serde_json::from_slice::<Explanation>(&bytes).map_or_else(
        |_| String::new(),
        |explanation| {
            let faults = explanation.errors.into_iter().map(|fault| {
                let parts = [fault.code, fault.message].into_iter().flatten();
                parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
            });
            faults.collect::<Vec<_>>().join("; ")
        },
    );
    let said = harmless(&said);
    if matches!(status.as_u16(), 401 | 403) {
        let reason = if said.is_empty() { format!("it says {status}") } else { said };
        return Error::Denied { address: from, reason }.into();
    }
    Error::Registry { address: from, status, said }.into()
}
