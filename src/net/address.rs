//! A web address that never shows its secrets: credentials and queries (signed addresses carry
//! tokens there) are used, but `Display` and `Debug` leave them out.

use std::fmt;
use std::sync::Arc;

use url::Url;

/// An `http` or `https` address. Cheap to clone, small in errors.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address(Arc<Url>);

impl Address {
    /// Reads an address; the error says what is wrong, without the text itself.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let url =
            Url::parse(text.trim()).map_err(|_| "not an address such as https://host/path")?;
        Self::from_url(url)
    }

    pub(super) fn from_url(url: Url) -> Result<Self, &'static str> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err("only http and https are supported");
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err("it names no host");
        }
        Ok(Self(Arc::new(url)))
    }

    /// The address below this one, as a folder; `path` holds plain names parted by `/`.
    pub fn below(&self, path: &str) -> Result<Self, &'static str> {
        if path.split('/').any(|part| matches!(part, "" | "." | "..")) || path.contains('\\') {
            return Err("the path is not a plain relative one");
        }
        let mut url = Url::clone(&self.0);
        url.set_query(None);
        url.set_fragment(None);
        url.path_segments_mut()
            .map_err(|()| "it has no path")?
            .pop_if_empty()
            .extend(path.split('/'));
        Ok(Self(Arc::new(url)))
    }

    /// The same address with a slash at its end.
    #[must_use]
    pub fn as_folder(&self) -> Self {
        let mut url = Url::clone(&self.0);
        if !url.path().ends_with('/') {
            let path = format!("{}/", url.path());
            url.set_path(&path);
        }
        Self(Arc::new(url))
    }

    /// The same address with these pairs at the end of its query.
    pub(super) fn with_query(&self, pairs: &[(&str, &str)]) -> Self {
        let mut url = Url::clone(&self.0);
        url.query_pairs_mut().extend_pairs(pairs);
        Self(Arc::new(url))
    }

    /// What `reference` means on the page at this address.
    pub(super) fn resolve(&self, reference: &str) -> Result<Self, &'static str> {
        let mut url = self.0.join(reference).map_err(|_| "not an address")?;
        if url.username().is_empty() && url.password().is_none() && url.origin() == self.0.origin()
        {
            // A relative reference keeps the page's credentials; an absolute one to the same
            // place gets them as well, which is what pip and uv do.
            let _ = url.set_username(self.0.username());
            let _ = url.set_password(self.0.password());
        }
        Self::from_url(url)
    }

    /// The address with everything in it. Never print this.
    pub fn expose(&self) -> &str {
        self.0.as_str()
    }

    pub(super) fn url(&self) -> &Url {
        &self.0
    }

    /// The address without credentials and fragment: what a request line may hold.
    pub(super) fn bare(&self) -> Url {
        let mut url = Url::clone(&self.0);
        // Both can only fail for addresses without a host, which `from_url` refuses.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_fragment(None);
        url
    }

    /// User name and password, percent-decoded, where the address holds any.
    pub(super) fn credentials(&self) -> Option<Credentials> {
        let (user, password) = (self.0.username(), self.0.password());
        if user.is_empty() && password.is_none() {
            return None;
        }
        Some(Credentials { user: decode(user), password: password.map(decode) })
    }

    /// The same address with these credentials, unless it has its own.
    #[must_use]
    pub(super) fn with_credentials(mut self, user: &str, password: &str) -> Self {
        if self.credentials().is_none() {
            let url = Arc::make_mut(&mut self.0);
            let _ = url.set_username(user);
            let _ = url.set_password((!password.is_empty()).then_some(password));
        }
        self
    }

    pub(super) fn is_secure(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Whether both are on one server: scheme, host and port.
    pub(super) fn same_origin(&self, other: &Self) -> bool {
        self.0.origin() == other.0.origin()
    }
}

/// What a server asks for.
#[derive(Clone)]
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: Option<String>,
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == b'%'
            && let Some(hex) = tail.get(..2)
            && let Ok(byte) = hex::decode(hex)
        {
            bytes.extend(byte);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = self.bare();
        let query = url.query().is_some();
        url.set_query(None);
        let text = url.as_str();
        match text.split_once("://") {
            Some((scheme, rest)) if self.credentials().is_some() => {
                write!(f, "{scheme}://***@{rest}")?;
            }
            _ => f.write_str(text)?,
        }
        if query { f.write_str("?***") } else { Ok(()) }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        Address::parse(text).unwrap()
    }

    #[test]
    fn secrets_are_used_but_never_shown() {
        let secret = address("https://me:s%40cret@host.test:8443/simple/?token=abc#frag");
        for shown in [format!("{secret}"), format!("{secret:?}")] {
            assert_eq!(shown, "https://***@host.test:8443/simple/?***");
        }
        let credentials = secret.credentials().unwrap();
        assert_eq!(
            (credentials.user.as_str(), credentials.password.as_deref()),
            ("me", Some("s@cret"))
        );
        assert_eq!(secret.bare().as_str(), "https://host.test:8443/simple/?token=abc");
    }

    #[test]
    fn paths_are_joined_as_below_a_folder() {
        for (base, path, joined) in [
            (
                "https://h.test/debian",
                "dists/sid/InRelease",
                "https://h.test/debian/dists/sid/InRelease",
            ),
            ("https://h.test/debian/", "a", "https://h.test/debian/a"),
            ("https://h.test", "a/b", "https://h.test/a/b"),
            ("https://h.test/d", "pool/a+b~1_x?.deb", "https://h.test/d/pool/a+b~1_x%3F.deb"),
        ] {
            assert_eq!(address(base).below(path).unwrap().expose(), joined);
        }
        for bad in ["../a", "/a", "a//b", "a/", "a/..", "", "a\\b"] {
            assert!(address("https://h.test/d").below(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn credentials_follow_a_link_on_one_server_only() {
        let page = address("https://u:p@h.test/simple/x/");
        for (reference, whole) in [
            ("../../files/x.whl", "https://u:p@h.test/files/x.whl"),
            ("https://h.test/x.whl", "https://u:p@h.test/x.whl"),
            ("https://other.test/x.whl", "https://other.test/x.whl"),
            ("http://h.test/x.whl", "http://h.test/x.whl"),
            ("//h.test:8443/x.whl", "https://h.test:8443/x.whl"),
        ] {
            assert_eq!(page.resolve(reference).unwrap().expose(), whole);
        }
        assert!(page.resolve("file:///etc/passwd").is_err());
    }

    #[test]
    fn other_schemes_are_refused() {
        for bad in ["ftp://h.test/", "file:///x", "cdrom:x", "h.test/x", "https://", ""] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
    }
}
