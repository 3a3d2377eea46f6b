//! A request body that one thread writes while the connection reads it, a few buffers apart.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::Stream;
use tokio::sync::{mpsc, oneshot};

/// 256 KiB: few wake-ups a layer, little memory.
const BUFFER: usize = 256 << 10;

/// Buffers on the way.
const QUEUE: usize = 8;

/// The writing end. Bytes that are not flushed are lost, and so is the stream's good end.
pub(super) struct BodyWriter {
    sender: mpsc::Sender<io::Result<Bytes>>,
    buffer: Vec<u8>,
}

/// What stays with whoever waits for the answer.
pub(super) struct BodyWatch {
    sent: Arc<AtomicU64>,
    /// Dropped, it cuts the stream.
    _stop: oneshot::Sender<()>,
}

impl BodyWatch {
    /// Bytes that were handed to the connection.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

/// A body: its writing end, its watch, and the stream.
pub(super) fn body()
-> (BodyWriter, BodyWatch, impl Stream<Item = io::Result<Bytes>> + Send + 'static) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let (stop, stopped) = oneshot::channel();
    let sent = Arc::new(AtomicU64::new(0));
    let watch = BodyWatch { sent: Arc::clone(&sent), _stop: stop };
    let stream = futures_util::stream::unfold(
        (receiver, stopped, sent),
        |(mut receiver, mut stopped, sent)| async move {
            let item: io::Result<Bytes> = tokio::select! {
                biased;
                // An error breaks the connection off; an end would make a cut archive look whole.
                _ = &mut stopped => Some(Err(io::ErrorKind::Interrupted.into())),
                item = receiver.recv() => item,
            }?;
            if let Ok(bytes) = &item {
                sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            }
            Some((item, (receiver, stopped, sent)))
        },
    );
    (BodyWriter { sender, buffer: Vec::with_capacity(BUFFER) }, watch, stream)
}

impl BodyWriter {
    /// Breaks the body off: the reader must not take what came for whole.
    pub(super) fn fail(self) {
        // Nobody may be reading any more.
        let _ = self.sender.blocking_send(Err(io::ErrorKind::InvalidData.into()));
    }
}

impl Write for BodyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let full = std::mem::replace(&mut self.buffer, Vec::with_capacity(BUFFER));
        self.sender
            .blocking_send(Ok(full.into()))
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}
