//! `perennial doctor`: this machine -> findings, and hints on what to do.

use std::io::{self, Write};

use serde::Serialize;

use super::{Context, Exit};
use crate::doctor::{Health, MachineCheck, examine};
use perennial_archive::is_archive;

const AFTER_HELP: &str = "\
Checks the user, the browser with its sandbox and network, the confinement of layout workers, fonts, free space, open files and the \
clock. docs/security.md explains why. No archive is required. The exit code is 4 if a crawl would fail or go wrong; warnings do \
not count.

Examples:
  perennial doctor
  perennial --archive news doctor --json";

/// Check this machine, and say how to correct what is wrong.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct DoctorArgs {}

#[derive(Serialize)]
struct DoctorReport {
    n_faults: usize,
    n_warnings: usize,
    findings: Vec<MachineCheck>,
}

impl DoctorArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let folder = context.archive_dir();
        let archive = if is_archive(&folder) { Some(context.open()?) } else { None };
        let findings = examine(&folder, archive.as_ref())?;
        let count = |health| findings.iter().filter(|finding| finding.health == health).count();
        let report =
            DoctorReport { n_faults: count(Health::Fault), n_warnings: count(Health::Warning), findings };
        context.print(&report, |out| print(&report, out))?;
        Ok(if report.n_faults > 0 { Exit::Defects } else { Exit::Done })
    }
}

fn print(report: &DoctorReport, out: &mut dyn Write) -> io::Result<()> {
    for finding in &report.findings {
        let health = match finding.health {
            Health::Well => "well",
            Health::Warning => "warning",
            Health::Fault => "FAULT",
        };
        writeln!(out, "{health:<8} {:<16} {}", finding.part, finding.found)?;
        if let Some(hint) = &finding.hint {
            writeln!(out, "{:<25} hint: {hint}", "")?;
        }
    }
    match (report.n_faults, report.n_warnings) {
        (0, 0) => writeln!(out, "all is well"),
        (n_faults, n_warnings) => writeln!(out, "{n_faults} faults, {n_warnings} warnings"),
    }
}
