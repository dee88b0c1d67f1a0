//! This machine -> what an archive needs of it and lacks, each with its cure.
//!
//! Nothing is believed that can be tried: the browser draws a page and is looked at, a layout worker tries to break out.

use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use perennial_core::time::{Span, Timestamp};
use perennial_render::chromium::BrowserIsolation;
use perennial_render::{BrowserError, BrowserOptions, Chromium, WorkerCommand};
use rustix::process::{Resource, getrlimit};
use serde::Serialize;

use perennial_archive::{Archive, now};

/// No clock of a machine that runs this program is right before this moment: 2026-01-01.
const EARLIEST: Timestamp = Timestamp::from_millis(1_767_225_600_000);
/// Two clocks of one machine that differ by more have been set meanwhile.
const STEP_SECS: f64 = 1.0;
/// Captures may be dated so much ahead: machines that share an archive never agree to the second.
const AHEAD: Span = Span::from_secs(300);
/// Less free space than this is a fault, and less than that a warning.
const FREE_BYTES: (u64, u64) = (200_000_000, 2_000_000_000);
/// Descriptors beside those of the fetches: kept connections, files, pipes of workers.
const SPARE_FILES: u64 = 800;
/// Files that are looked at in search of fonts.
const MAX_FONT_ENTRIES: usize = 20_000;

/// How much a finding matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// As it should be.
    Well,
    /// Perennial works, with less than it could have.
    Warning,
    /// A crawl would fail or go wrong.
    Fault,
}

/// What was found about one part of the machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// The part, in one word or two.
    pub part: &'static str,
    /// How much it matters.
    pub health: Health,
    /// What was found.
    pub found: String,
    /// What to do about it; `None` where all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cure: Option<String>,
}

impl Finding {
    fn well(part: &'static str, found: impl Into<String>) -> Finding {
        Finding { part, health: Health::Well, found: found.into(), cure: None }
    }

    fn warning(part: &'static str, found: impl Into<String>, cure: &str) -> Finding {
        Finding { part, health: Health::Warning, found: found.into(), cure: Some(cure.to_owned()) }
    }

    fn fault(part: &'static str, found: impl Into<String>, cure: &str) -> Finding {
        Finding { health: Health::Fault, ..Finding::warning(part, found, cure) }
    }
}

/// Looks at everything. The folder is that of the archive, which need not be there yet.
pub fn examine(folder: &Path, archive: Option<&Archive>) -> anyhow::Result<Vec<Finding>> {
    let (real_before, steady_before) = (SystemTime::now(), Instant::now());
    let settings = archive.map(|archive| archive.settings().crawl.clone()).unwrap_or_default();
    let mut findings = vec![of_user(rustix::process::geteuid().is_root())];
    findings.extend(of_browser(settings.browser_sandbox));
    findings.push(of_workers(&std::env::current_exe()?));
    findings.push(of_fonts(n_fonts()));
    findings.push(of_space("archive's disk", &existing(folder)));
    findings.push(of_temporary(&std::env::temp_dir()));
    findings.push(of_files(getrlimit(Resource::Nofile).current, settings.max_workers as u64 + SPARE_FILES));
    let newest = archive.map(newest_capture).transpose()?.flatten();
    // The other looks took some time, in which a clock that is being set shows it.
    let real =
        real_before.elapsed().map_or_else(|error| -error.duration().as_secs_f64(), |t| t.as_secs_f64());
    findings.push(of_clock(now(), real - steady_before.elapsed().as_secs_f64(), newest));
    Ok(findings)
}

fn newest_capture(archive: &Archive) -> anyhow::Result<Option<Timestamp>> {
    archive.snapshot()?.store().last_capture()
}

fn of_user(is_root: bool) -> Finding {
    match is_root {
        true => Finding::warning(
            "user",
            "this is root: whatever breaks out of Perennial owns the machine",
            "run Perennial as a user of its own (adduser --system perennial)",
        ),
        false => Finding::well("user", "an ordinary user"),
    }
}

fn of_browser(sandbox: bool) -> Vec<Finding> {
    let mut options = BrowserOptions::default();
    options.launch.sandbox = sandbox;
    match Chromium::new(options).isolation() {
        Ok(isolation) => of_walls(&isolation),
        Err(error @ BrowserError::Missing(_)) => vec![Finding::warning(
            "browser",
            format!("pages that scripts draw are captured without their scripts' work: {error}"),
            "apt install chromium",
        )],
        Err(error) => vec![Finding::warning(
            "browser",
            error.to_string(),
            "run as an ordinary user; allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, \
             kernel.apparmor_restrict_unprivileged_userns=0, or a profile for the browser); in a container a seccomp \
             profile that allows them",
        )],
    }
}

fn of_walls(isolation: &BrowserIsolation) -> Vec<Finding> {
    let sandbox = match isolation.has_sandbox {
        true => Finding::well("sandbox", "the browser draws pages in its sandbox"),
        false => Finding::warning(
            "sandbox",
            "the browser draws pages without its sandbox: one that breaks it has the rights of this user",
            "remove `browser_sandbox = false` from perennial.toml",
        ),
    };
    let network = match isolation.has_own_network {
        true => Finding::well(
            "browser network",
            "the browser has a network namespace of its own, with nothing in it",
        ),
        false => Finding::warning(
            "browser network",
            "the browser has no network namespace of its own: its settings alone keep it from the network",
            "install util-linux (unshare) and allow user namespaces, or run Perennial where a firewall keeps it from \
             private addresses",
        ),
    };
    vec![Finding::well("browser", isolation.engine.clone()), sandbox, network]
}

fn of_workers(program: &Path) -> Finding {
    let command = WorkerCommand { program: program.to_path_buf(), arguments: vec!["render-worker".into()] };
    match command.confinement_gaps() {
        Ok(gaps) if gaps.is_empty() => Finding::well(
            "workers",
            "layout workers can do nothing but compute: no files, network, processes",
        ),
        Ok(gaps) => Finding::warning(
            "workers",
            format!("layout workers are not fully confined: {}", gaps.join("; ")),
            "use Linux 6.7 or later with Landlock (lsm=landlock,...) and seccomp; in a container allow both",
        ),
        Err(error) => Finding::fault(
            "workers",
            format!("no layout worker can be started: {error}"),
            "allow the program to start itself, and 2 GB of address space (ulimit -v)",
        ),
    }
}

fn of_fonts(n_fonts: usize) -> Finding {
    match n_fonts {
        0 => Finding::warning(
            "fonts",
            "there are no fonts: the browser draws boxes in place of letters; the layout engine has its own",
            "apt install fonts-dejavu fonts-noto-core fonts-noto-cjk",
        ),
        n => Finding::well("fonts", format!("{n} font files for the browser; the layout engine has its own")),
    }
}

/// Font files in the usual folders, as far as the search goes.
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
fn existing(folder: &Path) -> PathBuf {
    let found = folder.ancestors().find(|path| path.exists());
    found.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_path_buf()
}

fn of_space(part: &'static str, folder: &Path) -> Finding {
    match rustix::fs::statvfs(folder) {
        Ok(disk) => of_free(part, folder, disk.f_bavail.saturating_mul(disk.f_frsize)),
        Err(error) => Finding::fault(
            part,
            format!("{} cannot be looked at: {error}", folder.display()),
            "check the disk and the rights of its folder",
        ),
    }
}

fn of_free(part: &'static str, folder: &Path, free_bytes: u64) -> Finding {
    let found = format!("{} MB free in {}", free_bytes / 1_000_000, folder.display());
    let cure = "free some space, or move the folder to a larger disk";
    match free_bytes {
        free if free < FREE_BYTES.0 => Finding::fault(part, found, cure),
        free if free < FREE_BYTES.1 => Finding::warning(part, found, cure),
        _ => Finding::well(part, found),
    }
}

fn of_temporary(folder: &Path) -> Finding {
    let space = of_space("temporary disk", folder);
    match space.health == Health::Well && is_memory(folder) {
        true => Finding::warning(
            "temporary disk",
            format!("{}, which is memory", space.found),
            "set TMPDIR to a folder on a disk",
        ),
        false => space,
    }
}

/// Whether what is written to a folder stays in memory.
fn is_memory(folder: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((PathBuf::from(words.next()?), words.next()?.to_owned()))
    });
    // Of two mounts on one folder the later one counts.
    let nearest =
        mounts.filter(|(at, _)| folder.starts_with(at)).max_by_key(|(at, _)| at.components().count());
    nearest.is_some_and(|(_, kind)| kind == "tmpfs" || kind == "ramfs")
}

fn of_files(limit: Option<u64>, needed: u64) -> Finding {
    match limit {
        Some(limit) if limit < needed => Finding::warning(
            "open files",
            format!("{limit} files may be open at once; a crawl with these settings may need {needed}"),
            "ulimit -n 4096 (LimitNOFILE= for systemd), or a lower `max_workers` in [crawl]",
        ),
        Some(limit) => Finding::well("open files", format!("{limit} files may be open at once")),
        None => Finding::well("open files", "any number of files may be open at once"),
    }
}

fn of_clock(now: Timestamp, step_secs: f64, newest: Option<Timestamp>) -> Finding {
    const PART: &str = "clock";
    const CURE: &str =
        "let the system set its clock from the network (apt install systemd-timesyncd), then look again";
    if now < EARLIEST {
        return Finding::fault(PART, format!("it says {}, which cannot be", now.to_rfc3339()), CURE);
    }
    if step_secs.abs() > STEP_SECS {
        return Finding::warning(
            PART,
            format!("it was set by {step_secs:.1} s while this was running"),
            CURE,
        );
    }
    match newest.filter(|newest| *newest > now + AHEAD) {
        Some(newest) => Finding::fault(
            PART,
            format!("it says {}, but the newest capture is dated {}", now.to_rfc3339(), newest.to_rfc3339()),
            "set the clock right; if it is right, captures were made or imported with a wrong one, and pages wait until then",
        ),
        None => Finding::well(PART, format!("{}, and no capture is ahead of it", now.to_rfc3339())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_judged_by_its_time_its_steps_and_the_captures() {
        let now = EARLIEST + Span::from_hours(1000);
        let health = |now, step, newest| of_clock(now, step, newest).health;
        assert_eq!(health(now, 0.01, None), Health::Well);
        assert_eq!(health(now, -0.2, Some(now + Span::from_secs(10))), Health::Well);
        assert_eq!(health(Timestamp::from_millis(0), 0.0, None), Health::Fault);
        assert_eq!(health(now, -3600.0, None), Health::Warning);
        assert_eq!(health(now, 0.0, Some(now + Span::from_hours(72))), Health::Fault);
    }

    #[test]
    fn space_and_files_are_judged_by_what_a_crawl_needs() {
        let health = |free| of_free("disk", Path::new("/"), free).health;
        assert_eq!(
            [health(0), health(1 << 30), health(1 << 40)],
            [Health::Fault, Health::Warning, Health::Well]
        );
        assert_eq!(of_files(Some(256), 864).health, Health::Warning);
        assert_eq!(of_files(Some(4096), 864).health, Health::Well);
        assert_eq!(of_files(None, 864).health, Health::Well);
        let missing = of_space("disk", Path::new("/nonexistent/folder"));
        assert_eq!(missing.health, Health::Fault);
        assert_eq!(existing(Path::new("/nonexistent/folder")), Path::new("/"));
    }

    #[test]
    fn whatever_is_not_well_names_a_cure() {
        let isolation =
            BrowserIsolation { engine: "Chrome".into(), has_sandbox: false, has_own_network: false };
        let mut findings = of_walls(&isolation);
        findings.extend([of_user(true), of_fonts(0), of_workers(Path::new("/nonexistent/perennial"))]);
        let bad: Vec<&Finding> = findings.iter().filter(|finding| finding.health != Health::Well).collect();
        assert_eq!(bad.len(), 5);
        assert!(bad.iter().all(|finding| finding.cure.is_some()), "{bad:#?}");
    }
}
