//! The system calls that the standard library does not have, each in a small safe wrapper. The process has one thread.
//!
//! There is no crate here to name them: constants are the kernel's (the same on x86-64 and arm64, where not said).

#![expect(unsafe_code, reason = "raw system calls live here and nowhere else in this program")]

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_ulong, c_void};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

pub(super) const ENOENT: i32 = 2;
pub(super) const EACCES: i32 = 13;
pub(super) const ENOTDIR: i32 = 20;
pub(super) const EINVAL: i32 = 22;
pub(super) const EPERM: i32 = 1;
const ENOSYS: i32 = 38;
const ECHILD: i32 = 10;
const EINTR: i32 = 4;

pub(super) const RDONLY: u64 = 1;
pub(super) const NOSUID: u64 = 2;
pub(super) const NODEV: u64 = 4;
pub(super) const NOEXEC: u64 = 8;
const REMOUNT: u64 = 32;
const BIND: u64 = 4096;
const RECURSIVE: u64 = 16384;
const PRIVATE: u64 = 1 << 18;

const SIGCHLD: u64 = 17;
const SIGTERM: u64 = 15;
const SIGKILL: c_int = 9;

const SYS_PIVOT_ROOT: c_long = if cfg!(target_arch = "aarch64") { 41 } else { 155 };
const SYS_SECCOMP: c_long = if cfg!(target_arch = "aarch64") { 277 } else { 317 };
const SYS_CLOSE_RANGE: c_long = 436;
const SYS_MOUNT_SETATTR: c_long = 442;

#[repr(C)]
struct PollFd {
    fd: c_int,
    events: i16,
    revents: i16,
}

/// glibc and musl alike: 1024 bits.
type SignalSet = [u64; 16];

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    #[link_name = "fork"]
    fn c_fork() -> c_int;
    fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(code: c_int) -> !;
    fn kill(pid: c_int, signal: c_int) -> c_int;
    fn signal(number: c_int, handler: usize) -> usize;
    fn sigprocmask(how: c_int, set: *const SignalSet, old: *mut SignalSet) -> c_int;
    fn signalfd(fd: c_int, set: *const SignalSet, flags: c_int) -> c_int;
    fn execve(path: *const c_char, argv: *const *const c_char, env: *const *const c_char) -> c_int;
    fn setsid() -> c_int;
    fn dup2(old: c_int, new: c_int) -> c_int;
    #[link_name = "umask"]
    fn c_umask(mask: u32) -> u32;
    fn prctl(option: c_int, ...) -> c_int;
    fn sethostname(name: *const u8, length: usize) -> c_int;
    fn mount(
        source: *const c_char,
        target: *const c_char,
        kind: *const c_char,
        flags: c_ulong,
        data: *const c_char,
    ) -> c_int;
    fn umount2(target: *const c_char, flags: c_int) -> c_int;
    #[link_name = "poll"]
    fn c_poll(fds: *mut PollFd, count: c_ulong, timeout: c_int) -> c_int;
    #[link_name = "socket"]
    fn c_socket(family: c_int, kind: c_int, protocol: c_int) -> c_int;
    #[link_name = "bind"]
    fn c_bind(fd: c_int, address: *const c_void, length: u32) -> c_int;
    #[link_name = "ioctl"]
    fn c_ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int;
    fn setgroups(count: usize, list: *const u32) -> c_int;
    fn setresgid(real: u32, effective: u32, saved: u32) -> c_int;
    fn setresuid(real: u32, effective: u32, saved: u32) -> c_int;
    fn capset(header: *const [u32; 2], data: *const [u32; 6]) -> c_int;
    fn prlimit(pid: c_int, resource: c_int, new: *const [u64; 2], old: *mut [u64; 2]) -> c_int;
    fn sched_setaffinity(pid: c_int, size: usize, set: *const [u64; 128]) -> c_int;
    fn utimensat(folder: c_int, path: *const c_char, times: *const [i64; 4], flags: c_int)
    -> c_int;
    #[link_name = "mknod"]
    fn c_mknod(path: *const c_char, mode: u32, device: u64) -> c_int;
}

fn check(result: impl Into<c_long>) -> io::Result<()> {
    if result.into() < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

pub(super) fn exit(code: i32) -> ! {
    // SAFETY: never returns.
    unsafe { _exit(code) }
}

/// The new process's id, or `None` in it.
pub(super) fn fork() -> io::Result<Option<i32>> {
    // SAFETY: one thread, so that the child's copy of every lock is free.
    let pid = unsafe { c_fork() };
    check(pid)?;
    Ok((pid > 0).then_some(pid))
}

/// A child that ended, with its raw wait status; `None` when there is nothing to reap now (with `block` unset), or no
/// child at all.
pub(super) fn wait(block: bool) -> io::Result<Option<(i32, i32)>> {
    let mut status = 0;
    loop {
        // SAFETY: the status outlives the call.
        let pid = unsafe { waitpid(-1, &raw mut status, c_int::from(!block)) };
        let error = io::Error::last_os_error();
        match pid {
            1.. => return Ok(Some((pid, status))),
            0 => return Ok(None),
            _ if error.raw_os_error() == Some(ECHILD) => return Ok(None),
            _ if error.raw_os_error() == Some(EINTR) => {}
            _ => return Err(error),
        }
    }
}

/// Kills every process of the namespace but this one.
pub(super) fn kill_everything() {
    // SAFETY: a plain system call.
    unsafe {
        kill(-1, SIGKILL);
    }
}

/// Blocks SIGCHLD and SIGTERM and returns what becomes readable with them, see signalfd(2). Without that, pid 1 would never
/// see a SIGTERM: what has no handler is not sent to it.
pub(super) fn signals() -> io::Result<File> {
    let mut set: SignalSet = [0; 16];
    set[0] = 1 << (SIGCHLD - 1) | 1 << (SIGTERM - 1);
    // SAFETY: the set outlives the calls; the descriptor is new and ours.
    unsafe {
        check(sigprocmask(0, &raw const set, std::ptr::null_mut()))?;
        // Not blocking, close-on-exec.
        let fd = signalfd(-1, &raw const set, 0x800 | 0x8_0000);
        check(fd)?;
        Ok(File::from_raw_fd(fd))
    }
}

/// Every signal gets its default action and none is blocked, as a fresh process expects.
pub(super) fn reset_signals() {
    let none: SignalSet = [0; 16];
    // SAFETY: 0 is SIG_DFL, valid for every signal; errors (numbers that cannot be set) change nothing.
    unsafe {
        for number in 1..=64 {
            signal(number, 0);
        }
        sigprocmask(2, &raw const none, std::ptr::null_mut());
    }
}

/// Waits until one of them can be read.
pub(super) fn poll(one: &File, other: Option<&File>) -> io::Result<()> {
    let mut fds: Vec<PollFd> = [Some(one), other]
        .into_iter()
        .flatten()
        .map(|file| PollFd { fd: file.as_raw_fd(), events: 1, revents: 0 })
        .collect();
    // SAFETY: as many entries as said, which outlive the call.
    let result = unsafe { c_poll(fds.as_mut_ptr(), fds.len() as c_ulong, -1) };
    match check(result) {
        Err(error) if error.raw_os_error() == Some(EINTR) => Ok(()),
        other => other,
    }
}

pub(super) fn umask(mask: u32) -> u32 {
    // SAFETY: no pointers.
    unsafe { c_umask(mask) }
}

pub(super) fn start_session() -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { setsid() })
}

/// prctl(2) with numbers.
fn control(option: c_int, arguments: [c_ulong; 2]) -> io::Result<()> {
    // SAFETY: none of the options used here takes a pointer.
    check(unsafe { prctl(option, arguments[0], arguments[1], 0 as c_ulong, 0 as c_ulong) })
}

/// Nobody may look into this process or read its files in /proc.
pub(super) fn set_undumpable() -> io::Result<()> {
    control(4, [0, 0])
}

pub(super) fn set_no_new_privileges() -> io::Result<()> {
    control(38, [1, 0])
}

/// Takes a capability from the bounding set; false past the kernel's last one.
pub(super) fn drop_bounding(number: u32) -> io::Result<bool> {
    match control(24, [number.into(), 0]) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(EINVAL) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Keeps these capabilities of this process, and none for programs to inherit.
pub(super) fn set_capabilities(kept: u32) -> io::Result<()> {
    // Empties the ambient set; kernels before 4.3 have none.
    match control(47, [4, 0]) {
        Err(error) if error.raw_os_error() != Some(EINVAL) => return Err(error),
        _ => {}
    }
    // Version 3; then effective, permitted and inheritable, of 0 to 31 and of the rest.
    let (header, data) = ([0x2008_0522, 0], [kept, kept, 0, 0, 0, 0]);
    // SAFETY: both have the layout that the version says, and outlive the call.
    check(unsafe { capset(&raw const header, &raw const data) })
}

pub(super) fn become_user(uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: no groups, hence no pointer.
    unsafe {
        check(setgroups(0, std::ptr::null()))?;
        check(setresgid(gid, gid, gid))?;
        check(setresuid(uid, uid, uid))
    }
}

pub(super) fn close_others() -> io::Result<()> {
    // SAFETY: nothing of ours is used after it but the three streams.
    let result =
        unsafe { syscall(SYS_CLOSE_RANGE, 3 as c_long, c_long::from(u32::MAX), 0 as c_long) };
    match check(result) {
        // Before Linux 5.9: everything here was opened close-on-exec.
        Err(error) if error.raw_os_error() == Some(ENOSYS) => Ok(()),
        other => other,
    }
}

/// A limit and its hard limit, both never above the hard limit there is.
pub(super) fn lower(resource: c_int, soft: u64, hard: Option<u64>) -> io::Result<()> {
    let mut old = [0; 2];
    // SAFETY: both arrays have the layout of struct rlimit and outlive the calls.
    unsafe {
        check(prlimit(0, resource, std::ptr::null(), &raw mut old))?;
        let hard = hard.unwrap_or(old[1]).min(old[1]);
        let new = [soft.min(hard), hard];
        check(prlimit(0, resource, &raw const new, std::ptr::null_mut()))
    }
}

/// Moves to some processors, and with this process all that it starts.
pub(super) fn take_processors(numbers: &[usize]) -> io::Result<()> {
    let mut set = [0_u64; 128];
    for number in numbers {
        *set.get_mut(number / 64).ok_or_else(|| io::Error::from_raw_os_error(EINVAL))? |=
            1 << (number % 64);
    }
    // SAFETY: as long as said, and it outlives the call.
    check(unsafe { sched_setaffinity(0, size_of_val(&set), &raw const set) })
}

pub(super) fn set_hostname(name: &str) -> io::Result<()> {
    // SAFETY: as long as said, and it outlives the call.
    check(unsafe { sethostname(name.as_ptr(), name.len()) })
}

pub(super) fn install_filter(program: &[u8]) -> io::Result<()> {
    #[repr(C)]
    struct Program {
        length: u16,
        instructions: *const u64,
    }
    // Eight bytes an instruction, aligned.
    let instructions: Vec<u64> = program
        .chunks_exact(8)
        .map(|bytes| u64::from_ne_bytes(bytes.try_into().expect("eight bytes")))
        .collect();
    let length = u16::try_from(instructions.len()).map_err(io::Error::other)?;
    let filter = Program { length, instructions: instructions.as_ptr() };
    // SECCOMP_SET_MODE_FILTER with SECCOMP_FILTER_FLAG_SPEC_ALLOW.
    // SAFETY: the kernel copies the program, which outlives the call.
    check(unsafe { syscall(SYS_SECCOMP, 1 as c_long, 4 as c_long, &raw const filter) })
}

/// execve(2): returns only its error.
pub(super) fn execute(path: &CStr, argv: &[CString], env: &[CString]) -> io::Error {
    let pointers = |strings: &[CString]| {
        let ends = std::iter::once(std::ptr::null());
        strings.iter().map(|string| string.as_ptr()).chain(ends).collect::<Vec<_>>()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both arrays end in null and outlive the call, as do their strings.
    unsafe {
        execve(path.as_ptr(), argv.as_ptr(), env.as_ptr());
    }
    io::Error::last_os_error()
}

fn mount_raw(source: &Path, target: &Path, kind: &str, flags: u64, data: &str) -> io::Result<()> {
    let (source, target) = (c_path(source)?, c_path(target)?);
    let (kind, data) = (CString::new(kind)?, CString::new(data)?);
    // SAFETY: four strings that outlive the call.
    check(unsafe { mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, data.as_ptr()) })
}

/// No mount made here is seen elsewhere.
pub(super) fn private_mounts() -> io::Result<()> {
    mount_raw(Path::new("none"), Path::new("/"), "", RECURSIVE | PRIVATE, "")
}

/// Mounts a file or folder, and what is mounted below it, at a second place.
pub(super) fn bind(source: &Path, target: &Path) -> io::Result<()> {
    mount_raw(source, target, "", BIND | RECURSIVE, "")
}

/// A new memory filesystem.
pub(super) fn mount_memory(target: &Path, options: &str, flags: u64) -> io::Result<()> {
    mount_raw(Path::new("tmpfs"), target, "tmpfs", flags, options)
}

/// A new overlay.
pub(super) fn mount_overlay(target: &Path, options: &str) -> io::Result<()> {
    mount_raw(Path::new("overlay"), target, "overlay", 0, options)
}

/// Restricts the mount at `path` further, and with `recursive` what is mounted below it.
pub(super) fn restrict(path: &Path, flags: u64, recursive: bool) -> io::Result<()> {
    // struct mount_attr: set, clear, propagation, user namespace. Its first flags are those of mount(2).
    let attributes: [u64; 4] = [flags, 0, 0, 0];
    let target = c_path(path)?;
    let recursive = if recursive { 0x8000 } else { 0 };
    // SAFETY: path and attributes are valid, as long as said, and outlive the call.
    let result = unsafe {
        syscall(
            SYS_MOUNT_SETATTR,
            -100 as c_long,
            target.as_ptr(),
            c_long::from(recursive),
            &raw const attributes,
            size_of_val(&attributes),
        )
    };
    match check(result) {
        // Before Linux 5.12.
        Err(error) if error.raw_os_error() == Some(ENOSYS) => {
            mount_raw(Path::new("none"), path, "", BIND | REMOUNT | flags, "")
        }
        other => other,
    }
}

/// Takes a mount, and all below it, from sight.
pub(super) fn detach(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: a string that outlives the call.
    check(unsafe { umount2(path.as_ptr(), 2) })
}

/// The working directory becomes `/`, and the old root is mounted over it.
pub(super) fn pivot_here() -> io::Result<()> {
    // SAFETY: two strings that outlive the call.
    check(unsafe { syscall(SYS_PIVOT_ROOT, c".".as_ptr(), c".".as_ptr()) })
}

/// Access and modification time, of a link itself.
pub(super) fn set_times(path: &Path, times: [i64; 4]) -> io::Result<()> {
    let path = c_path(path)?;
    // AT_FDCWD, AT_SYMLINK_NOFOLLOW.
    // SAFETY: path and times outlive the call; two timespecs are four such numbers.
    check(unsafe { utimensat(-100, path.as_ptr(), &raw const times, 0x100) })
}

/// A device, a pipe or a socket.
pub(super) fn make_node(path: &Path, mode: u32, device: u64) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: a string that outlives the call.
    check(unsafe { c_mknod(path.as_ptr(), mode, device) })
}

/// A close-on-exec socket.
pub(super) fn socket(family: c_int, kind: c_int) -> io::Result<File> {
    // SAFETY: the descriptor is new and ours.
    unsafe {
        let fd = c_socket(family, kind | 0x8_0000, 0);
        check(fd)?;
        Ok(File::from_raw_fd(fd))
    }
}

/// Binds a packet socket to one device and every protocol.
pub(super) fn bind_to_device(socket: &File, index: i32) -> io::Result<()> {
    /// `struct sockaddr_ll`.
    #[repr(C)]
    #[derive(Default)]
    struct Address {
        family: u16,
        protocol: u16,
        index: i32,
        rest: [u8; 12],
    }
    let address = Address { family: 17, protocol: 3_u16.to_be(), index, ..Address::default() };
    let length = u32::try_from(size_of_val(&address)).expect("a small structure");
    // SAFETY: valid for its length, and it outlives the call.
    check(unsafe { c_bind(socket.as_raw_fd(), (&raw const address).cast(), length) })
}

/// An ioctl that takes a pointer to a plain structure.
pub(super) trait Argument {}

/// `struct ifreq`: a name, then a union.
#[repr(C, align(8))]
pub(super) struct Interface {
    pub(super) name: [u8; 16],
    pub(super) value: [u8; 24],
}

/// `struct in6_ifreq`.
#[repr(C)]
pub(super) struct Address6 {
    pub(super) address: [u8; 16],
    pub(super) prefix: u32,
    pub(super) index: i32,
}

/// `struct in6_rtmsg`.
#[repr(C)]
#[derive(Default)]
pub(super) struct Route6 {
    pub(super) destination: [u8; 16],
    pub(super) source: [u8; 16],
    pub(super) gateway: [u8; 16],
    pub(super) kind: u32,
    pub(super) lengths: [u16; 2],
    pub(super) metric: u32,
    pub(super) information: u64,
    pub(super) flags: u32,
    pub(super) index: i32,
}

/// `struct rtentry`; the device's name is put in by [`add_default_route`].
#[repr(C)]
struct Route {
    pad_1: u64,
    destination: [u8; 16],
    gateway: [u8; 16],
    mask: [u8; 16],
    flags: u16,
    pad_2: [u16; 3],
    pad_3: u64,
    pad_4: u64,
    metric: i16,
    pad_5: [u16; 3],
    device: *const c_char,
    rest: [u64; 3],
}

impl Argument for Interface {}
impl Argument for Address6 {}
impl Argument for Route6 {}
impl Argument for Route {}

pub(super) fn ioctl(fd: &File, request: c_ulong, argument: &mut impl Argument) -> io::Result<()> {
    // SAFETY: each request is passed the structure that the kernel documents for it, which outlives the call.
    check(unsafe {
        c_ioctl(fd.as_raw_fd(), request, std::ptr::from_mut(argument).cast::<c_void>())
    })
}

/// A default IPv4 route through a device.
pub(super) fn add_default_route(socket: &File, device: &CStr) -> io::Result<()> {
    let any = || {
        let mut address = [0; 16];
        address[..2].copy_from_slice(&2_u16.to_ne_bytes());
        address
    };
    let mut route = Route {
        pad_1: 0,
        destination: any(),
        gateway: any(),
        mask: any(),
        flags: 1,
        pad_2: [0; 3],
        pad_3: 0,
        pad_4: 0,
        metric: 0,
        pad_5: [0; 3],
        device: device.as_ptr(),
        rest: [0; 3],
    };
    // The name outlives the call.
    ioctl(socket, super::network::ADD_ROUTE, &mut route)
}

/// Makes a file the standard input.
pub(super) fn take_input(path: &str) -> io::Result<()> {
    let file = File::open(path)?;
    // SAFETY: the old standard input is not owned by anything here.
    check(unsafe { dup2(file.as_raw_fd(), 0) })
}

/// The standard streams, to change their owner.
pub(super) fn streams() -> [BorrowedFd<'static>; 2] {
    // SAFETY: nothing here closes them.
    unsafe { [BorrowedFd::borrow_raw(1), BorrowedFd::borrow_raw(2)] }
}
