//! SHA-256 digests: the only kind hallmark writes.
//!
//! Text form is `sha256:` and 64 lower-case hex digits, as in the OCI image specification
//! (descriptor.md, "Digests"). Upper-case hex, other algorithms and bare hex are refused.

use std::fmt;
use std::io::{Read, Write};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// A text that is not a digest.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{text}` is not a digest: expected `sha256:` and 64 lower-case hex digits")]
pub struct DigestError {
    text: String,
}

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The 64 hex digits, without the algorithm.
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }

    /// The first twelve hex digits, for people.
    pub fn short(&self) -> String {
        hex::encode(&self.0[..6])
    }

    /// Reads 64 lower-case hex digits, as indexes and sums files write them.
    pub fn from_hex(text: &str) -> Result<Self, DigestError> {
        let error = || DigestError { text: text.chars().take(100).collect() };
        let mut bytes = [0; 32];
        if text.len() != 64 || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(error());
        }
        hex::decode_to_slice(text, &mut bytes).map_err(|_| error())?;
        Ok(Self(bytes))
    }

    /// The raw bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The digest held in raw bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || DigestError { text: text.chars().take(100).collect() };
        Self::from_hex(text.strip_prefix("sha256:").ok_or_else(error)?).map_err(|_| error())
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Digest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^sha256:[0-9a-f]{64}$" })
    }
}

/// Hashes and counts what is written through it.
pub struct HashingWriter<W> {
    inner: W,
    hasher: Sha256,
    count: u64,
}

impl<W: Write> HashingWriter<W> {
    /// Starts with nothing hashed.
    pub fn new(inner: W) -> Self {
        Self { inner, hasher: Sha256::new(), count: 0 }
    }

    /// The inner writer, the digest of all that was written, and its length in bytes.
    pub fn finish(self) -> (W, Digest, u64) {
        (self.inner, Digest(self.hasher.finalize().into()), self.count)
    }
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.hasher.update(&buffer[..written]);
        self.count += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

/// Hashes and counts what is read through it.
pub struct HashingReader<R> {
    inner: R,
    hasher: Sha256,
    count: u64,
}

impl<R: Read> HashingReader<R> {
    /// Starts with nothing hashed.
    pub fn new(inner: R) -> Self {
        Self { inner, hasher: Sha256::new(), count: 0 }
    }

    /// The inner reader, the digest of all that was read, and its length in bytes.
    pub fn finish(self) -> (R, Digest, u64) {
        (self.inner, Digest(self.hasher.finalize().into()), self.count)
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        self.count += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // FIPS 180-4 examples: the empty message.
    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn text_form_round_trips_and_is_strict() {
        let digest = Digest::of(b"");
        assert_eq!(digest.to_string(), format!("sha256:{EMPTY}"));
        assert_eq!(format!("sha256:{EMPTY}").parse(), Ok(digest));
        for bad in ["", EMPTY, "sha512:00", "sha256:", &format!("sha256:{}", EMPTY.to_uppercase())]
        {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }

    #[test]
    fn streams_hash_what_passes() {
        let mut writer = HashingWriter::new(Vec::new());
        writer.write_all(b"abc").unwrap();
        let (inner, digest, count) = writer.finish();
        assert_eq!((inner.as_slice(), digest, count), (&b"abc"[..], Digest::of(b"abc"), 3));
    }
}
