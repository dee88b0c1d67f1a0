//! Confines this process to computing: no files, no network, no new processes, bounded memory and CPU time.
//!
//! A layout worker parses untrusted pages with a large engine. If a page exploits that engine, the confinement of the
//! process protects the machine (docs/decisions/0023). A worker needs only two pipes and memory. Everything else is
//! removed in four independent steps:
//!
//! 1. Resource limits (every Unix): address space, CPU time per page, no further file descriptors and so no files or
//!    sockets, no core dumps.
//! 2. `no_new_privs`: no started program gains rights.
//! 3. Landlock: no file can be opened and no TCP port reached.
//! 4. seccomp: only the system calls of a computing thread, and no executable memory.
//!
//! [`Confinement`] contains what the kernel refused. That is not an error, because layouts are needed anyway.
//! `perennial doctor` and the crawl report it.

use std::io;

/// CPU seconds per page, by default. The other end stops waiting earlier.
pub const CPU_SECS_PER_PAGE: u64 = 30;

/// CPU seconds per worker. The worker cannot raise this limit.
const CPU_SECS_PER_WORKER: u64 = 3600;

/// The reason why each step failed; `None` if it is in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    pub limits: Option<String>,
    pub privileges: Option<String>,
    /// Landlock is missing or incomplete.
    pub landlock: Option<String>,
    pub seccomp: Option<String>,
}

/// Applies the steps that must precede a second thread: files, ports, rights, file descriptors.
pub fn close_in(memory_bytes: u64) -> io::Result<Confinement> {
    limit_memory(memory_bytes)?;
    let privileges = without_new_privileges();
    // Landlock needs a file descriptor, so their limit comes after it.
    let landlock = without_files_and_ports();
    let limits = without_descriptors();
    Ok(Confinement { limits, privileges, landlock, seccomp: None })
}

/// Removes all system calls but those of computing, for all threads of this process. No thread can be started
/// afterwards.
pub fn seal(isolation: &mut Confinement) {
    isolation.seccomp = with_few_system_calls();
}

fn limit_memory(bytes: u64) -> io::Result<()> {
    use rustix::process::Resource;
    set_limit(Resource::As, bytes, bytes)
}

fn set_limit(resource: rustix::process::Resource, current: u64, maximum: u64) -> io::Result<()> {
    use rustix::process::{Rlimit, getrlimit, setrlimit};
    // A hard limit can only be lowered.
    let maximum = getrlimit(resource).maximum.map_or(maximum, |now| now.min(maximum));
    Ok(setrlimit(resource, Rlimit { current: Some(current.min(maximum)), maximum: Some(maximum) })?)
}

fn without_descriptors() -> Option<String> {
    use rustix::process::Resource;
    // The three standard streams are open. Opening a fourth descriptor fails.
    let limits = [(Resource::Nofile, 3), (Resource::Core, 0), (Resource::Fsize, 0)];
    limits.into_iter().find_map(|(resource, most)| Some(set_limit(resource, most, most).err()?.to_string()))
}

/// Allows this process this many more seconds of CPU time. If a page uses more, the system kills the process, even if
/// nobody waits for it any more.
pub fn allow_cpu(secs: u64) -> io::Result<()> {
    use rustix::time::{ClockId, clock_gettime};
    let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec.max(0) as u64;
    set_limit(rustix::process::Resource::Cpu, used + secs.max(1), CPU_SECS_PER_WORKER)
}

/// Ends this process when the reader of its standard output is gone, even while it computes.
///
/// Linux can signal a process when its parent ends. But "parent" means the parent's thread, and the threads that
/// start workers come and go. The pipe closes when the parent process ends, however it ends.
pub fn end_with_reader() -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    let watch = || {
        let output = io::stdout();
        // No event is requested, because a hang-up is always reported.
        while let Ok(n) = poll(&mut [PollFd::new(&output, PollFlags::empty())], None).or_else(again) {
            if n > 0 {
                break;
            }
        }
        std::process::exit(0);
    };
    std::thread::Builder::new().name("reader-watch".into()).stack_size(64 << 10).spawn(watch)?;
    Ok(())
}

fn again(error: rustix::io::Errno) -> Result<usize, rustix::io::Errno> {
    if error == rustix::io::Errno::INTR { Ok(0) } else { Err(error) }
}

#[cfg(target_os = "linux")]
fn without_new_privileges() -> Option<String> {
    rustix::thread::set_no_new_privs(true).err().map(|error| error.to_string())
}

#[cfg(target_os = "linux")]
fn without_files_and_ports() -> Option<String> {
    use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetStatus, Scope};
    // Features that the kernel lacks are left out and reported.
    let restricted = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V5))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(ABI::V5)))
        .and_then(|rules| rules.scope(Scope::AbstractUnixSocket | Scope::Signal))
        .and_then(|rules| rules.create())
        .and_then(|rules| rules.restrict_self());
    match restricted.map(|status| status.ruleset) {
        Ok(RulesetStatus::FullyEnforced) => None,
        Ok(RulesetStatus::PartiallyEnforced) => Some("the kernel supports only a part of Landlock".into()),
        Ok(RulesetStatus::NotEnforced) => Some("the kernel has no Landlock, or it is switched off".into()),
        Err(error) => Some(error.to_string()),
    }
}

#[cfg(target_os = "linux")]
fn with_few_system_calls() -> Option<String> {
    use seccompiler::{SeccompAction, SeccompFilter, TargetArch, apply_filter_all_threads};
    let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else {
        return Some(format!("there is no filter for {}", std::env::consts::ARCH));
    };
    // A system call that is not on the list fails with "permission denied", so a library that tries it needlessly
    // continues.
    let refuse = SeccompAction::Errno(rustix::io::Errno::PERM.raw_os_error() as u32);
    let filter =
        system_calls().and_then(|rules| SeccompFilter::new(rules, refuse, SeccompAction::Allow, arch));
    let program: Result<seccompiler::BpfProgram, _> = filter.and_then(TryInto::try_into);
    let applied = program
        .map_err(|error| error.to_string())
        .and_then(|program| apply_filter_all_threads(&program).map_err(|error| error.to_string()));
    applied.err()
}

/// The system calls of a thread that computes, allocates, and uses open pipes.
#[cfg(target_os = "linux")]
fn system_calls()
-> Result<std::collections::BTreeMap<i64, Vec<seccompiler::SeccompRule>>, seccompiler::BackendError> {
    use seccompiler::{
        SeccompCmpArgLen::{Dword, Qword},
        SeccompCmpOp, SeccompCondition, SeccompRule,
    };
    let mut calls: Vec<i64> = vec![
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_readv,
        libc::SYS_writev,
        libc::SYS_ppoll,
        libc::SYS_close,
        libc::SYS_fstat,
        libc::SYS_lseek,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_set_robust_list,
        libc::SYS_rseq,
        libc::SYS_membarrier,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_gettimeofday,
        libc::SYS_getrandom,
        libc::SYS_getrusage,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_getcpu,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];
    #[cfg(target_arch = "x86_64")]
    calls.push(libc::SYS_poll);
    let own = u64::from(std::process::id());
    let is = |argument, length, operator, value| SeccompCondition::new(argument, length, operator, value);
    let not_executable = || is(2, Qword, SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64), 0);
    let bound = [
        (libc::SYS_mmap, not_executable()?),
        (libc::SYS_mprotect, not_executable()?),
        // For this process only, not for others.
        (libc::SYS_prlimit64, is(0, Dword, SeccompCmpOp::Eq, 0)?),
        (libc::SYS_tgkill, is(0, Dword, SeccompCmpOp::Eq, own)?),
    ];
    let mut rules: std::collections::BTreeMap<i64, Vec<SeccompRule>> =
        calls.into_iter().map(|call| (call, Vec::new())).collect();
    for (call, condition) in bound {
        rules.insert(call, vec![SeccompRule::new(vec![condition])?]);
    }
    Ok(rules)
}

#[cfg(not(target_os = "linux"))]
fn without_new_privileges() -> Option<String> {
    Some("only Linux has it".into())
}

#[cfg(not(target_os = "linux"))]
fn without_files_and_ports() -> Option<String> {
    Some("only Linux has it".into())
}

#[cfg(not(target_os = "linux"))]
fn with_few_system_calls() -> Option<String> {
    Some("only Linux has it".into())
}
