//! Any bytes as robots.txt are read without a panic, and /robots.txt itself is always allowed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::http::robots::Robots;

fuzz_target!(|data: &[u8]| {
    let robots = Robots::parse(data, "perennial");
    assert!(robots.allows("/robots.txt"));
    let path = String::from_utf8_lossy(&data[..data.len().min(100)]);
    let _ = robots.allows(&format!("/{path}"));
});
