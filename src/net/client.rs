//! The client: whole pages up to a limit, and files with a promised digest into a sink.
//!
//! Only failures that may pass are tried again; a file that is not what was promised is not. All
//! calls block; the tokio runtime stays inside.

use std::collections::BTreeSet;
use std::io::{Read as _, Write};
use std::sync::{Arc, Mutex};

use reqwest::StatusCode;
use reqwest::header::{self, HeaderMap, HeaderValue};
use sha2::{Digest as _, Sha256};

use super::pypi::Pages;
use super::registry::{Access, Means, Visit};
use super::transfer::{Call, Failure, Redirects, Transport, refusal};
use super::{Address, Config, Error, Server};
use crate::base::cancel::until_cancelled;
use crate::base::{Cancel, Digest};

/// Tries when no connection comes about: a host that is not there should be said soon.
const UNCONNECTED_TRIES: u32 = 3;

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Response {
    /// The decoded body.
    pub bytes: Vec<u8>,
    /// The media type, lower-case, without parameters.
    pub content_type: String,
    /// Where it came from in the end.
    pub address: Address,
}

/// The HTTP client. Cheap to clone; safe to share between threads.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    cancel: Cancel,
}

struct Shared {
    config: Config,
    transport: Transport,
    /// `None` only while dropping.
    runtime: Option<tokio::runtime::Runtime>,
    /// Servers that could not be reached: they get one try only, until one succeeds.
    down: Mutex<BTreeSet<String>>,
    pages: Pages,
    access: Access,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A name look-up may hang for long; nobody waits for it any more.
            runtime.shutdown_background();
        }
    }
}

/// What came of a file so far.
struct Partial<W> {
    sink: W,
    hasher: Sha256,
    count: u64,
    /// Whether the bytes come from more than one answer.
    resumed: bool,
}

/// What a download must be.
pub(super) struct Promise<'a> {
    pub(super) name: &'a str,
    pub(super) digest: Digest,
    pub(super) size: Option<u64>,
}

/// Where a download may come from.
pub(super) struct Opener<'a> {
    pub(super) address: &'a Address,
    /// How to come in, where it is a registry.
    pub(super) visit: Option<Visit<'a>>,
}

impl Client {
    /// A client for this configuration; once `cancel` is set every wait ends.
    pub fn new(config: Config, cancel: &Cancel) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("hallmark-net")
            .enable_all()
            .build()
            .map_err(|error| Error::Setup(error.into()))?;
        let transport = Transport::new(&config)?;
        let shared = Shared {
            config,
            transport,
            runtime: Some(runtime),
            down: Mutex::default(),
            pages: Pages::default(),
            access: Access::default(),
        };
        Ok(Self { shared: Arc::new(shared), cancel: cancel.clone() })
    }

    /// The same client, connections and cache, obeying another flag.
    #[must_use]
    pub fn with_cancel(&self, cancel: &Cancel) -> Self {
        Self { shared: Arc::clone(&self.shared), cancel: cancel.clone() }
    }

    /// Where things are.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    pub(super) fn pages(&self) -> &Pages {
        &self.shared.pages
    }

    pub(super) fn access(&self) -> &Access {
        &self.shared.access
    }

    pub(super) fn means(&self) -> Means<'_> {
        Means {
            transport: &self.shared.transport,
            config: &self.shared.config,
            cancel: &self.cancel,
        }
    }

    /// Reads a whole answer of at most `max_size` decoded bytes.
    pub fn get(&self, address: &Address, accept: &str, max_size: u64) -> Result<Response, Error> {
        self.demand_network(address.url().path(), address)?;
        let mut headers = HeaderMap::new();
        let accept = HeaderValue::from_str(accept)
            .map_err(|_| Error::Name { name: accept.to_owned(), reason: "not a media type" })?;
        headers.insert(header::ACCEPT, accept);
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        self.persist(address, async || {
            let (response, from) =
                self.shared.transport.open(address, &headers, &self.cancel).await?;
            let too_large = || Error::TooLarge { address: from.clone(), limit: max_size };
            if response.content_length().is_some_and(|length| length > max_size) {
                return Err(too_large().into());
            }
            let text = |name| -> String {
                let value = response.headers().get(name).and_then(|value| value.to_str().ok());
                let value = value.unwrap_or_default().split(';').next().unwrap_or_default();
                value.trim().to_lowercase()
            };
            let content_type = text(header::CONTENT_TYPE);
            let encoding = text(header::CONTENT_ENCODING);
            let mut raw = Vec::new();
            self.shared
                .transport
                .read(&from, response, &self.cancel, |piece| {
                    if (raw.len() + piece.len()) as u64 > max_size {
                        return Err(too_large().into());
                    }
                    raw.extend_from_slice(piece);
                    Ok(())
                })
                .await?;
            let bytes = match encoding.as_str() {
                "" | "identity" => raw,
                "gzip" | "x-gzip" => {
                    let mut bytes = Vec::new();
                    flate2::read::MultiGzDecoder::new(raw.as_slice())
                        .take(max_size.saturating_add(1))
                        .read_to_end(&mut bytes)
                        .map_err(|error| Failure::passing(format!("bad gzip: {error}")))?;
                    if bytes.len() as u64 > max_size {
                        return Err(too_large().into());
                    }
                    bytes
                }
                other => {
                    let reason = format!("the answer is encoded as {other:?}, not as asked for");
                    return Err(Error::Page { address: from, reason }.into());
                }
            };
            Ok(Response { bytes, content_type, address: from })
        })
    }

    /// Downloads a file from the first of `candidates` that has it, into a sink that `open` makes anew
    /// whenever it must start from the beginning. The sink is returned only when all bytes have come
    /// and are the promised ones.
    pub fn download<W: Write>(
        &self,
        candidates: &[Address],
        name: &str,
        sha256: Digest,
        size: Option<u64>,
        mut open: impl FnMut() -> Result<W, crate::base::Error>,
    ) -> Result<W, Error> {
        let promise = Promise { name, digest: sha256, size };
        let openers: Vec<Opener<'_>> =
            candidates.iter().map(|address| Opener { address, visit: None }).collect();
        self.download_with(&openers, &promise, &mut open)
    }

    pub(super) fn download_with<W: Write>(
        &self,
        openers: &[Opener<'_>],
        promise: &Promise<'_>,
        open: &mut impl FnMut() -> Result<W, crate::base::Error>,
    ) -> Result<W, Error> {
        let mut failures = Vec::new();
        for opener in openers {
            self.demand_network(promise.name, opener.address)?;
            match self.download_from(opener, promise, open) {
                Ok(sink) => return Ok(sink),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => {
                    let error = if opener.visit.is_some() { error.of_registry() } else { error };
                    tracing::debug!(address = %opener.address, %error, "no luck");
                    failures.push(error);
                }
            }
        }
        match failures.len() {
            1 => Err(failures.remove(0)),
            _ => Err(Error::Everywhere { name: promise.name.to_owned(), failures }),
        }
    }

    /// Opens a file or, from where it stopped, the rest of it.
    async fn open(
        &self,
        opener: &Opener<'_>,
        headers: &HeaderMap,
    ) -> Result<(reqwest::Response, Address), Failure> {
        let transport = &self.shared.transport;
        let Some(visit) = &opener.visit else {
            return transport.open(opener.address, headers, &self.cancel).await;
        };
        let redirects = Redirects::Within(&self.shared.config.registries);
        let call = Call { redirects, ..Call::get(opener.address, headers) };
        let (response, from) = self.access().send(&self.means(), visit, call).await?;
        match response.status() {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => Ok((response, from)),
            _ => Err(refusal(&from, &response)),
        }
    }

    fn download_from<W: Write>(
        &self,
        opener: &Opener<'_>,
        promise: &Promise<'_>,
        open: &mut impl FnMut() -> Result<W, crate::base::Error>,
    ) -> Result<W, Error> {
        let mut partial: Option<Partial<W>> = None;
        self.persist(opener.address, async || {
            let start = partial.as_ref().map_or(0, |partial| partial.count);
            let mut headers = HeaderMap::new();
            // The digest is of the file as it is, never of a decoded one.
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            if start > 0 {
                let range = HeaderValue::from_str(&format!("bytes={start}-"))
                    .expect("digits are a header value");
                headers.insert(header::RANGE, range);
            }
            let opened = self.open(opener, &headers).await;
            let (response, from) = match opened {
                // The server has less than came before: start again.
                Err(Failure::Final(Error::Status { status, .. }))
                    if status == StatusCode::RANGE_NOT_SATISFIABLE && start > 0 =>
                {
                    partial = None;
                    return Err(Failure::passing("the server cannot go on where it stopped"));
                }
                other => other?,
            };
            let goes_on = response.status() == StatusCode::PARTIAL_CONTENT && start > 0;
            if goes_on && !range_starts_at(response.headers(), start) {
                partial = None;
                return Err(Failure::passing("the server goes on at another place"));
            }
            if !goes_on {
                partial = None;
            }
            let came = if goes_on { start } else { 0 };
            if let (Some(size), Some(length)) = (promise.size, response.content_length())
                && came + length != size
            {
                return Err(promise.wrong_size(came + length, false).into());
            }
            let state = match &mut partial {
                Some(state) => {
                    state.resumed = true;
                    state
                }
                none => none.insert(Partial {
                    sink: open()?,
                    hasher: Sha256::new(),
                    count: 0,
                    resumed: false,
                }),
            };
            self.shared
                .transport
                .read(&from, response, &self.cancel, |piece| {
                    state.count += piece.len() as u64;
                    if promise.size.is_some_and(|size| state.count > size) {
                        return Err(promise.wrong_size(state.count, true).into());
                    }
                    state.hasher.update(piece);
                    state.sink.write_all(piece).map_err(crate::base::Error::Io)?;
                    Ok(())
                })
                .await?;
            if promise.size.is_some_and(|size| state.count < size) {
                let error = promise.wrong_size(state.count, false);
                return Err(Failure::Passing {
                    reason: error.to_string(),
                    status: None,
                    wait: None,
                    unconnected: false,
                    source: Some(Box::new(error)),
                });
            }
            let actual = Digest::from_bytes(state.hasher.clone().finalize().into());
            if actual == promise.digest {
                return Ok(());
            }
            let resumed = state.resumed;
            partial = None;
            if resumed {
                // The parts may stem from two different files.
                return Err(Failure::passing("the parts do not make the promised file"));
            }
            Err(Error::Base(crate::base::Error::DigestMismatch {
                name: promise.name.to_owned(),
                expected: promise.digest,
                actual,
            })
            .into())
        })?;
        Ok(partial.expect("a download that ended well has its sink").sink)
    }

    pub(super) fn demand_network(&self, name: &str, address: &Address) -> Result<(), Error> {
        if self.shared.config.offline {
            let (name, address) = (name.to_owned(), address.clone());
            return Err(Error::Offline { name, address, server: Server::Archive });
        }
        Ok(())
    }

    /// Tries until it succeeds, fails for good, or patience ends.
    pub(super) fn persist<T>(
        &self,
        address: &Address,
        mut attempt: impl AsyncFnMut() -> Result<T, Failure>,
    ) -> Result<T, Error> {
        let patience = self.shared.config.patience;
        let server = address.url().authority().to_owned();
        let down = || self.shared.down.lock().expect("no holder panics");
        let runtime =
            self.shared.runtime.as_ref().expect("the runtime lives as long as the client");
        runtime.block_on(async {
            let mut tries = 0;
            loop {
                self.cancel.check()?;
                let failure = match attempt().await {
                    Ok(value) => {
                        down().remove(&server);
                        return Ok(value);
                    }
                    Err(failure) => failure,
                };
                tries += 1;
                let (reason, status, wait, unconnected, source) = match failure {
                    Failure::Final(error) => return Err(error),
                    Failure::Passing { reason, status, wait, unconnected, source } => {
                        (reason, status, wait, unconnected, source)
                    }
                };
                let most = match unconnected {
                    true if down().contains(&server) => 1,
                    true => UNCONNECTED_TRIES.min(patience.tries),
                    false => patience.tries,
                };
                if tries >= most {
                    if unconnected {
                        down().insert(server);
                    }
                    let address = address.clone();
                    let server = Server::Archive;
                    return Err(match status {
                        Some(status) => Error::Status { address, status, tries, server },
                        None => Error::Unreachable { address, reason, tries, server, source },
                    });
                }
                if let (Some(wait), Some(status)) = (wait, status)
                    && wait > patience.longest_retry_after
                {
                    let (address, server) = (address.clone(), Server::Archive);
                    return Err(Error::AskedToWait { address, status, wait, server });
                }
                let wait = wait.unwrap_or_else(|| patience.wait(tries));
                tracing::debug!(%address, %reason, tries, ?wait, "trying again");
                until_cancelled(&self.cancel, tokio::time::sleep(wait)).await?;
            }
        })
    }
}

impl Promise<'_> {
    fn wrong_size(&self, actual: u64, more: bool) -> Error {
        Error::Base(crate::base::Error::SizeMismatch {
            name: self.name.to_owned(),
            // Only called where a size was promised.
            expected: self.size.unwrap_or_default(),
            actual,
            more,
        })
    }
}

/// Whether `Content-Range: bytes START-...` starts there.
fn range_starts_at(headers: &HeaderMap, start: u64) -> bool {
    headers
        .get(header::CONTENT_RANGE)
        .and_then(|value| value.to_str().ok()?.strip_prefix("bytes ")?.split('-').next())
        .and_then(|text| text.trim().parse().ok())
        == Some(start)
}
