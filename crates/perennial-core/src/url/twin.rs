//! An address -> whether it is a longer name of another one, as `/index.html` is of `/`.
//!
//! Nothing is taken for granted: the two are one page only while they deliver the same bytes.

use url::Url;

/// File names that servers deliver for their folder.
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

/// Whether `url` is a longer name for what `other` names, if both deliver the same.
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
