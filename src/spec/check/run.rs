//! What runs: commands, tests, environment variables and limits.

use std::collections::BTreeMap;

use super::{Checks, Strings, short};
use crate::spec::command::{check_argv, check_shell};
use crate::spec::model::{Commands, Parser, RunLimits, Test, TestFiles};
use crate::spec::names::is_variable;
use crate::spec::raw::{Files, RawCommands, RawLimits, RawTest};
use crate::spec::reader::{Located, Place, Reader};

impl Checks<'_, '_> {
    pub(in crate::spec) fn commands(
        &mut self,
        raw: Option<Located<RawCommands>>,
    ) -> Option<Commands> {
        let place = raw.as_ref().map_or(Reader::start_of(0), |raw| raw.place.clone());
        let raw = raw.map(|raw| raw.value).unwrap_or_default();
        let pre_install = self.shell(raw.pre_install);
        let rebuild = self.shell(raw.rebuild);
        let Some(install) = raw.install else {
            let hint = "write `install = [\"pip install --no-deps --no-build-isolation --no-index -e .\"]` in [commands], or `[]` where the project needs none";
            self.reader.missing(&place, "commands.install", hint);
            return None;
        };
        Some(Commands { pre_install, install: self.shell(Some(install)), rebuild })
    }

    pub(in crate::spec) fn shell(&mut self, raw: Option<Located<Strings>>) -> Vec<String> {
        let mut out = Vec::new();
        for Located { value, place } in raw.map(|raw| raw.value).unwrap_or_default() {
            if value.trim().is_empty() || value.contains('\0') {
                self.reader.fault(
                    &place,
                    "this is not a command",
                    "write a shell command, or remove it",
                );
            }
            for fault in check_shell(&value) {
                self.reader.fault_in(&place, &value, fault.part, fault.message, fault.hint);
            }
            out.push(value);
        }
        out
    }

    pub(in crate::spec) fn test(&mut self, raw: Option<Located<RawTest>>) -> Option<Test> {
        let place = raw.as_ref().map_or(Reader::start_of(0), |raw| raw.place.clone());
        let raw = raw.map(|raw| raw.value).unwrap_or_default();
        let files = match raw.files.map(|files| (files.value, files.place)) {
            None | Some((Files::TestPatch, _)) => TestFiles::TestPatch,
            Some((Files::None, _)) => TestFiles::All,
            Some((Files::Listed(paths), place)) => {
                if paths.is_empty() {
                    let hint =
                        "write \"none\" where the command knows its files, or \"test-patch\"";
                    self.reader.fault(&place, "the list of test files is empty", hint);
                }
                let paths = self.paths(Some(Located { value: paths, place }));
                TestFiles::Listed { paths }
            }
        };
        let Some(command) = raw.command else {
            let hint = "write `command = [\"python\", \"-m\", \"pytest\", \"-p\", \"no:cacheprovider\"]` in [test]";
            self.reader.missing(&place, "test.command", hint);
            return None;
        };
        if command.value.first().is_none_or(|program| program.value.is_empty())
            || command.value.iter().any(|argument| argument.value.contains('\0'))
        {
            let hint = "write the program and its arguments, one string each";
            self.reader.fault(&command.place, "the test command is no command", hint);
        }
        let argv: Vec<&str> = command.value.iter().map(|word| word.value.as_str()).collect();
        for fault in check_argv(&argv) {
            let place = &command.value[fault.part.start].place;
            self.reader.fault(place, fault.message, fault.hint);
        }
        let command: Vec<String> = command.value.iter().map(|word| word.value.clone()).collect();
        Some(Test {
            files,
            parser: raw.parser.map_or_else(|| Parser::of_command(&command), |parser| parser.value),
            command,
            continue_on_collection_errors: raw
                .continue_on_collection_errors
                .is_some_and(|flag| flag.value),
        })
    }

    pub(in crate::spec) fn env(
        &mut self,
        raw: Option<Located<BTreeMap<String, Located<String>>>>,
    ) -> BTreeMap<String, String> {
        let mut env = BTreeMap::new();
        for (name, Located { value, place }) in raw.map(|raw| raw.value).unwrap_or_default() {
            if !is_variable(&name) {
                let hint = "use letters, digits and `_`, not starting with a digit";
                self.reader.fault(&place, format!("{} cannot be a variable", short(&name)), hint);
            } else if let Some(hint) = reserved(&name) {
                self.reader.fault(&place, format!("`{name}` is not the spec's to set"), hint);
            } else if value.contains('\0') {
                let hint = "remove it: the environment cannot hold it";
                self.reader.fault(&place, format!("the value of `{name}` holds a NUL"), hint);
            } else {
                env.insert(name, value);
            }
        }
        env
    }

    pub(in crate::spec) fn limits(&mut self, raw: &RawLimits) -> RunLimits {
        let default = RunLimits::DEFAULT;
        let (cpus, cpus_at) = stated(raw.cpus.as_ref(), |raw| raw.0, default.cpus);
        let (memory, memory_at) = stated(raw.memory.as_ref(), |raw| raw.0, default.memory);
        let (pids, pids_at) = stated(raw.pids.as_ref(), |raw| raw.0, default.pids);
        let (shm, _) = stated(raw.shm.as_ref(), |raw| raw.0, default.shm);
        let (timeout, timeout_at) = stated(raw.timeout.as_ref(), |raw| raw.0, default.timeout);
        let test_default = default.test_timeout.min(timeout);
        let (test_timeout, test_at) = stated(raw.test_timeout.as_ref(), |raw| raw.0, test_default);
        // What is not stated is a default, which is good.
        for (good, place, message, hint) in [
            (
                (0.01..=4096.0).contains(&cpus),
                cpus_at,
                "`cpus` is out of range",
                "write a number from 0.01 to 4096",
            ),
            (
                // Below this Python does not start; what is meant is then another unit.
                memory >= 16 << 20,
                memory_at,
                "less than 16 MiB of memory runs no Python",
                "write a unit: \"4 GiB\"",
            ),
            (
                (8..=1 << 22).contains(&pids),
                pids_at,
                "`pids` is out of range",
                "write a number from 8 to 4194304",
            ),
            (
                (1.0..=604_800.0).contains(&timeout),
                timeout_at,
                "`timeout` is out of range",
                "write a duration from 1 s to 168 h",
            ),
            (
                test_timeout >= 0.1,
                test_at,
                "`test-timeout` is out of range",
                "write a duration from 0.1 s to `timeout`",
            ),
            (
                test_timeout <= timeout,
                test_at,
                "`test-timeout` is longer than `timeout`",
                "make it shorter, so that a test that hangs is named",
            ),
        ] {
            if let (false, Some(place)) = (good, place) {
                self.reader.fault(place, message, hint);
            }
        }
        RunLimits { cpus, memory, pids, shm, timeout, test_timeout }
    }
}

/// What is stated, and where; else the default.
fn stated<T, V>(
    raw: Option<&Located<T>>,
    read: impl Fn(&T) -> V,
    default: V,
) -> (V, Option<&Place>) {
    raw.map_or((default, None), |raw| (read(&raw.value), Some(&raw.place)))
}

/// Variables that say where packages come from.
const INDEXES: [&str; 9] = [
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_CONSTRAINT",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_FIND_LINKS",
];

/// Why a variable is not the spec's to set, if it is not.
fn reserved(name: &str) -> Option<&'static str> {
    let upper = name.to_ascii_uppercase();
    match upper.as_str() {
        "HTTP_PROXY" | "HTTPS_PROXY" | "ALL_PROXY" | "FTP_PROXY" => {
            Some("there is no network to reach through a proxy: remove it")
        }
        // The case counts: `path` is a variable like others.
        _ if matches!(name, "PATH" | "LD_PRELOAD" | "PYTHONHOME") => Some(
            "hallmark sets it so that the environment's Python is found: call other programs by their path",
        ),
        upper if INDEXES.contains(&upper) => {
            Some("indexes are configuration of the machine that locks; builds and runs have none")
        }
        _ => None,
    }
}
