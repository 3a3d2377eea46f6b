//! What a command must not do: fetch packages or anything else. A build has no network, and what a lock does
//! not name must not decide what an image holds.
//!
//! This reads just enough of the shell to find the programs that are called. It is a courtesy, not a fence:
//! the sandbox is the fence.

use std::ops::Range;

/// What is wrong with a command, and where in its text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommandFault {
    pub(super) part: Range<usize>,
    pub(super) message: String,
    pub(super) hint: String,
}

/// A word of a command, unquoted, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    text: String,
    at: Range<usize>,
}

/// Checks a shell command.
pub(super) fn check_shell(text: &str) -> Vec<CommandFault> {
    let mut faults = Vec::new();
    for words in split(text) {
        check_words(&words, &mut faults);
    }
    faults
}

/// Checks an argv; the faults' places are indexes of arguments, first and one past the last.
pub(super) fn check_argv(argv: &[&str]) -> Vec<CommandFault> {
    let words: Vec<_> = argv
        .iter()
        .enumerate()
        .map(|(index, text)| Word { text: (*text).to_owned(), at: index..index + 1 })
        .collect();
    let mut faults = Vec::new();
    check_words(&words, &mut faults);
    faults
}

/// Splits a script into its simple commands.
fn split(text: &str) -> Vec<Vec<Word>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<Word> = None;
    let mut chars = text.char_indices().peekable();
    let end_word = |word: &mut Option<Word>, commands: &mut Vec<Vec<Word>>, at: usize| {
        if let Some(mut done) = word.take() {
            done.at.end = at;
            commands.last_mut().expect("there is always a last command").push(done);
        }
    };
    let started = |word: &mut Option<Word>, at: usize| {
        word.get_or_insert_with(|| Word { text: String::new(), at: at..at }).text.len()
    };
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                if let Some((_, next)) = chars.next()
                    && next != '\n'
                {
                    started(&mut word, at);
                    word.as_mut().expect("just started").text.push(next);
                }
            }
            '\'' | '"' => {
                started(&mut word, at);
                let current = word.as_mut().expect("just started");
                while let Some((_, inner)) = chars.next() {
                    if inner == c {
                        break;
                    }
                    let escaped = inner == '\\' && c == '"';
                    current.text.push(if escaped {
                        chars.next().map_or('\\', |x| x.1)
                    } else {
                        inner
                    });
                }
            }
            '#' if word.is_none() => while chars.next_if(|(_, c)| *c != '\n').is_some() {},
            ';' | '&' | '|' | '\n' | '(' | ')' | '`' => {
                end_word(&mut word, &mut commands, at);
                commands.push(Vec::new());
            }
            '$' if chars.peek().is_some_and(|(_, next)| *next == '(') => {
                end_word(&mut word, &mut commands, at);
            }
            c if c.is_whitespace() => end_word(&mut word, &mut commands, at),
            c => {
                started(&mut word, at);
                word.as_mut().expect("just started").text.push(c);
            }
        }
    }
    end_word(&mut word, &mut commands, text.len());
    commands.retain(|words| !words.is_empty());
    commands
}

/// Words before a program that do not change which program it is.
const PREFIXES: [&str; 17] = [
    "sudo", "env", "time", "nice", "exec", "command", "nohup", "xargs", "then", "do", "else", "if",
    "elif", "while", "until", "!", "{",
];

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| super::names::is_variable(name))
}

fn check_words(words: &[Word], faults: &mut Vec<CommandFault>) {
    let mut rest = words;
    let mut after_prefix = false;
    while let Some((first, tail)) = rest.split_first() {
        let prefix = PREFIXES.contains(&first.text.as_str());
        if !(prefix || is_assignment(&first.text) || after_prefix && first.text.starts_with('-')) {
            break;
        }
        after_prefix |= prefix;
        rest = tail;
    }
    let Some((program, arguments)) = rest.split_first() else { return };
    let name = program.text.rsplit('/').next().unwrap_or_default();
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    let whole = program.at.start..words.last().map_or(program.at.end, |word| word.at.end);
    if matches!(name, "sh" | "bash" | "dash" | "eval") {
        for (index, word) in arguments.iter().enumerate() {
            let script = name == "eval"
                || index > 0
                    && texts[index - 1].starts_with('-')
                    && texts[index - 1].ends_with('c');
            if script {
                let inner = check_shell(&word.text);
                faults.extend(
                    inner.into_iter().map(|fault| CommandFault { part: word.at.clone(), ..fault }),
                );
            }
        }
        return;
    }
    if name.starts_with("python") || name.starts_with("pypy") {
        if let Some(at) = texts.iter().position(|text| *text == "-m") {
            check_words(&arguments[at + 1..], faults);
        }
        return;
    }
    if let Some((message, hint)) = network_use(name, &texts) {
        faults.push(CommandFault { part: whole, message, hint });
    }
}

const REQUIREMENTS: &str = "name the packages in `requirements` of [dependencies]";

fn network_use(program: &str, arguments: &[&str]) -> Option<(String, String)> {
    let plain: Vec<&str> =
        arguments.iter().copied().filter(|argument| !argument.starts_with('-')).collect();
    let verb = plain.first().copied().unwrap_or_default();
    let does = |verbs: &[&str]| verbs.contains(&verb);
    let needs = |what: &str, hint: &str| {
        let message = format!("`{}` needs a network, which a step has not", what.escape_debug());
        Some((message, hint.to_owned()))
    };
    let alone = |hint: &str| needs(program, hint);
    let fetches = |hint: &str| needs(&format!("{program} {verb}"), hint);
    match program {
        "apt" | "apt-get" | "aptitude"
            if does(&["update", "upgrade", "dist-upgrade", "full-upgrade", "safe-upgrade"]) =>
        {
            Some((
                format!("`{program} {verb}` makes the image depend on the day it is built"),
                "remove it: packages come from the lock, and `hallmark lock` takes the suite's newest"
                    .to_owned(),
            ))
        }
        "apt" | "apt-get" | "aptitude"
            if does(&["install", "reinstall", "build-dep", "source", "download"]) =>
        {
            let names: Vec<String> = plain[1..]
                .iter()
                .map(|name| format!("{:?}", name.split(['=', '/', ':']).next().unwrap_or_default()))
                .collect();
            Some((
                format!("`{program} {verb}` takes packages that no lock names"),
                format!("write `system-packages = [{}]` at the top of the spec", names.join(", ")),
            ))
        }
        "apt-key" | "add-apt-repository" => fetches("name packages of the suite in `system-packages`"),
        "curl" | "wget" | "aria2c" | "scp" | "sftp" | "ssh" | "ftp" => alone(
            "commit the file to the repository, or name a package that holds it in `requirements` or `system-packages`",
        ),
        "git" if does(&["fetch", "pull", "ls-remote", "clone"])
            || verb == "submodule" && plain.contains(&"update")
            || verb == "remote" && plain.contains(&"update") =>
        {
            let local = plain.get(1).is_some_and(|from| from.starts_with(['.', '/']));
            if verb == "clone" && local {
                return None;
            }
            fetches("the repository stands in /testbed at its base commit; name other projects in `requirements`")
        }
        "svn" | "hg" | "bzr" if does(&["checkout", "co", "clone", "pull", "update", "branch", "export"]) => {
            fetches("the repository stands in /testbed at its base commit")
        }
        "easy_install" => alone(REQUIREMENTS),
        "conda" | "mamba" | "micromamba" if does(&["install", "create", "update", "env"]) => fetches(
            "name Python packages in `requirements` of [dependencies] and others in `system-packages`",
        ),
        "uv" if verb == "pip" => network_use("pip", &arguments[1..]),
        "uv" if does(&["sync", "add", "run", "tool", "lock", "python"]) => fetches(REQUIREMENTS),
        "poetry" | "pipenv" | "pdm" if does(&["install", "add", "update", "sync", "lock"]) => {
            fetches(REQUIREMENTS)
        }
        "tox" | "nox" if !arguments.iter().any(|a| matches!(*a, "--current-env" | "--no-venv" | "--version")) => {
            Some((
                format!("`{program}` makes environments of its own from the network"),
                "write the commands that it would run; they find the environment of the spec".to_owned(),
            ))
        }
        "npm" | "yarn" | "pnpm" if does(&["install", "ci", "i", "add"]) => {
            fetches("commit what the tests need to the repository")
        }
        "npx" => alone("commit what the tests need to the repository"),
        "cargo" | "gem" | "go" if does(&["install", "fetch", "get", "update"]) => {
            fetches("name a Debian package in `system-packages`")
        }
        pip if pip == "pip" || pip.strip_prefix("pip").is_some_and(is_python_version) => {
            pip_use(verb, arguments)
        }
        _ => None,
    }
}

fn is_python_version(text: &str) -> bool {
    text.starts_with(['2', '3']) && text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Options of `pip install` that take the next word.
const PIP_VALUES: [&str; 30] = [
    "-t",
    "--target",
    "--prefix",
    "--root",
    "--src",
    "--global-option",
    "--install-option",
    "-C",
    "--config-settings",
    "--upgrade-strategy",
    "--no-binary",
    "--only-binary",
    "--platform",
    "--python-version",
    "--implementation",
    "--abi",
    "--progress-bar",
    "--log",
    "--cache-dir",
    "-b",
    "--build",
    "--proxy",
    "--timeout",
    "--retries",
    "--trusted-host",
    "--exists-action",
    "--report",
    "--python",
    "--root-user-action",
    "--link-mode",
];

fn pip_use(verb: &str, arguments: &[&str]) -> Option<(String, String)> {
    if verb == "download" {
        return Some((
            "`pip download` needs a network, which a step has not".to_owned(),
            REQUIREMENTS.to_owned(),
        ));
    }
    if !matches!(verb, "install" | "wheel" | "sync") {
        return None;
    }
    let mut packages = Vec::new();
    let mut files = Vec::new();
    let mut index = arguments.iter().position(|argument| *argument == verb)? + 1;
    let mut offline = arguments.contains(&"--no-index");
    while let Some(argument) = arguments.get(index) {
        let next = arguments.get(index + 1).copied().unwrap_or_default();
        let (option, value) = match argument.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value)),
            _ => (*argument, None),
        };
        match option {
            "-r" | "--requirement" => files.push(value.unwrap_or(next)),
            "-i" | "--index-url" | "--extra-index-url" => offline = false,
            "-c" | "--constraint" | "-f" | "--find-links" | "-e" | "--editable" => {
                let value = value.unwrap_or(next);
                if option.contains('e') && !option.contains('f') && !is_local(value)
                    || value.contains("://")
                {
                    packages.push(value);
                }
            }
            _ if option.starts_with('-') => {
                index += usize::from(value.is_none() && PIP_VALUES.contains(&option));
                index += 1;
                continue;
            }
            target => {
                if !is_local(target) {
                    packages.push(target);
                }
                index += 1;
                continue;
            }
        }
        index += 1 + usize::from(value.is_none());
    }
    let addressed = packages.iter().any(|package| package.contains("://"));
    if offline && !addressed {
        return None;
    }
    if packages.is_empty() && files.is_empty() {
        return None;
    }
    let message = format!(
        "`pip {verb}` of {} takes packages that no lock names",
        packages
            .iter()
            .chain(&files)
            .map(|name| format!("`{}`", name.escape_debug()))
            .collect::<Vec<_>>()
            .join(", ")
    );
    let list = |names: &[&str]| {
        names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
    };
    let mut ways = Vec::new();
    if addressed {
        ways.push("name a released version in `requirements` of [dependencies]".to_owned());
    } else if !packages.is_empty() {
        ways.push(format!("write `requirements = [{}]` in [dependencies]", list(&packages)));
    }
    if !files.is_empty() {
        ways.push(format!("write `requirement-files = [{}]` in [dependencies]", list(&files)));
    }
    Some((message, ways.join(" and ")))
}

/// Whether pip takes the target from the filesystem.
fn is_local(target: &str) -> bool {
    target.starts_with(['.', '/', '$']) || target.starts_with("file:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offline_commands_pass() {
        for good in [
            "",
            "# curl in a comment",
            "echo 'apt-get install x'",
            "pip install -e .",
            "pip install --no-deps --no-build-isolation --no-index -e .",
            "python -m pip install --no-build-isolation .[test]",
            "python3.9 setup.py build_ext --inplace",
            "pip install --no-index pytest",
            "pip install ./vendor/a.whl",
            "pip uninstall -y foo",
            "pip install --no-index --find-links vendor foo",
            "make -j2 && ./configure --with-curl",
            "git submodule status",
            "git clone ./a b",
            "git commit -m 'git pull'",
            "apt-get clean",
            "pip --version",
            "pip install --target build .",
            "sed -i s/wget/x/ a",
            "tox --current-env",
            "FOO=1 python -m pytest",
            "uv pip install --no-deps -e .",
            "pip3 install -e '.[a,b]'",
        ] {
            assert_eq!(check_shell(good), [], "{good}");
        }
    }

    #[test]
    fn network_use_is_found_where_it_hides() {
        for bad in [
            "apt-get update",
            "sudo apt-get -y upgrade",
            "apt install -y gcc",
            "make && curl -O http://x",
            "FOO=1 wget x",
            "env A=b wget x",
            "(git clone https://x)",
            "x=$(curl y)",
            "x=`curl y`",
            "true; pip install pytest",
            "python -m pip install -U pytest",
            "pip3.9 install -r req.txt",
            "pip install --requirement=req.txt",
            "sh -c 'curl x'",
            "bash -lc \"pip install foo\"",
            "eval 'wget x'",
            "if true; then curl x; fi",
            "/usr/bin/curl x",
            "pip install git+https://x/y",
            "pip install --no-index https://x/y.whl",
            "pip install -e git+https://x/y",
            "conda install x",
            "uv pip install foo",
            "uv sync",
            "poetry install",
            "tox -e py39",
            "npm ci",
            "pip download x",
            "git submodule update --init",
            "pip install --no-index -i http://x foo",
            "a\ncurl x",
            "xargs -n1 pip install foo",
            "easy_install foo",
            "pip install . pytest",
            "pip install -f https://x foo",
            "cu\\rl x",
            "\"curl\" x",
        ] {
            assert_eq!(check_shell(bad).len(), 1, "{bad}: {:?}", split(bad));
        }
    }

    #[test]
    fn a_hint_says_what_to_write() {
        let hint = |text| check_shell(text).remove(0).hint;
        assert_eq!(
            hint("apt-get install -y gcc libc6-dev=2.36"),
            "write `system-packages = [\"gcc\", \"libc6-dev\"]` at the top of the spec"
        );
        assert_eq!(
            hint("pip install 'attrs<20' -r dev.txt"),
            "write `requirements = [\"attrs<20\"]` in [dependencies] and write `requirement-files = [\"dev.txt\"]` in [dependencies]"
        );
        let fault = check_shell("make && curl -O x; true").remove(0);
        assert_eq!(&"make && curl -O x; true"[fault.part], "curl -O x");
    }

    #[test]
    fn an_argv_is_checked_by_argument() {
        assert_eq!(check_argv(&["python", "-m", "pytest", "-p", "no:cacheprovider"]), []);
        assert_eq!(check_argv(&["sh", "-c", "curl x"])[0].part, 2..3);
        assert_eq!(check_argv(&["tox"])[0].part, 0..1);
    }
}
