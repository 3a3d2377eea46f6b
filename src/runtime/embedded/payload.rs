//! The command's process between fork and execve: it gives up everything, step by step.

use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::io::{self, Write};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::super::shared::runs_this_program;
use super::protocol::Request;
use super::sys;

/// As shells say it: found but not to be run, and not found.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// Docker's default: what a service's stack is on every distribution.
const STACK: u64 = 8 << 20;

/// Becomes the command. On an error it says so on the command's standard error and exits as a shell
/// would.
pub(super) fn run(request: &Request, filters: &[Vec<u8>]) -> ! {
    let (message, code) = match become_command(request, filters) {
        Ok(never) => match never {},
        Err(Refusal { message, code }) => (message, code),
    };
    let _ = writeln!(io::stderr(), "hallmark: {message}");
    sys::exit(code)
}

struct Refusal {
    message: String,
    code: i32,
}

fn refuse<E: Into<io::Error>>(doing: &str) -> impl FnOnce(E) -> Refusal + '_ {
    move |error| Refusal {
        message: format!("cannot {doing}: {}", error.into()),
        code: NOT_EXECUTABLE,
    }
}

fn become_command(request: &Request, filters: &[Vec<u8>]) -> Result<Infallible, Refusal> {
    sys::reset_signals();
    // Before anything of the image is looked at: no path may lead through a descriptor of ours.
    sys::close_others().map_err(refuse("close descriptors"))?;
    rustix::process::setsid().map_err(refuse("start a session"))?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    set_limits(request)?;
    // The command may open /dev/stdout by name, which asks for rights on the pipe itself.
    for stream in [rustix::stdio::stdout(), rustix::stdio::stderr()] {
        let (uid, gid) =
            (rustix::fs::Uid::from_raw(request.uid), rustix::fs::Gid::from_raw(request.gid));
        let _ = rustix::fs::fchown(stream, Some(uid), Some(gid));
    }
    let strings = |strings: &[String]| {
        strings.iter().map(|string| CString::new(string.as_str())).collect::<Result<Vec<_>, _>>()
    };
    let argv = strings(&request.argv).map_err(refuse("pass the arguments"))?;
    let env = strings(&request.env).map_err(refuse("pass the environment"))?;

    super::privilege::drop_bounding().map_err(refuse("drop capabilities"))?;
    sys::become_user(request.uid, request.gid).map_err(refuse("become the user"))?;
    super::privilege::drop_rest(request.uid == 0).map_err(refuse("drop capabilities"))?;
    rustix::process::chdir(&request.working_dir)
        .map_err(refuse(&format!("enter {}", request.working_dir)))?;
    rustix::thread::set_no_new_privs(true).map_err(refuse("give up privileges"))?;
    for filter in filters {
        sys::install_filter(filter).map_err(refuse("install the seccomp filter"))?;
    }
    Err(execute(&argv, &env, request))
}

fn set_limits(request: &Request) -> Result<(), Refusal> {
    // No core file, and no dump into a host's handler: for those the kernel reads 1 as "none".
    lower(Resource::Core, 1, true)?;
    lower(Resource::Stack, STACK, false)?;
    if let Some(files) = request.open_files {
        lower(Resource::Nofile, files, true)?;
    }
    if let Some(bytes) = request.file_size {
        lower(Resource::Fsize, bytes, true)?;
    }
    Ok(())
}

/// Sets a soft limit, and the hard one where asked, never above the hard limit there is.
fn lower(resource: Resource, value: u64, hard: bool) -> Result<(), Refusal> {
    let old = getrlimit(resource);
    let value = old.maximum.map_or(value, |maximum| value.min(maximum));
    let maximum = if hard { Some(value) } else { old.maximum };
    setrlimit(resource, Rlimit { current: Some(value), maximum })
        .map_err(refuse("set a resource limit"))
}

/// Looks the command up as execvp(3) does, and runs it.
fn execute(argv: &[CString], env: &[CString], request: &Request) -> Refusal {
    let Some(name) = argv.first() else {
        return Refusal { message: "no command".to_owned(), code: NOT_FOUND };
    };
    let mut error = io::Error::from(io::ErrorKind::NotFound);
    for path in candidates(name, request) {
        if runs_this_program(&path) {
            error = io::Error::from(io::ErrorKind::PermissionDenied);
            break;
        }
        let latest = sys::execute(&path, argv, env);
        // Like execvp(3): a permission error is remembered, a missing file is not.
        match latest.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => {}
            Some(libc::EACCES) => error = latest,
            _ => {
                error = latest;
                break;
            }
        }
    }
    let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
    Refusal { message: format!("cannot run {}: {error}", name.to_string_lossy()), code }
}

fn candidates(name: &CStr, request: &Request) -> Vec<CString> {
    if name.to_bytes().contains(&b'/') {
        return vec![name.to_owned()];
    }
    let path = request.env.iter().find_map(|entry| entry.strip_prefix("PATH=")).unwrap_or("");
    path.split(':')
        .filter_map(|folder| {
            let folder = if folder.is_empty() { "." } else { folder };
            CString::new([folder.as_bytes(), b"/", name.to_bytes()].concat()).ok()
        })
        .collect()
}
