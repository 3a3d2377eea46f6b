//! Hands a stream of bytes to several threads in chunks that are shared, bounded and used again.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// Small enough for a cache, large enough that hand-overs cost nothing.
const CHUNK: usize = 512 << 10;

/// Chunks that may wait for each reader.
const AHEAD: usize = 8;

/// A piece of the stream. Its memory goes back to the writer when the last reader drops it.
pub(super) struct Chunk {
    bytes: Vec<u8>,
    length: usize,
    home: Sender<Vec<u8>>,
}

impl Chunk {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // The writer may be done; then nobody needs the memory.
        let _ = self.home.send(std::mem::take(&mut self.bytes));
    }
}

/// The writing end.
pub(super) struct ChunkWriter {
    bytes: Vec<u8>,
    filled: usize,
    written: u64,
    readers: Vec<SyncSender<Arc<Chunk>>>,
    used: Receiver<Vec<u8>>,
    home: Sender<Vec<u8>>,
}

/// A writer and `N` readers that each get every chunk.
pub(super) fn chunks<const N: usize>() -> (ChunkWriter, [Receiver<Arc<Chunk>>; N]) {
    let (home, used) = channel();
    let mut readers = Vec::new();
    let receivers = std::array::from_fn(|_| {
        let (sender, receiver) = sync_channel(AHEAD);
        readers.push(sender);
        receiver
    });
    let bytes = vec![0; CHUNK];
    (ChunkWriter { bytes, filled: 0, written: 0, readers, used, home }, receivers)
}

impl ChunkWriter {
    /// Room for more bytes, never empty; what was put there counts after [`ChunkWriter::advance`].
    pub(super) fn room(&mut self) -> io::Result<&mut [u8]> {
        if self.filled == self.bytes.len() {
            self.pass_on()?;
        }
        Ok(&mut self.bytes[self.filled..])
    }

    /// Takes over the first `count` bytes of the room.
    pub(super) fn advance(&mut self, count: usize) {
        self.filled += count;
        self.written += count as u64;
    }

    /// Passes on what is left and returns the length of the whole stream. Readers see its end.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.pass_on()?;
        Ok(self.written)
    }

    fn pass_on(&mut self) -> io::Result<()> {
        if self.filled == 0 {
            return Ok(());
        }
        let next = self.used.try_recv().unwrap_or_else(|_| vec![0; CHUNK]);
        let bytes = std::mem::replace(&mut self.bytes, next);
        let chunk = Arc::new(Chunk { bytes, length: self.filled, home: self.home.clone() });
        self.filled = 0;
        for reader in &self.readers {
            // A reader that is gone has an error of its own, which is the one to report.
            reader
                .send(Arc::clone(&chunk))
                .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        }
        Ok(())
    }
}

impl Write for ChunkWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let room = self.room()?;
        let count = room.len().min(buffer.len());
        room[..count].copy_from_slice(&buffer[..count]);
        self.advance(count);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reader_sees_every_byte_in_order() {
        let (mut writer, readers) = chunks::<2>();
        let bytes: Vec<u8> = (0..=250).cycle().take(5 * CHUNK + 7).collect();
        let seen: Vec<Vec<u8>> = std::thread::scope(|scope| {
            let threads = readers.map(|reader| {
                scope.spawn(move || {
                    reader.iter().flat_map(|chunk| chunk.bytes().to_vec()).collect::<Vec<u8>>()
                })
            });
            writer.write_all(&bytes).unwrap();
            assert_eq!(writer.finish().unwrap(), bytes.len() as u64);
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(seen.iter().all(|seen| *seen == bytes));
    }
}
