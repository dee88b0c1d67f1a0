//! This process -> one that can only compute: no files, no network, no further processes, bounded memory and processor time.
//!
//! A layout worker reads what strangers wrote with a large engine. If that engine can be turned against us, the process around
//! it is what is left to protect the machine (docs/decisions/0023). It needs two pipes and memory, so everything else is taken
//! away in four steps, each of which holds where the others are missing:
//!
//! 1. Limits of the system (every Unix): address space, processor time for each page, no further file descriptors, which also
//!    means no file and no socket, no core dumps.
//! 2. `no_new_privs`: nothing that it starts can have more rights than itself.
//! 3. Landlock: no file can be opened, no TCP port reached.
//! 4. seccomp: only the system calls of a computing thread; no others, and no memory that is executable.
//!
//! Whatever the kernel refuses is told by [`Confinement`] and is no error: layouts are wanted all the same. `perennial doctor` and
//! the crawl say what is missing.

use std::io;

/// How many seconds of processor time one page may use, if nothing else was asked for. The other end stops waiting earlier.
pub const CPU_SECS_PER_PAGE: u64 = 30;

/// The processor time of a worker's whole life, which it cannot raise.
const CPU_SECS_PER_WORKER: u64 = 3600;

/// What stands around this process: `None` where a wall stands, else why it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Why the limits of the system could not be set.
    pub limits: Option<String>,
    /// Why `no_new_privs` is missing.
    pub privileges: Option<String>,
    /// Why Landlock is missing, or what of it.
    pub landlock: Option<String>,
    /// Why the filter of system calls is missing.
    pub seccomp: Option<String>,
}

/// Takes away what must go before there is a second thread: files, ports, rights, file descriptors.
pub fn close_in(memory_bytes: u64) -> io::Result<Confinement> {
    limit_memory(memory_bytes)?;
    let privileges = without_new_privileges();
    // Landlock needs a file descriptor, so the limit of descriptors comes after it.
    let landlock = without_files_and_ports();
    let limits = without_descriptors();
    Ok(Confinement { limits, privileges, landlock, seccomp: None })
}

/// Takes away all system calls but those of computing, for all threads of this process. No thread can be started after this.
pub fn seal(isolation: &mut Confinement) {
    isolation.seccomp = with_few_system_calls();
}

fn limit_memory(bytes: u64) -> io::Result<()> {
    use rustix::process::Resource;
    set_limit(Resource::As, bytes, bytes)
}

fn set_limit(resource: rustix::process::Resource, current: u64, maximum: u64) -> io::Result<()> {
    use rustix::process::{Rlimit, getrlimit, setrlimit};
    // A maximum can only be lowered.
    let maximum = getrlimit(resource).maximum.map_or(maximum, |now| now.min(maximum));
    Ok(setrlimit(resource, Rlimit { current: Some(current.min(maximum)), maximum: Some(maximum) })?)
}

fn without_descriptors() -> Option<String> {
    use rustix::process::Resource;
    // The three streams are there. Whoever asks for a fourth descriptor gets an error.
    let limits = [(Resource::Nofile, 3), (Resource::Core, 0), (Resource::Fsize, 0)];
    limits.into_iter().find_map(|(resource, most)| Some(set_limit(resource, most, most).err()?.to_string()))
}

/// Gives this process so many seconds of processor time from now on. A page that uses more ends the process by the system's
/// own hand, also when nobody waits for it any more.
pub fn allow_cpu(secs: u64) -> io::Result<()> {
    use rustix::time::{ClockId, clock_gettime};
    let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec.max(0) as u64;
    set_limit(rustix::process::Resource::Cpu, used + secs.max(1), CPU_SECS_PER_WORKER)
}

/// Ends this process as soon as nobody reads its standard output any more, even while it computes.
///
/// Linux can signal a process when its parent ends, but it means the parent's thread, and the threads that start workers
/// come and go. The pipe closes when the parent ends, however it ends.
pub fn end_with_reader() -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    let watch = || {
        let output = io::stdout();
        // Nothing is asked for: that the other end closed is always told.
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
    // What the kernel is too young for is left out; the answer says so.
    let restricted = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V5))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(ABI::V5)))
        .and_then(|rules| rules.scope(Scope::AbstractUnixSocket | Scope::Signal))
        .and_then(|rules| rules.create())
        .and_then(|rules| rules.restrict_self());
    match restricted.map(|status| status.ruleset) {
        Ok(RulesetStatus::FullyEnforced) => None,
        Ok(RulesetStatus::PartiallyEnforced) => Some("the kernel knows a part of Landlock only".into()),
        Ok(RulesetStatus::NotEnforced) => Some("the kernel has no Landlock, or it is switched off".into()),
        Err(error) => Some(error.to_string()),
    }
}

#[cfg(target_os = "linux")]
fn with_few_system_calls() -> Option<String> {
    use seccompiler::{SeccompAction, SeccompFilter, TargetArch, apply_filter_all_threads};
    let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else {
        return Some(format!("no filter is known for {}", std::env::consts::ARCH));
    };
    // A call that is not on the list fails as if it were forbidden to the user: a library that tries one without need goes on.
    let refuse = SeccompAction::Errno(rustix::io::Errno::PERM.raw_os_error() as u32);
    let filter =
        system_calls().and_then(|rules| SeccompFilter::new(rules, refuse, SeccompAction::Allow, arch));
    let program: Result<seccompiler::BpfProgram, _> = filter.and_then(TryInto::try_into);
    let applied = program
        .map_err(|error| error.to_string())
        .and_then(|program| apply_filter_all_threads(&program).map_err(|error| error.to_string()));
    applied.err()
}

/// The system calls of a thread that computes, allocates, and reads and writes pipes that are open.
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
        // Its own limits and its own end; not those of other processes.
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
