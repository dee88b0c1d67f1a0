//! Mistakes in perennial.toml: every command that opens the archive reports their line, and so does `add`.

use crate::crawled::Archive;

fn refused(archive: &Archive, args: &[&str], code: i32) -> String {
    let output = archive.run(args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_command_refuses_a_file_with_mistakes_and_names_all_of_them() {
    let archive = Archive::new();
    let n_lines = std::fs::read_to_string(archive.root.join("perennial.toml")).unwrap().lines().count();
    archive.append_settings(
        "[[site]]\nurl = \"http://127.0.0.1:9/\"\nbuget = \"10/1h\"\nrenderer = \"chromiun\"\n",
    );
    for args in [
        &["status"][..],
        &["list"],
        &["run", "--once"],
        &["add", "https://example.org/"],
        &["remove", "http://127.0.0.1:9/"],
        &["changes"],
        &["verify"],
        &["run", "https://example.org/"],
    ] {
        let message = refused(&archive, args, 1);
        let misspelt =
            format!("line {}: `buget` is not a setting of [[site]]: did you mean `budget`?", n_lines + 3);
        let wrong = format!("line {}: renderer = \"chromiun\": choose auto, layout or chromium", n_lines + 4);
        assert!(message.contains(&misspelt) && message.contains(&wrong), "{args:?}: {message}");
    }
}

#[test]
fn an_archive_of_a_later_format_is_refused_with_the_hint() {
    let archive = Archive::new();
    let path = archive.root.join("perennial.toml");
    let later = std::fs::read_to_string(&path).unwrap().replace("format = 1", "format = 2\nnew_key = 3");
    std::fs::write(&path, later).unwrap();
    assert!(refused(&archive, &["status"], 1).contains("install a later perennial"));
}

#[test]
fn add_names_what_is_allowed_and_writes_nothing_when_a_value_is_wrong() {
    let archive = Archive::new();
    let before = std::fs::read_to_string(archive.root.join("perennial.toml")).unwrap();
    for (option, value, message) in [
        ("--renderer", "chromiun", "choose auto, layout or chromium"),
        ("--scope", "hosts", "choose page, prefix, host or domain"),
        ("--keep", "some", "choose all or important"),
        ("--weight", "0", "write a number from"),
        ("--weight", "nan", "write a number from"),
        ("--timezone", "Mars/Base", "Europe/Berlin"),
        ("--budget", "0/1h", "1000/1h"),
        ("--bytes-per-day", "many", "200MB"),
        ("--exclude", "(", "unclosed group"),
    ] {
        let stderr = refused(&archive, &["add", "https://example.org/", option, value], 2);
        assert!(stderr.contains(message), "{option} {value}: {stderr}");
    }
    assert!(refused(&archive, &["add", "ftp://example.org/"], 2).contains("https://example.org/"));
    assert_eq!(std::fs::read_to_string(archive.root.join("perennial.toml")).unwrap(), before);
}

#[test]
fn adding_a_site_again_changes_its_rules_in_their_place() {
    let archive = Archive::new();
    archive.ok(&["add", "https://a.example/", "https://b.example/", "https://b.example/", "--weight", "2"]);
    archive.ok(&["add", "a.example", "--budget", "24/1d", "--bytes-per-day", "1500kB"]);
    let rows = archive.json(&["list"]);
    assert_eq!(rows.as_array().unwrap().len(), 2);
    assert_eq!(
        (rows[0]["url"].as_str(), rows[0]["weight"].as_f64()),
        (Some("https://a.example/"), Some(1.0))
    );
    assert_eq!(
        (rows[0]["budget"].as_str(), rows[0]["bytes_per_day"].as_str()),
        (Some("24/1d"), Some("1500kB"))
    );
    assert_eq!(rows[1]["weight"].as_f64(), Some(2.0));
}
