//! The system calls a run may make: in effect Docker's default profile for its default capabilities.
//!
//! The kernel runs each filter for each system call's number when it is installed, and a list of 300
//! numbers costs it 2 ms (measured); hence the numbers are decided by a binary search of our own, and
//! seccompiler's list holds the four calls whose arguments matter. For each call the kernel takes
//! the stricter answer. Only calls of the native word size exist: a 32-bit program is killed,
//! where Docker would let it run.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

use super::syscalls;

/// Namespace flags of clone(2): CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
const CLONE_NAMESPACES: [u64; 7] =
    [0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000];

/// `AF_VSOCK`, which would reach the hypervisor.
const VSOCK: u64 = 40;

/// personality(2): Linux and Linux 32, with and without `UNAME26`, and the query.
const PERSONALITIES: [u64; 5] = [0x0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff];

/// Calls that did not exist when the list was made; programs probe for them and expect `ENOSYS`.
const UNKNOWN: std::ops::Range<u32> = 472..600;

/// linux/audit.h: 64 bits, little-endian, and the ELF machine.
const AUDIT_ARCH: u32 = if cfg!(target_arch = "aarch64") { 0xC000_00B7 } else { 0xC000_003E };

/// The programs to install, in order, as raw instructions.
pub(crate) fn programs(single_id: bool) -> Result<Vec<Vec<u8>>, BackendError> {
    Ok(vec![bytes(&numbers(single_id)), bytes(&arguments()?)])
}

fn errno(number: i32) -> SeccompAction {
    SeccompAction::Errno(number.cast_unsigned())
}

/// What happens to a call, by its number alone.
fn decisions(single_id: bool) -> BTreeMap<u32, u32> {
    let conditional = [libc::SYS_socket, libc::SYS_personality, libc::SYS_clone];
    let number = |call: &std::ffi::c_long| u32::try_from(*call).expect("numbers are small");
    let mut actions: BTreeMap<u32, u32> =
        UNKNOWN.map(|call| (call, errno(libc::ENOSYS).into())).collect();
    for call in syscalls::ALLOWED.iter().chain(&conditional) {
        actions.insert(number(call), SeccompAction::Allow.into());
    }
    // It takes its flags through a pointer, which no filter can follow: programs fall back to clone.
    actions.insert(number(&libc::SYS_clone3), errno(libc::ENOSYS).into());
    if single_id {
        // Where one id is all there is, owners cannot change; that they did is good enough for most.
        for call in syscalls::OWNERSHIP {
            actions.insert(number(call), errno(0).into());
        }
    }
    actions
}

/// Runs of numbers with the same answer: where each starts, and the answer.
fn runs(actions: &BTreeMap<u32, u32>) -> Vec<(u32, u32)> {
    let refused = errno(libc::EPERM).into();
    let mut runs = vec![(0, actions.get(&0).copied().unwrap_or(refused))];
    let mut push = |start, action| {
        if runs.last().is_none_or(|(_, last)| *last != action) {
            runs.push((start, action));
        }
    };
    for (call, action) in actions {
        push(*call, *action);
        if !actions.contains_key(&(call + 1)) {
            push(call + 1, refused);
        }
    }
    runs
}

fn numbers(single_id: bool) -> BpfProgram {
    let mut program = vec![
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 4),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, AUDIT_ARCH),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, SeccompAction::KillProcess.into()),
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
    ];
    program.extend(search(&runs(&decisions(single_id))));
    program
}

/// A binary search: below the middle's start in the left half, else in the right.
fn search(runs: &[(u32, u32)]) -> BpfProgram {
    if let [(_, action)] = runs {
        return vec![instruction(libc::BPF_RET | libc::BPF_K, 0, 0, *action)];
    }
    let (left, right) = runs.split_at(runs.len() / 2);
    let middle = right.first().map_or(0, |(start, _)| *start);
    let left = search(left);
    let compare = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
    let mut program = match u8::try_from(left.len()) {
        Ok(length) => vec![instruction(compare, length, 0, middle)],
        // Conditional jumps reach 255 instructions.
        Err(_) => vec![
            instruction(compare, 0, 1, middle),
            instruction(
                libc::BPF_JMP | libc::BPF_JA,
                0,
                0,
                u32::try_from(left.len()).expect("a few hundred"),
            ),
        ],
    };
    program.extend(left);
    program.extend(search(right));
    program
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: u16::try_from(code).expect("codes are 16 bits"), jt, jf, k }
}

/// Refuses the arguments that Docker's profile does not allow, and limits on pid 1.
fn arguments() -> Result<BpfProgram, BackendError> {
    let when = |operator, value| SeccompCondition::new(0, SeccompCmpArgLen::Dword, operator, value);
    let others = PERSONALITIES.map(|value| when(SeccompCmpOp::Ne, value));
    let others = SeccompRule::new(others.into_iter().collect::<Result<Vec<_>, _>>()?)?;
    let namespaces = CLONE_NAMESPACES
        .map(|flag| SeccompRule::new(vec![when(SeccompCmpOp::MaskedEq(flag), flag)?]));
    let rules = [
        (libc::SYS_socket, vec![SeccompRule::new(vec![when(SeccompCmpOp::Eq, VSOCK)?])?]),
        (libc::SYS_personality, vec![others]),
        (libc::SYS_clone, namespaces.into_iter().collect::<Result<Vec<_>, _>>()?),
        // Docker allows it; but here pid 1 is ours, and reports.
        (libc::SYS_prlimit64, vec![SeccompRule::new(vec![when(SeccompCmpOp::Eq, 1)?])?]),
    ];
    compile(rules.into(), errno(libc::EPERM))
}

/// The program that answers `answer` to calls that a rule fits (no rules: always), and lets all others pass.
fn compile(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    answer: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, answer, arch)?.try_into()
}

/// A program that makes syncs succeed at once, for trees that are thrown away unless they become a layer: dpkg syncs
/// after each file, which was most of a base's build time on disks.
pub(crate) fn unsynced() -> Result<Vec<u8>, BackendError> {
    let calls = syscalls::SYNCS.iter().map(|call| (*call, Vec::new())).collect();
    Ok(bytes(&compile(calls, errno(0))?))
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

    /// What the search answers to a number, by running it.
    fn answer(program: &[sock_filter], number: u32) -> u32 {
        let mut at = 4;
        loop {
            let one = &program[at];
            at += 1;
            match u32::from(one.code) {
                code if code == libc::BPF_RET | libc::BPF_K => return one.k,
                code if code == libc::BPF_JMP | libc::BPF_JA => at += one.k as usize,
                _ => at += usize::from(if number >= one.k { one.jt } else { one.jf }),
            }
        }
    }

    #[test]
    fn the_search_finds_every_decision() {
        for single_id in [false, true] {
            let (program, decisions) = (numbers(single_id), decisions(single_id));
            let refused: u32 = errno(libc::EPERM).into();
            for number in (0..2000).chain([u32::MAX, 0x4000_0000, 0x4000_0001]) {
                let expected = decisions.get(&number).copied().unwrap_or(refused);
                assert_eq!(answer(&program, number), expected, "{number}");
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
