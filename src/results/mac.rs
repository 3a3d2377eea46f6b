//! HMAC-SHA256 (RFC 2104): what authenticates the lines of a report.

use sha2::{Digest as _, Sha256};

/// Block length of SHA-256.
const BLOCK: usize = 64;

/// The code of `parts`, one after the other, as lower-case hex.
pub(crate) fn hmac_hex(key: &[u8], parts: &[&[u8]]) -> String {
    let mut block = [0; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let mut inner = Sha256::new();
    inner.update(block.map(|byte| byte ^ 0x36));
    for part in parts {
        inner.update(part);
    }
    let mut outer = Sha256::new();
    outer.update(block.map(|byte| byte ^ 0x5c));
    outer.update(inner.finalize());
    hex::encode(outer.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meets_the_published_vectors() {
        // RFC 4231, test cases 1, 2 and 6.
        for (key, data, expected) in [
            (
                vec![0x0b; 20],
                &b"Hi There"[..],
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe".to_vec(),
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                vec![0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            assert_eq!(hmac_hex(&key, &[data]), expected);
            assert_eq!(hmac_hex(&key, &[&data[..3], &data[3..]]), expected);
        }
    }
}
