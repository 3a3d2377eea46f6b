//! From the text of a spec to a [`Spec`]: inheritance, then the rules of `check`.

use super::check::Checks;
use super::error::SpecErrors;
use super::inherit::{DEFAULTS, SpecFile, parent};
use super::model::Spec;
use super::raw::RawSpec;
use super::reader::{Raw as _, Reader};

/// Parses the spec `file`. `others` are the files that it may inherit from: those beside it, and
/// `_defaults.toml` one folder up. Every fault of the spec and of what it inherits is reported at once.
pub fn parse(file: &SpecFile, others: &[SpecFile]) -> Result<Spec, SpecErrors> {
    let mut reader = Reader::new();
    let mut checks = Checks { reader: &mut reader };
    let spec = checks.chain(file, others).and_then(|raw| checks.spec(file, raw));
    reader.finish(spec)
}

impl<'f> Checks<'_, 'f> {
    /// Reads the file and what it inherits from, and merges them. `None` when one of them is not TOML: what is
    /// missing then is not known.
    fn chain(&mut self, file: &'f SpecFile, others: &'f [SpecFile]) -> Option<RawSpec> {
        let mut seen: Vec<&SpecFile> = Vec::new();
        let mut merged: Option<RawSpec> = None;
        let mut sound = true;
        let mut next = Some(file);
        while let Some(current) = next {
            let (mut raw, good): (RawSpec, bool) = self.reader.file(current);
            sound &= good;
            seen.push(current);
            let inherits = raw.inherits.take();
            let named = inherits.as_ref().map(|name| (name.value.as_str(), &name.place));
            next = parent(current, named, others, self.reader);
            if let Some(again) = next
                && seen.iter().any(|earlier| earlier.path == again.path)
            {
                let names: Vec<_> = seen
                    .iter()
                    .chain([&again])
                    .map(|file| file.path.display().to_string())
                    .collect();
                let place =
                    inherits.map_or(Reader::start_of(seen.len() - 1), |inherits| inherits.place);
                self.reader.fault(
                    &place,
                    format!("inheritance goes in a circle: {}", names.join(" -> ")),
                    "remove one `inherits`, or move what they share to `_defaults.toml`",
                );
                next = None;
            }
            merged = Some(match merged {
                None => raw,
                Some(upper) => {
                    self.only_own(current, &mut raw);
                    upper.over(raw)
                }
            });
        }
        merged.filter(|_| sound)
    }

    /// Takes away what belongs to one file and is not inherited; `_defaults.toml` must not say it at all.
    fn only_own(&mut self, file: &SpecFile, raw: &mut RawSpec) {
        let places = [
            ("version", raw.version.take().map(|version| version.place)),
            ("setup", raw.setup.take().map(|setup| setup.place)),
        ];
        for (key, place) in places {
            if let Some(place) = place
                && file.file_name() == DEFAULTS
            {
                self.reader.fault(
                    &place,
                    format!("`{key}` belongs to one version and is not inherited"),
                    format!("write `{key}` in the spec of each version"),
                );
            }
        }
    }

    fn spec(&mut self, file: &SpecFile, raw: RawSpec) -> Option<Spec> {
        let repo = self.repo(file, raw.repo.as_ref());
        let version = self.version(file, raw.version.as_ref());
        let base = self.base(raw.base.as_ref());
        let python = self.python(raw.python.as_ref(), raw.base.as_ref());
        let system_packages = self.system_packages(raw.system_packages);
        let setup = self.setup(raw.setup.as_ref(), repo.as_deref(), version.as_deref());
        let dependencies = self.dependencies(raw.dependencies);
        let commands = self.commands(raw.commands);
        let test = self.test(raw.test);
        let env = self.env(raw.env);
        let limits = self.limits(&raw.limits.map(|limits| limits.value).unwrap_or_default());
        Some(Spec {
            repo: repo?,
            version: version?,
            setup: setup?,
            base: base?,
            python: python?,
            system_packages,
            dependencies: dependencies?,
            commands: commands?,
            test: test?,
            env,
            limits,
            compat: raw.compat.map(|compat| compat.value).unwrap_or_default(),
        })
    }
}
