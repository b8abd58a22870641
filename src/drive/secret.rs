//! The vault: secrets of the project by key, resolved late, and taken out of whatever comes back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::compile::reference::Secrets;

/// Resolves `env:VAR` and `file:PATH` on first use, and remembers what it resolved to be able to
/// take it out of texts. Its `Debug` shows keys only.
pub struct Vault {
    #[expect(dead_code, reason = "contract")]
    keys: BTreeMap<String, String>,
    #[expect(dead_code, reason = "contract")]
    root: PathBuf,
}

impl Vault {
    /// A vault over the project's `orgconfig`; `file:` paths are relative to `root`.
    pub fn new(keys: BTreeMap<String, String>, root: &Path) -> Self {
        Self { keys, root: root.to_owned() }
    }

    /// The text behind `env:VAR` or `file:PATH`.
    ///
    /// # Errors
    /// A sentence that names the source and never the text.
    pub fn read(&self, _source: &str) -> Result<secrecy::SecretString, String> {
        Err("not written yet".to_owned())
    }

    /// Takes every resolved secret out of a text: plain, JSON-escaped, URL-encoded, base64.
    pub fn scrub(&self, text: String) -> String {
        text
    }

    /// The same for every string and key of a value.
    pub fn scrub_value(&self, value: Value) -> Value {
        value
    }
}

impl Secrets for Vault {
    fn secret(&self, key: &str) -> Result<String, String> {
        Err(format!("not written yet: {key}"))
    }
}
