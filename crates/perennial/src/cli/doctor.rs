//! `perennial doctor`: this machine -> what is missing, and its cure.

use std::io::{self, Write};

use serde::Serialize;

use super::{Context, Exit};
use crate::doctor::{Finding, Health, examine};
use perennial_archive::is_archive;

const AFTER_HELP: &str = "\
Looks at the user, the browser with its sandbox and its network, the confinement of layout workers, fonts, free \
space, open files and the clock. An archive need not exist. docs/security.md says what each of them is for. \
Exit code 0 when a crawl can run, with warnings or without; 4 when something would make it fail or go wrong.

Examples:
  perennial doctor
  perennial --archive news doctor --json";

/// Check this machine, and say how to correct what is wrong.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Doctor {}

#[derive(Serialize)]
struct Report {
    n_faults: usize,
    n_warnings: usize,
    findings: Vec<Finding>,
}

impl Doctor {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let folder = context.archive_dir();
        let archive = if is_archive(&folder) { Some(context.open()?) } else { None };
        let findings = examine(&folder, archive.as_ref())?;
        let count = |health| findings.iter().filter(|finding| finding.health == health).count();
        let report = Report { n_faults: count(Health::Fault), n_warnings: count(Health::Warning), findings };
        context.print(&report, |out| print(&report, out))?;
        Ok(if report.n_faults > 0 { Exit::Defects } else { Exit::Done })
    }
}

fn print(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for finding in &report.findings {
        let health = match finding.health {
            Health::Well => "well",
            Health::Warning => "warning",
            Health::Fault => "FAULT",
        };
        writeln!(out, "{health:<8} {:<16} {}", finding.part, finding.found)?;
        if let Some(cure) = &finding.cure {
            writeln!(out, "{:<25} cure: {cure}", "")?;
        }
    }
    match (report.n_faults, report.n_warnings) {
        (0, 0) => writeln!(out, "all is well"),
        (n_faults, n_warnings) => writeln!(out, "{n_faults} faults, {n_warnings} warnings"),
    }
}
