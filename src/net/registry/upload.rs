//! Blobs to bring: mounted from a repository that has them, else uploaded, in one piece or several.
//!
//! An upload is a session with an address that changes with every answer. When a piece does not arrive, the session is asked
//! how far it came and goes on there; where it does not know (any more), the upload begins anew.

use std::cell::Cell;
use std::path::Path;

use reqwest::header;
use reqwest::{Method, Response, StatusCode};

use super::super::body::{Meter, Part, Payload};
use super::super::transfer::Failure;
use super::super::{Address, Error};
use super::repository::{Ask, Repository, headers};
use crate::base::Digest;

/// The smallest piece that a registry can make us send by refusing larger ones. Whoever takes less of one than this did not
/// take it: byte by byte an upload would never end.
const SMALLEST_PIECE: u64 = 1 << 20;

/// How a blob came to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uploaded {
    /// From another repository of the registry.
    Mounted,
    /// Sent.
    Sent,
}

/// A repository of the same registry that has the blob.
pub type Mount<'a> = Option<&'a str>;

/// How far an upload is.
struct Session {
    address: Address,
    /// Bytes that the registry has.
    offset: u64,
}

/// What an answer says of an upload.
struct Standing {
    address: Address,
    /// Bytes that the registry has, where it says so.
    offset: Option<u64>,
}

impl Repository {
    /// Brings the blob that is the whole of `path`. `from` is tried first and costs no request of its own. `report` is told
    /// how many bytes more have gone out.
    pub fn upload(
        &self,
        digest: &Digest,
        size: u64,
        path: &Path,
        from: Mount<'_>,
        report: &dyn Fn(u64),
    ) -> Result<Uploaded, Error> {
        let begin = self.address("blobs/uploads")?.as_folder();
        let job = Job {
            repository: self,
            begin,
            digest,
            size,
            path,
            from,
            meter: Meter::new(report),
            piece: Cell::new(self.client.config().registries.largest_piece),
            scopes: self.to_push(from),
        };
        let mut session: Option<Session> = None;
        let mut furthest = 0;
        let mut cut = false;
        loop {
            // Patience is anew whenever the registry has more than ever: a blob of many pieces may meet many cuts.
            let done = self.persist(&job.begin, async || {
                if std::mem::take(&mut cut) {
                    session = job.resume(session.take()).await?;
                }
                let result = job.go_on(&mut session, &mut furthest).await;
                cut = matches!(result, Err(Failure::Passing { .. }));
                result
            })?;
            if let Some(done) = done {
                return Ok(done);
            }
        }
    }
}

struct Job<'a> {
    repository: &'a Repository,
    begin: Address,
    digest: &'a Digest,
    size: u64,
    path: &'a Path,
    from: Mount<'a>,
    meter: Meter<'a>,
    piece: Cell<u64>,
    scopes: Vec<String>,
}

impl Job<'_> {
    /// Sends pieces until the registry has more than ever; `Some` when it has the blob.
    async fn go_on(
        &self,
        session: &mut Option<Session>,
        furthest: &mut u64,
    ) -> Result<Option<Uploaded>, Failure> {
        loop {
            let done = match session {
                Some(_) => self.send_piece(session).await?,
                None => self.begin(session).await?,
            };
            if done.is_some() {
                return Ok(done);
            }
            if let Some(Session { offset, .. }) = session
                && *offset > *furthest
            {
                *furthest = *offset;
                return Ok(None);
            }
        }
    }

    /// Sends the next piece; `Some` when it was the last.
    async fn send_piece(&self, session: &mut Option<Session>) -> Result<Option<Uploaded>, Failure> {
        let Some(open) = session else { return Ok(None) };
        let left = self.size - open.offset;
        let length = left.min(self.piece.get());
        let last = length == left;
        let address = if last {
            open.address.with_query(&[("digest", &self.digest.to_string())])
        } else {
            open.address.clone()
        };
        let end = open.offset + length;
        let range = format!("{}-{}", open.offset, end.saturating_sub(1));
        let mut lines = vec![(header::CONTENT_TYPE, "application/octet-stream")];
        if !(last && open.offset == 0) {
            lines.push((header::CONTENT_RANGE, &range));
        }
        let body = match length {
            0 => Payload::Bytes(bytes::Bytes::new()),
            _ => Payload::File(Part {
                path: self.path,
                start: open.offset,
                length,
                meter: &self.meter,
            }),
        };
        let method = if last { Method::PUT } else { Method::PATCH };
        let answer = self.ask(method, &address, &lines, body).await?;
        match (answer.0.status(), last) {
            (StatusCode::CREATED, true) => Ok(Some(Uploaded::Sent)),
            (StatusCode::ACCEPTED, false) => {
                let now = self.standing(&answer)?;
                let offset = now.offset.unwrap_or(end);
                if offset > end {
                    return Err(nonsense(&answer.1, "it has more than it was sent").into());
                }
                let before = std::mem::replace(open, Session { address: now.address, offset });
                let took = offset.saturating_sub(before.offset);
                if took < length {
                    // What is sent in vain is then less, in all, than one of the largest pieces.
                    self.piece.set(took.max(SMALLEST_PIECE).min(length));
                }
                if took < length.min(SMALLEST_PIECE) {
                    return Err(Failure::passing("the registry took next to nothing of a piece"));
                }
                Ok(None)
            }
            (StatusCode::PAYLOAD_TOO_LARGE, _) if self.piece.get() > SMALLEST_PIECE => {
                self.piece.set((length / 4).max(SMALLEST_PIECE));
                Ok(None)
            }
            // The session is gone, or stands elsewhere.
            (StatusCode::NOT_FOUND | StatusCode::RANGE_NOT_SATISFIABLE, _) => {
                *session = None;
                Err(Failure::passing("the registry lost the upload"))
            }
            _ => Err(self.repository.objection(answer).await),
        }
    }

    async fn begin(&self, session: &mut Option<Session>) -> Result<Option<Uploaded>, Failure> {
        let digest = self.digest.to_string();
        let address = match self.from {
            Some(from) => self.begin.with_query(&[("mount", &digest), ("from", from)]),
            None => self.begin.clone(),
        };
        let answer =
            self.ask(Method::POST, &address, &[], Payload::Bytes(bytes::Bytes::new())).await?;
        match answer.0.status() {
            StatusCode::CREATED => Ok(Some(Uploaded::Mounted)),
            StatusCode::ACCEPTED => {
                *session = Some(Session { address: self.standing(&answer)?.address, offset: 0 });
                Ok(None)
            }
            _ => Err(self.repository.objection(answer).await),
        }
    }

    /// Where a cut upload stands; `None` when it must begin anew.
    async fn resume(&self, session: Option<Session>) -> Result<Option<Session>, Failure> {
        let Some(session) = session else { return Ok(None) };
        let answer = self.ask(Method::GET, &session.address, &[], Payload::None).await?;
        if !matches!(answer.0.status(), StatusCode::NO_CONTENT | StatusCode::OK) {
            tracing::debug!(status = %answer.0.status(), "the upload begins anew");
            return Ok(None);
        }
        let Standing { address, offset } = self.standing(&answer)?;
        // A piece may have come whole, and only the answer was lost: then nothing is left but to end the upload.
        let offset = offset.filter(|offset| *offset <= self.size);
        Ok(offset.map(|offset| Session { address, offset }))
    }

    /// Reads address and place of an upload from an answer.
    fn standing(&self, (response, from): &(Response, Address)) -> Result<Standing, Error> {
        let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let location = text(header::LOCATION)
            .ok_or_else(|| nonsense(from, "it does not say where the upload goes on"))?;
        let address = from
            .resolve(location)
            .map_err(|reason| nonsense(from, &format!("where the upload goes on: {reason}")))?;
        if from.is_secure() && !address.is_secure() {
            return Err(nonsense(from, "the upload would leave https for http"));
        }
        self.repository.client.config().registries.admit(from, &address)?;
        // `0-N`, both ends included. Nothing at all looks like one byte, which no piece of ours is.
        let offset = text(header::RANGE).and_then(|range| {
            let end =
                range.trim_start_matches("bytes=").split_once('-')?.1.trim().parse::<u64>().ok()?;
            Some(if end == 0 { 0 } else { end.saturating_add(1) })
        });
        Ok(Standing { address, offset })
    }

    async fn ask(
        &self,
        method: Method,
        address: &Address,
        lines: &[(header::HeaderName, &str)],
        body: Payload<'_>,
    ) -> Result<(Response, Address), Failure> {
        let ask = Ask { method, address, headers: headers(lines), body, scopes: &self.scopes };
        self.repository.ask(ask).await
    }
}

fn nonsense(address: &Address, reason: &str) -> Error {
    Error::NoRegistry { address: address.clone(), reason: reason.to_owned() }
}
