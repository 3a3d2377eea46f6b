//! Gzip in parallel: blocks of fixed size, deflated apart and joined to one member.
//!
//! Each block but the last ends with an empty stored block, so that it ends at a byte, and refers to nothing before
//! itself, so that blocks join to one valid stream. The header says nothing: no name, no time, unknown system.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, sync_channel};

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

/// Bytes of input per block.
pub(super) const BLOCK: u32 = 1 << 20;

/// The version of miniz_oxide, which does the work. A test compares it with Cargo.lock.
pub(super) const VERSION: &str = "0.9.1";

/// Magic, deflate, no flags, no time, no extra flags, unknown system (RFC 1952).
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

struct Block {
    deflated: Vec<u8>,
    crc: Crc,
}

/// Compresses what is written; see the module's text.
pub(super) struct GzipWriter<W: Write> {
    out: W,
    level: u32,
    workers: usize,
    input: Vec<u8>,
    /// Blocks at work, in order.
    pending: VecDeque<Receiver<Block>>,
    crc: Crc,
    started: bool,
}

impl<W: Write> GzipWriter<W> {
    pub(super) fn new(out: W, level: u32, workers: usize) -> Self {
        let input = Vec::with_capacity(BLOCK as usize);
        let pending = VecDeque::new();
        Self { out, level, workers, input, pending, crc: Crc::new(), started: false }
    }

    /// Writes the end and returns the inner writer.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.start_block(true)?;
        while !self.pending.is_empty() {
            self.write_block()?;
        }
        self.out.write_all(&self.crc.sum().to_le_bytes())?;
        self.out.write_all(&self.crc.amount().to_le_bytes())?;
        Ok(self.out)
    }

    fn start_block(&mut self, last: bool) -> io::Result<()> {
        while self.pending.len() >= self.workers {
            self.write_block()?;
        }
        let input = std::mem::replace(&mut self.input, Vec::with_capacity(BLOCK as usize));
        let (sender, receiver) = sync_channel(1);
        let level = self.level;
        std::thread::Builder::new().name("gzip".to_owned()).spawn(move || {
            // The writer may have failed meanwhile; then nobody waits for the block.
            let _ = sender.send(deflate(&input, level, last));
        })?;
        self.pending.push_back(receiver);
        Ok(())
    }

    fn write_block(&mut self) -> io::Result<()> {
        let Some(receiver) = self.pending.pop_front() else { return Ok(()) };
        let block = receiver
            .recv()
            .map_err(|_| io::Error::other("a compressing thread ended before its block"))?;
        if !self.started {
            self.started = true;
            self.out.write_all(&HEADER)?;
        }
        self.crc.combine(&block.crc);
        self.out.write_all(&block.deflated)
    }
}

impl<W: Write> Write for GzipWriter<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        // A full block waits for more input, since the last one ends differently.
        if self.input.len() == BLOCK as usize {
            self.start_block(false)?;
        }
        let count = buffer.len().min(BLOCK as usize - self.input.len());
        self.input.extend_from_slice(&buffer[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn deflate(input: &[u8], level: u32, last: bool) -> Block {
    let mut crc = Crc::new();
    crc.update(input);
    let mut compress = Compress::new(Compression::new(level), false);
    let flush = if last { FlushCompress::Finish } else { FlushCompress::Sync };
    // More than deflate ever needs: a second call would see another state, and write other bytes.
    let mut deflated = Vec::with_capacity(input.len() + input.len() / 8 + 1024);
    loop {
        let done = usize::try_from(compress.total_in()).expect("no more than a block");
        let status = compress
            .compress_vec(&input[done..], &mut deflated, flush)
            .expect("deflate knows no bad input");
        let all_read = compress.total_in() == input.len() as u64;
        // A sync flush is whole when it leaves room in the output.
        let flushed = all_read && deflated.len() < deflated.capacity();
        if status == Status::StreamEnd || (!last && flushed) {
            return Block { deflated, crc };
        }
        deflated.reserve(4096);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_version_is_the_locked_one() {
        let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock");
        let text = fs_err::read_to_string(lock).unwrap();
        let expected = format!("name = \"miniz_oxide\"\nversion = \"{VERSION}\"\n");
        assert!(text.contains(&expected), "{expected}");
    }

    #[test]
    fn incompressible_blocks_are_whole() {
        let mut state = 88_172_645_463_325_252_u64;
        let bytes: Vec<u8> = (0..3 * BLOCK)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()[3]
            })
            .collect();
        let mut writer = GzipWriter::new(Vec::new(), 6, 2);
        writer.write_all(&bytes).unwrap();
        let gzip = writer.finish().unwrap();
        let mut back = Vec::new();
        io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&gzip[..]), &mut back).unwrap();
        assert!(back == bytes);
    }
}
