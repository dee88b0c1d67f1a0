//! Two URLs -> whether one is a longer name of the other, as `/index.html` is of `/`.
//!
//! This alone proves nothing: the two are one page only while they deliver the same bytes.

use url::Url;

/// File names that servers deliver for a directory.
const INDEX_FILES: [&str; 12] = [
    "index.html",
    "index.htm",
    "index.xhtml",
    "index.shtml",
    "index.php",
    "index.asp",
    "index.aspx",
    "index.jsp",
    "default.htm",
    "default.html",
    "default.asp",
    "default.aspx",
];

/// Whether `url` is a longer name of `other`, provided that both deliver the same bytes.
pub fn is_longer_name(url: &str, other: &str) -> bool {
    let (Ok(mut url), Ok(other)) = (Url::parse(url), Url::parse(other)) else { return false };
    let Some((folder, file)) = url.path().rsplit_once('/') else { return false };
    if !INDEX_FILES.contains(&file.to_ascii_lowercase().as_str()) {
        return false;
    }
    let folder = format!("{folder}/");
    url.set_path(&folder);
    url == other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_names_of_a_page() {
        for (url, other, is_longer) in [
            ("http://a.org/index.html", "http://a.org/", true),
            ("http://a.org/x/Default.aspx?p=1", "http://a.org/x/?p=1", true),
            ("http://a.org/", "http://a.org/index.html", false),
            ("http://a.org/", "http://a.org/", false),
            ("http://a.org/index.html", "http://b.org/", false),
            ("http://a.org/about.html", "http://a.org/", false),
        ] {
            assert_eq!(is_longer_name(url, other), is_longer, "{url} {other}");
        }
    }
}
