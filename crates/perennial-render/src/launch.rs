//! Starts a browser without a network, with bounded memory and its sandbox.
//!
//! The browser processes untrusted pages, so its own settings are not trusted to keep it offline
//! (docs/decisions/0022):
//!
//! - If the system allows it, the browser runs in a network namespace without any interface, not even loopback.
//! - In any case its connections go to an unresolvable proxy. WebRTC, prefetching and requests to its vendor are off.
//! - Its sandbox is on. Root needs the namespace for that, because inside it the browser is not root.
//! - A thread of this process measures the browser's memory and kills all its processes if they use too much.

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

/// Interval between two measurements.
const COUNT_EVERY: Duration = Duration::from_millis(500);

/// How a browser is started.
#[derive(Clone, Copy, Debug)]
pub struct LaunchOptions {
    /// Whether the browser's sandbox is on.
    pub sandbox: bool,
    /// Whether it gets a network namespace, if the system allows one.
    pub own_network: bool,
    /// Memory limit of all its processes together.
    pub memory_bytes: u64,
}

/// Memory limit of a browser with all its processes. A usual page needs a tenth of it.
pub const BROWSER_MEMORY_BYTES: u64 = 2 << 30;

impl Default for LaunchOptions {
    fn default() -> LaunchOptions {
        LaunchOptions { sandbox: true, own_network: true, memory_bytes: BROWSER_MEMORY_BYTES }
    }
}

/// Moves the streams to descriptors 3 and 4 of the debugging pipe. A shell does that without unsafe code.
const MOVE_STREAMS: &str = "ulimit -c 0; exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null";

/// No other environment variable is passed on, because it may contain secrets.
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
    // No network: an unresolvable proxy for everything, including loopback.
    "--proxy-server=http://nowhere.invalid:9",
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--disable-quic",
    "--dns-prefetch-disable",
    // WebRTC would open sockets that bypass the proxy.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    // Requests of the browser itself.
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
    // Windows, prompts and downloads.
    "--block-new-web-contents",
    "--deny-permission-prompts",
    "--disable-notifications",
    "--disable-print-preview",
    "--disable-speech-api",
    "--disk-cache-size=1",
    "--renderer-process-limit=4",
    // All frames of a page share a process, so virtual time covers all of them. There are no cookies or
    // passwords here that site isolation would protect.
    "--disable-site-isolation-trials",
    "--disable-features=IsolateOrigins,site-per-process,AutofillServerCommunication,\
     CertificateTransparencyComponentUpdater,DialMediaRouteProvider,InterestFeedContentSuggestions,MediaRouter,NetworkTimeServiceQuerying,OptimizationHints,OptimizationHintsFetching,\
     PreconnectToSearch,Prerender2,SpeculationRulesPrefetchFuture,SegmentationPlatform,Translate,WebOTP",
];

/// A running browser. Dropping it ends all its processes.
pub(crate) struct BrowserProcess {
    child: Child,
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
    guard: Option<MemoryGuard>,
    /// The browser's profile, deleted with it.
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
            // No connections to desktop services.
            .envs([("DBUS_SESSION_BUS_ADDRESS", "disabled:"), ("DBUS_SYSTEM_BUS_ADDRESS", "disabled:")])
            // A separate process group, so all processes can be measured and ended together.
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

    /// Whether it was killed because of its memory.
    pub(crate) fn was_too_large(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.has_ended_it.load(Ordering::Relaxed))
    }

    /// Whether its pages run behind a filter of system calls, which is the effect of its sandbox.
    pub(crate) fn has_sandbox(&self) -> bool {
        let drawing = processes_of_group(self.child.id()).filter(|process| {
            fs::read(process.join("cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains("--type=renderer"))
        });
        let mut are_confined =
            drawing.map(|process| status_field(&process, "Seccomp:") == Some(2)).peekable();
        are_confined.peek().is_some() && are_confined.all(|is_confined| is_confined)
    }

    /// Whether its network namespace differs from this process's.
    pub(crate) fn has_own_network(&self) -> bool {
        let network = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
        let own = network(&self.child.id().to_string());
        own.is_some() && own != network("self")
    }
}

impl Drop for BrowserProcess {
    fn drop(&mut self) {
        // The guard goes first, because after the wait the group's number may be reused.
        if let Some(guard) = self.guard.take() {
            guard.end();
        }
        end_group(self.child.id());
        let _ = self.child.wait();
    }
}

/// Kills all processes of a group. It is not an error if they have already ended.
fn end_group(group: u32) {
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// The thread that measures the memory of a process group.
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

/// Private and shared bytes of a process group, without mapped files.
fn memory_of_group(group: u32) -> u64 {
    let own = |process: PathBuf| {
        let fields = ["RssAnon:", "RssShmem:"].map(|name| status_field(&process, name).unwrap_or(0));
        fields.into_iter().sum::<u64>() << 10
    };
    processes_of_group(group).map(own).sum()
}

/// A number in `/proc/PID/status`.
fn status_field(process: &Path, name: &str) -> Option<u64> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// The `/proc` folders of a process group. None on systems without `/proc`.
fn processes_of_group(group: u32) -> impl Iterator<Item = PathBuf> {
    let is_member = move |process: &PathBuf| {
        let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
        // PID (NAME) STATE PARENT GROUP ...; the name may contain anything.
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        after_name.split_whitespace().nth(2).and_then(|text| text.parse().ok()) == Some(group)
    };
    let is_process = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(is_process).filter(is_member)
}

/// A command that starts a program in a new network namespace; `None` if the system forbids it.
fn namespace_command() -> Option<Vec<OsString>> {
    static FOUND: OnceLock<Option<Vec<OsString>>> = OnceLock::new();
    FOUND.get_or_init(|| candidates().into_iter().map(words).find(|command| works(command))).clone()
}

/// Whether this machine allows a network namespace for the browser.
pub fn has_namespaces() -> bool {
    namespace_command().is_some()
}

/// In order of preference. Root becomes nobody inside, because the browser's sandbox refuses root. But it still owns
/// root's files outside, so an ordinary user is better.
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
