//! The command's process between fork and execve: it gives up everything, step by step.

use std::ffi::{CStr, CString};
use std::io::{self, Write as _};
use std::os::unix::fs::fchown;

use super::powers::{KEPT, runs_this_program};
use super::request::Request;
use super::sys;

/// As shells say it: found but not to be run, and not found.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// The embedded runtime's, and Docker's default.
const STACK: u64 = 8 << 20;

/// Numbers of resources.
const FSIZE: i32 = 1;
const STACK_SIZE: i32 = 3;
const CORE: i32 = 4;
const NOFILE: i32 = 7;

struct Refusal {
    message: String,
    code: i32,
}

fn refuse(doing: &str) -> impl FnOnce(io::Error) -> Refusal {
    let doing = doing.to_owned();
    move |error| Refusal { message: format!("cannot {doing}: {error}"), code: NOT_EXECUTABLE }
}

/// Becomes the command. On an error it says so on the command's standard error and exits as a shell would.
pub(super) fn run(request: &Request, filters: &[u8]) -> ! {
    let Refusal { message, code } = match become_command(request, filters) {
        Ok(refusal) | Err(refusal) => refusal,
    };
    let _ = writeln!(io::stderr(), "hallmark: {message}");
    sys::exit(code)
}

fn become_command(request: &Request, filters: &[u8]) -> Result<Refusal, Refusal> {
    sys::reset_signals();
    // Before anything of the image is looked at: no path may lead through a descriptor of ours.
    sys::close_others().map_err(refuse("close descriptors"))?;
    // The daemon's belongs to a root that is gone.
    sys::take_input("/dev/null").map_err(refuse("open /dev/null"))?;
    sys::start_session().map_err(refuse("start a session"))?;
    sys::umask(0o022);
    set_limits(request).map_err(refuse("set a resource limit"))?;
    for stream in sys::streams() {
        // The command may open /dev/stdout by name, which asks for rights on the pipe itself.
        let _ = fchown(stream, Some(request.uid), Some(request.gid));
    }
    let strings = |strings: &[String]| {
        strings.iter().map(|string| CString::new(string.as_str())).collect::<Result<Vec<_>, _>>()
    };
    let argv =
        strings(&request.argv).map_err(|error| refuse("pass the arguments")(error.into()))?;
    let env =
        strings(&request.env).map_err(|error| refuse("pass the environment")(error.into()))?;

    drop_privileges(request)?;
    std::env::set_current_dir(&request.working_dir)
        .map_err(refuse(&format!("enter {}", request.working_dir)))?;
    sys::set_no_new_privileges().map_err(refuse("give up privileges"))?;
    let mut rest = filters;
    for length in &request.filters {
        let (filter, others) = rest.split_at_checked(*length).unwrap_or((rest, &[]));
        sys::install_filter(filter).map_err(refuse("install the seccomp filter"))?;
        rest = others;
    }
    Ok(execute(&argv, &env, request))
}

fn drop_privileges(request: &Request) -> Result<(), Refusal> {
    for number in 0..64 {
        let kept = KEPT.contains(&number);
        if !kept && !sys::drop_bounding(number).map_err(refuse("drop capabilities"))? {
            break;
        }
    }
    sys::become_user(request.uid, request.gid).map_err(refuse("become the user"))?;
    let kept = if request.uid == 0 { KEPT.iter().map(|number| 1 << number).sum() } else { 0 };
    sys::set_capabilities(kept).map_err(refuse("drop capabilities"))
}

fn set_limits(request: &Request) -> io::Result<()> {
    // No core file, and no dump into a host's handler: for those the kernel reads 1 as "none".
    sys::lower(CORE, 1, Some(1))?;
    sys::lower(STACK_SIZE, STACK, None)?;
    sys::lower(NOFILE, request.open_files.0, Some(request.open_files.1))?;
    if let Some(bytes) = request.file_size {
        sys::lower(FSIZE, bytes, Some(bytes))?;
    }
    Ok(())
}

/// Looks the command up as execvp(3) does, and runs it.
fn execute(argv: &[CString], env: &[CString], request: &Request) -> Refusal {
    let Some(name) = argv.first() else {
        return Refusal { message: "no command".to_owned(), code: NOT_FOUND };
    };
    let mut error = io::Error::from_raw_os_error(sys::ENOENT);
    for path in candidates(name, request) {
        if runs_this_program(&path) {
            error = io::Error::from_raw_os_error(sys::EACCES);
            break;
        }
        let latest = sys::execute(&path, argv, env);
        // Like execvp(3): a permission error is remembered, a missing file is not.
        match latest.raw_os_error() {
            Some(sys::ENOENT | sys::ENOTDIR) => {}
            Some(sys::EACCES) => error = latest,
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
