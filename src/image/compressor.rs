//! Compressors whose output depends on their input, level and version alone: never on the number of cores.
//!
//! zstd always runs with worker threads and a fixed job size, which cuts the input at the same places however many
//! workers there are. Gzip is cut into blocks that are deflated apart, each ended at a byte, and joined
//! to one member; that is 40 lines over flate2, while the parallel gzip crates write one member per block,
//! which not every reader follows.

use std::io::Write;
use std::num::NonZero;

use serde::{Deserialize, Serialize};
use zstd::zstd_safe::CParameter;

use super::gzip::GzipWriter;
use crate::base::Error;

/// 8 MiB: four windows of level 3, so that jobs lose little at their borders; workers and their buffers stay small.
const ZSTD_JOB: u32 = 8 << 20;

/// Workers beyond these wait for the reading thread, and cost memory.
const MOST_WORKERS: usize = 8;

/// How layers are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compressor {
    /// zstd, in parallel jobs of fixed size.
    Zstd {
        /// 1 to 19.
        level: i32,
    },
    /// gzip, in parallel blocks of fixed size.
    Gzip {
        /// 1 to 9.
        level: u32,
    },
}

impl Default for Compressor {
    /// zstd, level 3: zstd's own default.
    fn default() -> Self {
        Self::Zstd { level: 3 }
    }
}

/// Everything that compressed bytes depend on besides their content.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub struct CompressorRecord {
    /// Which implementation.
    pub compressor: String,
    /// Its version.
    pub version: String,
    /// Its level.
    pub level: i32,
    /// Bytes of input that are compressed apart; the number of workers does not matter.
    pub job_size: u32,
}

impl Compressor {
    /// What is recorded with each blob.
    pub fn record(self) -> CompressorRecord {
        match self {
            Self::Zstd { level } => CompressorRecord {
                compressor: "zstd".to_owned(),
                version: zstd::zstd_safe::version_string().to_owned(),
                level,
                job_size: ZSTD_JOB,
            },
            Self::Gzip { level } => CompressorRecord {
                compressor: "gzip-miniz_oxide".to_owned(),
                version: super::gzip::VERSION.to_owned(),
                level: level.cast_signed(),
                job_size: super::gzip::BLOCK,
            },
        }
    }

    /// The media type of a layer that it made.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Zstd { .. } => "application/vnd.oci.image.layer.v1.tar+zstd",
            Self::Gzip { .. } => "application/vnd.oci.image.layer.v1.tar+gzip",
        }
    }

    /// A writer that compresses to `out`.
    pub(super) fn writer<W: Write>(self, out: W) -> Result<CompressingWriter<W>, Error> {
        self.writer_with(out, workers())
    }

    pub(super) fn writer_with<W: Write>(
        self,
        out: W,
        workers: usize,
    ) -> Result<CompressingWriter<W>, Error> {
        Ok(match self {
            Self::Zstd { level } => {
                let mut encoder = zstd::Encoder::new(out, level)?;
                encoder.multithread(u32::try_from(workers).expect("a few"))?;
                encoder.set_parameter(CParameter::JobSize(ZSTD_JOB))?;
                CompressingWriter::Zstd(encoder)
            }
            Self::Gzip { level } => CompressingWriter::Gzip(GzipWriter::new(out, level, workers)),
        })
    }
}

/// Workers for this machine.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get).min(MOST_WORKERS)
}

/// Compresses what is written.
pub(super) enum CompressingWriter<W: Write> {
    Zstd(zstd::Encoder<'static, W>),
    Gzip(GzipWriter<W>),
}

impl<W: Write> CompressingWriter<W> {
    /// Writes the end and returns the inner writer.
    pub(super) fn finish(self) -> Result<W, Error> {
        Ok(match self {
            Self::Zstd(encoder) => encoder.finish()?,
            Self::Gzip(writer) => writer.finish()?,
        })
    }
}

impl<W: Write> Write for CompressingWriter<W> {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Zstd(encoder) => encoder.write(buffer),
            Self::Gzip(writer) => writer.write(buffer),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Zstd(encoder) => encoder.flush(),
            Self::Gzip(writer) => writer.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    /// Compressible and not, over several jobs.
    pub(crate) fn sample() -> Vec<u8> {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut bytes = Vec::new();
        while bytes.len() < 9 << 20 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            if state.is_multiple_of(3) {
                bytes.extend_from_slice(&state.to_le_bytes());
            } else {
                bytes.extend_from_slice(b"def test_something(self):\n");
            }
        }
        bytes
    }

    fn compressed(compressor: Compressor, bytes: &[u8], workers: usize, step: usize) -> Vec<u8> {
        let mut writer = compressor.writer_with(Vec::new(), workers).unwrap();
        for part in bytes.chunks(step) {
            writer.write_all(part).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn bytes_do_not_depend_on_workers_or_on_how_they_are_written() {
        let sample = sample();
        for compressor in [Compressor::default(), Compressor::Gzip { level: 6 }] {
            for bytes in [&sample[..], &sample[..1 << 20], &sample[..10], b""] {
                let one = compressed(compressor, bytes, 1, 512 << 10);
                for (workers, step) in [(2, 512 << 10), (5, 512 << 10), (2, 3 << 20), (3, 77_777)] {
                    let other = compressed(compressor, bytes, workers, step);
                    assert!(one == other, "{compressor:?} {} {workers} {step}", bytes.len());
                }
                let mut back = Vec::new();
                match compressor {
                    Compressor::Zstd { .. } => {
                        zstd::Decoder::new(&one[..]).unwrap().read_to_end(&mut back).unwrap();
                    }
                    Compressor::Gzip { .. } => {
                        // One member: the decoder that stops after the first sees everything.
                        flate2::read::GzDecoder::new(&one[..]).read_to_end(&mut back).unwrap();
                    }
                }
                assert!(back == bytes, "{compressor:?} {}", bytes.len());
            }
        }
    }
}
