//! Keeps the executable small: line numbers of our own code make up half of it unless they are compressed. Backtraces read
//! them either way, and find the names of functions beside them.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        for option in ["--compress-debug-sections=zlib", "-O2", "--discard-all"] {
            println!("cargo:rustc-link-arg-bins=-Wl,{option}");
        }
    }
}
