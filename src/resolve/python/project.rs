//! What a project says of itself: the core metadata that its backend makes, and the dependency groups of its
//! `pyproject.toml` (PEP 735).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use regex_lite::Regex;
use serde::Deserialize;

use super::Error;
use super::normalize;

/// The fields of core metadata that a resolution needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Metadata {
    /// Normalised name.
    pub(super) name: String,
    requires: Vec<String>,
    extras: BTreeSet<String>,
}

impl Metadata {
    /// Reads `METADATA` or `PKG-INFO`.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let mut name = None;
        let (mut requires, mut extras) = (Vec::new(), BTreeSet::new());
        for line in text.lines().take_while(|line| !line.is_empty()) {
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match key.to_ascii_lowercase().as_str() {
                "name" => name = Some(normalize(value)),
                "requires-dist" => requires.push(value.to_owned()),
                "provides-extra" => {
                    extras.insert(normalize(value));
                }
                _ => {}
            }
        }
        let name = name.ok_or_else(|| Error::Unreadable {
            what: "the project's metadata".to_owned(),
            problem: "it has no name".to_owned(),
        })?;
        Ok(Self { name, requires, extras })
    }

    /// The dependencies with these extras, as requirements without a word on extras.
    pub(super) fn dependencies(
        &self,
        extras: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>, Error> {
        let mut wanted: BTreeSet<String> = BTreeSet::new();
        let mut open: Vec<String> = extras.iter().map(|extra| normalize(extra)).collect();
        let own = Regex::new(r"^([A-Za-z0-9._-]+)\s*\[([^\]]*)\]").expect("a constant pattern");
        while let Some(extra) = open.pop() {
            if !self.extras.contains(&extra) {
                return Err(Error::NoSuch {
                    project: self.name.clone(),
                    kind: "extra",
                    name: extra,
                    existing: self.extras.iter().cloned().collect(),
                });
            }
            if !wanted.insert(extra) {
                continue;
            }
            // An extra may be made of other extras of the same project.
            for requirement in &self.requires {
                if let Some(found) = own.captures(requirement)
                    && normalize(&found[1]) == self.name
                    && marker_holds_an_extra(requirement, &wanted)
                {
                    open.extend(found[2].split(',').map(|name| normalize(name.trim())));
                }
            }
        }
        let name_end = |text: &str| {
            text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'))
                .unwrap_or(text.len())
        };
        Ok(self
            .requires
            .iter()
            .filter(|requirement| normalize(&requirement[..name_end(requirement)]) != self.name)
            .map(|requirement| without_extras(requirement, &wanted))
            .collect())
    }
}

fn extra_terms() -> Regex {
    Regex::new(r#"extra\s*(==|!=)\s*['"]([^'"]*)['"]|['"]([^'"]*)['"]\s*(==|!=)\s*extra\b"#)
        .expect("a constant pattern")
}

fn marker_holds_an_extra(requirement: &str, wanted: &BTreeSet<String>) -> bool {
    extra_terms().captures_iter(requirement).any(|term| {
        let name = term.get(2).or(term.get(3)).map_or("", |found| found.as_str());
        wanted.contains(&normalize(name))
    })
}

/// The requirement with each term on extras replaced by one that is always true or always false.
fn without_extras(requirement: &str, wanted: &BTreeSet<String>) -> String {
    extra_terms()
        .replace_all(requirement, |term: &regex_lite::Captures<'_>| {
            let name = term.get(2).or(term.get(3)).map_or("", |found| found.as_str());
            let operator = term.get(1).or(term.get(4)).map_or("", |found| found.as_str());
            let holds = wanted.contains(&normalize(name)) == (operator == "==");
            if holds { "python_version >= '3'" } else { "python_version < '3'" }
        })
        .into_owned()
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Pyproject {
    #[serde(default)]
    dependency_groups: BTreeMap<String, Vec<toml::Value>>,
}

/// The requirements of `groups` in the source's `pyproject.toml`; `project` is for errors.
pub(super) fn groups(
    source: &Path,
    project: &str,
    groups: &[String],
) -> Result<BTreeSet<String>, Error> {
    if groups.is_empty() {
        return Ok(BTreeSet::new());
    }
    let path = source.join("pyproject.toml");
    let text = if path.exists() {
        super::source::read(source, Path::new("pyproject.toml"))?
    } else {
        String::new()
    };
    parse_groups(&text, project, groups)
}

fn parse_groups(text: &str, project: &str, groups: &[String]) -> Result<BTreeSet<String>, Error> {
    let unreadable = |problem: String| Error::Unreadable {
        what: format!("pyproject.toml of {project}"),
        problem,
    };
    let parsed: Pyproject =
        toml::from_str(text).map_err(|error| unreadable(error.message().to_owned()))?;
    let all: BTreeMap<String, &Vec<toml::Value>> =
        parsed.dependency_groups.iter().map(|(name, items)| (normalize(name), items)).collect();
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut open: Vec<String> = groups.iter().map(|group| normalize(group)).collect();
    while let Some(group) = open.pop() {
        let Some(items) = all.get(&group) else {
            return Err(Error::NoSuch {
                project: project.to_owned(),
                kind: "dependency group",
                name: group,
                existing: all.keys().cloned().collect(),
            });
        };
        // A group that includes itself, directly or not, adds nothing new.
        if !seen.insert(group.clone()) {
            continue;
        }
        for item in *items {
            match (item, item.get("include-group").and_then(toml::Value::as_str)) {
                (toml::Value::String(requirement), _) => {
                    found.insert(requirement.clone());
                }
                (_, Some(included)) => open.push(normalize(included)),
                _ => return Err(unreadable(format!("the group `{group}` has an unknown entry"))),
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = "Metadata-Version: 2.1\nName: My.Proj\nVersion: 1\nProvides-Extra: all\nProvides-Extra: test\nProvides-Extra: Docs_x\nRequires-Dist: attrs>=1\nRequires-Dist: my-proj[test,docs-x]; extra == 'all'\nRequires-Dist: pytest; python_version > '3' and extra == \"test\"\nRequires-Dist: sphinx; 'docs-x' == extra\nRequires-Dist: slim; extra != 'test'\n\nRequires-Dist: not-a-field\n";

    fn set(items: &[&str]) -> BTreeSet<String> {
        items.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn extras_become_plain_markers() {
        let metadata = Metadata::parse(METADATA).unwrap();
        assert_eq!(metadata.name, "my-proj");
        assert_eq!(
            metadata.dependencies(&set(&[])).unwrap(),
            set(&[
                "attrs>=1",
                "pytest; python_version > '3' and python_version < '3'",
                "sphinx; python_version < '3'",
                "slim; python_version >= '3'",
            ])
        );
        assert_eq!(
            metadata.dependencies(&set(&["ALL"])).unwrap(),
            set(&[
                "attrs>=1",
                "pytest; python_version > '3' and python_version >= '3'",
                "sphinx; python_version >= '3'",
                "slim; python_version < '3'",
            ])
        );
    }

    #[test]
    fn unknown_names_list_what_there_is() {
        let error = Metadata::parse(METADATA).unwrap().dependencies(&set(&["tests"])).unwrap_err();
        assert_eq!(error.to_string(), "my-proj has no extra `tests`");
        assert_eq!(error.hint().unwrap(), "there are: all, docs-x, test");
        let text = "[dependency-groups]\nTest_a = ['pytest', {include-group='lint'}]\nlint=['ruff', {include-group='test-a'}]\n";
        assert_eq!(
            parse_groups(text, "p", &["test.a".to_owned()]).unwrap(),
            set(&["pytest", "ruff"])
        );
        let error = parse_groups(text, "p", &["dev".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "p has no dependency group `dev`");
        assert_eq!(error.hint().unwrap(), "there are: lint, test-a");
        let error = parse_groups("", "p", &["dev".to_owned()]).unwrap_err();
        assert_eq!(
            error.hint().unwrap(),
            "the project has no dependency groups at all; remove it from the spec"
        );
    }
}
