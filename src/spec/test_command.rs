//! What a test command starts: the words before it, the interpreter, the module or script, its arguments.

use super::model::Parser;

/// A test command, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestCommand<'a> {
    /// `env NAME=VALUE ...`, or nothing.
    pub lead: &'a [String],
    /// The interpreter and its options, where the command names it.
    pub python: Option<&'a [String]>,
    /// What is started.
    pub starts: Starts<'a>,
    /// What that is given.
    pub arguments: &'a [String],
}

/// What a command starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Starts<'a> {
    /// `python -m NAME`.
    Module(&'a str),
    /// A program, or a file that the interpreter is given.
    Script(&'a str),
}

impl<'a> TestCommand<'a> {
    /// Takes a command apart; `None` for one that starts nothing, or code of its own (`python -c`).
    pub fn read(words: &'a [String]) -> Option<Self> {
        let mut at = 0;
        if words.first().is_some_and(|word| base_name(word) == "env") {
            at = 1 + words[1..].iter().take_while(|word| is_assignment(word)).count();
        }
        let (lead, words) = words.split_at(at);
        let program = words.first()?;
        if !is_python(base_name(program)) {
            let starts = Starts::Script(program);
            return Some(Self { lead, python: None, starts, arguments: &words[1..] });
        }
        let flags = 1 + interpreter_flags(&words[1..])?;
        let (python, rest) = words.split_at(flags);
        let (starts, used) = match rest.first()?.as_str() {
            "-m" => (Starts::Module(rest.get(1)?), 2),
            word => match word.strip_prefix("-m") {
                Some(name) => (Starts::Module(name), 1),
                None if word.starts_with('-') => return None,
                None => (Starts::Script(word), 1),
            },
        };
        Some(Self { lead, python: Some(python), starts, arguments: &rest[used..] })
    }
}

impl Parser {
    /// Who reads the results of a command, where the spec does not say: by what the command starts.
    pub fn of_command(words: &[String]) -> Self {
        match TestCommand::read(words).map(|command| command.starts) {
            Some(Starts::Module("unittest")) => Self::Unittest,
            Some(Starts::Module("django")) => Self::Django,
            Some(Starts::Module("tox")) => Self::Tox,
            Some(Starts::Script(path)) => match base_name(path) {
                "runtests.py" | "manage.py" | "django-admin" => Self::Django,
                "test" if path.ends_with("bin/test") => Self::Sympy,
                "tox" => Self::Tox,
                _ => Self::Pytest,
            },
            _ => Self::Pytest,
        }
    }
}

/// The last part of a path.
pub(crate) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn is_python(name: &str) -> bool {
    name.strip_prefix("python")
        .is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    })
}

/// How many words are options of the interpreter before what it starts; `None` when there is nothing more.
fn interpreter_flags(words: &[String]) -> Option<usize> {
    let mut at = 0;
    loop {
        let word = words.get(at)?.as_str();
        match word {
            "-W" | "-X" => at += 2,
            _ if word.starts_with("-m") => return Some(at),
            _ if word.starts_with("-W") || word.starts_with("-X") => at += 1,
            _ if word.len() > 1
                && word.strip_prefix('-').is_some_and(|letters| {
                    letters.chars().all(|letter| "bBdEIOPqsSuvx".contains(letter))
                }) =>
            {
                at += 1;
            }
            _ => return Some(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn commands_tell_their_parser() {
        for (command, parser) in [
            ("pytest -q", Parser::Pytest),
            ("python3 -m pytest", Parser::Pytest),
            ("python -m unittest -v", Parser::Unittest),
            ("python -Wa ./tests/runtests.py --verbosity 2", Parser::Django),
            ("./tests/runtests.py", Parser::Django),
            ("env A=b python manage.py test", Parser::Django),
            ("python -m django test", Parser::Django),
            ("env PYTHONWARNINGS=ignore bin/test -C --verbose", Parser::Sympy),
            ("python ./bin/test", Parser::Sympy),
            ("tox --current-env -epy39 -v --", Parser::Tox),
            ("python -m tox", Parser::Tox),
            ("make test", Parser::Pytest),
            ("test -f x", Parser::Pytest),
        ] {
            assert_eq!(Parser::of_command(&words(command)), parser, "{command}");
        }
    }

    #[test]
    fn commands_are_taken_apart() {
        let given = words("env A=b python3.9 -W error -bb -munittest -v x");
        let read = TestCommand::read(&given).unwrap();
        assert_eq!(read.lead, words("env A=b"));
        assert_eq!(read.python, Some(&words("python3.9 -W error -bb")[..]));
        assert_eq!(read.starts, Starts::Module("unittest"));
        assert_eq!(read.arguments, words("-v x"));
        for command in ["env", "env A=b", "python", "python -W", "python -c -m pytest", "python -m"]
        {
            assert_eq!(TestCommand::read(&words(command)), None, "{command}");
        }
        assert_eq!(TestCommand::read(&[]), None);
    }
}
