//! Removes a secret from a text that contains it: no part of it is left, and nothing panics.
#![no_main]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use loopctl::drive::secret::Vault;

const SECRET: &str = "hunter22/x+y";

static VAULT: LazyLock<Vault> = LazyLock::new(|| {
    let file = std::env::temp_dir().join("loopctl-fuzz-secret");
    std::fs::write(&file, SECRET).expect("a file of its own");
    let keys = BTreeMap::from([("k".to_owned(), format!("file:{}", file.display()))]);
    let vault = Vault::new(keys, Path::new("/"));
    vault.find_all();
    vault
});

fuzz_target!(|text: &str| {
    assert!(!VAULT.scrub(text.to_owned()).contains(SECRET));
    assert!(!VAULT.scrub_cut(text.to_owned()).contains(SECRET));
    let around = format!("{text}\n{SECRET}\n{text}");
    assert!(VAULT.scrub(around).contains("[secret k]"));
});
