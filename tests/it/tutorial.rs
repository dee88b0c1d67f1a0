//! Every command of README.md and docs/tutorial.md works as written, on a local site instead of example.org.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::demo::interrupt;
use crate::program::ran;
use crate::wait::wait_until;
use crate::web::{Reply, Web, WebRequest, html, status};

/// The pages that the documents name, with the words that they search for.
fn site(request: &WebRequest) -> Reply {
    let n = request.n_before;
    match request.path.as_str() {
        "/" => html(&format!(
            "<title>Example</title><main><h1>Example domain</h1><p>Version {n}, for use in documentation.</p>\
             <a href=/news>news</a> <a href=/prices>prices</a></main><div class=cookie-banner>Cookies</div>"
        )),
        "/news" => html("<title>News</title><h1>The ferry runs again</h1>"),
        "/prices" => html("<title>Prices</title><p id=prices>A lamp costs 10.</p>"),
        "/feed.xml" => Reply::Page(
            200,
            vec![("Content-Type", "application/rss+xml".to_string())],
            b"<rss version=\"2.0\"><channel><title>News</title><item><title>Ferry</title></item></channel></rss>".to_vec(),
        ),
        _ => status(404),
    }
}

/// The commands of a document: lines of `sh` blocks and of indented blocks that call the program.
fn commands(document: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| line.strip_prefix("    ").unwrap_or(line));
    let called = lines.filter(|line| line.starts_with("perennial "));
    called.filter(|line| !line.contains("COMMAND")).map(str::to_string).collect()
}

/// A command line with the local site in place of example.org. Crawls of a local site need `--allow-private`, and no
/// delay.
fn localised(line: &str, web: &Web) -> String {
    let line = line.replace("https://example.org/", &web.url("/"));
    let words: Vec<&str> = line.split(' ').collect();
    match words[1] {
        "run" => format!("{line} --allow-private --delay 0"),
        "add" | "watch" | "visit" => format!("{line} --allow-private"),
        "view" if !line.contains("--raw") => format!("{line} --no-browser --listen 127.0.0.1:0"),
        _ => line,
    }
}

/// Runs a command line in a shell. A command that runs until Ctrl-C is interrupted.
fn run(line: &str, folder: &Path) {
    let program = env!("CARGO_BIN_EXE_perennial");
    let mut command = Command::new("sh");
    let called = line.replacen("perennial", &format!("exec {program}"), 1);
    command.args(["-c", &called]).current_dir(folder).env_remove("PERENNIAL_ARCHIVE").stdin(Stdio::null());
    let is_endless =
        ["perennial run", "perennial view", "perennial serve"].iter().any(|name| line.starts_with(name))
            && !["--once", "--raw", "--time-limit"].iter().any(|option| line.contains(option));
    if !is_endless {
        let ran = ran(&mut command);
        // Exit code 4: `doctor` may find faults of the machine.
        let is_doctor = line.starts_with("perennial doctor") && ran.code == 4;
        assert!(ran.code == 0 || is_doctor, "{line}\n{}{}", ran.stdout, ran.stderr);
        return;
    }
    let stderr = folder.join("stderr");
    let mut child = command.stdout(Stdio::null()).stderr(fs::File::create(&stderr).unwrap()).spawn().unwrap();
    wait_until("a message that it serves", || {
        assert!(child.try_wait().unwrap().is_none(), "{line}\n{}", fs::read_to_string(&stderr).unwrap());
        let said = fs::read_to_string(&stderr).unwrap();
        said.contains("the dashboard is at") || said.contains("serving")
    });
    interrupt(&child);
    let code = child.wait().unwrap().code();
    assert!(matches!(code, Some(0 | 11)), "{line}: {code:?}\n{}", fs::read_to_string(&stderr).unwrap());
}

fn check(document: &str, least: usize) {
    let (dir, web) = (tempfile::tempdir().unwrap(), Web::serve(site));
    let commands = commands(document);
    assert!(commands.len() >= least, "{document} was not understood: {commands:?}");
    for line in commands {
        run(&localised(&line, &web), dir.path());
    }
}

#[test]
fn the_commands_of_the_readme_work() {
    check("README.md", 8);
}

#[test]
fn the_commands_of_the_tutorial_work() {
    check("docs/tutorial.md", 25);
}
