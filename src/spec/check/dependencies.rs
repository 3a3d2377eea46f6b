//! What goes into the environment: Debian packages and Python dependencies.

use std::collections::BTreeMap;

use super::{Checks, Strings, short};
use crate::spec::model::{Dependencies, PackageDate};
use crate::spec::names::{is_debian_name, is_package_name, normalize_package_name};
use crate::spec::raw::RawDependencies;
use crate::spec::reader::{Located, Reader};
use crate::spec::requirement;

impl Checks<'_, '_> {
    pub(in crate::spec) fn system_packages(
        &mut self,
        packages: Option<Located<Strings>>,
    ) -> Vec<String> {
        let mut names = self.debian_packages(packages, "system-packages");
        names.sort();
        names
    }

    /// The names of Debian packages, checked.
    pub(in crate::spec) fn debian_packages(
        &mut self,
        packages: Option<Located<Strings>>,
        key: &str,
    ) -> Vec<String> {
        let mut names = Vec::new();
        for Located { value, place } in packages.map(|packages| packages.value).unwrap_or_default()
        {
            if is_debian_name(&value) {
                self.push_once(&mut names, value, &place);
            } else if let Some((name, _)) =
                value.split_once(['=', '/', ':']).filter(|(name, _)| is_debian_name(name))
            {
                let message = format!("{value:?} names more than a package");
                let hint = format!(
                    "write {name:?}: versions come from the lock, architectures from the target"
                );
                self.reader.fault(&place, message, hint);
            } else {
                let message = format!("{value:?} is not the name of a Debian package");
                let hint = format!("`{key}` holds one name per string, such as \"libc6-dev\"");
                self.reader.fault(&place, message, hint);
            }
        }
        names
    }

    pub(in crate::spec) fn dependencies(
        &mut self,
        raw: Option<Located<RawDependencies>>,
    ) -> Option<Dependencies> {
        let place = raw.as_ref().map_or(Reader::start_of(0), |raw| raw.place.clone());
        let raw = raw.map(|raw| raw.value).unwrap_or_default();
        let requirements = self.requirements(raw.requirements);
        let constraints = self.requirements(raw.constraints);
        let requirement_files = self.paths(raw.requirement_files);
        let extras = self.package_names(raw.extras, "an extra");
        let groups = self.package_names(raw.groups, "a dependency group");
        let no_binary = self.package_names(raw.no_binary, "a package");
        let mut exclude_newer_package = BTreeMap::new();
        for (name, Located { value, place }) in
            raw.exclude_newer_package.map(|table| table.value).unwrap_or_default()
        {
            if !is_package_name(&name) {
                self.reader.fault(
                    &place,
                    format!("{name:?} is not the name of a package"),
                    "write a name from PyPI",
                );
                continue;
            }
            let date = value.0.map_or(PackageDate::Never(false), PackageDate::Before);
            if exclude_newer_package.insert(normalize_package_name(&name), date).is_some() {
                self.reader.fault(
                    &place,
                    format!("{name:?} is named twice, in two spellings"),
                    "remove one of the two",
                );
            }
        }
        let Some(exclude_newer) = raw.exclude_newer else {
            let hint = "write `exclude-newer = \"2023-05-07T00:00:00Z\"` in [dependencies]: without a date the lock changes with the day";
            self.reader.missing(&place, "dependencies.exclude-newer", hint);
            return None;
        };
        Some(Dependencies {
            requirements,
            requirement_files,
            extras,
            groups,
            constraints,
            project: raw.project.is_none_or(|project| project.value),
            no_binary,
            exclude_newer: exclude_newer.value.0,
            exclude_newer_package,
        })
    }

    pub(in crate::spec) fn requirements(&mut self, raw: Option<Located<Strings>>) -> Vec<String> {
        let mut out = Vec::new();
        for Located { value, place } in raw.map(|raw| raw.value).unwrap_or_default() {
            match requirement::normalize(&value) {
                Ok(normal) => self.push_once(&mut out, normal, &place),
                Err(fault) => {
                    self.reader.fault_in(&place, &value, fault.part, fault.message, fault.hint);
                }
            }
        }
        out
    }

    pub(in crate::spec) fn package_names(
        &mut self,
        raw: Option<Located<Strings>>,
        what: &str,
    ) -> Vec<String> {
        let mut out = Vec::new();
        for Located { value, place } in raw.map(|raw| raw.value).unwrap_or_default() {
            if is_package_name(&value) {
                self.push_once(&mut out, normalize_package_name(&value), &place);
            } else {
                let message = format!("{} is not the name of {what}", short(&value));
                self.reader.fault(&place, message, "write one bare name per string");
            }
        }
        out
    }
}
