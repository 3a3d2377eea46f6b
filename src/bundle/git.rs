//! Git, called to read repositories of the user's, and to make one from their objects.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::Error;

/// Variables that would make git read another repository than the one that it is given.
const REDIRECTIONS: [&str; 11] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Runs git without the host's configuration; `input` goes to its standard input.
pub(super) fn git(
    location: &str,
    repository: Option<&Path>,
    arguments: &[&str],
    input: &[u8],
) -> Result<Vec<u8>, Error> {
    let failed = |message: String| Error::Git { location: location.to_owned(), message };
    let mut command = Command::new("git");
    if let Some(repository) = repository {
        command.arg("-C").arg(repository);
    }
    // The repository is read only and often somebody else's: ownership does not matter.
    command
        .args(["-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null"])
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        // A replaced commit would have another closure than its id says.
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        // A repository that lacks an object may name a program to fetch it.
        .env("GIT_NO_LAZY_FETCH", "1");
    for name in REDIRECTIONS {
        command.env_remove(name);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("cannot start git: {error}")))?;
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // Git may end without reading all; its own error says why.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    writer.join().expect("the writer does not panic");
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// Tags of the repository that peel to `commit` or an ancestor: `(object id, refs/tags/...)`, sorted by name.
pub(super) fn tags_into(
    location: &str,
    repository: &Path,
    commit: &str,
) -> Result<Vec<(String, String)>, Error> {
    let listing = git(
        location,
        Some(repository),
        &["for-each-ref", "--merged", commit, "--format=%(objectname) %(refname)", "refs/tags"],
        &[],
    )?;
    let mut tags: Vec<(String, String)> = String::from_utf8_lossy(&listing)
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(id, name)| (id.to_owned(), name.to_owned()))
        .collect();
    tags.sort_by(|a, b| a.1.cmp(&b.1));
    Ok(tags)
}
