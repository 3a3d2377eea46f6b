//! Whose signature on an InRelease file counts: the archive keys of Debian 11, 12 and 13, shipped as data.
//!
//! | file | fingerprint of the primary key |
//! | --- | --- |
//! | debian-bullseye-automatic | 1F89983E0081FDE018F3CC9673A4F27B8DD47936 |
//! | debian-bullseye-stable | A4285295FC7B1A81600062A9605C66F00D6C9793 |
//! | debian-bookworm-automatic | B8B80B5B623EAB6AD8775C45B7C5D7D6350947F8 |
//! | debian-bookworm-stable | 4D64FEC119C2029067D6E791F8D2585B8783D481 |
//! | debian-trixie-automatic | 04B54C3CDCA79751B16BC6B5225629DF75B188BD |
//! | debian-trixie-stable | 41587F7DB8C774BCCF131416762F67A0B2C39DE4 |
//!
//! They are the files of Debian's own package `debian-archive-keyring`, in armour. One good signature of any of
//! them is enough, as for apt. A signature counts when its hash is SHA-256 or better and it was made before
//! its key expired: an old snapshot stays valid for as long as its key was.

use pgp::composed::{CleartextSignedMessage, Deserializable, SignedPublicKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::Signature;
use pgp::types::{KeyDetails as _, VerifyingKey};

use crate::resolve::Error;

const DEBIAN: [&str; 6] = [
    include_str!("../keys/debian-bullseye-automatic.asc"),
    include_str!("../keys/debian-bullseye-stable.asc"),
    include_str!("../keys/debian-bookworm-automatic.asc"),
    include_str!("../keys/debian-bookworm-stable.asc"),
    include_str!("../keys/debian-trixie-automatic.asc"),
    include_str!("../keys/debian-trixie-stable.asc"),
];

/// Public keys that may sign InRelease files.
pub struct Keyring {
    keys: Vec<SignedPublicKey>,
}

impl Keyring {
    /// Debian's archive keys.
    pub fn debian() -> Self {
        Self::parse(&DEBIAN).expect("the shipped keys read; a test proves it")
    }

    /// Keys in ASCII armour, for archives of one's own.
    pub fn parse(armoured: &[&str]) -> Result<Self, Error> {
        let keys = armoured
            .iter()
            .map(|text| {
                let (key, _) = SignedPublicKey::from_string(text)?;
                // Not the user ids: they carry certifications by other keys, which cannot be checked and
                // which nothing here rests on.
                for subkey in &key.public_subkeys {
                    subkey.verify_bindings(&key.primary_key)?;
                }
                Ok(key)
            })
            .collect::<Result<_, pgp::errors::Error>>()
            .map_err(|error| Error::Signature {
                suite: String::new(),
                reason: format!("a key does not read: {error}"),
            })?;
        Ok(Self { keys })
    }

    /// The fingerprints of the primary keys, upper-case hex.
    pub fn fingerprints(&self) -> Vec<String> {
        self.keys.iter().map(|key| format!("{:X}", key.fingerprint())).collect()
    }

    /// The signed text of an InRelease file, once one of the keys has signed it. Nothing outside of the signed
    /// part is ever looked at.
    pub fn verify(&self, suite: &str, inrelease: &[u8]) -> Result<String, Error> {
        let refuse = |reason: String| Error::Signature { suite: suite.to_owned(), reason };
        let text = std::str::from_utf8(inrelease)
            .map_err(|_| refuse("it is not UTF-8 text".to_owned()))?;
        let (message, _) = CleartextSignedMessage::from_string(text)
            .map_err(|error| refuse(format!("it is not a signed text ({error})")))?;
        let signed = message.signed_text();
        let mut reasons = Vec::new();
        for signature in message.signatures() {
            match self.check(signature, &signed) {
                Ok(()) => return Ok(signed.replace("\r\n", "\n")),
                Err(reason) => reasons.push(reason),
            }
        }
        reasons.sort();
        reasons.dedup();
        Err(refuse(match reasons.as_slice() {
            [] => "it has no signature".to_owned(),
            reasons => reasons.join("; "),
        }))
    }

    fn check(&self, signature: &Signature, signed: &str) -> Result<(), String> {
        let signer = signature
            .issuer_fingerprint()
            .first()
            .map(|print| format!("{print:X}"))
            .or_else(|| signature.issuer_key_id().first().map(|id| id.to_string().to_uppercase()))
            .unwrap_or_else(|| "a key without a name".to_owned());
        if !matches!(
            signature.hash_alg(),
            Some(HashAlgorithm::Sha256 | HashAlgorithm::Sha384 | HashAlgorithm::Sha512)
        ) {
            return Err(format!("the signature of {signer} has a weak hash"));
        }
        let mut reason = format!("{signer} is not one of the trusted keys");
        for key in &self.keys {
            if signature_names(signature, key) {
                let expires = key
                    .details
                    .users
                    .iter()
                    .flat_map(|user| &user.signatures)
                    .chain(&key.details.direct_signatures)
                    .filter(|made| signature_names(made, key))
                    .collect::<Vec<_>>();
                match verify_with(signature, key, &expires, signed) {
                    Ok(()) => return Ok(()),
                    Err(why) => reason = format!("the signature of {signer} {why}"),
                }
            }
            for subkey in &key.public_subkeys {
                // `verify_bindings` has checked the back signature of every subkey that may sign.
                let may_sign = subkey.signatures.iter().any(|binding| binding.key_flags().sign());
                if may_sign && signature_names(signature, &subkey.key) {
                    let bindings = subkey.signatures.iter().collect::<Vec<_>>();
                    match verify_with(signature, &subkey.key, &bindings, signed) {
                        Ok(()) => return Ok(()),
                        Err(why) => reason = format!("the signature of {signer} {why}"),
                    }
                }
            }
        }
        Err(reason)
    }
}

fn signature_names(signature: &Signature, key: &impl VerifyingKey) -> bool {
    let prints = signature.issuer_fingerprint();
    if prints.is_empty() {
        return signature.issuer_key_id().contains(&&key.legacy_key_id());
    }
    prints.contains(&&key.fingerprint())
}

/// `bindings` are the self-signatures that say when the key expires.
fn verify_with(
    signature: &Signature,
    key: &impl VerifyingKey,
    bindings: &[&Signature],
    signed: &str,
) -> Result<(), String> {
    signature.verify(key, signed.as_bytes()).map_err(|_| "does not fit the text".to_owned())?;
    let made = signature.created().ok_or("has no date")?.as_secs();
    let born = key.created_at().as_secs();
    // The newest self-signature decides; no expiry in it means that the key has none.
    let lifetime = bindings
        .iter()
        .max_by_key(|binding| binding.created().map(pgp::types::Timestamp::as_secs))
        .and_then(|binding| binding.key_expiration_time())
        .map(|lifetime| u64::from(lifetime.as_secs()))
        .filter(|seconds| *seconds > 0);
    if made < born {
        return Err("was made before its key".to_owned());
    }
    if lifetime.is_some_and(|seconds| u64::from(made) > u64::from(born) + seconds) {
        return Err("was made after its key expired".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_keys_are_the_documented_ones() {
        assert_eq!(
            Keyring::debian().fingerprints(),
            [
                "1F89983E0081FDE018F3CC9673A4F27B8DD47936",
                "A4285295FC7B1A81600062A9605C66F00D6C9793",
                "B8B80B5B623EAB6AD8775C45B7C5D7D6350947F8",
                "4D64FEC119C2029067D6E791F8D2585B8783D481",
                "04B54C3CDCA79751B16BC6B5225629DF75B188BD",
                "41587F7DB8C774BCCF131416762F67A0B2C39DE4",
            ]
        );
    }
}
