//! Canonical JSON (RFC 8785, JCS): the only JSON that is hashed or stored by digest.
//!
//! Keys are sorted by UTF-16 code units, numbers are written as ECMAScript writes them, nothing is
//! escaped that need not be. Maps with non-string keys and non-finite numbers are errors.

use serde::Serialize;

use super::{Digest, Error};

/// The canonical bytes of `value`.
pub fn to_vec<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    serde_json_canonicalizer::to_vec(value).map_err(Error::Canon)
}

/// The digest of the canonical bytes of `value`: the way every key is made.
pub fn digest<T: Serialize>(value: &T) -> Result<Digest, Error> {
    to_vec(value).map(Digest::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_rfc() {
        // RFC 8785 section 3.2.2 and 3.2.3: number and key order examples.
        let value: serde_json::Value = serde_json::from_str(
            r#"{"b":[333333333.33333329,1E30,4.50,2e-3],"a":"\u000f\n€","\u20ac":1,"\r":2}"#,
        )
        .unwrap();
        let text = String::from_utf8(to_vec(&value).unwrap()).unwrap();
        assert_eq!(
            text,
            "{\"\\r\":2,\"a\":\"\\u000f\\n€\",\"b\":[333333333.3333333,1e+30,4.5,0.002],\"€\":1}"
        );
    }
}
