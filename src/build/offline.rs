//! The conditions of the steps that lay and install a repository: offline, nothing of the host, nothing that moves.

use std::collections::BTreeMap;
use std::path::Path;

use crate::runtime::{Mount, Network, RunSpec};

/// `script` for `sh`, run in `/` with [`environment`] and no network; changes to `/` are kept.
pub(crate) fn shell(script: &str, epoch: i64, output: &Path) -> RunSpec {
    let mut spec = RunSpec::new(["/bin/sh", "-c", script], output);
    spec.env = environment(epoch);
    spec.network = Network::Unreachable;
    spec.keep_upper = true;
    spec
}

/// A read-only mount at `/run/hallmark/<name>`, and that path.
pub(crate) fn input(source: &Path, name: &str) -> Mount {
    Mount { source: source.to_owned(), target: format!("/run/hallmark/{name}"), writable: false }
}

/// Variables under which commands make the same files again: `epoch` is the time that they take for now
/// (SOURCE_DATE_EPOCH, <https://reproducible-builds.org/specs/source-date-epoch/>).
pub fn environment(epoch: i64) -> BTreeMap<String, String> {
    [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", "/root"),
        ("LC_ALL", "C.UTF-8"),
        ("TZ", "UTC"),
        ("PYTHONHASHSEED", "0"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PIP_NO_COMPILE", "1"),
        ("PIP_ROOT_USER_ACTION", "ignore"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_TERMINAL_PROMPT", "0"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .chain([("SOURCE_DATE_EPOCH".to_owned(), epoch.to_string())])
    .collect()
}

/// Adds variables.
pub(crate) fn with<'a>(
    spec: &mut RunSpec,
    variables: impl IntoIterator<Item = (&'a str, &'a str)>,
) {
    spec.env.extend(variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
}
