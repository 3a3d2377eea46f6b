//! uv's configuration file, as far as it says where the default index is.

use serde::Deserialize;

/// What is taken of `uv.toml`; everything else is uv's own business. Extra indexes and find-links are
/// never taken: they would let the host change what a lock holds.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    index_url: Option<String>,
    #[serde(default)]
    index: Vec<Index>,
    pip: Option<Pip>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Index {
    name: Option<String>,
    url: String,
    #[serde(default)]
    default: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Pip {
    index_url: Option<String>,
}

/// The default index of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DefaultIndex {
    /// Its name, by which `UV_INDEX_<NAME>_USERNAME` and `_PASSWORD` are found.
    pub(super) name: Option<String>,
    /// Its address.
    pub(super) url: String,
}

/// Reads the default index of a `uv.toml`, if it names one.
pub(super) fn parse(text: &str) -> Result<Option<DefaultIndex>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    if let Some(index) = file.index.into_iter().find(|index| index.default) {
        return Ok(Some(DefaultIndex { name: index.name, url: index.url }));
    }
    let url = file.index_url.or(file.pip.and_then(|pip| pip.index_url));
    Ok(url.map(|url| DefaultIndex { name: None, url }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_default_index_is_taken() {
        let url = |text| parse(text).unwrap().map(|index| index.url);
        assert_eq!(url(""), None);
        assert_eq!(url("offline = true\nfind-links = [\"/opt/wheels\"]\n"), None);
        assert_eq!(url("index-url = \"https://a.test/\"\n"), Some("https://a.test/".into()));
        assert_eq!(url("[pip]\nindex-url = \"https://b.test/\"\n"), Some("https://b.test/".into()));
        assert_eq!(url("[[index]]\nurl = \"https://extra.test/\"\n"), None);
        let named = "index-url = \"https://a.test/\"\n[[index]]\nurl = \"https://extra.test/\"\n\
                     [[index]]\nname = \"corp\"\nurl = \"https://c.test/\"\ndefault = true\n";
        assert_eq!(
            parse(named).unwrap(),
            Some(DefaultIndex { name: Some("corp".into()), url: "https://c.test/".into() })
        );
        assert!(parse("index-url = 3\n").is_err());
    }
}
