//! Names of instance images in daemons and registries, made by templates.
//!
//! The harness of SWE-bench looks for two forms: `sweb.eval.x86_64.<id>:latest` on a machine of its own, and
//! `swebench/sweb.eval.x86_64.<id with _1776_ for __>:latest` in a registry, whose users may not have `__` in a name.

use oci_spec::distribution::Reference;

use super::Error;
use crate::base::Arch;

/// A pattern of image names.
///
/// | in the template | in the name |
/// | --- | --- |
/// | `{id}` | the instance's id in lower case |
/// | `{id_1776}` | the same with `_1776_` for `__` |
/// | `{arch}` | the processor as the field writes it: `x86_64`, `arm64` |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameTemplate(String);

const PLACES: [&str; 3] = ["id", "id_1776", "arch"];

impl NameTemplate {
    /// What the harness looks for on the machine it runs on.
    pub const LOCAL: &'static str = "sweb.eval.{arch}.{id}:latest";
    /// What it looks for in a registry, where `swebench` is the namespace.
    pub const REMOTE: &'static str = "swebench/sweb.eval.{arch}.{id_1776}:latest";

    /// Reads a template; it must give a good name for an ordinary instance, and another one for another.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let template = Self(text.to_owned());
        let fault = |problem: String| Error::Template { template: text.to_owned(), problem };
        for (place, _) in template.parts().filter_map(Result::err) {
            if !PLACES.contains(&place) {
                return Err(fault(format!("there is no {{{place}}}")));
            }
        }
        let [first, second] = ["owner__name-1", "owner__name-2"]
            .map(|id| template.name(id, Arch::HOST).map_err(|error| fault(error.to_string())));
        if first? == second? {
            return Err(fault("it names all instances alike".to_owned()));
        }
        Ok(template)
    }

    /// The name of an instance's image; a tag is always in it, `latest` where the template has none.
    pub fn name(&self, id: &str, arch: Arch) -> Result<String, Error> {
        let id = id.to_lowercase();
        let mut name = String::new();
        for part in self.parts() {
            match part {
                Ok(text) => name.push_str(text),
                Err(("id", _)) => name.push_str(&id),
                Err(("id_1776", _)) => name.push_str(&id.replace("__", "_1776_")),
                Err(("arch", _)) => name.push_str(match arch {
                    Arch::Amd64 => "x86_64",
                    Arch::Arm64 => "arm64",
                }),
                Err((_, whole)) => name.push_str(whole),
            }
        }
        let fault =
            |problem: &str| Error::Reference { name: name.clone(), problem: problem.to_owned() };
        let reference =
            Reference::try_from(name.as_str()).map_err(|error| fault(&error.to_string()))?;
        // The crate lets it pass; daemons and registries do not.
        if reference.repository().bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(fault("only its tag may have upper case"));
        }
        if reference.digest().is_some() {
            return Err(fault("a digest is not a name to give"));
        }
        let tagged = name.rsplit('/').next().is_some_and(|last| last.contains(':'));
        Ok(if tagged { name } else { format!("{name}:latest") })
    }

    /// Texts as `Ok`, places as `Err` of what is between the braces and of the whole.
    fn parts(&self) -> impl Iterator<Item = Result<&str, (&str, &str)>> {
        let mut rest = self.0.as_str();
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let open = rest.find('{').unwrap_or(rest.len());
            if open > 0 {
                let (text, after) = rest.split_at(open);
                rest = after;
                return Some(Ok(text));
            }
            let Some(close) = rest.find('}') else { return Some(Ok(std::mem::take(&mut rest))) };
            let (whole, after) = rest.split_at(close + 1);
            rest = after;
            Some(Err((&whole[1..close], whole)))
        })
    }
}

impl std::fmt::Display for NameTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_the_harness_looks_for() {
        let name = |template: &str, id: &str| {
            NameTemplate::parse(template).unwrap().name(id, Arch::Amd64).unwrap()
        };
        let id = "psf__requests-1142";
        assert_eq!(name(NameTemplate::LOCAL, id), "sweb.eval.x86_64.psf__requests-1142:latest");
        assert_eq!(
            name(NameTemplate::REMOTE, id),
            "swebench/sweb.eval.x86_64.psf_1776_requests-1142:latest"
        );
        assert_eq!(
            name("registry.example:5000/a/{id}:{arch}", "Owner__Name-1"),
            "registry.example:5000/a/owner__name-1:x86_64"
        );
        assert_eq!(name("registry.example:5000/{id}", "a-1"), "registry.example:5000/a-1:latest");
        assert_eq!(name("a/{id}:V1", "a-1"), "a/a-1:V1");
        let arm = NameTemplate::parse(NameTemplate::LOCAL).unwrap().name("a-1", Arch::Arm64);
        assert_eq!(arm.unwrap(), "sweb.eval.arm64.a-1:latest");
    }

    #[test]
    fn templates_that_cannot_work_are_refused() {
        for (template, why) in [
            ("images:latest", "alike"),
            ("{arch}", "alike"),
            ("{name}:latest", "{name}"),
            ("{id", "invalid reference"),
            ("A/{id}/:x", "invalid reference"),
            ("X/{id}", "upper case"),
            ("registry.example/Team/{id_1776}:v1", "invalid reference"),
            ("two words/{id}", "invalid reference"),
            ("{id}@sha256:aa", "invalid"),
            ("", "at least one component"),
        ] {
            let error = NameTemplate::parse(template).unwrap_err().to_string();
            assert!(error.contains(why), "{template}: {error}");
        }
        let long = NameTemplate::parse("{id}").unwrap();
        assert!(long.name(&"a".repeat(256), Arch::HOST).is_err());
        assert!(matches!(long.name("pkg-1.0+local", Arch::HOST), Err(Error::Reference { .. })));
    }
}
