//! One request: redirects followed by hand, bodies sent and read piece by piece under time limits.
//!
//! Redirects are followed here and not by the HTTP library, so that credentials stay with the server
//! they were given for, no step goes from https to http, and a loop is seen as one.

use std::collections::BTreeSet;
use std::error::Error as StdError;
use std::pin::pin;
use std::time::Duration;

use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Method, Response, StatusCode};

use super::address::Credentials;
use super::body::Payload;
use super::certificates::base64;
use super::registry::Registries;
use super::{Address, Config, Error, Patience, Proxy, Server};
use crate::base::cancel::until_cancelled;
use crate::base::clock::Stopwatch;
use crate::base::{Cancel, clock};

/// More than any archive needs; PyPI and Debian use at most two.
const MOST_REDIRECTS: usize = 10;

/// How often a pending answer is looked at: for the end that is asked for, and for progress.
const POLL: Duration = Duration::from_millis(50);

const USER_AGENT: &str = concat!("hallmark/", env!("CARGO_PKG_VERSION"));

/// rustls's name of what it met where the server speaks plain HTTP.
const NOT_TLS: &str = "InvalidContentType";

/// Why one try gave nothing.
pub(super) enum Failure {
    /// It may pass: try again, after `wait` where the server says so.
    Passing {
        reason: String,
        status: Option<StatusCode>,
        wait: Option<Duration>,
        /// Whether no connection was made at all.
        unconnected: bool,
        source: Option<Box<dyn StdError + Send + Sync>>,
    },
    /// It will not.
    Final(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

impl From<crate::base::Error> for Failure {
    fn from(error: crate::base::Error) -> Self {
        Self::Final(Error::Base(error))
    }
}

impl Failure {
    pub(super) fn passing(reason: impl Into<String>) -> Self {
        Self::Passing {
            reason: reason.into(),
            status: None,
            wait: None,
            unconnected: false,
            source: None,
        }
    }

    fn transport(address: &Address, error: reqwest::Error) -> Self {
        let error = error.without_url();
        let reason = deepest(&error);
        let unconnected = error.is_connect();
        if unconnected && reason.contains(NOT_TLS) {
            return Self::Final(Error::Unencrypted { address: address.clone() });
        }
        if unconnected && reason.contains("certificate") {
            // Trying again does not make a certificate valid.
            return Self::Final(Error::Unreachable {
                address: address.clone(),
                reason,
                tries: 1,
                server: Server::Archive,
                source: Some(Box::new(error)),
            });
        }
        Self::Passing {
            reason,
            status: None,
            wait: None,
            unconnected,
            source: Some(Box::new(error)),
        }
    }
}

fn deepest(error: &dyn StdError) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// Where the answers to a request may send it.
#[derive(Clone, Copy)]
pub(super) enum Redirects<'a> {
    /// Anywhere, but never from https to http.
    Anywhere,
    /// The same, and by plain HTTP only where this allows it.
    Within(&'a Registries),
    /// Nowhere: what it carries is for one server.
    Nowhere,
}

/// A request, which may be sent several times: after redirects and failures that pass.
pub(super) struct Call<'a> {
    pub(super) method: Method,
    pub(super) address: &'a Address,
    pub(super) headers: HeaderMap,
    /// For the server of `address` only, wherever redirects lead.
    pub(super) authorization: Option<HeaderValue>,
    pub(super) body: Payload<'a>,
    pub(super) redirects: Redirects<'a>,
}

impl<'a> Call<'a> {
    pub(super) fn get(address: &'a Address, headers: &HeaderMap) -> Self {
        Self {
            method: Method::GET,
            address,
            headers: headers.clone(),
            authorization: None,
            body: Payload::None,
            redirects: Redirects::Anywhere,
        }
    }

    /// Whether this answer sends the same request elsewhere. The older codes turn a request that carries something into one
    /// that does not, so only the two that keep it count there.
    fn follows(&self, response: &Response) -> bool {
        match response.status().as_u16() {
            301..=303 => matches!(self.method, Method::GET | Method::HEAD),
            307 | 308 => true,
            _ => false,
        }
    }
}

/// The HTTP library set up for this host, and whose credentials go where.
pub(super) struct Transport {
    http: reqwest::Client,
    known: Vec<Address>,
    patience: Patience,
}

impl Transport {
    pub(super) fn new(config: &Config) -> Result<Self, Error> {
        let setup = |error: Box<dyn StdError + Send + Sync>| Error::Setup(error);
        let mut roots = rustls::RootCertStore::empty();
        let certificates = config.certificates.load()?;
        let (_, refused) =
            roots.add_parsable_certificates(certificates.into_iter().map(Into::into));
        if refused > 0 {
            tracing::debug!(refused, "certificates that do not parse");
        }
        let mut tls = rustls::ClientConfig::builder_with_provider(
            rustls::crypto::ring::default_provider().into(),
        )
        .with_safe_default_protocol_versions()
        .map_err(|error| setup(error.into()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];

        let patience = config.patience;
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .user_agent(USER_AGENT)
            .redirect(reqwest::redirect::Policy::none())
            // Our own retries see more: digests, short bodies, `Retry-After`.
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(patience.connect)
            .http2_adaptive_window(true)
            // Only the proxies of the configuration count, never ambient ones.
            .no_proxy();
        for proxy in proxies(&config.proxy)? {
            builder = builder.proxy(proxy);
        }
        let http = builder.build().map_err(|error| setup(error.into()))?;
        let known = [&config.pypi_index, &config.debian_mirror, &config.debian_snapshot]
            .into_iter()
            .map(|place| place.address.clone())
            .filter(|address| address.credentials().is_some())
            .collect();
        Ok(Self { http, known, patience })
    }

    /// Asks for an address, follows redirects and returns the answer, whose status is 200 or 206.
    pub(super) async fn open(
        &self,
        first: &Address,
        headers: &HeaderMap,
        cancel: &Cancel,
    ) -> Result<(Response, Address), Failure> {
        let (response, address) = self.send(&Call::get(first, headers), cancel).await?;
        if matches!(response.status(), StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
            return Ok((response, address));
        }
        Err(refusal(&address, &response))
    }

    /// Sends a request, follows redirects and returns the answer, whatever its status is.
    pub(super) async fn send(
        &self,
        call: &Call<'_>,
        cancel: &Cancel,
    ) -> Result<(Response, Address), Failure> {
        let mut address = call.address.clone();
        let mut seen = BTreeSet::from([address.bare()]);
        loop {
            let mut request = self
                .http
                .request(call.method.clone(), address.bare())
                .headers(call.headers.clone());
            let own = call.authorization.as_ref().filter(|_| address.same_origin(call.address));
            if let Some(value) = own {
                request = request.header(header::AUTHORIZATION, value.clone());
            } else if let Some(credentials) = self.credentials_for(&address) {
                request = request.header(header::AUTHORIZATION, basic(&credentials));
            }
            if call.body.is_empty() {
                // RFC 9110 section 8.6; the HTTP library leaves it out where a body has no bytes.
                request = request.header(header::CONTENT_LENGTH, 0);
            }
            if let Some(body) = call.body.open()? {
                request = request.body(body);
            }
            let response = self.answer(&address, request, &call.body, cancel).await?;
            let target =
                response.headers().get(header::LOCATION).filter(|_| call.follows(&response));
            let Some(target) = target else { return Ok((response, address)) };
            let target = target.to_str().unwrap_or_default().to_owned();
            let refuse = |reason| Error::Redirect {
                address: address.clone(),
                target: Address::parse(&target).map_or_else(|_| "?".to_owned(), |a| a.to_string()),
                reason,
            };
            let next = address.resolve(&target).map_err(refuse)?;
            if address.is_secure() && !next.is_secure() {
                return Err(refuse("it leaves https for http").into());
            }
            match call.redirects {
                Redirects::Anywhere => {}
                Redirects::Within(registries) => registries.admit(&address, &next)?,
                Redirects::Nowhere => {
                    return Err(refuse("what was sent is for the first server alone").into());
                }
            }
            if !seen.insert(next.bare()) || seen.len() > MOST_REDIRECTS {
                return Err(Error::RedirectLoop {
                    address: call.address.clone(),
                    last: next,
                    count: seen.len(),
                }
                .into());
            }
            address = next;
        }
    }

    /// The head of the answer. Whoever takes a body slowly is given time as long as it takes some of it.
    async fn answer(
        &self,
        address: &Address,
        request: reqwest::RequestBuilder,
        body: &Payload<'_>,
        cancel: &Cancel,
    ) -> Result<Response, Failure> {
        let mut pending = pin!(request.send());
        let mut window = Stopwatch::start();
        let mut before = body.moved();
        loop {
            match tokio::time::timeout(POLL, &mut pending).await {
                Ok(answer) => {
                    body.tell();
                    return answer.map_err(|error| Failure::transport(address, error));
                }
                Err(_) => cancel.check()?,
            }
            body.tell();
            if window.elapsed() >= self.patience.answer {
                let now = body.moved();
                if now - before < self.patience.trickle.max(1) {
                    return Err(Failure::passing("no answer in time"));
                }
                (window, before) = (Stopwatch::start(), now);
            }
        }
    }

    /// The address's own credentials, else those that the configuration has for its server.
    fn credentials_for(&self, address: &Address) -> Option<Credentials> {
        address
            .credentials()
            .or_else(|| self.known.iter().find(|known| known.same_origin(address))?.credentials())
    }

    /// Gives the body to `take` piece by piece.
    pub(super) async fn read(
        &self,
        address: &Address,
        mut response: Response,
        cancel: &Cancel,
        mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut window = Stopwatch::start();
        let mut in_window = 0_u64;
        loop {
            // A body that keeps coming never makes the wait below look at the flag.
            cancel.check()?;
            let piece = tokio::time::timeout(self.patience.idle, response.chunk());
            let piece = until_cancelled(cancel, piece)
                .await?
                .map_err(|_| Failure::passing("the body stopped coming"))?
                .map_err(|error| Failure::transport(address, error))?;
            let Some(piece) = piece else { return Ok(()) };
            take(&piece)?;
            in_window += piece.len() as u64;
            if window.elapsed() >= self.patience.window {
                if in_window < self.patience.trickle {
                    return Err(Failure::passing("the body only trickles"));
                }
                (window, in_window) = (Stopwatch::start(), 0);
            }
        }
    }
}

fn proxies(proxy: &Proxy) -> Result<Vec<reqwest::Proxy>, Error> {
    let except = proxy.except.as_deref().and_then(reqwest::NoProxy::from_string);
    let fail = |scheme: &str| Error::Setting {
        from: format!("the proxy for {scheme}"),
        reason: "not an address such as http://host:3128".to_owned(),
    };
    let mut all = Vec::new();
    if let Some(address) = &proxy.http {
        all.push(reqwest::Proxy::http(address).map_err(|_| fail("http"))?);
    }
    if let Some(address) = &proxy.https {
        all.push(reqwest::Proxy::https(address).map_err(|_| fail("https"))?);
    }
    Ok(all.into_iter().map(|proxy| proxy.no_proxy(except.clone())).collect())
}

pub(super) fn basic(credentials: &Credentials) -> HeaderValue {
    let pair = format!("{}:{}", credentials.user, credentials.password.as_deref().unwrap_or(""));
    let mut value = HeaderValue::from_str(&format!("Basic {}", base64(pair.as_bytes())))
        .expect("base64 is a header value");
    value.set_sensitive(true);
    value
}

/// What an answer without content means.
pub(super) fn refusal(address: &Address, response: &Response) -> Failure {
    let status = response.status();
    // 501 and 505 tell that the server cannot, not that it is in trouble.
    let passing = matches!(status.as_u16(), 408 | 425 | 429)
        || status.is_server_error() && !matches!(status.as_u16(), 501 | 505);
    if !passing {
        let (address, server) = (address.clone(), Server::Archive);
        return Error::Status { address, status, tries: 1, server }.into();
    }
    let wait = response
        .headers()
        .get(header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| retry_after(text, clock::now()));
    Failure::Passing {
        reason: format!("the server says {status}"),
        status: Some(status),
        wait,
        unconnected: false,
        source: None,
    }
}

/// RFC 9110 section 10.2.3: seconds or a date.
fn retry_after(text: &str, now: jiff::Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    // A date that has passed means now.
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        // The date is RFC 9110's own example.
        let now = "1999-12-31T23:59:50Z".parse().unwrap();
        for (text, seconds) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Fri, 31 Dec 1999 23:59:59 GMT", Some(9)),
            ("Fri, 31 Dec 1999 23:59:00 GMT", Some(0)),
            ("-1", None),
            ("soon", None),
        ] {
            assert_eq!(retry_after(text, now).map(|wait| wait.as_secs()), seconds, "{text}");
        }
    }
}
