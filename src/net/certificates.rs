//! The certificate authorities that this host trusts.
//!
//! `SSL_CERT_FILE` takes the place of the system's bundle, as with OpenSSL; what pip and requests are
//! told to trust (`PIP_CERT`, `REQUESTS_CA_BUNDLE`, pip's `cert`) and `SSL_CERT_DIR` come on top,
//! since one client serves index and mirror alike.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::Error;

/// Where the system's bundle is: Debian, Fedora, SUSE, Alpine and macOS.
const SYSTEM_BUNDLES: [&str; 5] = [
    "etc/ssl/certs/ca-certificates.crt",
    "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "etc/pki/tls/certs/ca-bundle.crt",
    "etc/ssl/ca-bundle.pem",
    "etc/ssl/cert.pem",
];

/// Files of PEM certificates to trust.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Certificates {
    /// Files, each of which must read.
    pub files: Vec<PathBuf>,
    /// Folders of files; what is not a certificate in them is skipped.
    pub folders: Vec<PathBuf>,
}

impl Certificates {
    /// The system's bundle below `root`, where there is one.
    pub(super) fn system_bundle(root: &Path) -> Option<PathBuf> {
        SYSTEM_BUNDLES.iter().map(|path| root.join(path)).find(|path| path.is_file())
    }

    /// All certificates, each once.
    pub(super) fn load(&self) -> Result<BTreeSet<Vec<u8>>, Error> {
        let fail = |path: &Path, reason: String| Error::Certificates { path: path.into(), reason };
        let mut all = BTreeSet::new();
        for path in &self.files {
            let bytes = fs_err::read(path).map_err(|error| fail(path, error.to_string()))?;
            let before = all.len();
            for item in CertificateDer::pem_slice_iter(&bytes) {
                let certificate = item.map_err(|error| fail(path, error.to_string()))?;
                all.insert(certificate.to_vec());
            }
            if all.len() == before && CertificateDer::from_pem_slice(&bytes).is_err() {
                return Err(fail(path, "it holds no PEM certificate".to_owned()));
            }
        }
        for folder in &self.folders {
            let entries =
                fs_err::read_dir(folder).map_err(|error| fail(folder, error.to_string()))?;
            for entry in entries.flatten() {
                let path = entry.path();
                if !path.is_file() {
                    continue;
                }
                match fs_err::read(&path) {
                    Ok(bytes) => all.extend(
                        CertificateDer::pem_slice_iter(&bytes).flatten().map(|c| c.to_vec()),
                    ),
                    Err(error) => tracing::debug!(%error, "unreadable certificate"),
                }
            }
        }
        Ok(all)
    }

    /// All certificates as one PEM text, for a program that takes one file.
    pub fn to_pem(&self) -> Result<String, Error> {
        let mut text = String::new();
        for certificate in self.load()? {
            text.push_str("-----BEGIN CERTIFICATE-----\n");
            for line in base64(&certificate).as_bytes().chunks(64) {
                text.push_str(std::str::from_utf8(line).expect("base64 is ASCII"));
                text.push('\n');
            }
            text.push_str("-----END CERTIFICATE-----\n");
        }
        Ok(text)
    }
}

/// RFC 4648 section 4.
pub(super) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().chain([0, 0].iter()).take(3);
        let word = group.fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        for place in 0..4 {
            let index = (word >> (18 - 6 * place) & 63) as usize;
            text.push(if place <= chunk.len() { char::from(ALPHABET[index]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_follows_the_rfc() {
        // RFC 4648 section 10.
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn a_file_without_certificates_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        fs_err::write(&path, "nothing\n").unwrap();
        let named = |files: &[&Path]| Certificates {
            files: files.iter().map(|path| path.to_path_buf()).collect(),
            folders: Vec::new(),
        };
        assert!(named(&[&path]).load().is_err());
        assert!(named(&[Path::new("/nonexistent/ca.pem")]).load().is_err());
        let held = Certificates { files: Vec::new(), folders: vec![folder.path().into()] };
        assert_eq!(held.load().unwrap().len(), 0);
    }

    #[test]
    fn certificates_round_trip_as_pem() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let body = base64(&[7; 100]);
        let text = format!(
            "# comment\n-----BEGIN CERTIFICATE-----\n{}\n{}\n{}\n-----END CERTIFICATE-----\n",
            &body[..64],
            &body[64..128],
            &body[128..]
        );
        fs_err::write(&path, format!("{text}{text}")).unwrap();
        let named = Certificates { files: vec![path], folders: Vec::new() };
        assert_eq!(named.to_pem().unwrap(), text.strip_prefix("# comment\n").unwrap());
    }
}
