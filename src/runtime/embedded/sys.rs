//! The system calls that rustix does not have or marks unsafe, each in a small safe wrapper. Callers
//! are single-threaded processes (the launcher, pid 1, the command before its execve).

#![expect(unsafe_code, reason = "raw system calls live here and nowhere else")]

use std::ffi::{CStr, CString, c_int, c_ulong};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Since 5.7; libc's constant has overflowed.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// What clone(2) returned.
pub(super) enum Cloned {
    /// In the new process.
    Child,
    /// In the old one.
    Parent {
        /// The new process.
        pid: i32,
        /// A pidfd of it, close-on-exec.
        pidfd: OwnedFd,
    },
}

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// clone3(2) without a stack: fork with namespaces, optionally straight into a v2 cgroup.
pub(super) fn clone(flags: u64, cgroup: Option<BorrowedFd<'_>>) -> io::Result<Cloned> {
    let mut pidfd: RawFd = -1;
    // SAFETY: all-zero is a valid clone_args.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = flags | libc::CLONE_PIDFD as u64;
    args.pidfd = &raw mut pidfd as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    if let Some(cgroup) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = u64::from(cgroup.as_raw_fd().cast_unsigned());
    }
    // SAFETY: the arguments are valid and outlive the call; no memory or stack is shared; the caller
    // has one thread, so that the child's copy of every lock is free.
    let pid = check(unsafe {
        libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<libc::clone_args>())
    })?;
    if pid == 0 {
        return Ok(Cloned::Child);
    }
    // SAFETY: the kernel has just opened it for us.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Cloned::Parent { pid: i32::try_from(pid).expect("a pid fits"), pidfd })
}

/// mount_setattr(2) on a whole detached tree.
pub(super) fn set_tree_attributes(tree: impl AsFd, set: u64) -> io::Result<()> {
    set_attributes(tree, set, libc::AT_RECURSIVE)
}

/// The same on its topmost mount alone.
pub(super) fn set_mount_attributes(tree: impl AsFd, set: u64) -> io::Result<()> {
    set_attributes(tree, set, 0)
}

fn set_attributes(tree: impl AsFd, set: u64, flags: c_int) -> io::Result<()> {
    let mut attributes =
        libc::mount_attr { attr_set: set, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: the path and the attributes are valid and outlive the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | flags,
            &raw mut attributes,
            size_of::<libc::mount_attr>(),
        )
    })
    .map(drop)
}

/// A cgroup namespace whose root are the cgroups of now.
pub(super) fn unshare_cgroup() -> io::Result<()> {
    // SAFETY: a plain system call; a cgroup namespace shares no memory or descriptors.
    check(unsafe { libc::unshare(libc::CLONE_NEWCGROUP) }.into()).map(drop)
}

/// A user namespace for the whole process, which must have one thread.
pub(super) fn unshare_user() -> io::Result<()> {
    // SAFETY: a plain system call; a user namespace shares no memory or descriptors.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER) }.into()).map(drop)
}

/// A new, empty session keyring: the one of the host's session is not the run's.
pub(super) fn new_session_keyring() -> io::Result<()> {
    let join: c_ulong = 1; // KEYCTL_JOIN_SESSION_KEYRING; an anonymous one.
    // SAFETY: no pointers.
    check(unsafe { libc::syscall(libc::SYS_keyctl, join, 0, 0, 0, 0) }).map(drop)
}

/// Puts `source` at the number `target` (without close-on-exec), for standard streams.
pub(super) fn replace(source: impl AsFd, target: c_int) -> io::Result<()> {
    // SAFETY: a plain system call; the callers replace 0, 1 and 2 only.
    check(unsafe { libc::dup2(source.as_fd().as_raw_fd(), target) }.into()).map(drop)
}

/// Closes every descriptor from 3 up.
pub(super) fn close_others() -> io::Result<()> {
    // SAFETY: the caller is about to exec or to exit and uses none of them again.
    check(unsafe { libc::syscall(libc::SYS_close_range, 3, c_int::MAX, 0) }).map(drop)
}

/// Installs a seccomp filter given as raw instructions, with Docker's flags.
pub(super) fn install_filter(program: &[u8]) -> io::Result<()> {
    let count = program.len() / size_of::<libc::sock_filter>();
    let mut instructions = Vec::with_capacity(count);
    for bytes in program.chunks_exact(size_of::<libc::sock_filter>()) {
        instructions.push(libc::sock_filter {
            code: u16::from_ne_bytes([bytes[0], bytes[1]]),
            jt: bytes[2],
            jf: bytes[3],
            k: u32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
        });
    }
    let len = u16::try_from(count).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let filter = libc::sock_fprog { len, filter: instructions.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which outlives the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
            &raw const filter,
        )
    })
    .map(drop)
}

/// Every signal gets its default action and none is blocked, as a fresh process expects.
pub(super) fn reset_signals() {
    // SAFETY: SIG_DFL and an empty mask are valid for every signal; errors (SIGKILL, SIGSTOP and
    // numbers that do not exist) change nothing.
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Ignores what a terminal or a service manager sends to the process group: hallmark decides.
pub(super) fn ignore_terminal_signals() {
    // SAFETY: SIG_IGN is valid for these signals.
    unsafe {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
}

/// Blocks SIGCHLD and SIGTERM and returns a signalfd that becomes readable with them. Without that, pid 1 would never see a
/// SIGTERM: what has no handler is not sent to it.
pub(super) fn signals() -> io::Result<File> {
    // SAFETY: the set is initialised before use and outlives the calls; the descriptor is new.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()).into())?;
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        check(fd.into())?;
        Ok(File::from_raw_fd(fd))
    }
}

/// A child that ended.
pub(super) struct Ended {
    /// Which.
    pub(super) pid: i32,
    /// Its raw wait status.
    pub(super) status: i32,
    /// User and system time of it and of all it waited for.
    pub(super) cpu: Duration,
}

/// wait4(2) for `pid` (-1: any): `None` when there is nothing to reap now (with `block` unset), or no
/// child at all.
pub(super) fn wait(pid: i32, block: bool) -> io::Result<Option<Ended>> {
    let mut status = 0;
    // SAFETY: all-zero is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let options = if block { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: both pointers are valid for the call.
        let result =
            unsafe { libc::wait4(pid, &raw mut status, options | libc::__WALL, &raw mut usage) };
        match check(result.into()) {
            Ok(0) => return Ok(None),
            Ok(_) => {
                let cpu = duration(usage.ru_utime) + duration(usage.ru_stime);
                return Ok(Some(Ended { pid: result, status, cpu }));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}

/// fork(2).
pub(super) fn fork() -> io::Result<Option<i32>> {
    // SAFETY: the caller has one thread.
    let pid = unsafe { libc::fork() };
    check(pid.into())?;
    Ok((pid != 0).then_some(pid))
}

/// kill(-1): everything that this process may signal but itself. Pid 1 of a namespace reaches just
/// its namespace.
pub(super) fn kill_everything() {
    // SAFETY: a plain system call.
    unsafe {
        libc::kill(-1, libc::SIGKILL);
    }
}

/// Ends the process at once: no destructors, no handlers.
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: never returns.
    unsafe { libc::_exit(code) }
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
        libc::execve(path.as_ptr(), argv.as_ptr(), env.as_ptr());
    }
    io::Error::last_os_error()
}

/// An ioctl that takes a pointer to `argument` and may write to it.
pub(super) fn ioctl<T>(fd: impl AsFd, request: libc::Ioctl, argument: &mut T) -> io::Result<()> {
    // SAFETY: every caller passes the structure that the request is defined with.
    check(
        unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), request, std::ptr::from_mut(argument)) }
            .into(),
    )
    .map(drop)
}

/// Takes the uid, gid and no supplementary groups, for the calling thread, which is the only one.
pub(super) fn become_user(uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: plain system calls; the raw ones, since the C library's would signal other threads.
    unsafe {
        let none = std::ptr::null::<libc::gid_t>();
        if let Err(error) = check(libc::syscall(libc::SYS_setgroups, 0, none)) {
            // Where only one id is mapped the kernel denies setgroups, and there are none to drop
            // that could be named.
            if error.raw_os_error() != Some(libc::EPERM) {
                return Err(error);
            }
        }
        check(libc::syscall(libc::SYS_setresgid, gid, gid, gid))?;
        check(libc::syscall(libc::SYS_setresuid, uid, uid, uid))?;
    }
    Ok(())
}

/// Whether the process may be traced and its /proc files read by its own uid.
pub(super) fn set_dumpable(dumpable: bool) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, c_ulong::from(dumpable), 0, 0, 0) }.into())
        .map(drop)
}

/// A byte as C's `char`, whose sign depends on the processor.
pub(super) fn c_char(byte: u8) -> std::ffi::c_char {
    std::ffi::c_char::from_ne_bytes([byte])
}

/// The answer to SIOCGIFINDEX.
pub(super) fn interface_index(request: &libc::ifreq) -> c_int {
    // SAFETY: every field of the union is plain bytes, and the kernel has filled this one.
    unsafe { request.ifr_ifru.ifru_ifindex }
}

/// A default IPv4 route through a device.
pub(super) fn add_default_route(socket: impl AsFd, device: &str) -> io::Result<()> {
    let mut name = CString::new(device).expect("a constant without NUL").into_bytes_with_nul();
    // SAFETY: all-zero is a valid rtentry; the addresses' family is set below.
    let mut route: libc::rtentry = unsafe { std::mem::zeroed() };
    let family = u16::try_from(libc::AF_INET).expect("a small constant");
    route.rt_dst.sa_family = family;
    route.rt_genmask.sa_family = family;
    route.rt_gateway.sa_family = family;
    route.rt_flags = libc::RTF_UP;
    route.rt_dev = name.as_mut_ptr().cast();
    // The name outlives the call.
    ioctl(socket, libc::SIOCADDRT, &mut route)
}

/// `struct in6_rtmsg` of linux/ipv6_route.h; libc's has private fields.
#[repr(C)]
#[derive(Default)]
struct Route6 {
    destination: [u8; 16],
    source: [u8; 16],
    gateway: [u8; 16],
    kind: u32,
    destination_length: u16,
    source_length: u16,
    metric: u32,
    information: libc::c_ulong,
    flags: u32,
    index: c_int,
}

/// A default IPv6 route through a device.
pub(super) fn add_default_route_6(socket: impl AsFd, index: c_int) -> io::Result<()> {
    let flags = u32::from(libc::RTF_UP);
    let mut route = Route6 { metric: 1024, flags, index, ..Route6::default() };
    ioctl(socket, libc::SIOCADDRT, &mut route)
}

/// Binds a packet socket to one device and every protocol.
pub(super) fn bind_packet_socket(socket: impl AsFd, index: c_int) -> io::Result<()> {
    // SAFETY: all-zero is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET).expect("a small constant");
    address.sll_protocol = u16::try_from(libc::ETH_P_ALL).expect("a small constant").to_be();
    address.sll_ifindex = index;
    let length = libc::socklen_t::try_from(size_of_val(&address)).expect("a small structure");
    // SAFETY: the address is valid for its length and outlives the call.
    check(
        unsafe { libc::bind(socket.as_fd().as_raw_fd(), (&raw const address).cast(), length) }
            .into(),
    )
    .map(drop)
}
