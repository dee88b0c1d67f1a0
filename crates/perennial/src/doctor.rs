//! This machine -> findings about what an archive needs, each with a hint on what to do.
//!
//! The checks try things out instead of reading settings: the browser renders a page, a layout worker tries to escape.

use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use perennial_core::time::{Span, Timestamp};
use perennial_render::chromium::BrowserIsolation;
use perennial_render::{BrowserError, BrowserOptions, Chromium, WorkerCommand};
use rustix::process::{Resource, getrlimit};
use serde::Serialize;

use perennial_archive::{Archive, now};
use perennial_engine::notify::{SilentRule, silent_rules};

/// An earlier time on the clock is wrong: 2026-01-01.
const EARLIEST: Timestamp = Timestamp::from_millis(1_767_225_600_000);
/// If the real and the steady clock drift apart by more, the clock was set.
const STEP_SECS: f64 = 1.0;
/// Tolerance for captures from the future: the clocks of machines that share an archive differ.
const AHEAD: Span = Span::from_secs(300);
/// Less free space than the first is a fault, less than the second a warning.
const FREE_BYTES: (u64, u64) = (200_000_000, 2_000_000_000);
/// Descriptors in addition to one per fetch: kept connections, files, pipes of workers.
const SPARE_FILES: u64 = 800;
/// Limit of the search for fonts.
const MAX_FONT_ENTRIES: usize = 20_000;

/// How much a finding matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// As it should be.
    Well,
    /// Perennial works, with restrictions.
    Warning,
    /// A crawl would fail or go wrong.
    Fault,
}

/// A finding about one part of the machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MachineCheck {
    /// Name of the part, in one or two words.
    pub part: &'static str,
    /// How much it matters.
    pub health: Health,
    /// Description of its state.
    pub found: String,
    /// What to do about it; `None` if all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl MachineCheck {
    fn well(part: &'static str, found: impl Into<String>) -> MachineCheck {
        MachineCheck { part, health: Health::Well, found: found.into(), hint: None }
    }

    fn warning(part: &'static str, found: impl Into<String>, hint: &str) -> MachineCheck {
        MachineCheck { part, health: Health::Warning, found: found.into(), hint: Some(hint.to_owned()) }
    }

    fn fault(part: &'static str, found: impl Into<String>, hint: &str) -> MachineCheck {
        MachineCheck { health: Health::Fault, ..MachineCheck::warning(part, found, hint) }
    }
}

/// Runs all checks. The folder of the archive need not exist.
pub fn examine(folder: &Path, archive: Option<&Archive>) -> anyhow::Result<Vec<MachineCheck>> {
    let (real_before, steady_before) = (SystemTime::now(), Instant::now());
    let settings = archive.map(|archive| archive.settings().crawl.clone()).unwrap_or_default();
    let mut findings = vec![check_user(rustix::process::geteuid().is_root())];
    findings.extend(check_browser(settings.browser_sandbox));
    findings.push(check_workers(&std::env::current_exe()?));
    findings.push(check_fonts(n_fonts()));
    findings.push(check_space("archive's disk", &nearest_existing(folder)));
    findings.push(check_temporary(&std::env::temp_dir()));
    findings.push(check_open_files(
        getrlimit(Resource::Nofile).current,
        settings.max_workers as u64 + SPARE_FILES,
    ));
    findings.extend(archive.map(check_rules).transpose()?.flatten());
    let newest = archive.map(newest_capture).transpose()?.flatten();
    // Compared last: while the other checks ran, a clock that is being set has moved.
    let real =
        real_before.elapsed().map_or_else(|error| -error.duration().as_secs_f64(), |t| t.as_secs_f64());
    findings.push(check_clock(now(), real - steady_before.elapsed().as_secs_f64(), newest));
    Ok(findings)
}

fn newest_capture(archive: &Archive) -> anyhow::Result<Option<Timestamp>> {
    let until = if archive.settings().archive.time_lapse { now() } else { Timestamp::MAX };
    archive.snapshot()?.store().last_capture(until)
}

/// Rules that cannot fire.
fn check_rules(archive: &Archive) -> anyhow::Result<Option<MachineCheck>> {
    const PART: &str = "notices";
    if archive.settings().notify.is_empty() {
        return Ok(None);
    }
    let silent = silent_rules(archive)?;
    let text: Vec<String> = silent.iter().map(SilentRule::to_string).collect();
    Ok(Some(match silent.is_empty() {
        true => MachineCheck::well(PART, "every rule can fire"),
        false => {
            MachineCheck::fault(PART, text.join("; "), "correct [[notify]] or [[site]] in perennial.toml")
        }
    }))
}

fn check_user(is_root: bool) -> MachineCheck {
    match is_root {
        true => MachineCheck::warning(
            "user",
            "this is root: code that escapes from Perennial controls the machine",
            "run Perennial as a dedicated user (adduser --system perennial)",
        ),
        false => MachineCheck::well("user", "an ordinary user"),
    }
}

fn check_browser(sandbox: bool) -> Vec<MachineCheck> {
    let mut options = BrowserOptions::default();
    options.launch.sandbox = sandbox;
    match Chromium::new(options).isolation() {
        Ok(isolation) => check_isolation(&isolation),
        Err(error @ BrowserError::Missing(_)) => vec![MachineCheck::warning(
            "browser",
            format!("pages that need scripts are captured without running them: {error}"),
            "apt install chromium",
        )],
        Err(error) => vec![MachineCheck::warning(
            "browser",
            error.to_string(),
            "run as an ordinary user; allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, \
             kernel.apparmor_restrict_unprivileged_userns=0, or a profile for the browser); in a container a seccomp \
             profile that allows them",
        )],
    }
}

fn check_isolation(isolation: &BrowserIsolation) -> Vec<MachineCheck> {
    let sandbox = match isolation.has_sandbox {
        true => MachineCheck::well("sandbox", "the browser renders pages in its sandbox"),
        false => MachineCheck::warning(
            "sandbox",
            "the browser renders pages without its sandbox: a page that exploits it gets the rights of this user",
            "remove `browser_sandbox = false` from perennial.toml",
        ),
    };
    let network = match isolation.has_own_network {
        true => MachineCheck::well("browser network", "the browser runs in an empty network namespace"),
        false => MachineCheck::warning(
            "browser network",
            "the browser shares the network namespace: only its settings keep it from the network",
            "install util-linux (unshare) and allow user namespaces, or run Perennial where a firewall keeps it from \
             private addresses",
        ),
    };
    vec![MachineCheck::well("browser", isolation.engine.clone()), sandbox, network]
}

fn check_workers(program: &Path) -> MachineCheck {
    let command = WorkerCommand { program: program.to_path_buf(), arguments: vec!["render-worker".into()] };
    match command.confinement_gaps() {
        Ok(gaps) if gaps.is_empty() => {
            MachineCheck::well("workers", "layout workers are confined: no files, network or processes")
        }
        Ok(gaps) => MachineCheck::warning(
            "workers",
            format!("layout workers are not fully confined: {}", gaps.join("; ")),
            "use Linux 6.7 or later with Landlock (lsm=landlock,...) and seccomp; in a container allow both",
        ),
        Err(error) => MachineCheck::fault(
            "workers",
            format!("no layout worker can be started: {error}"),
            "allow the program to start itself, and 2 GB of address space (ulimit -v)",
        ),
    }
}

fn check_fonts(n_fonts: usize) -> MachineCheck {
    match n_fonts {
        0 => MachineCheck::warning(
            "fonts",
            "no fonts are installed: the browser renders boxes instead of letters; the layout engine contains fonts",
            "apt install fonts-dejavu fonts-noto-core fonts-noto-cjk",
        ),
        n => MachineCheck::well(
            "fonts",
            format!("{n} font files for the browser; the layout engine contains fonts"),
        ),
    }
}

/// Number of font files in the usual folders, up to the limit of the search.
fn n_fonts() -> usize {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let own = home.iter().flat_map(|home| [home.join(".fonts"), home.join(".local/share/fonts")]);
    let mut folders: Vec<PathBuf> = ["/usr/share/fonts", "/usr/local/share/fonts"].map(PathBuf::from).into();
    folders.extend(own);
    let (mut n_entries, mut n_found) = (0, 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            n_entries += 1;
            if n_entries > MAX_FONT_ENTRIES {
                return n_found;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
            let extension = entry.path().extension().map(|text| text.to_ascii_lowercase());
            n_found += usize::from(
                extension.is_some_and(|text| ["ttf", "otf", "ttc", "pfb"].iter().any(|it| text == *it)),
            );
        }
    }
    n_found
}

/// The folder itself, or the nearest one above it that exists.
fn nearest_existing(folder: &Path) -> PathBuf {
    let found = folder.ancestors().find(|path| path.exists());
    found.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_path_buf()
}

fn check_space(part: &'static str, folder: &Path) -> MachineCheck {
    match rustix::fs::statvfs(folder) {
        Ok(disk) => check_free_bytes(part, folder, disk.f_bavail.saturating_mul(disk.f_frsize)),
        Err(error) => MachineCheck::fault(
            part,
            format!("{} cannot be read: {error}", folder.display()),
            "check the disk and the rights of its folder",
        ),
    }
}

fn check_free_bytes(part: &'static str, folder: &Path, free_bytes: u64) -> MachineCheck {
    let found = format!("{} MB free in {}", free_bytes / 1_000_000, folder.display());
    let hint = "free some space, or move the folder to a larger disk";
    match free_bytes {
        free if free < FREE_BYTES.0 => MachineCheck::fault(part, found, hint),
        free if free < FREE_BYTES.1 => MachineCheck::warning(part, found, hint),
        _ => MachineCheck::well(part, found),
    }
}

fn check_temporary(folder: &Path) -> MachineCheck {
    let space = check_space("temporary disk", folder);
    match space.health == Health::Well && is_in_memory(folder) {
        true => MachineCheck::warning(
            "temporary disk",
            format!("{}, which is memory", space.found),
            "set TMPDIR to a folder on a disk",
        ),
        false => space,
    }
}

/// Whether a folder is on a file system in memory.
fn is_in_memory(folder: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((PathBuf::from(words.next()?), words.next()?.to_owned()))
    });
    // Of two mounts on one folder the later one is visible.
    let nearest =
        mounts.filter(|(at, _)| folder.starts_with(at)).max_by_key(|(at, _)| at.components().count());
    nearest.is_some_and(|(_, kind)| kind == "tmpfs" || kind == "ramfs")
}

fn check_open_files(limit: Option<u64>, needed: u64) -> MachineCheck {
    match limit {
        Some(limit) if limit < needed => MachineCheck::warning(
            "open files",
            format!("{limit} files may be open at once; a crawl with these settings may need {needed}"),
            "ulimit -n 4096 (LimitNOFILE= for systemd), or a lower `max_workers` in [crawl]",
        ),
        Some(limit) => MachineCheck::well("open files", format!("{limit} files may be open at once")),
        None => MachineCheck::well("open files", "any number of files may be open at once"),
    }
}

fn check_clock(now: Timestamp, step_secs: f64, newest: Option<Timestamp>) -> MachineCheck {
    const PART: &str = "clock";
    const HINT: &str =
        "let the system set its clock from the network (apt install systemd-timesyncd), then check again";
    if now < EARLIEST {
        return MachineCheck::fault(
            PART,
            format!("the time is {}, which is impossible", now.to_rfc3339()),
            HINT,
        );
    }
    if step_secs.abs() > STEP_SECS {
        return MachineCheck::warning(PART, format!("it was set by {step_secs:.1} s during the check"), HINT);
    }
    match newest.filter(|newest| *newest > now + AHEAD) {
        Some(newest) => MachineCheck::fault(
            PART,
            format!(
                "the time is {}, but the newest capture is dated {}",
                now.to_rfc3339(),
                newest.to_rfc3339()
            ),
            "correct the clock; if it is correct, `perennial verify` names these captures: they count only then",
        ),
        None => MachineCheck::well(PART, format!("{}, and no capture is ahead of it", now.to_rfc3339())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_checked_for_its_time_its_steps_and_later_captures() {
        let now = EARLIEST + Span::from_hours(1000);
        let health = |now, step, newest| check_clock(now, step, newest).health;
        assert_eq!(health(now, 0.01, None), Health::Well);
        assert_eq!(health(now, -0.2, Some(now + Span::from_secs(10))), Health::Well);
        assert_eq!(health(Timestamp::from_millis(0), 0.0, None), Health::Fault);
        assert_eq!(health(now, -3600.0, None), Health::Warning);
        assert_eq!(health(now, 0.0, Some(now + Span::from_hours(72))), Health::Fault);
    }

    #[test]
    fn space_and_open_files_must_suffice_for_a_crawl() {
        let health = |free| check_free_bytes("disk", Path::new("/"), free).health;
        assert_eq!(
            [health(0), health(1 << 30), health(1 << 40)],
            [Health::Fault, Health::Warning, Health::Well]
        );
        assert_eq!(check_open_files(Some(256), 864).health, Health::Warning);
        assert_eq!(check_open_files(Some(4096), 864).health, Health::Well);
        assert_eq!(check_open_files(None, 864).health, Health::Well);
        let missing = check_space("disk", Path::new("/nonexistent/folder"));
        assert_eq!(missing.health, Health::Fault);
        assert_eq!(nearest_existing(Path::new("/nonexistent/folder")), Path::new("/"));
    }

    #[test]
    fn every_warning_and_fault_has_a_hint() {
        let isolation =
            BrowserIsolation { engine: "Chrome".into(), has_sandbox: false, has_own_network: false };
        let mut findings = check_isolation(&isolation);
        findings.extend([
            check_user(true),
            check_fonts(0),
            check_workers(Path::new("/nonexistent/perennial")),
        ]);
        let bad: Vec<&MachineCheck> =
            findings.iter().filter(|finding| finding.health != Health::Well).collect();
        assert_eq!(bad.len(), 5);
        assert!(bad.iter().all(|finding| finding.hint.is_some()), "{bad:#?}");
    }
}
