//! The system calls a run may make: in effect Docker's default profile for its default capabilities.
//!
//! Three filters are stacked; for each call the kernel takes the strictest answer, and of two refusals
//! that of the filter installed last. Only calls of the native word size exist: a 32-bit program is
//! killed, where Docker would let it run.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

use super::syscalls;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Namespace flags of clone(2): CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
const CLONE_NAMESPACES: u64 = 0x7E02_0000;

/// `AF_VSOCK`, which would reach the hypervisor.
const VSOCK: u64 = 40;

/// personality(2): Linux and Linux 32, with and without `UNAME26`, and the query.
const PERSONALITIES: [u64; 5] = [0x0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff];

/// Calls that did not exist when the list was made; programs probe for them and expect `ENOSYS`.
const UNKNOWN: std::ops::Range<i64> = 472..600;

/// The programs to install, in order, as raw instructions.
pub(super) fn programs(single_id: bool) -> Result<Vec<Vec<u8>>, BackendError> {
    let mut filters = vec![allowed()?, not_implemented()?];
    if single_id {
        filters.push(pretended()?);
    }
    Ok(filters.iter().map(bytes).collect())
}

fn compile(
    rules: Rules,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, otherwise, matched, arch)?.try_into()
}

fn errno(number: i32) -> SeccompAction {
    SeccompAction::Errno(number.cast_unsigned())
}

fn allowed() -> Result<BpfProgram, BackendError> {
    let mut rules: Rules = syscalls::ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    let when = |argument, operator, value| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
            .and_then(|condition| SeccompRule::new(vec![condition]))
    };
    rules.insert(libc::SYS_socket, vec![when(0, SeccompCmpOp::Ne, VSOCK)?]);
    let personalities = PERSONALITIES.map(|value| when(0, SeccompCmpOp::Eq, value));
    rules.insert(libc::SYS_personality, personalities.into_iter().collect::<Result<Vec<_>, _>>()?);
    rules.insert(libc::SYS_clone, vec![when(0, SeccompCmpOp::MaskedEq(CLONE_NAMESPACES), 0)?]);
    compile(rules, errno(libc::EPERM), SeccompAction::Allow)
}

/// clone3 takes its flags through a pointer, which no filter can follow: programs fall back to clone.
fn not_implemented() -> Result<BpfProgram, BackendError> {
    let calls = UNKNOWN.chain([libc::SYS_clone3]);
    compile(
        calls.map(|call| (call, Vec::new())).collect(),
        SeccompAction::Allow,
        errno(libc::ENOSYS),
    )
}

/// Where one id is all there is, owners cannot change; that they did is good enough for most.
fn pretended() -> Result<BpfProgram, BackendError> {
    compile(
        syscalls::OWNERSHIP.iter().map(|call| (*call, Vec::new())).collect(),
        SeccompAction::Allow,
        errno(0),
    )
}

fn bytes(program: &BpfProgram) -> Vec<u8> {
    program
        .iter()
        .flat_map(|instruction| {
            let mut bytes = [0; 8];
            bytes[..2].copy_from_slice(&instruction.code.to_ne_bytes());
            bytes[2] = instruction.jt;
            bytes[3] = instruction.jf;
            bytes[4..].copy_from_slice(&instruction.k.to_ne_bytes());
            bytes
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_fits_the_kernel() {
        for single_id in [false, true] {
            for program in programs(single_id).unwrap() {
                assert!(!program.is_empty() && program.len() / 8 <= 4096, "{}", program.len());
            }
        }
    }

    #[test]
    fn dangerous_calls_are_not_in_the_list() {
        for call in [
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_pivot_root,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_bpf,
            libc::SYS_perf_event_open,
            libc::SYS_userfaultfd,
            libc::SYS_keyctl,
            libc::SYS_add_key,
            libc::SYS_request_key,
            libc::SYS_open_by_handle_at,
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_kexec_load,
            libc::SYS_reboot,
            libc::SYS_swapon,
            libc::SYS_syslog,
            libc::SYS_settimeofday,
            libc::SYS_clock_settime,
            libc::SYS_io_uring_setup,
            libc::SYS_fsopen,
            libc::SYS_open_tree,
            libc::SYS_move_mount,
            libc::SYS_mount_setattr,
            libc::SYS_clone,
            libc::SYS_clone3,
        ] {
            assert!(!syscalls::ALLOWED.contains(&call), "{call}");
        }
    }
}
