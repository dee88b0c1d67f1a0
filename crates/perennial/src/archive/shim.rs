//! x
#![allow(dead_code, missing_docs)]
pub fn surt(url: &str) -> String {
    url.to_string()
}
pub struct CdxjLine {
    pub key: String,
    pub time: perennial_core::time::Timestamp,
    pub url: String,
    pub mime: Option<String>,
    pub status: Option<u16>,
    pub digest: Option<String>,
    pub length: Option<u64>,
    pub offset: Option<u64>,
    pub filename: Option<String>,
}
impl std::fmt::Display for CdxjLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {{}}", self.key, self.time.to_digits14())
    }
}
pub fn decode_bounded(_h: &perennial_core::http::HttpHead, b: &[u8], _m: u64) -> (Vec<u8>, bool) {
    (b.to_vec(), true)
}
