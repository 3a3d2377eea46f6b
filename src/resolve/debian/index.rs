//! The package index of a suite: text to [`Index`].

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::str::FromStr as _;

use deb822_fast::borrowed::{BorrowedParagraph, iter_paragraphs_borrowed};
use debversion::Version;

use crate::base::Digest;
use crate::lock::Deb;
use crate::resolve::Error;

/// Every package of a suite that one processor can install.
#[derive(Debug, Default)]
pub struct Index {
    /// By name; several versions of a name are sorted, the newest first.
    packages: BTreeMap<String, Vec<Package>>,
    /// Names of packages that provide a name, the most important first, with the provided version.
    providers: BTreeMap<String, Vec<Provider>>,
}

#[derive(Debug)]
struct Provider {
    priority: u8,
    name: String,
    version: Option<Version>,
}

/// What hallmark reads of a package.
#[derive(Debug, Clone, PartialEq)]
pub struct Package {
    /// Name.
    pub name: String,
    /// Version, compared as Debian does.
    pub version: Version,
    /// Whether every system must have it.
    pub essential: bool,
    /// Rank of its priority: `required` is 0.
    priority: u8,
    /// `Pre-Depends` and `Depends`.
    pub depends: Vec<Clause>,
    provides: Vec<Alternative>,
    /// The file.
    pub file: Deb,
}

/// Alternatives, of which one must be there.
#[derive(Debug, Clone, PartialEq)]
pub struct Clause {
    /// As the index writes it.
    pub text: String,
    alternatives: Vec<Alternative>,
}

#[derive(Debug, Clone, PartialEq)]
struct Alternative {
    name: String,
    constraint: Option<(Relation, Version)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Earlier,
    EarlierOrEqual,
    Equal,
    LaterOrEqual,
    Later,
}

impl Index {
    /// Reads a `Packages` file.
    pub fn parse(suite: &str, text: &str) -> Result<Self, Error> {
        let mut index = Self::default();
        for paragraph in iter_paragraphs_borrowed(text) {
            let package = paragraph
                .map_err(|error| error.to_string())
                .and_then(|paragraph| Package::read(&paragraph))
                .map_err(|problem| Error::Archive {
                    suite: suite.to_owned(),
                    file: "Packages".to_owned(),
                    problem,
                })?;
            for provided in &package.provides {
                let version = provided.constraint.as_ref().map(|(_, version)| version.clone());
                index.providers.entry(provided.name.clone()).or_default().push(Provider {
                    priority: package.priority,
                    name: package.name.clone(),
                    version,
                });
            }
            index.packages.entry(package.name.clone()).or_default().push(package);
        }
        for versions in index.packages.values_mut() {
            versions.sort_by(|a, b| b.version.cmp(&a.version));
        }
        for providers in index.providers.values_mut() {
            providers.sort_by(|a, b| (a.priority, &a.name).cmp(&(b.priority, &b.name)));
        }
        Ok(index)
    }

    /// The newest version of a package.
    pub fn package(&self, name: &str) -> Option<&Package> {
        self.packages.get(name)?.first()
    }

    /// The package file with this name and version.
    pub fn find(&self, name: &str, version: &str) -> Option<&Package> {
        let wanted = Version::from_str(version).ok()?;
        self.packages.get(name)?.iter().find(|package| package.version == wanted)
    }

    /// Every package that is essential, by name.
    pub fn essential(&self) -> impl Iterator<Item = &Package> {
        self.packages.values().filter_map(|versions| versions.first()).filter(|item| item.essential)
    }

    /// Names that are like `name`, at most three.
    pub fn similar(&self, name: &str) -> Vec<String> {
        let mut scored: Vec<(usize, &String)> = self
            .packages
            .keys()
            .filter(|candidate| {
                candidate.contains(name)
                    || name.contains(candidate.as_str())
                    || distance(candidate, name) <= 2
            })
            .map(|candidate| (distance(candidate, name), candidate))
            .collect();
        scored.sort();
        scored.into_iter().take(3).map(|(_, name)| name.clone()).collect()
    }

    /// Which package meets a clause: one that `preferred` knows; else the first alternative that exists; else
    /// the first provider of the first alternative that has one.
    pub(super) fn choose(
        &self,
        clause: &Clause,
        preferred: impl Fn(&str) -> bool,
    ) -> Option<&Package> {
        let real = |alternative: &Alternative| {
            self.packages
                .get(&alternative.name)?
                .iter()
                .find(|package| alternative.admits(Some(&package.version)))
        };
        let provided = |alternative: &Alternative| -> Vec<&Package> {
            self.providers
                .get(&alternative.name)
                .into_iter()
                .flatten()
                .filter(|provider| alternative.admits(provider.version.as_ref()))
                .filter_map(|provider| self.package(&provider.name))
                .collect()
        };
        let candidates: Vec<&Package> = clause
            .alternatives
            .iter()
            .filter_map(real)
            .chain(clause.alternatives.iter().flat_map(provided))
            .collect();
        candidates
            .iter()
            .find(|package| preferred(&package.name))
            .or_else(|| candidates.first())
            .copied()
    }
}

impl Alternative {
    /// Whether a version (none: a virtual package without one) fits.
    fn admits(&self, version: Option<&Version>) -> bool {
        let Some((relation, wanted)) = &self.constraint else { return true };
        let Some(version) = version else { return false };
        let order = version.cmp(wanted);
        match relation {
            Relation::Earlier => order == Ordering::Less,
            Relation::EarlierOrEqual => order != Ordering::Greater,
            Relation::Equal => order == Ordering::Equal,
            Relation::LaterOrEqual => order != Ordering::Less,
            Relation::Later => order == Ordering::Greater,
        }
    }

    /// `name:any (>= 1.0)`.
    fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is not a dependency");
        let (name, rest) = match text.split_once('(') {
            Some((name, rest)) => (name, Some(rest.trim_end().strip_suffix(')').ok_or_else(bad)?)),
            None => (text, None),
        };
        let name = name.trim();
        let name = name.split_once(':').map_or(name, |(name, _)| name);
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(bad());
        }
        let constraint = rest
            .map(|rest| {
                let rest = rest.trim();
                let split = rest.find(|c| !matches!(c, '<' | '=' | '>')).ok_or_else(bad)?;
                let relation = match &rest[..split] {
                    "<<" => Relation::Earlier,
                    "<=" | "<" => Relation::EarlierOrEqual,
                    "=" => Relation::Equal,
                    ">=" | ">" => Relation::LaterOrEqual,
                    ">>" => Relation::Later,
                    _ => return Err(bad()),
                };
                let version = Version::from_str(rest[split..].trim()).map_err(|_| bad())?;
                Ok((relation, version))
            })
            .transpose()?;
        Ok(Self { name: name.to_owned(), constraint })
    }
}

impl Clause {
    fn parse(text: &str) -> Result<Self, String> {
        let alternatives = text.split('|').map(Alternative::parse).collect::<Result<_, _>>()?;
        Ok(Self { text: text.trim().to_owned(), alternatives })
    }

    fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        text.split(',').filter(|clause| !clause.trim().is_empty()).map(Self::parse).collect()
    }
}

impl Package {
    fn read(paragraph: &BorrowedParagraph<'_>) -> Result<Self, String> {
        let name = paragraph.get_single("Package").ok_or("a paragraph has no `Package`")?;
        let field = |field: &str| {
            paragraph.get_single(field).ok_or_else(|| format!("{name} has no `{field}`"))
        };
        let list = |field: &str| {
            paragraph
                .get(field)
                .map(|lines| lines.join(" "))
                .map_or(Ok(Vec::new()), |text| Clause::parse_list(&text))
                .map_err(|problem| format!("{name}: {problem}"))
        };
        let version = field("Version")?;
        let mut depends = list("Pre-Depends")?;
        depends.extend(list("Depends")?);
        let provides =
            list("Provides")?.into_iter().flat_map(|clause| clause.alternatives).collect();
        Ok(Self {
            name: name.to_owned(),
            version: Version::from_str(version)
                .map_err(|_| format!("{name}: {version:?} is not a version"))?,
            essential: paragraph.get_single("Essential") == Some("yes"),
            priority: match paragraph.get_single("Priority") {
                Some("required") => 0,
                Some("important") => 1,
                Some("standard") => 2,
                Some("optional") => 3,
                _ => 4,
            },
            depends,
            provides,
            file: Deb {
                name: name.to_owned(),
                version: version.to_owned(),
                path: field("Filename")?.to_owned(),
                sha256: Digest::from_hex(field("SHA256")?)
                    .map_err(|error| format!("{name}: {error}"))?,
                size: field("Size")?
                    .parse()
                    .map_err(|_| format!("{name}: `Size` is not a number"))?,
            },
        })
    }
}

/// Levenshtein distance of two short names.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, c) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, d) in b.iter().enumerate() {
            let cost = diagonal + usize::from(c != *d);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_follow_debian_versions() {
        for (text, version, fits) in [
            ("x (>= 1.0)", "1.0~rc1", false),
            ("x (>= 1.0)", "1.0-1", true),
            ("x (<< 2:1)", "1:99", true),
            ("x (= 1.0-1)", "1.0-1+b1", false),
            ("x:any (>> 1)", "1.0", true),
            ("x (<= 1)", "1", true),
        ] {
            let alternative = Alternative::parse(text).unwrap();
            let version = Version::from_str(version).unwrap();
            assert_eq!(alternative.admits(Some(&version)), fits, "{text} {version}");
        }
        assert!(!Alternative::parse("x (= 1)").unwrap().admits(None));
        for text in ["", "(>= 1)", "x (1)", "x (>= 1", "x (=> 1)", "x y"] {
            assert!(Alternative::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn distances() {
        assert_eq!(distance("python3", "pyhton3"), 2);
        assert_eq!(distance("gcc", "gcc"), 0);
        assert_eq!(distance("", "gcc"), 3);
    }
}
