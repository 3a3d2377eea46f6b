//! Words that nobody can guess.

use std::io::{self, Read as _};

/// 32 hex digits, from the kernel.
pub fn nonce() -> io::Result<String> {
    let mut bytes = [0; 16];
    fs_err::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex::encode(bytes))
}
