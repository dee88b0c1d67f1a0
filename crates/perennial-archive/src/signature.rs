//! Signs exports with a key of the archive, as WACZ's draft on signatures describes: an anonymous signature, which shows
//! that two exports come from the same key. <https://specs.webrecorder.net/wacz-auth/0.1.0/>

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use data_encoding::BASE64;
use perennial_core::time::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

use super::Archive;

const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";

/// The bytes before the point of a public key on the curve P-256, in the form that X.509 gives it.
const PUBLIC_KEY_HEAD: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// The archive's key.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    rng: SystemRandom,
}

impl Archive {
    /// Path of the private key. Whoever has it can sign in the archive's name.
    pub fn signing_key_path(&self) -> PathBuf {
        self.root().join("signing.key")
    }
}

impl SigningKey {
    /// Reads the key of an archive, or makes it.
    pub fn open_or_make(archive: &Archive) -> anyhow::Result<SigningKey> {
        let path = archive.signing_key_path();
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(&path)?,
            read => read.with_context(|| format!("cannot read {}", path.display()))?,
        };
        SigningKey::parse(&text).with_context(|| {
            format!(
                "{} is not a private key: move it away, and the next export makes another",
                path.display()
            )
        })
    }

    fn parse(text: &str) -> anyhow::Result<SigningKey> {
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with("-----"));
        let bytes = BASE64.decode(lines.collect::<String>().as_bytes())?;
        let rng = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &bytes, &rng);
        Ok(SigningKey { pair: pair.map_err(|error| anyhow!("{error}"))?, rng })
    }

    /// The public key in base 64.
    pub fn public_key(&self) -> String {
        BASE64.encode(&[&PUBLIC_KEY_HEAD[..], self.pair.public_key().as_ref()].concat())
    }

    /// The member `signedData` for a hash such as `sha256:...`.
    pub(crate) fn signed_data(&self, hash: &str, now: Timestamp) -> anyhow::Result<Value> {
        let signature = self.pair.sign(&self.rng, hash.as_bytes());
        let signature = signature.map_err(|_| anyhow!("the system gave no random numbers"))?;
        Ok(json!({
            "hash": hash,
            "created": now.to_rfc3339(),
            "software": concat!("perennial/", env!("CARGO_PKG_VERSION")),
            "version": "0.1.0",
            "signature": BASE64.encode(signature.as_ref()),
            "publicKey": self.public_key(),
        }))
    }
}

/// Writes a new key that only its owner can read.
fn make(path: &std::path::Path) -> anyhow::Result<String> {
    let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
    let made = made.map_err(|_| anyhow!("the system gave no random numbers"))?;
    let text = format!("{BEGIN}\n{}\n{END}\n", BASE64.encode(made.as_ref()));
    let context = || format!("cannot write {}", path.display());
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).with_context(context)?;
    file.write_all(text.as_bytes()).with_context(context)?;
    file.sync_all().with_context(context)?;
    Ok(text)
}
