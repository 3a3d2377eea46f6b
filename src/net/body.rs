//! What a request carries: nothing, bytes, or a part of a file that is read while it is sent.
//!
//! A type of our own, since the HTTP library's body of a file has no length, which makes it a chunked one, which registries
//! refuse; and since the sender must see how far it is.

use std::cell::Cell;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// Large enough that neither the disk nor the socket waits for the other.
const PIECE: u64 = 256 * 1024;

/// The body of a request, which can be opened again.
pub(super) enum Payload<'a> {
    None,
    Bytes(Bytes),
    File(Part<'a>),
}

/// A part of a file.
pub(super) struct Part<'a> {
    pub(super) path: &'a Path,
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) meter: &'a Meter<'a>,
}

/// Counts the bytes of a file that went out.
pub(super) struct Meter<'a> {
    /// All of them, those that went out in vain too.
    moved: Arc<AtomicU64>,
    /// The furthest place of the file.
    furthest: Arc<AtomicU64>,
    told: Cell<u64>,
    report: &'a dyn Fn(u64),
}

impl<'a> Meter<'a> {
    /// `report` is told how many bytes more have gone out.
    pub(super) fn new(report: &'a dyn Fn(u64)) -> Self {
        Self { moved: Arc::default(), furthest: Arc::default(), told: Cell::new(0), report }
    }

    fn tell(&self) {
        let furthest = self.furthest.load(Ordering::Relaxed);
        let told = self.told.replace(furthest);
        if furthest > told {
            (self.report)(furthest - told);
        }
    }
}

impl Payload<'_> {
    /// The body from its beginning.
    pub(super) fn open(&self) -> Result<Option<reqwest::Body>, crate::base::Error> {
        Ok(match self {
            Self::None => None,
            Self::Bytes(bytes) => Some(bytes.clone().into()),
            Self::File(part) => {
                let mut file = fs_err::File::open(part.path)?;
                file.seek(SeekFrom::Start(part.start))?;
                Some(reqwest::Body::wrap(FileBody {
                    file,
                    place: part.start,
                    left: part.length,
                    moved: Arc::clone(&part.meter.moved),
                    furthest: Arc::clone(&part.meter.furthest),
                }))
            }
        })
    }

    /// Whether there is a body, and nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Bytes(bytes) if bytes.is_empty())
    }

    /// How many bytes the connection took, over all tries.
    pub(super) fn moved(&self) -> u64 {
        match self {
            Self::File(part) => part.meter.moved.load(Ordering::Relaxed),
            _ => 0,
        }
    }

    /// Reports what went out since the last time.
    pub(super) fn tell(&self) {
        if let Self::File(part) = self {
            part.meter.tell();
        }
    }
}

/// Reads the file where the connection asks for more. Such reads block, mostly on nothing: layers were just written.
struct FileBody {
    file: fs_err::File,
    place: u64,
    left: u64,
    moved: Arc<AtomicU64>,
    furthest: Arc<AtomicU64>,
}

impl http_body::Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let wanted = usize::try_from(self.left.min(PIECE)).expect("a piece is small");
        let mut bytes = vec![0; wanted];
        if let Err(error) = self.file.read_exact(&mut bytes) {
            return Poll::Ready(Some(Err(error)));
        }
        let count = bytes.len() as u64;
        self.left -= count;
        self.place += count;
        self.moved.fetch_add(count, Ordering::Relaxed);
        self.furthest.fetch_max(self.place, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(bytes.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
