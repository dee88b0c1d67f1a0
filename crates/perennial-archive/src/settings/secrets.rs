//! The file that `login` of `[[site]]` names -> cookies, fields and steps of a login.
//!
//! Its contents are secret: only its owner may read it, and no error quotes it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use data_encoding::BASE64;
use perennial_core::http::cookies::CookieJar;
use perennial_core::http::login::{LoginStep, parse_recording};
use serde::Deserialize;

use crate::store::firefox_cookies;

/// Bytes of a file of secrets.
const MAX_BYTES: u64 = 4 << 20;

/// What a site's login needs.
#[derive(Clone, Default)]
pub struct SiteSecrets {
    pub cookies: CookieJar,
    /// The profile folder of Chromium or a relative, whose cookies a browser must read.
    pub chromium_profile: Option<PathBuf>,
    /// Further fields of requests to the site's own origin.
    pub fields: Vec<(String, String)>,
    pub steps: Vec<LoginStep>,
    /// Whether request records contain the secrets.
    pub are_recorded: bool,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct SecretsFile {
    cookies: Option<PathBuf>,
    profile: Option<PathBuf>,
    recording: Option<PathBuf>,
    user: Option<String>,
    password: Option<String>,
    record: bool,
    headers: std::collections::BTreeMap<String, String>,
}

impl SiteSecrets {
    /// Reads a file of secrets and the files that it names, relative to its folder.
    pub fn read(path: &Path) -> anyhow::Result<SiteSecrets> {
        let named = || path.display().to_string();
        let text = read_private(path)?;
        let file: SecretsFile = toml_edit::de::from_str(&text).map_err(|error| {
            // The message of the error quotes the line.
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            let keys = "cookies, profile, recording, user, password, record, [headers]";
            anyhow::anyhow!("{}: line {line}: not a known setting or value; known are {keys}", named())
        })?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let beside = |file: &PathBuf| folder.join(file);
        let mut secrets = SiteSecrets { are_recorded: file.record, ..SiteSecrets::default() };
        if let Some(path) = file.cookies.as_ref().map(beside) {
            secrets.cookies = CookieJar::from_netscape(&read_private(&path)?).map_err(|line| {
                anyhow::anyhow!("{}: line {line}: not a cookie in Netscape's format", path.display())
            })?;
        }
        if let Some(profile) = file.profile.as_ref().map(beside) {
            match profile.join("cookies.sqlite").is_file() {
                true => {
                    firefox_cookies(&profile)?.iter().for_each(|cookie| secrets.cookies.put(cookie.clone()))
                }
                false if profile.join("Cookies").is_file() || profile.join("Network/Cookies").is_file() => {
                    secrets.chromium_profile = Some(profile);
                }
                false => bail!(
                    "{}: no cookies of Firefox or Chromium in it; name the profile's own folder, such as Default",
                    profile.display()
                ),
            }
        }
        if let Some(path) = file.recording.as_ref().map(beside) {
            let steps = parse_recording(&read_private(&path)?);
            secrets.steps = steps.map_err(|reason| anyhow::anyhow!("{}: {reason}", path.display()))?;
        }
        match (&file.user, &file.password) {
            (Some(user), Some(password)) => {
                let credentials = BASE64.encode(format!("{user}:{password}").as_bytes());
                secrets.fields.push(("Authorization".to_string(), format!("Basic {credentials}")));
            }
            (None, None) => {}
            _ => bail!("{}: `user` and `password` belong together", named()),
        }
        for (name, value) in file.headers {
            let is_name =
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
            if !is_name || value.contains(char::is_control) {
                bail!("{}: [headers] has a name or value that HTTP does not allow", named());
            }
            secrets.fields.push((name, value));
        }
        Ok(secrets)
    }
}

/// Reads a file that only its owner may read.
fn read_private(path: &Path) -> anyhow::Result<String> {
    let context = || format!("cannot read {}", path.display());
    let facts = fs::metadata(path).with_context(context)?;
    if facts.mode() & 0o077 != 0 {
        let mode = facts.mode() & 0o777;
        bail!("{0}: others may read or change it (mode {mode:o}); run `chmod 600 {0}`", path.display());
    }
    if facts.len() > MAX_BYTES {
        bail!("{}: longer than {MAX_BYTES} bytes", path.display());
    }
    fs::read_to_string(path).with_context(context)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn write(dir: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = dir.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn error(path: &Path) -> String {
        format!("{:#}", SiteSecrets::read(path).err().unwrap())
    }

    #[test]
    fn all_kinds_of_secrets_are_read() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "c.txt", ".a.example\tTRUE\t/\tFALSE\t0\tsid\t1\n", 0o600);
        let recording = r#"{"steps": [{"type": "navigate", "url": "http://a.example/"}]}"#;
        write(dir.path(), "r.json", recording, 0o400);
        let text = "cookies = \"c.txt\"\nrecording = \"r.json\"\nuser = \"me\"\npassword = \"x\"\n[headers]\nX-Key = \"k\"\n";
        let secrets = SiteSecrets::read(&write(dir.path(), "s.toml", text, 0o600)).unwrap();
        assert_eq!((secrets.cookies.iter().count(), secrets.steps.len()), (1, 1));
        let fields = [("Authorization", "Basic bWU6eA=="), ("X-Key", "k")];
        assert_eq!(secrets.fields, fields.map(|(name, value)| (name.to_string(), value.to_string())));
    }

    #[test]
    fn files_that_others_may_read_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        for mode in [0o644, 0o640, 0o604, 0o620] {
            let message = error(&write(dir.path(), "s.toml", "user = \"s3cret\"\n", mode));
            assert!(message.contains("chmod 600") && !message.contains("s3cret"), "{message}");
        }
        write(dir.path(), "c.txt", "", 0o644);
        assert!(
            error(&write(dir.path(), "t.toml", "cookies = \"c.txt\"\n", 0o600)).contains("c.txt: others")
        );
    }

    #[test]
    fn errors_quote_no_secret() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "c.txt", "sid=s3cret\n", 0o600);
        write(dir.path(), "r.json", "{\"steps\": \"s3cret\"", 0o600);
        for (text, expected) in [
            ("\npasword = \"s3cret\"\n", "line 2"),
            ("password = s3cret\n", "line 1"),
            ("password = \"s3cret\"\n", "belong together"),
            ("cookies = \"c.txt\"\n", "c.txt: line 1"),
            ("recording = \"r.json\"\n", "r.json: line 1"),
            ("[headers]\n\"a b\" = \"s3cret\"\n", "does not allow"),
            ("profile = \"nowhere\"\n", "profile's own folder"),
        ] {
            let message = error(&write(dir.path(), "s.toml", text, 0o600));
            assert!(message.contains(expected) && !message.contains("s3cret"), "{message}");
        }
    }
}
