//! A browser's executable -> a running browser without a network, with bounded memory and its sandbox.
//!
//! The browser is handed what strangers wrote, so it is not believed when it says that it asks nobody (docs/decisions/0022):
//!
//! - It runs in a network namespace of its own, in which there is nothing, not even loopback, where the system lets an
//!   ordinary user make one.
//! - Everywhere, every connection of its own goes to a proxy whose name no resolver knows, and WebRTC, prefetching and its
//!   errands for its maker are off.
//! - Its sandbox is on. As root that needs the namespace too: inside it the browser is no longer root.
//! - A thread of this process counts its memory and ends it with all its processes when it has too much.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::pipe;

/// How often the memory of a browser is counted.
const COUNT_EVERY: Duration = Duration::from_millis(500);

/// How a browser is started.
#[derive(Clone, Copy, Debug)]
pub struct LaunchOptions {
    /// Whether the browser's own sandbox is on.
    pub sandbox: bool,
    /// Whether it gets a network namespace of its own, where the system allows one.
    pub own_network: bool,
    /// Memory of all its processes together; beyond it they are ended.
    pub memory_bytes: u64,
}

/// Memory of a browser with all its processes. A usual page takes a tenth of it.
pub const BROWSER_MEMORY_BYTES: u64 = 2 << 30;

impl Default for LaunchOptions {
    fn default() -> LaunchOptions {
        LaunchOptions { sandbox: true, own_network: true, memory_bytes: BROWSER_MEMORY_BYTES }
    }
}

/// Streams go to descriptors 3 and 4, where the browser has its debugging pipe; a shell does it without unsafe code.
const MOVE_STREAMS: &str = "ulimit -c 0; exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null";

/// No other part of the environment is handed on: it may hold secrets.
const KEPT_VARIABLES: [&str; 10] = [
    "HOME",
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "FONTCONFIG_FILE",
    "FONTCONFIG_PATH",
    "XDG_DATA_DIRS",
];

const FLAGS: [&str; 39] = [
    "--headless",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--mute-audio",
    "--force-color-profile=srgb",
    "--force-device-scale-factor=1",
    // No network: a proxy without an address for everything, loopback included, and no names.
    "--proxy-server=http://nowhere.invalid:9",
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--disable-quic",
    "--dns-prefetch-disable",
    // WebRTC opens sockets past the proxy unless it is told not to.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    // Errands of the browser's own.
    "--no-pings",
    "--disable-background-networking",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-component-extensions-with-background-pages",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--metrics-recording-only",
    "--no-service-autorun",
    // Windows, prompts and downloads that nobody sees.
    "--block-new-web-contents",
    "--deny-permission-prompts",
    "--disable-notifications",
    "--disable-print-preview",
    "--disable-speech-api",
    "--disk-cache-size=1",
    "--renderer-process-limit=4",
    // All frames of a page in one process, so that its virtual time waits for all of them. A page has no cookies and no
    // passwords here that a process for each site would protect.
    "--disable-site-isolation-trials",
    "--disable-features=IsolateOrigins,site-per-process,AutofillServerCommunication,\
     CertificateTransparencyComponentUpdater,DialMediaRouteProvider,InterestFeedContentSuggestions,MediaRouter,NetworkTimeServiceQuerying,OptimizationHints,OptimizationHintsFetching,\
     PreconnectToSearch,Prerender2,SpeculationRulesPrefetchFuture,SegmentationPlatform,Translate,WebOTP",
];

/// A browser that runs. Dropping it ends all its processes.
pub(crate) struct BrowserProcess {
    child: Child,
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
    guard: Option<MemoryGuard>,
    /// The browser's own folder, removed with it.
    _profile: TempDir,
}

impl BrowserProcess {
    pub(crate) fn start(program: &Path, options: LaunchOptions) -> io::Result<BrowserProcess> {
        let profile = tempfile::Builder::new().prefix("perennial-chromium").tempdir()?;
        let wrapper = if options.own_network { namespace_command() } else { None }.unwrap_or_default();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", MOVE_STREAMS]).args(wrapper).arg(program).args(FLAGS);
        if !options.sandbox {
            command.arg("--no-sandbox");
        }
        let kept = KEPT_VARIABLES.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        let mut child = command
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .env_clear()
            .envs(kept)
            // No errands to services of the desktop.
            .envs([("DBUS_SESSION_BUS_ADDRESS", "disabled:"), ("DBUS_SYSTEM_BUS_ADDRESS", "disabled:")])
            // A group of its own, so that all its processes can be counted and ended together.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the browser has no pipes"));
        };
        pipe::prepare(&input)?;
        pipe::prepare(&output)?;
        let guard = Some(MemoryGuard::watch(child.id(), options.memory_bytes)?);
        Ok(BrowserProcess { child, input, output, guard, _profile: profile })
    }

    /// Whether it was ended because it had too much memory.
    pub(crate) fn was_too_large(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.has_ended_it.load(Ordering::Relaxed))
    }

    /// Whether its pages are drawn behind a filter of system calls, which is what its sandbox comes to.
    pub(crate) fn has_sandbox(&self) -> bool {
        let drawing = processes_of_group(self.child.id()).filter(|process| {
            fs::read(process.join("cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains("--type=renderer"))
        });
        let mut are_confined =
            drawing.map(|process| status_field(&process, "Seccomp:") == Some(2)).peekable();
        are_confined.peek().is_some() && are_confined.all(|is_confined| is_confined)
    }

    /// Whether it is in another network namespace than this process.
    pub(crate) fn has_own_network(&self) -> bool {
        let network = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
        let own = network(&self.child.id().to_string());
        own.is_some() && own != network("self")
    }
}

impl Drop for BrowserProcess {
    fn drop(&mut self) {
        // The guard goes first: after the wait the number of the group may belong to others.
        if let Some(guard) = self.guard.take() {
            guard.end();
        }
        end_group(self.child.id());
        let _ = self.child.wait();
    }
}

/// Ends all processes of a group. That they have already ended is no error.
fn end_group(group: u32) {
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// The thread that counts the memory of a group of processes.
struct MemoryGuard {
    is_over: Arc<AtomicBool>,
    has_ended_it: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl MemoryGuard {
    fn watch(group: u32, most_bytes: u64) -> io::Result<MemoryGuard> {
        let (is_over, has_ended_it) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (over, ended) = (is_over.clone(), has_ended_it.clone());
        let count = move || {
            while !over.load(Ordering::Relaxed) {
                if memory_of_group(group) > most_bytes {
                    ended.store(true, Ordering::Relaxed);
                    end_group(group);
                }
                std::thread::park_timeout(COUNT_EVERY);
            }
        };
        let thread = std::thread::Builder::new().name("browser-memory".into()).spawn(count)?;
        Ok(MemoryGuard { is_over, has_ended_it, thread })
    }

    fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        let _ = self.thread.join();
    }
}

/// Bytes that the processes of a group have for themselves or share as memory; not those of files that they map.
fn memory_of_group(group: u32) -> u64 {
    let own = |process: PathBuf| {
        let fields = ["RssAnon:", "RssShmem:"].map(|name| status_field(&process, name).unwrap_or(0));
        fields.into_iter().sum::<u64>() << 10
    };
    processes_of_group(group).map(own).sum()
}

/// A number of `/proc/PID/status`.
fn status_field(process: &Path, name: &str) -> Option<u64> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// The folders in `/proc` of the processes of a group. There are none where the system has no `/proc`.
fn processes_of_group(group: u32) -> impl Iterator<Item = PathBuf> {
    let is_member = move |process: &PathBuf| {
        let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
        // PID (NAME) STATE PARENT GROUP ...; the name may hold anything.
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        after_name.split_whitespace().nth(2).and_then(|text| text.parse().ok()) == Some(group)
    };
    let is_process = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(is_process).filter(is_member)
}

/// The command that starts another one in a network namespace of its own; `None` where the system does not let us.
fn namespace_command() -> Option<Vec<OsString>> {
    static FOUND: OnceLock<Option<Vec<OsString>>> = OnceLock::new();
    FOUND.get_or_init(|| candidates().into_iter().map(words).find(|command| works(command))).clone()
}

/// Whether this machine lets a browser have a network namespace of its own.
pub fn has_namespaces() -> bool {
    namespace_command().is_some()
}

/// In the order of preference. Root becomes nobody inside, because the browser's sandbox refuses root; of the files outside it
/// still owns what root owns, so an ordinary user is better.
fn candidates() -> Vec<&'static [&'static str]> {
    match rustix::process::geteuid().is_root() {
        true => vec![
            &["unshare", "--user", "--map-user=65534", "--map-group=65534", "--net", "--"],
            &["unshare", "--net", "--"],
        ],
        false => vec![&["unshare", "--user", "--map-current-user", "--net", "--"]],
    }
}

fn words(command: &[&str]) -> Vec<OsString> {
    command.iter().map(OsString::from).collect()
}

fn works(command: &[OsString]) -> bool {
    let mut probe = Command::new(&command[0]);
    probe.args(&command[1..]).arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}
